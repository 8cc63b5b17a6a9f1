//! A command on its way through the writer: with what it comes, and what becomes of it.

use ledger_core::{Rejection, Timestamp};
use ledger_journal::Position;

use super::accounts::Near;
use super::ahead::KeyPrints;
use crate::error::ReadError;
use crate::scripts::Compiled;
use crate::submission::{Detail, Receipt, Request};

/// The common context of the commands of a submission.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) ledger: u32,
    pub(crate) now: Timestamp,
    /// How much each answer says.
    pub(crate) detail: Detail,
}

/// A request with its compiled script, if it has one.
pub(crate) struct Prepared<'a> {
    /// It, where it lies: it is large, and is changed there.
    pub(crate) request: &'a mut Request,
    /// Its place in its submission.
    pub(crate) at: usize,
    pub(crate) program: Option<&'a Compiled>,
    /// Whether it is one of several that share an idempotency key.
    pub(crate) several: bool,
    /// The fingerprints of its keys.
    pub(crate) prints: KeyPrints,
    /// Where the accounts of its postings may be: of each source and destination.
    pub(crate) near: &'a [Near],
}

/// The result of a command before its batch is on disk.
#[derive(Debug)]
pub(crate) enum Decided {
    /// It is in the batch.
    Done(Receipt),
    /// It was done before: the log entry that is `later` entries after the one at `position`.
    Replay { position: Position, later: u64 },
    /// It is refused.
    Refused(Rejection),
    /// It was not tried, or is undone.
    Cancelled,
    /// A failed read of something that it needs. Nothing of it happened.
    Failed(ReadError),
}
