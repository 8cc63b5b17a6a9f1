//! Counts the ledgers in each section of the journal. A section holds the entries of ledgers of one bucket, and is only
//! removed as a whole: when all of its ledgers are removed.

use crate::query::LedgerInfo;

/// The number of ledgers of a section in each state. Each ledger that was ever assigned to the section counts in one of
/// them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SectionLedgers {
    /// Ledgers that are neither deleted nor removed.
    pub(crate) live: u32,
    /// Deleted ledgers that can be restored.
    pub(crate) deleted: u32,
    /// Ledgers that were removed for good.
    pub(crate) removed: u32,
}

impl SectionLedgers {
    /// Returns whether new ledgers may be assigned to the section. A section with deleted or removed ledgers gets no
    /// new ones, because they would keep it from being removed as a whole.
    pub(crate) fn takes_more(self) -> bool {
        self.deleted == 0 && self.removed == 0
    }

    /// Returns whether one of its ledgers is removed. Its deleted ledgers cannot be restored then, because the section
    /// will be removed as a whole.
    pub(crate) fn removal_has_begun(self) -> bool {
        self.removed > 0
    }

    /// Returns whether all of its ledgers are removed.
    pub(crate) fn is_removed(self) -> bool {
        self.removed > 0 && self.live == 0 && self.deleted == 0
    }

    /// Counts one more ledger that is not removed.
    pub(crate) fn add(&mut self, info: &LedgerInfo) {
        match info.deleted_at {
            None => self.live += 1,
            Some(_) => self.deleted += 1,
        }
    }

    /// Counts one ledger less in its state. The caller counts it in its new state.
    pub(crate) fn subtract(&mut self, info: &LedgerInfo) {
        match info.deleted_at {
            None => self.live -= 1,
            Some(_) => self.deleted -= 1,
        }
    }
}
