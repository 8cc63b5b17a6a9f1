//! The part of the state that exists only while entries are replayed.

use std::collections::BTreeSet;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::accounts::SlotId;
use crate::violation::Violation;

/// Tables and findings of a replay. A writer needs none of them: its commands name accounts by address, and what it decides
/// keeps the rules.
#[derive(Default)]
pub(super) struct ReplayState {
    /// The accounts in memory, by ledger and number.
    pub(super) places: HashMap<(u32, u32), SlotId, RandomState>,
    /// Defects of the entries applied so far.
    pub(super) violations: Vec<Violation>,
    /// Sections whose entries are gone from the journal.
    pub(super) holes: BTreeSet<u32>,
}
