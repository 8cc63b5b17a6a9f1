//! The place between the two stages of a write, where the writer leaves a batch to the committer.

use parking_lot::{ArcMutexGuard, Condvar, Mutex, RawMutex};

use super::pending::Pending;
use super::work::TurnedAway;
use crate::view::LedgerHead;
use crate::writer::Batch;

/// A batch that was decided.
pub(super) struct DecidedBatch {
    /// Held until the batch is on disk: batches get there in the order in which they were decided.
    pub(super) turn: ArcMutexGuard<RawMutex, ()>,
    pub(super) batch: Batch,
    /// The heads of the ledgers that it changed, as they are after it.
    pub(super) heads: Vec<(u32, LedgerHead)>,
    pub(super) answers: Vec<Pending>,
    /// Work that was not decided, since the disk has no room for it.
    pub(super) turned_away: Vec<TurnedAway>,
}

/// Where the writer puts a batch and the committer takes it. There is one at most, since there is one turn.
#[derive(Default)]
pub(super) struct Handover {
    slot: Mutex<Slot>,
    filled: Condvar,
}

#[derive(Default)]
struct Slot {
    batch: Option<DecidedBatch>,
    closed: bool,
}

impl Handover {
    /// Leaves a batch to the committer. Once there is no committer any more, the batch is returned.
    pub(super) fn put(&self, decided: DecidedBatch) -> Option<DecidedBatch> {
        let mut slot = self.slot.lock();
        if slot.closed {
            return Some(decided);
        }
        debug_assert!(slot.batch.is_none(), "only who has the turn hands over");
        slot.batch = Some(decided);
        drop(slot);
        self.filled.notify_one();
        None
    }

    /// Waits for a batch; `None` once no more batches come.
    pub(super) fn take(&self) -> Option<DecidedBatch> {
        let mut slot = self.slot.lock();
        loop {
            match slot.batch.take() {
                Some(decided) => return Some(decided),
                None if slot.closed => return None,
                None => self.filled.wait(&mut slot),
            }
        }
    }

    /// Takes no more batches.
    pub(super) fn close(&self) {
        self.slot.lock().closed = true;
        self.filled.notify_one();
    }
}
