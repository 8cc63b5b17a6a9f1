//! The progress of the hashing thread, and the checkpoints that the index lacks.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use ledger_core::WireHash;
use ledger_journal::Position;
use parking_lot::{Condvar, Mutex};

use super::chain::ChainId;
use super::feed::Feed;

/// The progress of the hashing thread, shared with the writer and readers.
pub(crate) struct Hashes {
    /// Hashes by chain number and log.
    pending: Mutex<BTreeMap<(u32, u64), WireHash>>,
    /// The checkpoints of the last flush, sorted. A reader with an older view does not find them in its index.
    flushed: Mutex<Vec<((u32, u64), WireHash)>>,
    next: Mutex<Position>,
    advanced: Condvar,
    /// True if the thread is failing to read and will try again.
    is_failing: AtomicBool,
    /// Committed entries that are not hashed yet.
    pub(crate) feed: Feed,
}

impl Hashes {
    /// Creates the progress of a thread that has hashed everything before `next`. `feed_bytes` bounds the memory of
    /// the feed.
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

    /// Returns the position before which everything is hashed.
    pub(crate) fn next(&self) -> Position {
        *self.next.lock()
    }

    /// Records that everything before `next` is hashed.
    pub(crate) fn advance(&self, next: Position) {
        *self.next.lock() = next;
        self.advanced.notify_all();
    }

    /// Records whether the thread is failing to read.
    pub(crate) fn set_failing(&self, is_failing: bool) {
        self.is_failing.store(is_failing, Ordering::Relaxed);
        self.advanced.notify_all();
    }

    /// Waits until everything before `until` is hashed. Returns early if `stopped` returns `true` or the thread is
    /// failing to read.
    pub(crate) fn wait(&self, until: Position, stopped: impl Fn() -> bool) {
        let mut next = self.next.lock();
        while *next < until && !stopped() && !self.is_failing.load(Ordering::Relaxed) {
            self.advanced.wait_for(&mut next, std::time::Duration::from_millis(100));
        }
    }

    /// Returns the checkpoints that the index lacks.
    pub(crate) fn pending(&self) -> Vec<((u32, u64), WireHash)> {
        self.pending.lock().iter().map(|(place, hash)| (*place, *hash)).collect()
    }

    /// Returns the number of checkpoints that the index lacks.
    pub(crate) fn pending_count(&self) -> usize {
        self.pending.lock().len()
    }

    /// Makes the next flush write the checkpoints of the last one again, because the index may have lost them.
    pub(crate) fn restore(&self) {
        let flushed = self.flushed.lock().clone();
        self.pending.lock().extend(flushed);
    }

    /// Records that the index now holds these checkpoints, which are sorted.
    pub(crate) fn forget(&self, flushed: &[((u32, u64), WireHash)]) {
        // Fill `flushed` before removing them from `pending`, so that a reader who looks in `pending` first finds them
        // in one of the two.
        *self.flushed.lock() = flushed.to_vec();
        let mut pending = self.pending.lock();
        for (place, _) in flushed {
            pending.remove(place);
        }
    }

    /// Adds a checkpoint: the hash of a chain after a log.
    pub(crate) fn put_checkpoint(&self, chain: ChainId, log: u64, hash: WireHash) {
        self.pending.lock().insert((chain.number(), log), hash);
    }

    /// Returns the last checkpoint of a chain at a log before `before`, of those that an index may lack.
    pub(crate) fn last_checkpoint(&self, chain: ChainId, before: u64) -> Option<(u64, WireHash)> {
        let (first, end) = ((chain.number(), 0), (chain.number(), before));
        let pending = self.pending.lock().range(first..end).next_back().map(|(place, hash)| (*place, *hash));
        let ((_, log), hash) = pending.or_else(|| {
            let flushed = self.flushed.lock();
            let last = flushed.partition_point(|(place, _)| *place < end).checked_sub(1)?;
            Some(flushed[last]).filter(|(place, _)| *place >= first)
        })?;
        Some((log, hash))
    }
}
