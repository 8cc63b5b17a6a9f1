//! Requests for flushes, and the state of the flusher.

use std::collections::VecDeque;
use std::time::Instant;

use ledger_journal::Position;

use super::pace::Pace;
use crate::view::LedgerHead;

/// A request to the flusher.
pub(super) struct FlushRequest {
    /// The time of the request.
    pub(super) begun: Instant,
    /// True if the memtables filled their share of the memory budget. Only such flushes tell how long the next one will
    /// take.
    pub(super) is_full: bool,
    /// The number of the flush.
    pub(super) flush: u64,
    /// The flush writes the entries before this position.
    pub(super) end: Position,
    /// The numbers and heads of the ledgers that changed, which the flush writes too.
    pub(super) heads: Vec<(u32, LedgerHead)>,
}

/// The queue of the flusher, and its state.
#[derive(Default)]
pub(super) struct Flushes {
    /// The requests, oldest first. The first one stays until its flush is done.
    pub(super) requests: VecDeque<FlushRequest>,
    pub(super) pace: Pace,
    pub(super) stop: bool,
    /// The flusher gave up. The index is no longer written; the journal still holds everything.
    pub(super) failed: bool,
    /// The reason why the current flush failed, while it waits to be tried again.
    pub(super) failing: Option<Failing>,
    /// Asks the flusher to try a failed flush again now, because the cause may be gone.
    pub(super) retry_now: bool,
}

impl Flushes {
    /// Asks for another attempt because a new index is in place. Writes need not be refused any more: they wait for
    /// the flush.
    pub(super) fn restart(&mut self) {
        self.retry_now = true;
        self.failing = None;
        if let Some(current) = self.requests.front_mut() {
            // The failed attempts do not tell how long a flush takes.
            current.begun = Instant::now();
        }
    }
}

/// The reason why a flush failed.
#[derive(Clone)]
pub(super) struct Failing {
    pub(super) reason: String,
    /// True if the disk is full.
    pub(super) is_disk_full: bool,
}
