//! Work for the writer. Its kind decides the type of its answer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use compact_str::CompactString;
use ledger_core::{BucketName, LedgerName, LedgerOptions, Metadata};

use crate::atomic::AtomicWrite;
use crate::documents::{DocumentChange, DocumentVersion};
use crate::error::WriteError;
use crate::imported::{Imported, ImportedLog};
use crate::query::LedgerInfo;
use crate::scripts::Programs;
use crate::submission::{Mode, Outcome, Submission};

/// Why a write has no answer, or none is taken, after a panic.
pub(super) const FAULT: &str = "a write met a fault of this program";

/// Something to write, each with the caller who waits for its answer.
pub(crate) enum Work {
    Apply(Submission, Programs, Done<Vec<Outcome>>),
    CreateLedger(LedgerName, LedgerOptions, Done<LedgerInfo>),
    EditLedger(LedgerName, LedgerEdit, Done<LedgerInfo>),
    /// Marks the ledgers of a bucket, some at a time.
    MarkBucket(BucketMark, Done<Option<u32>>),
    /// Removes for good what has been deleted for so long, some ledgers at a time. The answer is empty if none were due.
    RemoveDeleted(Duration, Done<Vec<LedgerInfo>>),
    ChangeDocuments(Vec<DocumentChange>, Done<Vec<DocumentVersion>>),
    /// Changes of documents and commands on ledgers, recorded together.
    WriteAtomically(AtomicWrite, Programs, Done<Vec<Outcome>>),
    Import(LedgerName, NextLogs, Done<Imported>),
}

/// A change of the ledgers of a bucket. The answer is the number of the next ledger to look at, if there are more.
pub(crate) struct BucketMark {
    pub(crate) bucket: BucketName,
    /// The number of the first ledger to look at.
    pub(crate) first: u32,
    pub(crate) mark: Mark,
}

/// Logs for a ledger, with the id that its next log had when their hashes were compared.
pub(crate) struct NextLogs {
    pub(crate) next: u64,
    pub(crate) logs: Vec<ImportedLog>,
}

impl Work {
    /// How many commands it is.
    pub(super) fn commands(&self) -> usize {
        match self {
            Self::Apply(submission, ..) => submission.requests.len(),
            Self::CreateLedger(..)
            | Self::EditLedger(..)
            | Self::MarkBucket(..)
            | Self::RemoveDeleted(..) => 1,
            Self::ChangeDocuments(changes, _) => changes.len(),
            Self::WriteAtomically(write, ..) => write.documents.len() + write.commands.len(),
            Self::Import(_, logs, _) => logs.logs.len(),
        }
    }

    /// Whether nothing of it is kept.
    pub(super) const fn writes_nothing(&self) -> bool {
        matches!(self, Self::Apply(Submission { mode: Mode::DryRun, .. }, ..))
    }

    /// Whether it is done on a disk that is nearly full: it writes nothing, or is how room is made.
    pub(super) const fn needs_no_room(&self) -> bool {
        match self {
            Self::Apply(..) => self.writes_nothing(),
            Self::MarkBucket(..) | Self::RemoveDeleted(..) => true,
            Self::CreateLedger(..)
            | Self::EditLedger(..)
            | Self::ChangeDocuments(..)
            | Self::WriteAtomically(..)
            | Self::Import(..) => false,
        }
    }

    /// Answers that it is not done.
    pub(super) fn refuse(self, why: WriteError) {
        match self {
            Self::Apply(_, _, done) | Self::WriteAtomically(_, _, done) => done.tell(Err(why)),
            Self::CreateLedger(_, _, done) | Self::EditLedger(_, _, done) => done.tell(Err(why)),
            Self::MarkBucket(_, done) => done.tell(Err(why)),
            Self::RemoveDeleted(_, done) => done.tell(Err(why)),
            Self::ChangeDocuments(_, done) => done.tell(Err(why)),
            Self::Import(_, _, done) => done.tell(Err(why)),
        }
    }
}

/// A change of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Its ledgers are found by nobody.
    Deleted,
    /// They are found again.
    Restored,
}

/// A change of what a ledger is beside its log.
pub(crate) enum LedgerEdit {
    /// Its contracts, as JSON text.
    Mapping(String),
    Set(Metadata),
    Delete(CompactString),
}

type Reply<T> = Box<dyn FnOnce(Result<T, WriteError>) + Send>;

/// A caller that waits for an answer. It never waits for ever: dropped without one, as a panic does, it tells that the
/// outcome is unknown.
pub(crate) struct Done<T>(Option<Reply<T>>);

impl<T> Done<T> {
    pub(crate) fn new(reply: impl FnOnce(Result<T, WriteError>) + Send + 'static) -> Self {
        Self(Some(Box::new(reply)))
    }

    pub(super) fn tell(mut self, answer: Result<T, WriteError>) {
        self.reply(|| answer);
    }

    /// A panic in the callback is caught: the write stands as it is, and other callers get their answers too.
    fn reply(&mut self, answer: impl FnOnce() -> Result<T, WriteError>) {
        if let Some(reply) = self.0.take() {
            let _ = catch_unwind(AssertUnwindSafe(|| reply(answer())));
        }
    }
}

impl<T> Drop for Done<T> {
    fn drop(&mut self) {
        self.reply(|| Err(WriteError::OutcomeUnknown { reason: FAULT.to_owned() }));
    }
}

/// Work with the memory that it takes.
pub(super) struct Job {
    pub(super) work: Work,
    pub(super) bytes: usize,
}

/// Work that is not done, and why.
pub(super) type TurnedAway = (Work, WriteError);
