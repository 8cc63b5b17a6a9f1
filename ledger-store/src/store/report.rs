//! Reports of a store: how it was opened, and how it stands.

use ledger_journal::DroppedTail;

use crate::engine::IndexStatus;
use crate::opening::Rebuilt;

/// A report of the opening of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Entries of the journal that the index did not hold yet.
    pub replayed: u64,
    /// Why the index was built from nothing, if it was.
    pub rebuilt: Option<String>,
    /// A write at the end of the journal that was cut off, and dropped.
    pub dropped_tail: Option<DroppedTail>,
    /// Whether it was built because the old one was damaged. That one is kept as `index.redb.damaged`, and
    /// [`Store::verify`](crate::Store::verify) reports it.
    pub was_damaged: bool,
}

impl Opening {
    pub(super) fn new(replayed: u64, rebuilt: Option<Rebuilt>, dropped_tail: Option<DroppedTail>) -> Self {
        let was_damaged = rebuilt.as_ref().is_some_and(|rebuilt| rebuilt.is_damage);
        Self { replayed, rebuilt: rebuilt.map(|rebuilt| rebuilt.reason), was_damaged, dropped_tail }
    }
}

/// How a store stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// How many entries are in the journal and acknowledged.
    pub entries: u64,
    /// The hash of everything up to there; whoever keeps it can tell if history was rewritten.
    pub chain: String,
    /// How many commits this store has made since it was opened.
    pub commits: u64,
    /// Why it takes no more writes, if so.
    pub stopped: Option<String>,
    /// How its index stands, which is mended while the store runs.
    pub index: IndexStatus,
}
