//! Groups the holdings of an account that are one asset in several precisions.

use std::collections::BTreeMap;

use smol_str::SmolStr;

use crate::names::Names;
use crate::program::AccountId;

/// The uncoloured holdings of accounts that pay by scaling, grouped by account and by asset without precision. A
/// scaling account pays in one precision of an asset with its funds in the others.
#[derive(Debug, Default)]
pub(super) struct Families {
    bases: Names<SmolStr>,
    members: BTreeMap<(AccountId, u32), Vec<usize>>,
    /// The last holding of each account that the grouping has visited. An account never loses holdings, so each
    /// holding is visited once.
    seen: BTreeMap<AccountId, usize>,
}

impl Families {
    pub(super) fn clear(&mut self) {
        self.bases.clear();
        self.members.clear();
        self.seen.clear();
    }

    /// Returns the last holding of an account that the grouping has visited.
    pub(super) fn last_seen(&self, account: AccountId) -> Option<usize> {
        self.seen.get(&account).copied()
    }

    pub(super) fn mark_seen(&mut self, account: AccountId, last: usize) {
        self.seen.insert(account, last);
    }

    pub(super) fn add(&mut self, account: AccountId, base: &str, holding: usize) {
        let base = self.bases.find(base).unwrap_or_else(|| self.bases.add(base.into()));
        self.members.entry((account, base)).or_default().push(holding);
    }

    pub(super) fn of(&self, account: AccountId, base: &str) -> &[usize] {
        let known = self.bases.find(base).and_then(|base| self.members.get(&(account, base)));
        known.map_or(&[], Vec::as_slice)
    }
}
