//! The wire hashes of log entries.

use ledger_core::{HashChain, LogEntry, WireHash};

use super::session::Session;
use crate::error::ReadError;
use crate::index::Way;

impl Session {
    /// The hash of the entry before a log id: what the chain of the next is made of; `None` before the first.
    fn hash_before(&self, log: u64) -> Result<Option<WireHash>, ReadError> {
        let mut chain = HashChain::after(None);
        self.extend_chain(&mut chain, self.head.info.first_id.get(), log)?;
        Ok(chain.last())
    }

    /// Adds the entries from one log id up to but without another.
    fn extend_chain(&self, chain: &mut HashChain, from: u64, to: u64) -> Result<(), ReadError> {
        let Some(last) = to.checked_sub(1).filter(|last| *last >= from) else { return Ok(()) };
        let ledger = self.ledger();
        for row in self.logs().cursor((ledger, from), (ledger, last), Way::Ascending) {
            self.meter.row()?;
            chain.append(&self.log_entry(&row?)?);
        }
        Ok(())
    }

    /// The hashes of entries that ascend by id.
    pub(crate) fn hashes(&self, entries: &[&LogEntry]) -> Result<Vec<WireHash>, ReadError> {
        let Some(first) = entries.first() else { return Ok(Vec::new()) };
        let mut next = first.id.get();
        let mut chain = HashChain::after(self.hash_before(next)?);
        let mut hashes = Vec::with_capacity(entries.len());
        for entry in entries {
            self.extend_chain(&mut chain, next, entry.id.get())?;
            hashes.push(chain.append(entry));
            next = entry.id.get() + 1;
        }
        Ok(hashes)
    }
}
