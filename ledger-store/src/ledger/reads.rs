//! The reads of a [`Ledger`].

use ledger_core::{Asset, Balance, NameError, Timestamp, TransactionId};

use super::error::LedgerError;
use super::handle::Ledger;
use super::kinds::{AccountList, LogList, TransactionList};
use super::snapshot::{BalanceSums, LedgerSnapshot};
use crate::query::{Account, Stats, TransactionView};

/// Reads. Each answers from the state at the time of its call; use [`Ledger::snapshot`] for several reads of the same
/// state.
impl Ledger {
    /// Returns a snapshot of the ledger.
    pub fn snapshot(&self) -> LedgerSnapshot {
        LedgerSnapshot::new(self.name().clone(), self.view(), self.store().readers().clone())
    }

    /// As [`LedgerSnapshot::balance`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn balance<A>(&self, account: impl AsRef<str>, asset: A) -> Result<Balance, LedgerError>
    where
        A: TryInto<Asset>,
        A::Error: Into<NameError>,
    {
        self.snapshot().balance(account, asset)
    }

    /// As [`LedgerSnapshot::balance_at`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn balance_at<A>(
        &self,
        account: impl AsRef<str>,
        asset: A,
        at: Timestamp,
    ) -> Result<Balance, LedgerError>
    where
        A: TryInto<Asset>,
        A::Error: Into<NameError>,
    {
        self.snapshot().balance_at(account, asset, at)
    }

    /// As [`LedgerSnapshot::account`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn account(&self, account: impl AsRef<str>) -> Result<Option<Account>, LedgerError> {
        self.snapshot().account(account)
    }

    /// As [`LedgerSnapshot::get_account`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn get_account(&self, account: impl AsRef<str>) -> Result<Account, LedgerError> {
        self.snapshot().get_account(account)
    }

    /// As [`LedgerSnapshot::get_transaction`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn get_transaction(&self, id: impl Into<TransactionId>) -> Result<TransactionView, LedgerError> {
        self.snapshot().get_transaction(id)
    }

    /// Returns the list of accounts as of now.
    pub fn accounts(&self) -> AccountList {
        self.snapshot().accounts()
    }

    /// Returns the list of transactions as of now.
    pub fn transactions(&self) -> TransactionList {
        self.snapshot().transactions()
    }

    /// Returns the list of log entries as of now.
    pub fn logs(&self) -> LogList {
        self.snapshot().logs()
    }

    /// Returns sums of balances over accounts.
    pub fn balances(&self) -> BalanceSums {
        self.snapshot().balances()
    }

    /// As [`LedgerSnapshot::stats`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn stats(&self) -> Result<Stats, LedgerError> {
        self.snapshot().stats()
    }
}
