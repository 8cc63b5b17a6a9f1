//! Lookups of entries that may not be published yet.

use compact_str::CompactString;
use ledger_core::TransactionId;
use ledger_journal::Position;
use ledger_journal::entry::Recognition;

use super::batch::Batch;
use crate::error::ReadError;
use crate::read::RecordedTransaction;
use crate::scripts::Compiled;

/// Written entries that are perhaps not published yet; the batch in hand included.
pub(crate) trait Written {
    /// The transaction as it was recorded; `None` if there is none.
    fn transaction(
        &self,
        batch: &mut Batch,
        ledger: u32,
        id: TransactionId,
    ) -> Result<Option<RecordedTransaction>, ReadError>;

    /// The program of a script.
    fn compile(&self, script: &str) -> Compiled;

    /// The reference of a transaction.
    fn reference(&self, batch: &mut Batch, ledger: u32, id: u64) -> Result<Option<CompactString>, ReadError>;

    /// The idempotency key of an entry, and by what its request is recognized.
    fn idempotency(
        &self,
        batch: &mut Batch,
        position: Position,
    ) -> Result<Option<(CompactString, Recognition)>, ReadError>;
}
