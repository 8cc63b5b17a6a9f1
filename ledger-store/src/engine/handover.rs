//! The slot in which the writer leaves a decided batch for the committer.

use parking_lot::{ArcMutexGuard, Condvar, Mutex, RawMutex};

use super::pending::Pending;
use super::work::RejectedWork;
use crate::view::LedgerHead;
use crate::writer::Batch;

/// A decided batch with everything that its commit needs.
pub(super) struct DecidedBatch {
    /// The committer lock, held until the batch is on disk. It makes batches durable in the order in which they were
    /// decided.
    pub(super) turn: ArcMutexGuard<RawMutex, ()>,
    pub(super) batch: Batch,
    /// The heads of the changed ledgers, as of the end of the batch.
    pub(super) heads: Vec<(u32, LedgerHead)>,
    pub(super) answers: Vec<Pending>,
    /// Work that was not decided because disk or memory is short.
    pub(super) turned_away: Vec<RejectedWork>,
}

/// Passes batches from the writer to the committer. It holds at most one, because only the holder of the committer
/// lock may add one.
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
    /// Leaves a batch for the committer. Returns the batch if there is no committer any more.
    pub(super) fn put(&self, decided: DecidedBatch) -> Option<DecidedBatch> {
        let mut slot = self.slot.lock();
        if slot.closed {
            return Some(decided);
        }
        debug_assert!(slot.batch.is_none(), "only the holder of the committer lock hands over a batch");
        slot.batch = Some(decided);
        drop(slot);
        self.filled.notify_one();
        None
    }

    /// Waits for a batch. Returns `None` when the handover is closed and empty.
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

    /// Closes the handover: later batches are returned to the writer.
    pub(super) fn close(&self) {
        self.slot.lock().closed = true;
        self.filled.notify_one();
    }
}
