//! Sections of the journal: how many ledgers in each are kept, deleted or removed.

use crate::query::LedgerInfo;

/// Numbers of the ledgers that were ever assigned to a section of the journal, by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SectionLedgers {
    /// Ledgers that are neither deleted nor removed.
    pub(crate) kept: u32,
    /// Deleted ledgers that can be restored.
    pub(crate) deleted: u32,
    /// Ledgers that were removed for good.
    pub(crate) removed: u32,
}

impl SectionLedgers {
    /// Returns whether new ledgers may be assigned to the section.
    pub(crate) fn takes_more(self) -> bool {
        self.deleted == 0 && self.removed == 0
    }

    /// Returns whether its removal has begun, so that its other ledgers cannot be restored.
    pub(crate) fn is_going(self) -> bool {
        self.removed > 0
    }

    /// Returns whether all of its ledgers are removed.
    pub(crate) fn is_gone(self) -> bool {
        self.removed > 0 && self.kept == 0 && self.deleted == 0
    }

    /// Counts one more ledger.
    pub(crate) fn add(&mut self, info: &LedgerInfo) {
        match info.deleted_at {
            None => self.kept += 1,
            Some(_) => self.deleted += 1,
        }
    }

    /// Stops counting a ledger.
    pub(crate) fn take(&mut self, info: &LedgerInfo) {
        match info.deleted_at {
            None => self.kept -= 1,
            Some(_) => self.deleted -= 1,
        }
    }
}
