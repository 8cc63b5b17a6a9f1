//! The hash chains that the hashing thread continues from entry to entry.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use ledger_core::{LogEntry, WireHash};
use ledger_journal::entry::{Body, Record};

use crate::error::ReadError;
use crate::hashes::{Chain, ChainId, Hashes};
use crate::read::{LedgerReader, chain_before};

/// Number of entries of a ledger between two checkpoints.
const CHECKPOINT_ENTRIES: u32 = 64;
/// Maximum number of chains in memory. Beyond it the thread drops all of them and resumes each from its checkpoint.
const CHAINS_MAX: usize = 4_096;

/// The chains in memory, by ledger and kind.
#[derive(Default)]
pub(super) struct Chains(HashMap<ChainId, Growing, RandomState>);

struct Growing {
    chain: Chain,
    since_checkpoint: u32,
}

impl Chains {
    /// Appends an entry of the journal to each chain that its ledger keeps.
    pub(super) fn append_record(
        &mut self,
        hashes: &Hashes,
        reader: &LedgerReader,
        record: &Record<'_>,
    ) -> Result<(), ReadError> {
        let Body::Log(log) = &record.body else { return Ok(()) };
        let features = reader.head()?.info.features;
        let mut kept = [ChainId::wire(log.ledger), ChainId::legacy(log.ledger)]
            .into_iter()
            .filter(|id| id.is_kept(features))
            .peekable();
        if kept.peek().is_none() {
            return Ok(());
        }
        let entry: LogEntry = reader.log_entry(record)?;
        for id in kept {
            let begin = || chain_before(reader, hashes, id, log.log, || Ok(()));
            self.append(hashes, id, log.log, begin, |chain| chain.append(&entry))?;
        }
        Ok(())
    }

    /// Appends an entry whose canonical text the writer supplied. If the chain is not in memory, `begin` creates it as
    /// of the entry before this one.
    pub(super) fn append_text(
        &mut self,
        hashes: &Hashes,
        id: ChainId,
        log: u64,
        text: &[u8],
        begin: impl FnOnce() -> Result<Chain, ReadError>,
    ) -> Result<(), ReadError> {
        self.append(hashes, id, log, begin, |chain| chain.append_text(text))
    }

    fn append(
        &mut self,
        hashes: &Hashes,
        id: ChainId,
        log: u64,
        begin: impl FnOnce() -> Result<Chain, ReadError>,
        append: impl FnOnce(&mut Chain) -> WireHash,
    ) -> Result<(), ReadError> {
        if self.0.len() >= CHAINS_MAX && !self.0.contains_key(&id) {
            self.0.clear();
        }
        let growing = match self.0.entry(id) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(Growing { chain: begin()?, since_checkpoint: 0 }),
        };
        let hash = append(&mut growing.chain);
        growing.since_checkpoint += 1;
        if growing.since_checkpoint >= CHECKPOINT_ENTRIES {
            growing.since_checkpoint = 0;
            hashes.put_checkpoint(id, log, hash);
        }
        Ok(())
    }
}
