//! Work for the writer. The kind of the work determines the type of its answer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use ledger_core::{BucketName, LedgerName, LedgerOptions, Metadata};
use smol_str::SmolStr;

use crate::atomic::AtomicWrite;
use crate::documents::{DocumentChange, DocumentVersion};
use crate::error::WriteError;
use crate::imported_log::{Imported, ImportedLog};
use crate::query::LedgerInfo;
use crate::scripts::Programs;
use crate::submission::{Mode, Outcome, Submission};

/// The reason in the answer to a write that a panic interrupted.
pub(super) const FAULT: &str = "a write met a fault of this program";

/// One piece of work for the writer, with the callback for its answer.
pub(crate) enum WorkItem {
    Apply(Submission, Programs, Callback<Vec<Outcome>>),
    CreateLedger(LedgerName, LedgerOptions, Callback<LedgerInfo>),
    EditLedger(LedgerName, LedgerEdit, Callback<LedgerInfo>),
    /// Deletes or restores ledgers of a bucket, a limited number at a time. The answer is the number of the next ledger
    /// to visit, if there are more.
    ChangeBucket(BucketChange, Callback<Option<u32>>),
    /// Removes for good the ledgers that were deleted at least this long ago, a limited number at a time. The answer
    /// lists them, and is empty if none were due.
    RemoveDeleted(Duration, Callback<Vec<LedgerInfo>>),
    ChangeDocuments(Vec<DocumentChange>, Callback<Vec<DocumentVersion>>),
    /// Changes documents and applies commands to ledgers in one commit.
    WriteAtomically(AtomicWrite, Programs, Callback<Vec<Outcome>>),
    Import(LedgerName, NextLogs, Callback<Imported>),
}

/// A new state for the ledgers of a bucket.
pub(crate) struct BucketChange {
    pub(crate) bucket: BucketName,
    /// The number of the first ledger to visit.
    pub(crate) first: u32,
    pub(crate) to: BucketState,
}

/// Logs to import into a ledger whose hashes are checked already. `next` is the ledger's next log id at the time of the
/// check. If another write has changed it since, the writer imports nothing.
pub(crate) struct NextLogs {
    pub(crate) next: u64,
    pub(crate) logs: Vec<ImportedLog>,
}

impl WorkItem {
    /// Returns the number of its commands, document changes or logs. Other work counts as one command.
    pub(super) fn commands(&self) -> usize {
        match self {
            Self::Apply(submission, ..) => submission.requests.len(),
            Self::CreateLedger(..)
            | Self::EditLedger(..)
            | Self::ChangeBucket(..)
            | Self::RemoveDeleted(..) => 1,
            Self::ChangeDocuments(changes, _) => changes.len(),
            Self::WriteAtomically(write, ..) => write.documents.len() + write.commands.len(),
            Self::Import(_, logs, _) => logs.logs.len(),
        }
    }

    /// Returns whether the work records nothing.
    pub(super) const fn writes_nothing(&self) -> bool {
        matches!(self, Self::Apply(Submission { mode: Mode::DryRun, .. }, ..))
    }

    /// Returns whether the work may run on a nearly full disk, because it records nothing or frees space.
    pub(super) const fn is_allowed_on_full_disk(&self) -> bool {
        match self {
            Self::Apply(..) => self.writes_nothing(),
            Self::ChangeBucket(..) | Self::RemoveDeleted(..) => true,
            Self::CreateLedger(..)
            | Self::EditLedger(..)
            | Self::ChangeDocuments(..)
            | Self::WriteAtomically(..)
            | Self::Import(..) => false,
        }
    }

    /// Answers that the work was not done.
    pub(super) fn refuse(self, why: WriteError) {
        match self {
            Self::Apply(_, _, callback) | Self::WriteAtomically(_, _, callback) => callback.call(Err(why)),
            Self::CreateLedger(_, _, callback) | Self::EditLedger(_, _, callback) => callback.call(Err(why)),
            Self::ChangeBucket(_, callback) => callback.call(Err(why)),
            Self::RemoveDeleted(_, callback) => callback.call(Err(why)),
            Self::ChangeDocuments(_, callback) => callback.call(Err(why)),
            Self::Import(_, _, callback) => callback.call(Err(why)),
        }
    }
}

/// The new state of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BucketState {
    /// Its ledgers are deleted: no request finds them.
    Deleted,
    /// Its ledgers are restored.
    Restored,
}

/// A change to the mapping or the metadata of a whole ledger. The ledger's log does not record it.
pub(crate) enum LedgerEdit {
    /// Replaces the ledger's v1 mapping, as JSON text.
    Mapping(String),
    /// Sets these metadata keys.
    Set(Metadata),
    /// Deletes a metadata key.
    Delete(SmolStr),
}

type Reply<T> = Box<dyn FnOnce(Result<T, WriteError>) + Send>;

/// The callback of a caller that waits for an answer. If it is dropped without an answer, as in a panic, it reports
/// that the outcome is unknown, so no caller waits forever.
pub(crate) struct Callback<T>(Option<Reply<T>>);

impl<T> Callback<T> {
    pub(crate) fn new(reply: impl FnOnce(Result<T, WriteError>) + Send + 'static) -> Self {
        Self(Some(Box::new(reply)))
    }

    pub(super) fn call(mut self, answer: Result<T, WriteError>) {
        self.reply(|| answer);
    }

    /// A panic in the callback does not affect the write. Catch it so that other callers still get their answers.
    fn reply(&mut self, answer: impl FnOnce() -> Result<T, WriteError>) {
        if let Some(reply) = self.0.take() {
            let _ = catch_unwind(AssertUnwindSafe(|| reply(answer())));
        }
    }
}

impl<T> Drop for Callback<T> {
    fn drop(&mut self) {
        self.reply(|| Err(WriteError::OutcomeUnknown(FAULT.into())));
    }
}

/// Work, with the bytes that it takes in the queue.
pub(super) struct Job {
    pub(super) work: WorkItem,
    pub(super) bytes: usize,
}

/// Work that was turned away, with the reason.
pub(super) type RejectedWork = (WorkItem, WriteError);
