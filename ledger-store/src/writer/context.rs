//! The context in which the commands of one ledger are decided, and the reasons why a command stops.

use ledger_core::Rejection;

use super::batch::Batch;
use super::state::State;
use crate::error::ReadError;
use crate::imported_log::ImportRefusal;

/// The writer's state and one of its ledgers, with the places where new entries go and where unpublished ones are read.
pub(crate) struct LedgerContext<'a, W> {
    pub(crate) state: &'a mut State,
    /// The number of the ledger.
    pub(crate) ledger: u32,
    /// The batch that gets the new entries.
    pub(crate) batch: &'a mut Batch,
    /// Entries that were decided earlier, including those that readers do not see yet.
    pub(crate) written: &'a W,
}

/// The reason why a command has no effect.
#[derive(Debug)]
pub(super) enum Stop<R> {
    /// The rules refuse it.
    Refused(R),
    /// A read that it needs failed.
    Failed(ReadError),
}

impl<R> Stop<R> {
    /// Separates a refusal, which is an answer, from a failure.
    pub(super) fn refusal(result: Result<(), Self>) -> Result<Option<R>, ReadError> {
        match result {
            Ok(()) => Ok(None),
            Err(Self::Refused(refusal)) => Ok(Some(refusal)),
            Err(Self::Failed(error)) => Err(error),
        }
    }
}

impl<R> From<ReadError> for Stop<R> {
    fn from(error: ReadError) -> Self {
        Self::Failed(error)
    }
}

impl From<Rejection> for Stop<Rejection> {
    fn from(rejection: Rejection) -> Self {
        Self::Refused(rejection)
    }
}

impl From<ImportRefusal> for Stop<ImportRefusal> {
    fn from(refusal: ImportRefusal) -> Self {
        Self::Refused(refusal)
    }
}
