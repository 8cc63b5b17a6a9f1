//! Verifies the wire hashes: computes them again from the journal, and compares them with the checkpoints in the index.
//!
//! A log is one accepted change of a ledger. The wire hash of a log is the SHA-256 hash that the API shows. It covers
//! the hash of the log before it, so the hashes of a ledger form a chain. A ledger may keep a second chain in the
//! format of API v1, the legacy chain. The index does not store every hash. A checkpoint is one stored hash, from which
//! the store computes the next ones.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use ledger_codec::Corrupt;
use ledger_index::{IndexSnapshot, tables};
use ledger_journal::entry::{Body, LogRecord, Record, read_chunk};
use ledger_journal::{Chunk, JournalReader, Position};

use super::findings::{Findings, Stop};
use crate::error::ReadError;
use crate::hashes::{Chain, ChainId};
use crate::read::LedgerReader;
use crate::view::View;
use crate::violation::ViolationCode;

/// Number of journal bytes to read and hash at once. Bounds the memory of a verification.
const HASH_BYTES: usize = 4 << 20;

/// Computes the wire hashes of all logs in `journal` and compares them with the checkpoints in the index `live`.
///
/// A missing checkpoint is no violation: checkpoints only save work. A checkpoint of a log after the end of `journal`
/// is no violation either. `journal` ends at the last flush of the index, and the hashing thread may be ahead of it.
pub(super) fn wire_hashes(
    view: &Arc<View>,
    live: &IndexSnapshot,
    journal: &Arc<dyn JournalReader>,
    findings: &mut Findings,
) -> Result<(), Stop> {
    let checkpoints = match checkpoints(live) {
        Ok(checkpoints) => checkpoints,
        Err(error) => return findings.read_error(&error),
    };
    if checkpoints.is_empty() {
        return Ok(());
    }
    let mut hashing = Hashing { view, journal, checkpoints, chains: HashMap::new(), wrong: Vec::new() };
    if let Err(error) = hashing.hash_journal() {
        return findings.read_error(&error);
    }
    hashing.report(findings)
}

/// The state of the computation while it goes through the journal.
struct Hashing<'a> {
    view: &'a Arc<View>,
    journal: &'a Arc<dyn JournalReader>,
    /// Checkpoints that were not compared yet, by number of the chain and number of the log.
    checkpoints: BTreeMap<(u32, u64), [u8; 32]>,
    /// Each chain up to the last log that was hashed.
    chains: HashMap<ChainId, Chain>,
    /// Ledger, log and position of each log whose checkpoint differs from its hash.
    wrong: Vec<(u32, u64, u64)>,
}

impl Hashing<'_> {
    fn hash_journal(&mut self) -> Result<(), ReadError> {
        let mut next = Position::FIRST;
        loop {
            let chunks = self.journal.scan(next, HASH_BYTES)?;
            if chunks.is_empty() {
                return Ok(());
            }
            // A reader caches the records that it has looked up. New readers for each part bound the memory.
            let mut readers = HashMap::new();
            for chunk in chunks {
                self.hash_chunk(&chunk, &mut readers)?;
                next = chunk.next();
            }
        }
    }

    /// Hashes the logs of a chunk, except those of removed ledgers.
    fn hash_chunk(
        &mut self,
        chunk: &Chunk,
        readers: &mut HashMap<u32, LedgerReader>,
    ) -> Result<(), ReadError> {
        let mut failed = None;
        read_chunk(chunk, |record| {
            if let Body::Log(log) = &record.body
                && failed.is_none()
                && self.view.heads.get(log.ledger).is_none_or(|head| !head.is_removed)
            {
                let reader = readers.entry(log.ledger).or_insert_with(|| {
                    LedgerReader::new(self.journal.clone(), self.view.clone(), log.ledger)
                });
                failed = self.hash_log(&record, log, reader).err();
            }
            Ok(())
        })?;
        failed.map_or(Ok(()), Err)
    }

    /// Appends a log to the chains that its ledger keeps, and compares the hashes with their checkpoints, if any.
    fn hash_log(
        &mut self,
        record: &Record<'_>,
        log: &LogRecord<'_>,
        reader: &LedgerReader,
    ) -> Result<(), ReadError> {
        let features = reader.head()?.info.features;
        for id in [ChainId::wire(log.ledger), ChainId::legacy(log.ledger)] {
            if !id.is_kept(features) {
                continue;
            }
            let chain = self.chains.entry(id).or_insert_with(|| id.begin());
            let hash = chain.append(&reader.log_entry(record)?);
            if let Some(checkpoint) = self.checkpoints.remove(&(id.number(), log.log))
                && checkpoint != *hash.as_bytes()
            {
                self.wrong.push((log.ledger, log.log, record.position.get()));
            }
        }
        Ok(())
    }

    /// Reports wrong checkpoints, and those whose log or chain does not exist.
    fn report(self, findings: &mut Findings) -> Result<(), Stop> {
        for (ledger, log, position) in self.wrong {
            let detail = format!("the wire hash after log {log} is not that of the log");
            findings.add(ViolationCode::WireHash, Some(ledger), Some(position), detail)?;
        }
        for (chain, log) in self.checkpoints.into_keys() {
            let id = ChainId::of_number(chain);
            let ledger = id.ledger();
            let head = self.view.heads.get(ledger);
            // The logs of a removed ledger were not hashed, so its checkpoints prove nothing.
            if head.is_some_and(|head| head.is_removed) {
                continue;
            }
            // A checkpoint at or after `next_log` is of a log after the last flush.
            if head.is_none_or(|head| !id.is_kept(head.info.features) || log < head.counters.next_log) {
                let detail = format!("a wire hash after log {log}, of which there is none");
                findings.add(ViolationCode::IndexExtra, Some(ledger), None, detail)?;
            }
        }
        Ok(())
    }
}

/// Reads all checkpoints, by number of the chain and number of the log.
fn checkpoints(live: &IndexSnapshot) -> Result<BTreeMap<(u32, u64), [u8; 32]>, ReadError> {
    let mut all = BTreeMap::new();
    for found in live.range(tables::HASHES, Bound::Unbounded, Bound::Unbounded)? {
        let (key, value) = found?;
        let corrupt = Corrupt { what: "checkpoint of a hash chain" };
        let (chain, log) = key.split_first_chunk::<4>().ok_or(corrupt)?;
        let log = u64::from_be_bytes(log.try_into().map_err(|_| corrupt)?);
        let hash: [u8; 32] = value.as_slice().try_into().map_err(|_| corrupt)?;
        all.insert((u32::from_be_bytes(*chain), log), hash);
    }
    Ok(all)
}
