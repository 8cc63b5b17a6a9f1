//! Reports on the opening and the status of a store.

use ledger_journal::DroppedTail;

use crate::engine::IndexStatus;
use crate::opening::RebuildReason;

/// A report of the opening of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Number of journal entries that the index lacked.
    pub replayed: u64,
    /// The reason why the index was rebuilt, if it was.
    pub rebuilt: Option<String>,
    /// An incomplete write at the end of the journal that was dropped.
    pub dropped_tail: Option<DroppedTail>,
    /// True if the index was rebuilt because it was damaged. The old one is kept as `index.redb.damaged`, and
    /// [`Store::verify`](crate::Store::verify) reports it.
    pub was_damaged: bool,
}

impl Opening {
    pub(super) fn new(
        replayed: u64,
        rebuilt: Option<RebuildReason>,
        dropped_tail: Option<DroppedTail>,
    ) -> Self {
        let was_damaged = rebuilt.as_ref().is_some_and(|rebuilt| rebuilt.is_damage);
        Self { replayed, rebuilt: rebuilt.map(|rebuilt| rebuilt.reason), was_damaged, dropped_tail }
    }
}

/// The current status of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Number of acknowledged entries in the journal.
    pub entries: u64,
    /// The hash of these entries. Keep it elsewhere to detect rewritten history with
    /// [`Store::chain_at`](crate::Store::chain_at).
    pub chain: String,
    /// Number of commits since the store was opened.
    pub commits: u64,
    /// The reason why the store accepts no more writes, if it has stopped.
    pub stopped: Option<String>,
    /// The health of the index. The store repairs the index while it runs.
    pub index: IndexStatus,
}
