//! Flushes that were asked for, and how they get on.

use std::collections::VecDeque;
use std::time::Instant;

use ledger_journal::Position;

use super::pace::Pace;
use crate::view::LedgerHead;

/// A request to the flusher.
pub(super) struct FlushRequest {
    pub(super) begun: Instant,
    /// Whether it holds all that may gather.
    pub(super) is_full: bool,
    pub(super) flush: u64,
    pub(super) through: Position,
    pub(super) heads: Vec<(u32, LedgerHead)>,
}

#[derive(Default)]
pub(super) struct Flushes {
    pub(super) requests: VecDeque<FlushRequest>,
    pub(super) pace: Pace,
    pub(super) stop: bool,
    /// The flusher gave up: the index is not written any more, the journal has everything.
    pub(super) failed: bool,
    /// Why the flush under way does not get on, if it failed and is to be tried again.
    pub(super) failing: Option<Failing>,
    /// The cause of a failure may be gone.
    pub(super) retry_now: bool,
}

/// Why a flush does not get on.
#[derive(Clone)]
pub(super) struct Failing {
    pub(super) reason: String,
    /// Whether the disk is full.
    pub(super) is_full: bool,
}
