//! Set of the accounts that the sources of a statement have emptied so far.

use std::collections::BTreeSet;

/// Maximum length for a linear search. Above it, a tree is faster.
const LINEAR_MAX: usize = 16;

/// An account and the colour of its funds.
type Account<'t> = (&'t str, &'t str);

/// Accounts in the order in which sources emptied them, with an index once there are many.
#[derive(Debug, Default)]
pub(super) struct EmptiedAccounts<'t> {
    accounts: Vec<Account<'t>>,
    /// Index of all accounts. Empty while a linear search is faster.
    index: BTreeSet<Account<'t>>,
}

impl<'t> EmptiedAccounts<'t> {
    pub(super) fn clear(&mut self) {
        self.accounts.clear();
        self.index.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.accounts.len()
    }

    /// Adds an account. Returns `false` if it was present.
    pub(super) fn insert(&mut self, account: Account<'t>) -> bool {
        if self.index.is_empty() {
            if self.accounts.contains(&account) {
                return false;
            }
            if self.accounts.len() == LINEAR_MAX {
                self.index.extend(self.accounts.iter().copied());
                self.index.insert(account);
            }
        } else if !self.index.insert(account) {
            return false;
        }
        self.accounts.push(account);
        true
    }

    /// Removes all accounts but the first `length`.
    pub(super) fn truncate(&mut self, length: usize) {
        if self.index.is_empty() {
            self.accounts.truncate(length);
            return;
        }
        for account in self.accounts.drain(length..) {
            self.index.remove(&account);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncate_removes_the_latest_accounts() {
        let names: Vec<String> = (0..50).map(|n| format!("a{n}")).collect();
        let mut emptied = EmptiedAccounts::default();
        for length in [3, 40, 0, 17, 16] {
            emptied.truncate(0);
            for name in &names {
                assert!(emptied.insert((name, "")), "{name}");
                assert!(!emptied.insert((name, "")), "{name}");
                assert!(emptied.insert((name, "RED")), "{name}");
            }
            emptied.truncate(length);
            assert_eq!(emptied.len(), length);
            for (at, name) in names.iter().enumerate() {
                assert_eq!(emptied.insert((name, "")), 2 * at >= length, "{name} of {length}");
            }
        }
        emptied.clear();
        assert!(emptied.insert((&names[0], "")));
    }
}
