//! The reads of a [`Ledger`].

use ledger_core::{Asset, Balance, NameError, Timestamp, TransactionId};

use super::account_list::AccountList;
use super::balance_sums::BalanceSums;
use super::error::LedgerError;
use super::handle::Ledger;
use super::log_list::LogList;
use super::schema_list::SchemaList;
use super::snapshot::LedgerSnapshot;
use super::transaction_list::TransactionList;
use super::volume_list::VolumeList;
use crate::query::{Account, LedgerInfo, SchemaView, Stats, TransactionView};

/// Reads. Each answers from the state at the time of its call; use [`Ledger::snapshot`] for several reads of the same
/// state.
///
/// ```
/// use ledger_store::prelude::*;
/// let ledger = Store::in_memory().ledger("main")?;
/// let paid = ledger.transaction().posting("world", "users:1", 5, "USD").commit()?;
/// ledger.update_transaction(paid.id).metadata("note", "late").commit()?;
/// assert_eq!((ledger.stats()?.transactions, ledger.stats()?.accounts), (1, 2));
/// assert_eq!(ledger.logs().newest_first().page(1)?.items[0].entry.id.get(), 2);
/// assert!(ledger.transaction_at(paid.id, paid.timestamp)?.is_some());
/// assert_eq!(ledger.info()?.name, *ledger.name());
/// assert!(ledger.schema("v1")?.is_none() && ledger.schemas().page(10)?.items.is_empty());
/// # Ok::<(), LedgerError>(())
/// ```
impl Ledger {
    /// Returns a snapshot of the ledger.
    pub fn snapshot(&self) -> LedgerSnapshot {
        LedgerSnapshot::new(self.name().clone(), self.view(), self.store().readers().clone())
    }

    /// Calls [`LedgerSnapshot::balance`] on a new snapshot. Blocks the thread; [`balance_async`](Self::balance_async)
    /// does not.
    ///
    /// # Errors
    ///
    /// The errors of [`LedgerSnapshot::balance`].
    pub fn balance<A>(&self, account: impl AsRef<str>, asset: A) -> Result<Balance, LedgerError>
    where
        A: TryInto<Asset>,
        A::Error: Into<NameError>,
    {
        self.snapshot().balance(account, asset)
    }

    /// Calls [`LedgerSnapshot::balance_at`] on a new snapshot. Blocks the thread;
    /// [`balance_at_async`](Self::balance_at_async) does not.
    ///
    /// # Errors
    ///
    /// The errors of [`LedgerSnapshot::balance_at`].
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

    /// Calls [`LedgerSnapshot::account`] on a new snapshot. Blocks the thread; [`account_async`](Self::account_async)
    /// does not.
    ///
    /// # Errors
    ///
    /// The errors of [`LedgerSnapshot::account`].
    pub fn account(&self, account: impl AsRef<str>) -> Result<Option<Account>, LedgerError> {
        self.snapshot().account(account)
    }

    /// Calls [`LedgerSnapshot::account_at`] on a new snapshot. Blocks the thread;
    /// [`account_at_async`](Self::account_at_async) does not.
    ///
    /// # Errors
    ///
    /// The errors of [`LedgerSnapshot::account_at`].
    pub fn account_at(
        &self,
        account: impl AsRef<str>,
        at: Timestamp,
    ) -> Result<Option<Account>, LedgerError> {
        self.snapshot().account_at(account, at)
    }

    /// Calls [`LedgerSnapshot::get_account`] on a new snapshot. Blocks the thread;
    /// [`get_account_async`](Self::get_account_async) does not.
    ///
    /// # Errors
    ///
    /// The errors of [`LedgerSnapshot::get_account`].
    pub fn get_account(&self, account: impl AsRef<str>) -> Result<Account, LedgerError> {
        self.snapshot().get_account(account)
    }

    /// Calls [`LedgerSnapshot::get_transaction`] on a new snapshot. Blocks the thread;
    /// [`get_transaction_async`](Self::get_transaction_async) does not.
    ///
    /// # Errors
    ///
    /// The errors of [`LedgerSnapshot::get_transaction`].
    pub fn get_transaction(&self, id: impl Into<TransactionId>) -> Result<TransactionView, LedgerError> {
        self.snapshot().get_transaction(id)
    }

    /// Calls [`LedgerSnapshot::transaction_at`] on a new snapshot. Blocks the thread;
    /// [`transaction_at_async`](Self::transaction_at_async) does not.
    ///
    /// # Errors
    ///
    /// The errors of [`LedgerSnapshot::transaction_at`].
    pub fn transaction_at(
        &self,
        id: impl Into<TransactionId>,
        at: Timestamp,
    ) -> Result<Option<TransactionView>, LedgerError> {
        self.snapshot().transaction_at(id, at)
    }

    /// As [`LedgerSnapshot::transaction_by_reference`]. Blocks the thread;
    /// [`transaction_by_reference_async`](Self::transaction_by_reference_async) does not.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn transaction_by_reference(
        &self,
        reference: impl AsRef<str>,
    ) -> Result<Option<TransactionView>, LedgerError> {
        self.snapshot().transaction_by_reference(reference)
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

    /// The list of what accounts received and sent as of now.
    pub fn volumes(&self) -> VolumeList {
        self.snapshot().volumes()
    }

    /// The list of schema versions as of now.
    pub fn schemas(&self) -> SchemaList {
        self.snapshot().schemas()
    }

    /// As [`LedgerSnapshot::schema`]. Blocks the thread; [`schema_async`](Self::schema_async) does not.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn schema(&self, version: impl AsRef<str>) -> Result<Option<SchemaView>, LedgerError> {
        self.snapshot().schema(version)
    }

    /// As [`LedgerSnapshot::info`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn info(&self) -> Result<LedgerInfo, LedgerError> {
        self.snapshot().info().cloned()
    }

    /// Returns sums of balances over accounts.
    pub fn balances(&self) -> BalanceSums {
        self.snapshot().balances()
    }

    /// Calls [`LedgerSnapshot::stats`] on a new snapshot. Blocks the thread; [`stats_async`](Self::stats_async) does
    /// not.
    ///
    /// # Errors
    ///
    /// The errors of [`LedgerSnapshot::stats`].
    pub fn stats(&self) -> Result<Stats, LedgerError> {
        self.snapshot().stats()
    }
}
