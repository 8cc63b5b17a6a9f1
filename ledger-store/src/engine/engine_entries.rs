//! Lets the writer read back decided entries, including those that are not published yet.

use ledger_core::{PriorRequest, Script, TransactionId};
use ledger_journal::Position;
use ledger_journal::entry::{Record, find_in_chunk};
use smol_str::SmolStr;

use super::Engine;
use crate::error::ReadError;
use crate::read::{LedgerReader, RecordedTransaction};
use crate::scripts::Compiled;
use crate::view::View;
use crate::writer::{Batch, WrittenEntries};

/// Reads decided entries: those of the current batch from the batch itself, and earlier ones from the journal. If an
/// earlier entry may belong to the batch that is being committed, it first waits for that commit.
pub(super) struct EngineEntries<'a> {
    pub(super) engine: &'a Engine,
    /// True if this thread already holds the committer lock, so that no commit is running.
    pub(super) has_committer_lock: bool,
}

impl EngineEntries<'_> {
    /// Waits until everything that was decided before the current batch is published.
    fn wait_for_commit(&self) {
        if !self.has_committer_lock {
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
        self.wait_for_commit();
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
            self.wait_for_commit();
        }
        let Some(chunk) = self.engine.journal.read(position)? else { return Ok(None) };
        Ok(find_in_chunk(&chunk, position)?.map(|record| then(&record)))
    }
}

impl WrittenEntries for EngineEntries<'_> {
    fn compile(&self, script: &Script) -> Compiled {
        self.engine.scripts.compile(script)
    }

    fn transaction(
        &self,
        batch: &mut Batch,
        ledger: u32,
        id: TransactionId,
    ) -> Result<Option<RecordedTransaction>, ReadError> {
        let Some(position) = self.position_of(batch, ledger, id.get())? else { return Ok(None) };
        // A record refers to names and accounts by number. The writer shares the tables of names with readers, so even
        // the names of an unpublished record can be looked up. Accounts are published with their batch. Look those of
        // the current batch up in its rows, and wait for the commit of the batch before it, so that the view has the
        // others.
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
                // The batch that is being committed may hold accounts that this one refers to.
                self.wait_for_commit();
                let reader = reader.with_view(self.engine.view());
                reader.recorded(record, &made)
            })?;
            return found.transpose();
        }
        self.wait_for_commit();
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
    ) -> Result<Option<(SmolStr, PriorRequest)>, ReadError> {
        let found = self.read(batch, position, |record| {
            crate::read::idempotency_of(record).map(|(key, prior_request)| (key.into(), prior_request))
        })?;
        Ok(found.flatten())
    }
}
