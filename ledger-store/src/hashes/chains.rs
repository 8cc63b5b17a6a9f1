//! The chains that the hashing thread keeps going.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use ledger_core::{HashChain, HashLogs, LogEntry, WireHash};

use super::Hashes;
use crate::entry::{Body, Record};
use crate::error::ReadError;
use crate::read::LedgerReader;

/// A checkpoint is kept after so many entries of a ledger.
const CHECKPOINT_ENTRIES: u32 = 256;
/// Chains of so many ledgers are kept going; beyond that all are begun anew from their checkpoints.
const CHAINS_MAX: usize = 4_096;

/// Chains by ledger.
#[derive(Default)]
pub(crate) struct Chains(HashMap<u32, Chain, RandomState>);

struct Chain {
    hashes: HashChain,
    since_checkpoint: u32,
}

impl Chains {
    /// Hashes an entry of the journal, if its ledger keeps hashes.
    pub(crate) fn append_record(
        &mut self,
        hashes: &Hashes,
        reader: &LedgerReader,
        record: &Record<'_>,
    ) -> Result<(), ReadError> {
        let Body::Log(log) = &record.body else { return Ok(()) };
        if reader.head()?.info.features.hash_logs == HashLogs::Disabled {
            return Ok(());
        }
        let entry: LogEntry = reader.log_entry(record)?;
        self.append(
            hashes,
            log.ledger,
            log.log,
            || hashes.chain_before(reader, log.log, || Ok(())),
            |chain| chain.append(&entry),
        )
    }

    /// Hashes an entry of which the writer gave the text. `begin` makes the chain right before it, where none
    /// is kept going.
    pub(crate) fn append_text(
        &mut self,
        hashes: &Hashes,
        (ledger, log, text): (u32, u64, &[u8]),
        begin: impl FnOnce() -> Result<HashChain, ReadError>,
    ) -> Result<(), ReadError> {
        self.append(hashes, ledger, log, begin, |chain| chain.append_text(text))
    }

    fn append(
        &mut self,
        hashes: &Hashes,
        ledger: u32,
        log: u64,
        begin: impl FnOnce() -> Result<HashChain, ReadError>,
        append: impl FnOnce(&mut HashChain) -> WireHash,
    ) -> Result<(), ReadError> {
        if self.0.len() >= CHAINS_MAX && !self.0.contains_key(&ledger) {
            self.0.clear();
        }
        let chain = match self.0.entry(ledger) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(Chain { hashes: begin()?, since_checkpoint: 0 }),
        };
        let hash = append(&mut chain.hashes);
        chain.since_checkpoint += 1;
        if chain.since_checkpoint >= CHECKPOINT_ENTRIES {
            chain.since_checkpoint = 0;
            hashes.pending.lock().insert((ledger, log), hash);
        }
        Ok(())
    }
}
