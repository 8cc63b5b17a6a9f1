//! The wire hashes of logs: a projection of its own, off the way to an acknowledgement.
//!
//! A thread hashes what the writer feeds it, and what it finds in the journal from before, and keeps a
//! checkpoint of each ledger's chain every so many entries. Whoever asks for a hash starts at the checkpoint
//! before it and computes the few that follow.

mod chains;
mod feed;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};

use ledger_codec::Corrupt;
use ledger_core::{Features, HashChain, HashLogs, LegacyHashChain, LogEntry, Switch, WireHash};
use ledger_index::{Way, tables};
use ledger_journal::Position;
use parking_lot::{Condvar, Mutex};

pub(crate) use self::chains::Chains;
use self::feed::Feed;
pub(crate) use self::feed::{FedBatch, Scratch, Unhashed, UnhashedMark};
use crate::error::ReadError;
use crate::lookup::missing_in;
use crate::read::LedgerReader;

/// One of the chains of a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ChainId(u32);

/// Set in the number of a chain of the first generation. Ledgers are numbered from 1 and never reach it.
const LEGACY: u32 = 1 << 31;

impl ChainId {
    /// The wire hashes of a ledger.
    pub(crate) fn wire(ledger: u32) -> Self {
        Self(ledger)
    }

    /// The hashes of the first generation of the API.
    pub(crate) fn legacy(ledger: u32) -> Self {
        Self(ledger | LEGACY)
    }

    /// The chain with a number.
    pub(crate) fn of_number(number: u32) -> Self {
        Self(number)
    }

    /// Its number, by which its checkpoints are kept.
    pub(crate) fn number(self) -> u32 {
        self.0
    }

    /// Its ledger.
    pub(crate) fn ledger(self) -> u32 {
        self.0 & !LEGACY
    }

    /// Whether a ledger keeps it.
    pub(crate) fn is_kept(self, features: Features) -> bool {
        features.hash_logs != HashLogs::Disabled
            && (self.0 & LEGACY == 0 || features.legacy_hashes == Switch::On)
    }

    /// The chain before its first entry.
    pub(crate) fn begin(self) -> Chain {
        if self.0 & LEGACY == 0 {
            Chain::Wire(HashChain::after(None))
        } else {
            Chain::Legacy(LegacyHashChain::default())
        }
    }

    /// The chain after an entry with a hash.
    fn after(
        self,
        entry: impl FnOnce() -> Result<LogEntry, ReadError>,
        hash: WireHash,
    ) -> Result<Chain, ReadError> {
        if self.0 & LEGACY == 0 {
            return Ok(Chain::Wire(HashChain::after(Some(hash))));
        }
        Ok(Chain::Legacy(LegacyHashChain::after(&entry()?, &hash)))
    }
}

/// A chain that grows.
pub(crate) enum Chain {
    Wire(HashChain),
    Legacy(LegacyHashChain),
}

impl Chain {
    /// Adds an entry and returns its hash.
    pub(crate) fn append(&mut self, entry: &LogEntry) -> WireHash {
        match self {
            Self::Wire(chain) => chain.append(entry),
            Self::Legacy(chain) => chain.append(entry),
        }
    }

    /// Adds an entry by the text that is hashed of it.
    fn append_text(&mut self, text: &[u8]) -> WireHash {
        match self {
            Self::Wire(chain) => chain.append_text(text),
            Self::Legacy(chain) => chain.append_text(text),
        }
    }
}

/// Hashes by chain and log.
type Checkpoints = BTreeMap<(u32, u64), WireHash>;

/// Checkpoints that are not in the index yet, and how far the thread is.
pub(crate) struct Hashes {
    pending: Mutex<Checkpoints>,
    /// Those of the last flush: a reader whose view is from before it does not find them in its index.
    flushed: Mutex<Checkpoints>,
    next: Mutex<Position>,
    advanced: Condvar,
    /// The thread cannot read what it needs, and tries again.
    is_failing: AtomicBool,
    /// Entries that are committed and not hashed yet.
    pub(crate) feed: Feed,
}

/// The key of a checkpoint in its table: the number of the chain, and the log.
pub(crate) fn checkpoint_key(chain: u32, log: u64) -> [u8; 12] {
    let mut key = [0; 12];
    key[..4].copy_from_slice(&chain.to_be_bytes());
    key[4..].copy_from_slice(&log.to_be_bytes());
    key
}

impl Hashes {
    /// Nothing is hashed yet of what follows `next`; what is before it is found by its checkpoints. What
    /// waits to be hashed takes `feed_bytes`.
    pub(crate) fn new(next: Position, feed_bytes: usize) -> Self {
        Self {
            pending: Mutex::default(),
            flushed: Mutex::default(),
            next: Mutex::new(next),
            advanced: Condvar::new(),
            is_failing: AtomicBool::new(false),
            feed: Feed::new(feed_bytes),
        }
    }

