//! The accounts that a statement's sources have emptied so far.

use std::collections::BTreeSet;

/// Up to this many, looking at each is faster than a tree.
const LINEAR_MAX: usize = 16;

/// An account and the colour of the funds.
type Account<'t> = (&'t str, &'t str);

/// Accounts in the order in which they were emptied.
#[derive(Debug, Default)]
pub(super) struct Emptied<'t> {
    accounts: Vec<Account<'t>>,
    /// The same, but only once there were more than a few.
    index: BTreeSet<Account<'t>>,
}

impl<'t> Emptied<'t> {
    pub(super) fn clear(&mut self) {
        self.accounts.clear();
        self.index.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.accounts.len()
    }

    /// Adds an account; `false` if it was there.
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

    /// Forgets all but the first `length`.
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
    fn accounts_are_there_until_they_are_forgotten_few_or_many() {
        let names: Vec<String> = (0..50).map(|n| format!("a{n}")).collect();
        let mut emptied = Emptied::default();
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
