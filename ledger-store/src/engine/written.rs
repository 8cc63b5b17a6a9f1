//! Lets the writer read back decided transactions that are not published yet.

use ledger_core::TransactionId;
use ledger_journal::Position;
use ledger_journal::entry::{Recognition, Record, find_in_chunk};
use smol_str::SmolStr;

use super::Engine;
use crate::error::ReadError;
use crate::read::{LedgerReader, RecordedTransaction};
use crate::scripts::Compiled;
use crate::view::View;
use crate::writer::{Batch, Written};

/// Reads decided entries: from the current batch, or from the journal, after waiting for the running commit.
pub(super) struct WrittenHere<'a> {
    pub(super) engine: &'a Engine,
    /// Whether this thread already holds the committer lock, so that no commit is running.
    pub(super) is_my_turn: bool,
}

impl WrittenHere<'_> {
    /// Waits until everything that was decided before this batch is published.
    fn settle(&self) {
        if !self.is_my_turn {
            drop(self.engine.committer.lock());
        }
    }

    /// Returns the position of the entry that created a transaction. The id must be below the ledger's next one.
    fn position_of(&self, batch: &Batch, ledger: u32, id: u64) -> Result<Option<Position>, ReadError> {
        if let Some(position) = batch.position_of(ledger, id) {
            return Ok(Some(position));
        }
        let find = |view: &View| -> Result<Option<Position>, ReadError> {
            let row = view.table(|memtable| &memtable.transactions).get((ledger, id))?;
            Ok(row.and_then(|row| Position::new(row.position)))
        };
        if let Some(position) = find(&self.engine.view())? {
            return Ok(Some(position));
        }
        // The transaction may be in the batch that is being committed.
        self.settle();
        find(&self.engine.view())
    }

    fn read<T>(
        &self,
        batch: &mut Batch,
        position: Position,
        then: impl FnOnce(&Record<'_>) -> T,
    ) -> Result<Option<T>, ReadError> {
        if position >= batch.first {
            return Ok(batch.read(position, then)?);
        }
        if position >= self.engine.journal.head().next {
            self.settle();
        }
        let Some(chunk) = self.engine.journal.read(position)? else { return Ok(None) };
        Ok(find_in_chunk(&chunk, position)?.map(|record| then(&record)))
    }
}

impl Written for WrittenHere<'_> {
    fn compile(&self, script: &str) -> Compiled {
        self.engine.scripts.compile(script)
    }

    fn transaction(
        &self,
        batch: &mut Batch,
        ledger: u32,
        id: TransactionId,
    ) -> Result<Option<RecordedTransaction>, ReadError> {
        let Some(position) = self.position_of(batch, ledger, id.get())? else { return Ok(None) };
        // The record's names are in tables that the writer shares with readers, even before it is published. The
        // addresses of new accounts are not, so publish the batch that is being committed first.
        if position >= batch.first {
            let accounts = batch.rows.accounts.clone();
            let view = self.engine.view();
            let reader = LedgerReader::new(self.engine.journal.clone(), view, ledger);
            let made = |account: u32| {
                accounts
                    .iter()
                    .find(|have| (have.ledger, have.account) == (ledger, account))
                    .map(|have| have.address.clone())
            };
            let found = self.read(batch, position, |record| {
                // The previous batch may hold accounts that this batch refers to.
                self.settle();
                let reader = reader.with_view(self.engine.view());
                reader.recorded(record, &made)
            })?;
            return found.transpose();
        }
        self.settle();
        let reader = LedgerReader::new(self.engine.journal.clone(), self.engine.view(), ledger);
        self.read(batch, position, |record| reader.recorded(record, &|_| None))?.transpose()
    }

    fn reference(&self, batch: &mut Batch, ledger: u32, id: u64) -> Result<Option<SmolStr>, ReadError> {
        let Some(position) = self.position_of(batch, ledger, id)? else { return Ok(None) };
        let found =
            self.read(batch, position, |record| crate::read::reference_of(record).map(SmolStr::from))?;
        Ok(found.flatten())
    }

    fn idempotency(
        &self,
        batch: &mut Batch,
        position: Position,
    ) -> Result<Option<(SmolStr, Recognition)>, ReadError> {
        let found = self.read(batch, position, |record| {
            crate::read::idempotency_of(record).map(|(key, recognition)| (key.into(), recognition))
        })?;
        Ok(found.flatten())
    }
}
