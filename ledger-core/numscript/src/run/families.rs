//! Groups the holdings of an account that are one asset in several precisions.

use std::collections::BTreeMap;

use compact_str::CompactString;

use super::Run;
use crate::names::Names;
use crate::program::AccountId;

/// The uncoloured holdings of accounts that pay by scaling, grouped by asset without precision.
#[derive(Debug, Default)]
pub(super) struct Families {
    bases: Names<CompactString>,
    members: BTreeMap<(AccountId, u32), Vec<usize>>,
    /// The last holding of each account that was grouped. An account never loses holdings, so each one is
    /// grouped once.
    seen: BTreeMap<AccountId, usize>,
}

impl Families {
    pub(super) fn clear(&mut self) {
        self.bases.clear();
        self.members.clear();
        self.seen.clear();
    }

    fn add(&mut self, account: AccountId, base: &str, holding: usize) {
        let base = self.bases.find(base).unwrap_or_else(|| self.bases.add(base.into()));
        self.members.entry((account, base)).or_default().push(holding);
    }

    fn of(&self, account: AccountId, base: &str) -> &[usize] {
        let known = self.bases.find(base).and_then(|base| self.members.get(&(account, base)));
        known.map_or(&[], Vec::as_slice)
    }
}

impl Run<'_> {
    /// Returns the indexes of an account's uncoloured holdings in any precision of `base`.
    pub(super) fn family(&mut self, account: AccountId, base: &str) -> &[usize] {
        let before = self.scratch.families.seen.get(&account).copied();
        let mut last = before;
        while let Some(at) = self.scratch.books.next_of_account(account, last) {
            let held = &self.scratch.books.holdings[at];
            if held.color == 0 {
                let name = self.asset_name(held.asset).clone();
                let base = name.split_once('/').map_or(name.as_str(), |(base, _)| base);
                self.scratch.families.add(account, base, at);
            }
            last = Some(at);
        }
        if let (Some(last), true) = (last, last != before) {
            self.scratch.families.seen.insert(account, last);
        }
        self.scratch.families.of(account, base)
    }
}
