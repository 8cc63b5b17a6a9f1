//! Lookups of decided entries that may not be published yet.

use ledger_core::{PriorRequest, Script, TransactionId};
use ledger_journal::Position;
use smol_str::SmolStr;

use super::batch::Batch;
use crate::error::ReadError;
use crate::read::RecordedTransaction;
use crate::scripts::Compiled;

/// Reads entries that the writer has decided, including those of the current batch and of the batch that is being
/// committed. Readers do not see these two yet.
pub(crate) trait WrittenEntries {
    /// Returns the transaction as it was recorded, or `None` if it does not exist.
    fn transaction(
        &self,
        batch: &mut Batch,
        ledger: u32,
        id: TransactionId,
    ) -> Result<Option<RecordedTransaction>, ReadError>;

    /// Returns the compiled form of a script.
    fn compile(&self, script: &Script) -> Compiled;

    /// Returns the reference of a transaction.
    fn reference(&self, batch: &mut Batch, ledger: u32, id: u64) -> Result<Option<SmolStr>, ReadError>;

    /// Returns the idempotency key of an entry and the data that recognises its request.
    fn idempotency(
        &self,
        batch: &mut Batch,
        position: Position,
    ) -> Result<Option<(SmolStr, PriorRequest)>, ReadError>;
}
