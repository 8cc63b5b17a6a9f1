//! The progress of the hashing thread: checkpoints that are not in the index yet, and how far it is.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use ledger_core::WireHash;
use ledger_journal::Position;
use parking_lot::{Condvar, Mutex};

use super::chain::ChainId;
use super::feed::Feed;

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

    /// Keeps a checkpoint: the hash of a chain at a log.
    pub(crate) fn put_checkpoint(&self, chain: ChainId, log: u64, hash: WireHash) {
        self.pending.lock().insert((chain.number(), log), hash);
    }

    /// Returns the last checkpoint of a chain at a log before `before`, of those that an index may lack.
    pub(crate) fn last_checkpoint(&self, chain: ChainId, before: u64) -> Option<(u64, WireHash)> {
        let places = (chain.number(), 0)..(chain.number(), before);
        let last = |checkpoints: &Mutex<Checkpoints>| {
            checkpoints.lock().range(places.clone()).next_back().map(|((_, log), hash)| (*log, *hash))
        };
        last(&self.pending).or_else(|| last(&self.flushed))
    }
}
