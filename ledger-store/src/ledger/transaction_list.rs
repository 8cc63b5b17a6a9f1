//! Lists of transactions: their conditions, orders and cursors.

use ledger_core::schema::SchemaError;
use ledger_core::{FilterOf, Operator, Timestamp, TransactionId, Transactions};

use super::conditions;
use super::list::sealed::{Explained, ListSpec};
use super::list::{List, ListKind};
use crate::error::ReadError;
use crate::query::{
    Direction, Explanation, Page, PageRequest, TransactionKey, TransactionOrder, TransactionQuery,
    TransactionView,
};
use crate::query_params::{QueryParams, parse_sort};
use crate::read::LedgerView;

/// A list of transactions, oldest first.
pub type TransactionList = List<TransactionKind>;

/// Lists transactions. See [`TransactionList`].
#[derive(Clone, Debug, Default)]
pub struct TransactionKind {
    at: Option<Timestamp>,
    effective_volumes: bool,
    order: TransactionOrder,
}

impl ListKind for TransactionKind {}

impl TransactionKind {
    /// Returns the list with the parameters of a stored query.
    pub(super) fn of(params: &QueryParams) -> Result<(Self, Direction), SchemaError> {
        let sort = params.sort.as_deref().unwrap_or_default();
        let (order, direction) = parse_sort(sort, &TransactionOrder::FIELDS, Direction::Descending)?;
        let effective_volumes = params.expand.unwrap_or_default().effective_volumes;
        Ok((Self { at: params.end, effective_volumes, order: order.unwrap_or_default() }, direction))
    }

    fn query(&self, filter: FilterOf<Transactions>, page: PageRequest<TransactionKey>) -> TransactionQuery {
        let Self { at, effective_volumes, order } = *self;
        TransactionQuery { filter, at, effective_volumes, order, page }
    }
}

impl Explained for TransactionKind {
    fn explain(
        &self,
        view: &LedgerView,
        filter: FilterOf<Transactions>,
        page: PageRequest<TransactionKey>,
    ) -> Result<Explanation, ReadError> {
        view.explain_transactions(&self.query(filter, page))
    }
}

impl ListSpec for TransactionKind {
    type Selected = Transactions;
    type Item = TransactionView;
    type Key = TransactionKey;
    const LETTER: char = 't';

    fn fetch(
        &self,
        view: &LedgerView,
        filter: FilterOf<Transactions>,
        page: PageRequest<TransactionKey>,
    ) -> Result<Page<TransactionView>, ReadError> {
        view.transactions(&self.query(filter, page))
    }

    fn count(&self, view: &LedgerView, filter: &FilterOf<Transactions>) -> Result<u64, ReadError> {
        view.count_transactions(filter, self.at)
    }

    fn key(&self, view: &TransactionView) -> TransactionKey {
        TransactionKey { timestamp: self.order.date_of(&view.transaction), id: view.transaction.id }
    }

    fn write_key(&self, key: &TransactionKey) -> String {
        format!("{}:{}", key.timestamp.as_micros(), key.id)
    }

    fn read_key(&self, text: &str) -> Option<TransactionKey> {
        let (timestamp, id) = text.split_once(':')?;
        let timestamp = Timestamp::from_micros(timestamp.parse().ok()?);
        Some(TransactionKey { timestamp, id: TransactionId::new(id.parse().ok()?) })
    }
}

impl List<TransactionKind> {
    /// Selects transactions that name an account as source or destination. Patterns are those of
    /// [`AccountList::matching`](List::matching).
    pub fn account(self, address: impl AsRef<str>) -> Self {
        self.select(conditions::address("account", address.as_ref()))
    }

    /// Selects transactions with a source.
    pub fn source(self, address: impl AsRef<str>) -> Self {
        self.select(conditions::address("source", address.as_ref()))
    }

    /// Selects transactions with a destination.
    pub fn destination(self, address: impl AsRef<str>) -> Self {
        self.select(conditions::address("destination", address.as_ref()))
    }

    /// Selects transactions with this value of a metadata key.
    pub fn metadata(self, key: impl AsRef<str>, value: impl AsRef<str>) -> Self {
        self.select(conditions::metadata(key.as_ref(), value.as_ref()))
    }

    /// Selects the transaction with a reference.
    pub fn reference(self, reference: impl AsRef<str>) -> Self {
        self.select(FilterOf::field("reference", Operator::Match, reference.as_ref()))
    }

    /// Selects transactions by whether they are reverted.
    pub fn reverted(self, reverted: bool) -> Self {
        self.select(FilterOf::field("reverted", Operator::Match, reverted))
    }

    /// Selects effective dates from this one on.
    pub fn since(self, from: Timestamp) -> Self {
        self.compare("timestamp", Operator::Gte, from)
    }

    /// Selects effective dates before this one.
    pub fn before(self, to: Timestamp) -> Self {
        self.compare("timestamp", Operator::Lt, to)
    }

    /// Lists the transactions as of a date: those with a later effective date are not there yet.
    pub fn at(mut self, at: Timestamp) -> Self {
        self.kind.at = Some(at);
        self
    }

    /// Reads the volumes by effective date right after each transaction, too.
    pub fn with_effective_volumes(mut self) -> Self {
        self.kind.effective_volumes = true;
        self
    }

    /// Orders by effective date instead of by id. Transactions with equal dates are ordered by id.
    pub fn by_effective_date(self) -> Self {
        self.order_by(TransactionOrder::Timestamp)
    }

    /// Orders the transactions by a date, or by id, which is the default.
    ///
    /// ```
    /// use ledger_store::{TransactionOrder, prelude::*};
    /// let ledger = Store::in_memory().ledger("main")?;
    /// ledger.transaction().posting("world", "users:1", 5, "USD").commit()?;
    /// ledger.transaction().posting("world", "users:1", 7, "USD").commit()?;
    /// ledger.revert(1).commit()?;
    /// let reverted = ledger.transactions().reverted(true).order_by(TransactionOrder::RevertedAt);
    /// let reverted = reverted.with_effective_volumes().page(10)?;
    /// assert_eq!(reverted.items[0].reverted_by.map(TransactionId::get), Some(3));
    /// # Ok::<(), LedgerError>(())
    /// ```
    pub fn order_by(mut self, order: TransactionOrder) -> Self {
        self.kind.order = order;
        self
    }

    /// Lists the newest first: the largest id, which was recorded last, or the latest date of the chosen
    /// [order](List::order_by). A transaction with a past effective date that was recorded last is the first one, unless the
    /// order is by [effective date](List::by_effective_date).
    ///
    /// ```
    /// use ledger_store::prelude::*;
    /// let ledger = Store::in_memory().ledger("main")?;
    /// let past: Timestamp = "2020-01-01T00:00:00Z".parse()?;
    /// ledger.transaction().posting("world", "users:1", 5, "USD").commit()?;
    /// ledger.transaction().posting("world", "users:1", 7, "USD").timestamp(past).commit()?;
    /// let newest = ledger.transactions().newest_first().page(1)?;
    /// assert_eq!(newest.items[0].id.get(), 2);
    /// let latest = ledger.transactions().by_effective_date().newest_first().page(1)?;
    /// assert_eq!(latest.items[0].id.get(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn newest_first(mut self) -> Self {
        self.direction = Direction::Descending;
        self
    }
}
