//! Conditions on accounts under which a command is executed.

use crate::rejection::Rejection;
use ledger_values::AccountAddress;

/// Accounts that must exist, and accounts that must not, when a command is decided. An account exists once a transaction
/// or metadata names it, and never ceases to exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preconditions {
    /// The accounts that must exist. Otherwise the command is refused with [`Rejection::AccountNotFound`].
    pub existing: Vec<AccountAddress>,
    /// The accounts that must not exist. Otherwise the command is refused with [`Rejection::AccountExists`].
    pub new: Vec<AccountAddress>,
}

impl Preconditions {
    /// Iterates over the conditions, one for each account.
    pub fn checks(&self) -> impl Iterator<Item = AccountCheck<'_>> {
        let existing = self.existing.iter().map(|account| AccountCheck { account, must_exist: true });
        existing.chain(self.new.iter().map(|account| AccountCheck { account, must_exist: false }))
    }
}

/// One condition: an account, and whether it must exist.
#[derive(Clone, Copy, Debug)]
pub struct AccountCheck<'a> {
    /// The account.
    pub account: &'a AccountAddress,
    must_exist: bool,
}

impl AccountCheck<'_> {
    /// Decides the condition.
    ///
    /// # Errors
    ///
    /// [`Rejection::AccountNotFound`] and [`Rejection::AccountExists`].
    pub fn decide(self, exists: bool) -> Result<(), Rejection> {
        match (self.must_exist, exists) {
            (true, false) => Err(Rejection::AccountNotFound { account: self.account.clone() }),
            (false, true) => Err(Rejection::AccountExists { account: self.account.clone() }),
            _ => Ok(()),
        }
    }
}