    /// Everything before this position is hashed.
    pub(crate) fn next(&self) -> Position {
        *self.next.lock()
    }

    /// Says that everything before `next` is hashed.
    pub(crate) fn advance(&self, next: Position) {
        *self.next.lock() = next;
        self.advanced.notify_all();
    }

    /// Says whether the thread cannot read what it needs.
    pub(crate) fn set_failing(&self, is_failing: bool) {
        self.is_failing.store(is_failing, Ordering::Relaxed);
        self.advanced.notify_all();
    }

    /// Waits until everything before `until` is hashed, or `stopped` says so, or that cannot be told when.
    pub(crate) fn wait(&self, until: Position, stopped: impl Fn() -> bool) {
        let mut next = self.next.lock();
        while *next < until && !stopped() && !self.is_failing.load(Ordering::Relaxed) {
            self.advanced.wait_for(&mut next, std::time::Duration::from_millis(100));
        }
    }

    /// The checkpoints that the index does not have.
    pub(crate) fn pending(&self) -> Vec<((u32, u64), WireHash)> {
        self.pending.lock().iter().map(|(place, hash)| (*place, *hash)).collect()
    }

    /// How many there are of them.
    pub(crate) fn pending_count(&self) -> usize {
        self.pending.lock().len()
    }

    /// The checkpoints of the last flush may be in no index any more: the next flush writes them again.
    pub(crate) fn restore(&self) {
        let flushed = self.flushed.lock().clone();
        self.pending.lock().extend(flushed);
    }

    /// Notes that the index has these checkpoints now.
    pub(crate) fn forget(&self, flushed: &[((u32, u64), WireHash)]) {
        // First here, then there: whoever looks there first finds them in one of the two.
        *self.flushed.lock() = flushed.iter().copied().collect();
        let mut pending = self.pending.lock();
        for (place, _) in flushed {
            pending.remove(place);
        }
    }

    /// A chain right before the log `before`. The reader is one of its ledger.
    ///
    /// `each` is called for each entry that is hashed on the way; its error ends it.
    pub(crate) fn chain_before(
        &self,
        reader: &LedgerReader,
        id: ChainId,
        before: u64,
        each: impl Fn() -> Result<(), ReadError>,
    ) -> Result<Chain, ReadError> {
        let ledger = reader.ledger;
        let (mut chain, from) = match self.checkpoint(reader, id, before)? {
            Some((log, hash)) => {
                let entry = || {
                    let row = reader.view.table(|piece| &piece.logs).get((ledger, log))?;
                    let row = row.ok_or_else(|| missing_in(&reader.view.index, "a log"))?;
                    reader.entry(Position::new(row.position).ok_or(Corrupt { what: "position" })?)
                };
                (id.after(entry, hash)?, log + 1)
            }
            None => (id.begin(), 0),
        };
        let Some(last) = before.checked_sub(1).filter(|last| *last >= from) else { return Ok(chain) };
        let logs = reader.view.table(|piece| &piece.logs);
        for row in logs.cursor((ledger, from), (ledger, last), Way::Ascending) {
            each()?;
            let position = Position::new(row?.position).ok_or(Corrupt { what: "position" })?;
            chain.append(&reader.entry(position)?);
        }
        Ok(chain)
    }

    /// The last checkpoint at a log before `before`.
    fn checkpoint(
        &self,
        reader: &LedgerReader,
        id: ChainId,
        before: u64,
    ) -> Result<Option<(u64, WireHash)>, ReadError> {
        let chain = id.number();
        let last = |checkpoints: &Mutex<Checkpoints>| {
            checkpoints.lock().range((chain, 0)..(chain, before)).next_back().map(|(at, hash)| (at.1, *hash))
        };
        if let Some(recent) = last(&self.pending).or_else(|| last(&self.flushed)) {
            return Ok(Some(recent));
        }
        let (from, to) = (checkpoint_key(chain, 0), checkpoint_key(chain, before));
        let bounds = (Bound::Included(from.as_slice()), Bound::Excluded(to.as_slice()));
        let mut range = reader.view.index.range(tables::HASHES, bounds.0, bounds.1)?;
        let Some(found) = range.next_back() else { return Ok(None) };
        let (key, value) = found?;
        let corrupt = Corrupt { what: "checkpoint of a hash chain" };
        let (_, log) = key.split_first_chunk::<4>().ok_or(corrupt)?;
        let log = u64::from_be_bytes(log.try_into().map_err(|_| corrupt)?);
        let hash: [u8; 32] = value.as_slice().try_into().map_err(|_| corrupt)?;
        Ok(Some((log, WireHash::from_bytes(hash))))
    }
}
