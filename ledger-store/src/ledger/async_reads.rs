//! Reads as futures, for any executor.

use ledger_core::{Asset, Balance, NameError, Timestamp, TransactionId};

use super::balance_sums::BalanceSums;
use super::error::LedgerError;
use super::handle::Ledger;
use super::list::sealed::Explained;
use super::list::{List, ListKind, ListPage};
use super::snapshot::LedgerSnapshot;
use super::stored_list::StoredList;
use crate::query::{Account, Balances, Explanation, SchemaView, Stats, TimeAxis, TransactionView};
use crate::readers::ReadFuture;

/// Reads without blocking. Each answers from the state at the time of its call.
impl Ledger {
    /// Runs a read of the ledger's current snapshot on a thread of the store, and returns a future of its answer.
    /// Supports every read of [`LedgerSnapshot`]. See [`Store::read_async`](crate::Store::read_async).
    pub fn read_async<T: Send + 'static>(
        &self,
        read: impl FnOnce(&LedgerSnapshot) -> T + Send + 'static,
    ) -> ReadFuture<T> {
        let snapshot = self.snapshot();
        self.store().readers().run(move || read(&snapshot))
    }

    /// As [`Ledger::balance`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Ledger::balance`].
    pub fn balance_async<A>(
        &self,
        account: impl AsRef<str>,
        asset: A,
    ) -> ReadFuture<Result<Balance, LedgerError>>
    where
        A: TryInto<Asset>,
        A::Error: Into<NameError>,
    {
        let account = account.as_ref().to_owned();
        let asset: Result<Asset, NameError> = asset.try_into().map_err(Into::into);
        self.read_async(move |ledger| ledger.balance(account, asset?))
    }

    /// As [`Ledger::balance_at`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Ledger::balance_at`].
    pub fn balance_at_async<A>(
        &self,
        account: impl AsRef<str>,
        asset: A,
        at: Timestamp,
    ) -> ReadFuture<Result<Balance, LedgerError>>
    where
        A: TryInto<Asset>,
        A::Error: Into<NameError>,
    {
        let account = account.as_ref().to_owned();
        let asset: Result<Asset, NameError> = asset.try_into().map_err(Into::into);
        self.read_async(move |ledger| ledger.balance_at(account, asset?, at))
    }

    /// As [`Ledger::account`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Ledger::account`].
    pub fn account_async(
        &self,
        account: impl AsRef<str>,
    ) -> ReadFuture<Result<Option<Account>, LedgerError>> {
        let account = account.as_ref().to_owned();
        self.read_async(move |ledger| ledger.account(account))
    }

    /// As [`Ledger::account_at`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Ledger::account_at`].
    pub fn account_at_async(
        &self,
        account: impl AsRef<str>,
        at: Timestamp,
    ) -> ReadFuture<Result<Option<Account>, LedgerError>> {
        let account = account.as_ref().to_owned();
        self.read_async(move |ledger| ledger.account_at(account, at))
    }

    /// As [`Ledger::get_account`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Ledger::get_account`].
    pub fn get_account_async(&self, account: impl AsRef<str>) -> ReadFuture<Result<Account, LedgerError>> {
        let account = account.as_ref().to_owned();
        self.read_async(move |ledger| ledger.get_account(account))
    }

    /// As [`Ledger::get_transaction`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Ledger::get_transaction`].
    pub fn get_transaction_async(
        &self,
        id: impl Into<TransactionId>,
    ) -> ReadFuture<Result<TransactionView, LedgerError>> {
        let id = id.into();
        self.read_async(move |ledger| ledger.get_transaction(id))
    }

    /// As [`Ledger::transaction_at`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Ledger::transaction_at`].
    pub fn transaction_at_async(
        &self,
        id: impl Into<TransactionId>,
        at: Timestamp,
    ) -> ReadFuture<Result<Option<TransactionView>, LedgerError>> {
        let id = id.into();
        self.read_async(move |ledger| ledger.transaction_at(id, at))
    }

    /// As [`Ledger::transaction_by_reference`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Ledger::transaction_by_reference`].
    pub fn transaction_by_reference_async(
        &self,
        reference: impl AsRef<str>,
    ) -> ReadFuture<Result<Option<TransactionView>, LedgerError>> {
        let reference = reference.as_ref().to_owned();
        self.read_async(move |ledger| ledger.transaction_by_reference(reference))
    }

    /// As [`Ledger::schema`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Ledger::schema`].
    pub fn schema_async(
        &self,
        version: impl AsRef<str>,
    ) -> ReadFuture<Result<Option<SchemaView>, LedgerError>> {
        let version = version.as_ref().to_owned();
        self.read_async(move |ledger| ledger.schema(version))
    }

    /// As [`Ledger::query`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Ledger::query`].
    pub fn query_async(
        &self,
        version: impl AsRef<str>,
        name: &str,
    ) -> ReadFuture<Result<StoredList, LedgerError>> {
        let (version, name) = (version.as_ref().to_owned(), name.to_owned());
        self.read_async(move |ledger| ledger.query(version, &name))
    }

    /// As [`Ledger::stats`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Ledger::stats`].
    pub fn stats_async(&self) -> ReadFuture<Result<Stats, LedgerError>> {
        self.read_async(LedgerSnapshot::stats)
    }
}

impl<K: ListKind> List<K> {
    /// As [`List::page`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`List::page`].
    pub fn page_async(&self, size: usize) -> ReadFuture<Result<ListPage<K::Item>, LedgerError>> {
        let list = self.clone();
        self.readers.run(move || list.page(size))
    }

    /// As [`List::count`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`List::count`].
    pub fn count_async(&self) -> ReadFuture<Result<u64, LedgerError>> {
        let list = self.clone();
        self.readers.run(move || list.count())
    }
}

impl<K: ListKind + Explained> List<K> {
    /// As [`List::explain`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`List::explain`].
    pub fn explain_async(&self, size: usize) -> ReadFuture<Result<Explanation, LedgerError>> {
        let list = self.clone();
        self.readers.run(move || list.explain(size))
    }
}

impl BalanceSums {
    /// As [`BalanceSums::now`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`BalanceSums::now`].
    pub fn now_async(self) -> ReadFuture<Result<Balances, LedgerError>> {
        self.readers.clone().run(move || self.now())
    }

    /// As [`BalanceSums::at`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`BalanceSums::at`].
    pub fn at_async(self, at: Timestamp, axis: TimeAxis) -> ReadFuture<Result<Balances, LedgerError>> {
        self.readers.clone().run(move || self.at(at, axis))
    }

    /// As [`BalanceSums::explain`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`BalanceSums::explain`].
    pub fn explain_async(self) -> ReadFuture<Result<Explanation, LedgerError>> {
        self.readers.clone().run(move || self.explain())
    }
}
