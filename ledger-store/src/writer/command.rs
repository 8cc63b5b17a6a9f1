//! A command in the writer: its context and its outcome.

use ledger_core::{Rejection, Timestamp};
use ledger_journal::Position;

use super::accounts::AccountHint;
use super::prefetch::KeyFingerprints;
use crate::error::ReadError;
use crate::scripts::Compiled;
use crate::submission::{Detail, Receipt, Request};

/// The common context of the commands in a submission.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SubmissionParams {
    pub(crate) now: Timestamp,
    /// How much detail the outcomes contain.
    pub(crate) detail: Detail,
}

/// A request with its compiled script and prefetched data.
pub(crate) struct Prepared<'a> {
    /// The request, by reference because it is large. The writer replaces its template and its script in place by the
    /// resulting postings.
    pub(crate) request: &'a mut Request,
    /// Its index in the submission.
    pub(crate) at: usize,
    pub(crate) program: Option<&'a Compiled>,
    /// True if one idempotency key covers all requests of its submission
    /// ([`Atomicity::AsOne`](crate::submission::Atomicity::AsOne)), and there are several. Then a repetition must have the
    /// same hash.
    pub(crate) several: bool,
    /// The fingerprints of its keys, if known.
    pub(crate) key_fingerprints: KeyFingerprints,
    /// The prefetched accounts: source and destination of each posting. Empty if nothing was prefetched.
    pub(crate) prefetched_accounts: &'a [AccountHint],
}

/// The outcome of a command before its batch is on disk.
#[derive(Debug)]
pub(crate) enum Decided {
    /// The command was accepted and is in the batch.
    Done(Receipt),
    /// The command was executed before. `position` is the entry of the first command of its submission, and its own entry
    /// is `offset` entries later. `offset` is 0 unless one key covers several commands.
    Replay { position: Position, offset: u64 },
    /// The rules refuse the command.
    Refused(Rejection),
    /// The command was not tried, or was undone, because another command of its submission was refused or failed.
    Cancelled,
    /// A read that the command needs failed. The command had no effect.
    Failed(ReadError),
}
