//! Conditions on accounts under which a command is executed.

use crate::limits::PRECONDITIONS_MAX;
use crate::rejection::Rejection;
use ledger_values::AccountAddress;

/// Accounts that must exist, and accounts that must not, when a command is decided. An account exists once a transaction
/// or metadata names it, and never ceases to exist.
///
/// ```
/// use ledger_core::limits::PRECONDITIONS_MAX;
/// use ledger_core::{AccountAddress, Preconditions, Rejection};
/// let account = AccountAddress::parse("wallets:1").expect("an address");
/// let preconditions = Preconditions { new: vec![account.clone()], ..Preconditions::default() };
/// preconditions.check_size()?; // at most PRECONDITIONS_MAX accounts
/// assert!(preconditions.accounts().count() <= PRECONDITIONS_MAX);
/// let exists: Vec<bool> = preconditions.accounts().map(|_| true).collect();
/// assert_eq!(preconditions.decide(&exists), Err(Rejection::AccountExists { account }));
/// # Ok::<(), Rejection>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preconditions {
    /// The accounts that must exist. Otherwise the command is refused with [`Rejection::AccountNotFound`].
    pub existing: Vec<AccountAddress>,
    /// The accounts that must not exist. Otherwise the command is refused with [`Rejection::AccountExists`].
    pub new: Vec<AccountAddress>,
}

impl Preconditions {
    /// Lists the accounts whose existence [`Preconditions::decide`] must know: those of `existing`, then those of `new`.
    pub fn accounts(&self) -> impl Iterator<Item = &AccountAddress> {
        self.existing.iter().chain(&self.new)
    }

    /// Checks the number of accounts before anything is loaded for them.
    ///
    /// # Errors
    ///
    /// [`Rejection::TooManyPreconditions`].
    pub fn check_size(&self) -> Result<(), Rejection> {
        match self.existing.len() + self.new.len() {
            accounts if accounts > PRECONDITIONS_MAX => Err(Rejection::TooManyPreconditions { accounts }),
            _ => Ok(()),
        }
    }

    /// Decides the conditions. `exists` says of each account whether it exists, in the order of
    /// [`Preconditions::accounts`]. The first condition that is not met is the answer.
    ///
    /// # Errors
    ///
    /// [`Rejection::AccountNotFound`] and [`Rejection::AccountExists`].
    ///
    /// # Panics
    ///
    /// Panics if `exists` is shorter than the list of accounts, which is a bug of the caller.
    pub fn decide(&self, exists: &[bool]) -> Result<(), Rejection> {
        let (existing, new) = exists.split_at(self.existing.len());
        let mut found = existing.iter().zip(&self.existing);
        if let Some((_, account)) = found.find(|(exists, _)| !**exists) {
            return Err(Rejection::AccountNotFound { account: account.clone() });
        }
        let mut found = new[..self.new.len()].iter().zip(&self.new);
        match found.find(|(exists, _)| **exists) {
            Some((_, account)) => Err(Rejection::AccountExists { account: account.clone() }),
            None => Ok(()),
        }
    }
}
