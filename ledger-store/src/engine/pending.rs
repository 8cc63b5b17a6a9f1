//! Answers that wait until their batch is durable.
//!
//! `decide` turns each piece of work into a [`Pending`] answer. After the commit, `Resolver` completes it:
//! it reads the entries of idempotent replays, and computes effective volumes.

use ledger_journal::Position;

use super::work::Callback;
use crate::error::WriteError;
use crate::submission::{Detail, Mode, Outcome, Receipt, Request};
use crate::writer::Decided;

/// Answers commands of a dry run that repeat the idempotency key of an earlier command of the same dry run. A dry run
/// records no entry that `Resolver` could read, so the earlier receipt is the answer. The accepted commands have
/// consecutive positions from `first`.
pub(super) fn answer_replays(outcomes: &mut [Decided], first: Position) {
    let mut receipts: Vec<Receipt> = Vec::new();
    for outcome in outcomes {
        match outcome {
            Decided::Done(receipt) => receipts.push(receipt.clone()),
            Decided::Replay { position, .. } => {
                let offset = position.get().checked_sub(first.get());
                let offset = offset.and_then(|offset| usize::try_from(offset).ok());
                if let Some(receipt) = offset.and_then(|offset| receipts.get(offset)) {
                    // A replay repeats the entry, but not the violation of the schema.
                    let receipt = Receipt { replayed: true, violation: None, ..receipt.clone() };
                    *outcome = Decided::Done(receipt);
                }
            }
            Decided::Refused(_) | Decided::Cancelled | Decided::Failed(_) => {}
        }
    }
}

/// An answer that waits until its batch is durable, with the callback of its caller.
pub(super) enum Pending {
    /// Outcomes of commands. `Resolver` completes them with reads.
    Outcomes(PendingOutcomes, Callback<Vec<Outcome>>),
    /// A complete answer. The callback receives the answer if the commit succeeds, and the error if it fails.
    Complete(Box<dyn FnOnce(Result<(), WriteError>) + Send>),
}

/// Outcomes whose details `Resolver` still has to read.
pub(super) struct PendingOutcomes {
    pub(super) decided: DecidedCommands,
    /// Requests that are no longer needed. They are freed after the commit, outside the decider lock.
    pub(super) spent: Vec<Request>,
}

impl PendingOutcomes {
    /// Returns whether the commands were only tried, so that nothing was written.
    pub(super) fn is_dry_run(&self) -> bool {
        matches!(self.decided, DecidedCommands::OfLedger { mode: Mode::DryRun, .. })
    }
}

/// The outcomes of commands before their batch is on disk.
pub(super) enum DecidedCommands {
    /// Outcomes of a submission.
    OfLedger { ledger: u32, mode: Mode, detail: Detail, outcomes: Vec<Decided> },
    /// Outcomes of an atomic write, each with its ledger.
    OfLedgers(Vec<(u32, Decided)>),
}

impl Pending {
    /// Creates an answer that needs no further reads.
    pub(super) fn complete<T: Send + 'static>(callback: Callback<T>, answer: Result<T, WriteError>) -> Self {
        Self::Complete(Box::new(move |committed| callback.call(committed.and(answer))))
    }

    /// Creates the answer to commands.
    pub(super) fn outcomes(
        callback: Callback<Vec<Outcome>>,
        decided: Result<PendingOutcomes, WriteError>,
    ) -> Self {
        match decided {
            Ok(pending) => Self::Outcomes(pending, callback),
            Err(error) => Self::complete(callback, Err(error)),
        }
    }

    /// Answers that the commit failed.
    pub(super) fn fail(self, error: WriteError) {
        match self {
            Self::Outcomes(_, callback) => callback.call(Err(error)),
            Self::Complete(answer) => answer(Err(error)),
        }
    }
}
