//! Sections of the journal: what became of the ledgers that were put into each.

use crate::query::LedgerInfo;

/// A section of the journal, and the ledgers that have ever been in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SectionLedgers {
    /// Neither deleted nor removed.
    pub(crate) kept: u32,
    /// Deleted, and to be had back.
    pub(crate) deleted: u32,
    /// Removed for good.
    pub(crate) removed: u32,
}

impl SectionLedgers {
    /// Whether new ledgers may be put into it.
    pub(crate) fn takes_more(self) -> bool {
        self.deleted == 0 && self.removed == 0
    }

    /// Whether its removal has begun: what is still in it is not to be had back.
    pub(crate) fn is_going(self) -> bool {
        self.removed > 0
    }

    /// Whether all in it is removed.
    pub(crate) fn is_gone(self) -> bool {
        self.removed > 0 && self.kept == 0 && self.deleted == 0
    }

    /// Counts a ledger of it.
    pub(crate) fn add(&mut self, info: &LedgerInfo) {
        match info.deleted_at {
            None => self.kept += 1,
            Some(_) => self.deleted += 1,
        }
    }

    /// Counts a ledger of it no longer.
    pub(crate) fn take(&mut self, info: &LedgerInfo) {
        match info.deleted_at {
            None => self.kept -= 1,
            Some(_) => self.deleted -= 1,
        }
    }
}
