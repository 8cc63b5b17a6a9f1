//! Reads the wire hashes of log entries.

use ledger_core::{LogEntry, WireHash};
use ledger_index::Way;
use ledger_journal::Position;

use super::session::Session;
use crate::error::ReadError;
use crate::hashes::{Chain, ChainId};

/// Maximum number of entries without a stored hash that a read hashes itself. If more are missing, the read waits for
/// the hashing thread.
const UNHASHED_MAX: u64 = 4_096;

impl Session {
    /// Returns the hash chain as it was right before a log id.
    pub(crate) fn chain_before(&self, id: ChainId, log: u64) -> Result<Chain, ReadError> {
        let ledger = self.ledger();
        if let Some(last) = log.checked_sub(1)
            && let Some(row) = self.logs().last_in((ledger, 0), (ledger, last))?
            && let Some(needed) = Position::new(row.position.saturating_sub(UNHASHED_MAX))
        {
            // After a burst of writes, the checkpoints may lag behind.
            self.hashes.wait(needed, || self.meter.is_late());
            self.meter.in_time()?;
        }
        self.hashes.chain_before(&self.reader, id, log, || self.meter.row())
    }

    /// Appends the entries with ids in `from..to` to a chain.
    fn extend_chain(&self, chain: &mut Chain, from: u64, to: u64) -> Result<(), ReadError> {
        let Some(last) = to.checked_sub(1).filter(|last| *last >= from) else { return Ok(()) };
        let ledger = self.ledger();
        for row in self.logs().cursor((ledger, from), (ledger, last), Way::Ascending) {
            self.meter.row()?;
            chain.append(&self.log_entry(&row?)?);
        }
        Ok(())
    }

    /// Returns the wire hashes of entries that ascend by id. `id` selects one of the ledger's chains.
    pub(crate) fn hashes_of(&self, id: ChainId, entries: &[&LogEntry]) -> Result<Vec<WireHash>, ReadError> {
        let Some(first) = entries.first() else { return Ok(Vec::new()) };
        let mut next = first.id.get();
        let mut chain = self.chain_before(id, next)?;
        let mut hashes = Vec::with_capacity(entries.len());
        for entry in entries {
            self.extend_chain(&mut chain, next, entry.id.get())?;
            hashes.push(chain.append(entry));
            next = entry.id.get() + 1;
        }
        Ok(hashes)
    }
}
