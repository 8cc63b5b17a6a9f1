//! Conditions on accounts under which a command is executed.

use crate::facts::Facts;
use crate::limits::PRECONDITIONS_MAX;
use crate::rejection::Rejection;
use ledger_values::AccountAddress;

/// Accounts that must exist, and accounts that must not, when a command is decided. An account exists once a transaction
/// or metadata names it, and never ceases to exist.
///
/// [`admit`](crate::admit) decides them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preconditions {
    /// The accounts that must exist. Otherwise the command is refused with [`Rejection::AccountNotFound`].
    pub existing: Vec<AccountAddress>,
    /// The accounts that must not exist. Otherwise the command is refused with [`Rejection::AccountExists`].
    pub new: Vec<AccountAddress>,
}

impl Preconditions {
    /// Checks the number of accounts before anything is loaded for them.
    ///
    /// # Errors
    ///
    /// [`Rejection::TooManyPreconditions`].
    pub(crate) fn check_size(&self) -> Result<(), Rejection> {
        match self.existing.len() + self.new.len() {
            accounts if accounts > PRECONDITIONS_MAX => Err(Rejection::TooManyPreconditions { accounts }),
            _ => Ok(()),
        }
    }

    /// Returns the accounts in the order in which their facts are listed.
    pub(crate) fn accounts(&self) -> impl Iterator<Item = &AccountAddress> {
        self.existing.iter().chain(&self.new)
    }

    /// Decides the conditions for the ledger that `facts` describe, in order.
    ///
    /// # Errors
    ///
    /// [`Rejection::AccountNotFound`] or [`Rejection::AccountExists`] for the first condition that does not hold.
    ///
    /// # Panics
    ///
    /// Panics if `facts` lack one of the [accounts](Self::accounts).
    pub(crate) fn decide(&self, facts: &Facts) -> Result<(), Rejection> {
        let (existing, new) = facts.existence.split_at(self.existing.len());
        assert_eq!(new.len(), self.new.len(), "every account has its fact");
        if let Some((account, _)) = self.existing.iter().zip(existing).find(|(_, exists)| !**exists) {
            return Err(Rejection::AccountNotFound { account: account.clone() });
        }
        match self.new.iter().zip(new).find(|(_, exists)| **exists) {
            Some((account, _)) => Err(Rejection::AccountExists { account: account.clone() }),
            None => Ok(()),
        }
    }
}
