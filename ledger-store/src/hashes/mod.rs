//! The wire hashes of logs: a projection of its own, off the way to an acknowledgement.
//!
//! A thread hashes what the writer feeds it, and what it finds in the journal from before, and keeps a
//! checkpoint of each ledger's chain every so many entries. Whoever asks for a hash starts at the checkpoint
//! before it and computes the few that follow.

mod chains;
mod feed;

use std::collections::BTreeMap;
use std::ops::Bound;

use ledger_core::{HashChain, WireHash};
use parking_lot::{Condvar, Mutex};

pub(crate) use self::chains::Chains;
use self::feed::Feed;
pub(crate) use self::feed::{HashTexts, TextMark};
use crate::codec::Corrupt;
use crate::error::ReadError;
use crate::index::Way;
use crate::journal::Position;
use crate::lookup::tables;
use crate::read::LedgerReader;

/// Hashes by ledger and log.
type Checkpoints = BTreeMap<(u32, u64), WireHash>;

/// Checkpoints that are not in the index yet, and how far the thread is.
pub(crate) struct Hashes {
    pending: Mutex<Checkpoints>,
    /// Those of the last flush: a reader whose view is from before it does not find them in its index.
    flushed: Mutex<Checkpoints>,
    next: Mutex<Position>,
    advanced: Condvar,
    /// What is committed and not hashed yet.
    pub(crate) feed: Feed,
}

/// The key of a checkpoint in its table.
pub(crate) fn checkpoint_key(ledger: u32, log: u64) -> [u8; 12] {
    let mut key = [0; 12];
    key[..4].copy_from_slice(&ledger.to_be_bytes());
    key[4..].copy_from_slice(&log.to_be_bytes());
    key
}

impl Hashes {
    /// Nothing is hashed yet of what follows `next`; what is before it is found by its checkpoints. Texts that
    /// wait to be hashed take `feed_bytes`.
    pub(crate) fn new(next: Position, feed_bytes: usize) -> Self {
        Self {
            pending: Mutex::default(),
            flushed: Mutex::default(),
            next: Mutex::new(next),
            advanced: Condvar::new(),
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

    /// Waits until everything before `until` is hashed, or `stopped` says so.
    pub(crate) fn wait(&self, until: Position, stopped: impl Fn() -> bool) {
        let mut next = self.next.lock();
        while *next < until && !stopped() {
            self.advanced.wait_for(&mut next, std::time::Duration::from_millis(100));
        }
    }

    /// The checkpoints that the index does not have.
    pub(crate) fn pending(&self) -> Vec<((u32, u64), WireHash)> {
        self.pending.lock().iter().map(|(place, hash)| (*place, *hash)).collect()
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

    /// The chain of a ledger right before the log `before`, and the id of the first that may follow it.
    ///
    /// `each` is called for each entry that is hashed on the way; its error ends it.
    pub(crate) fn chain_before(
        &self,
        reader: &LedgerReader,
        before: u64,
        each: impl Fn() -> Result<(), ReadError>,
    ) -> Result<HashChain, ReadError> {
        let ledger = reader.ledger;
        let (mut chain, from) = match self.checkpoint(reader, before)? {
            Some((log, hash)) => (HashChain::after(Some(hash)), log + 1),
            None => (HashChain::after(None), 0),
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
    fn checkpoint(&self, reader: &LedgerReader, before: u64) -> Result<Option<(u64, WireHash)>, ReadError> {
        let ledger = reader.ledger;
        let last = |checkpoints: &Mutex<Checkpoints>| {
            checkpoints
                .lock()
                .range((ledger, 0)..(ledger, before))
                .next_back()
                .map(|(at, hash)| (at.1, *hash))
        };
        if let Some(recent) = last(&self.pending).or_else(|| last(&self.flushed)) {
            return Ok(Some(recent));
        }
        let (from, to) = (checkpoint_key(ledger, 0), checkpoint_key(ledger, before));
        let bounds = (Bound::Included(from.as_slice()), Bound::Excluded(to.as_slice()));
        let Some(mut range) = reader.view.index.range(tables::HASHES, bounds.0, bounds.1)? else {
            return Ok(None);
        };
        let Some(found) = range.next_back() else { return Ok(None) };
        let (key, value) = found?;
        let corrupt = Corrupt { what: "checkpoint of a hash chain" };
        let (_, log) = key.split_first_chunk::<4>().ok_or(corrupt)?;
        let log = u64::from_be_bytes(log.try_into().map_err(|_| corrupt)?);
        let hash: [u8; 32] = value.as_slice().try_into().map_err(|_| corrupt)?;
        Ok(Some((log, WireHash::from_bytes(hash))))
    }
}
