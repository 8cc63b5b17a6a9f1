//! The kinds of lists: their conditions, orders and cursors.

use ledger_core::schema::SchemaError;
use ledger_core::{
    AccountAddress, Accounts, FilterOf, LogId, Logs, Operator, Timestamp, TransactionId, Transactions,
};

use super::list::sealed::{Explained, Kind};
use super::list::{List, ListKind};
use crate::error::ReadError;
use crate::query::{
    Account, AccountKey, AccountOrder, AccountQuery, Direction, Expand, Explanation, LogHashes, LogQuery,
    LogView, Page, PageRequest, TransactionKey, TransactionOrder, TransactionQuery, TransactionView,
};
use crate::query_params::{QueryParams, parse_sort};
use crate::read::LedgerView;

/// A list of accounts, by address.
pub type AccountList = List<AccountKind>;

/// A list of transactions, oldest first.
pub type TransactionList = List<TransactionKind>;

/// A list of log entries, oldest first.
pub type LogList = List<LogKind>;

/// Turns a pattern with `*` for any one segment into the form of filters, where the segment is empty.
pub(super) fn pattern(text: &str) -> String {
    let segments: Vec<&str> =
        text.split(':').map(|segment| if segment == "*" { "" } else { segment }).collect();
    segments.join(":")
}

/// Lists accounts. See [`AccountList`].
#[derive(Clone, Debug, Default)]
pub struct AccountKind {
    at: Option<Timestamp>,
    expand: Expand,
    order: AccountOrder,
}

impl ListKind for AccountKind {}

impl AccountKind {
    /// Returns the list with the parameters of a stored query.
    pub(super) fn of(params: &QueryParams) -> Result<(Self, Direction), SchemaError> {
        let sort = params.sort.as_deref().unwrap_or_default();
        let (order, direction) = parse_sort(sort, &AccountOrder::FIELDS, Direction::Ascending)?;
        let (at, expand) = (params.end, params.expand.unwrap_or_default());
        Ok((Self { at, expand, order: order.unwrap_or_default() }, direction))
    }

    fn query(&self, filter: FilterOf<Accounts>, page: PageRequest<AccountKey>) -> AccountQuery {
        let Self { at, expand, order } = *self;
        AccountQuery { filter, at, expand, order, page }
    }
}

impl Explained for AccountKind {
    fn explain(
        &self,
        view: &LedgerView,
        filter: FilterOf<Accounts>,
        page: PageRequest<AccountKey>,
    ) -> Result<Explanation, ReadError> {
        view.explain_accounts(&self.query(filter, page))
    }
}

impl Kind for AccountKind {
    type Selected = Accounts;
    type Item = Account;
    type Key = AccountKey;
    const LETTER: char = 'a';

    fn fetch(
        &self,
        view: &LedgerView,
        filter: FilterOf<Accounts>,
        page: PageRequest<AccountKey>,
    ) -> Result<Page<Account>, ReadError> {
        view.accounts(&self.query(filter, page))
    }

    fn count(&self, view: &LedgerView, filter: &FilterOf<Accounts>) -> Result<u64, ReadError> {
        view.count_accounts(filter, self.at)
    }

    fn key(&self, account: &Account) -> AccountKey {
        AccountKey { date: self.order.date_of(account), address: account.address.clone() }
    }

    fn write_key(&self, key: &AccountKey) -> String {
        match self.order {
            AccountOrder::Address => key.address.to_string(),
            _ => format!("{}:{}", key.date.as_micros(), key.address),
        }
    }

    fn read_key(&self, text: &str) -> Option<AccountKey> {
        if self.order == AccountOrder::Address {
            return AccountAddress::parse(text).ok().map(AccountKey::from);
        }
        let (date, address) = text.split_once(':')?;
        let date = Timestamp::from_micros(date.parse().ok()?);
        Some(AccountKey { date, address: AccountAddress::parse(address).ok()? })
    }
}

impl List<AccountKind> {
    /// Selects accounts by a pattern: segments that must be equal, `*` or nothing for any one segment, `...` at the end
    /// for any number of further ones. An [`AccountAddress`] selects only its account.
    pub fn matching(self, address: impl AsRef<str>) -> Self {
        let address = pattern(address.as_ref());
        self.select(FilterOf::field("address", Operator::Match, address))
    }

    /// Selects accounts with this value of a metadata key.
    pub fn metadata(self, key: impl AsRef<str>, value: impl AsRef<str>) -> Self {
        let key = format!("metadata[{}]", key.as_ref());
        self.select(FilterOf::field(&key, Operator::Match, value.as_ref()))
    }

    /// Reads the volumes of the accounts, too.
    pub fn with_volumes(mut self) -> Self {
        self.kind.expand.volumes = true;
        self
    }

    /// Reads the volumes by effective date, too.
    pub fn with_effective_volumes(mut self) -> Self {
        self.kind.expand.effective_volumes = true;
        self
    }

    /// Lists the accounts that were used until an effective date, with the metadata that was recorded by then.
    pub fn at(mut self, at: Timestamp) -> Self {
        self.kind.at = Some(at);
        self
    }

    /// Orders the accounts by a date instead of by address.
    pub fn order_by(mut self, order: AccountOrder) -> Self {
        self.kind.order = order;
        self
    }

    /// Lists the last address, or the newest date, first.
    pub fn descending(mut self) -> Self {
        self.direction = Direction::Descending;
        self
    }
}

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

impl Kind for TransactionKind {
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
    fn address(self, field: &str, address: &str) -> Self {
        let address = pattern(address);
        self.select(FilterOf::field(field, Operator::Match, address))
    }

    /// Selects transactions that name an account as source or destination. Patterns are those of
    /// [`AccountList::matching`](List::matching).
    pub fn account(self, address: impl AsRef<str>) -> Self {
        self.address("account", address.as_ref())
    }

    /// Selects transactions with a source.
    pub fn source(self, address: impl AsRef<str>) -> Self {
        self.address("source", address.as_ref())
    }

    /// Selects transactions with a destination.
    pub fn destination(self, address: impl AsRef<str>) -> Self {
        self.address("destination", address.as_ref())
    }

    /// Selects transactions with this value of a metadata key.
    pub fn metadata(self, key: impl AsRef<str>, value: impl AsRef<str>) -> Self {
        let key = format!("metadata[{}]", key.as_ref());
        self.select(FilterOf::field(&key, Operator::Match, value.as_ref()))
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

    /// Orders by effective date instead of by id.
    pub fn by_effective_date(self) -> Self {
        self.order_by(TransactionOrder::Timestamp)
    }

    /// Orders the transactions by a date.
    pub fn order_by(mut self, order: TransactionOrder) -> Self {
        self.kind.order = order;
        self
    }

    /// Lists the newest first.
    pub fn newest_first(mut self) -> Self {
        self.direction = Direction::Descending;
        self
    }
}

/// Lists log entries. See [`LogList`].
#[derive(Clone, Debug, Default)]
pub struct LogKind {
    hashes: LogHashes,
}

impl ListKind for LogKind {}

impl LogKind {
    /// Returns the list with the parameters of a stored query.
    pub(super) fn of(params: &QueryParams) -> Result<(Self, Direction), SchemaError> {
        let sort = params.sort.as_deref().unwrap_or_default();
        let (_, direction) = parse_sort(sort, &LogQuery::SORT_FIELDS, Direction::Descending)?;
        Ok((Self::default(), direction))
    }
}

impl Explained for LogKind {
    fn explain(
        &self,
        view: &LedgerView,
        filter: FilterOf<Logs>,
        page: PageRequest<LogId>,
    ) -> Result<Explanation, ReadError> {
        view.explain_logs(&LogQuery { filter, hashes: self.hashes, page })
    }
}

impl Kind for LogKind {
    type Selected = Logs;
    type Item = LogView;
    type Key = LogId;
    const LETTER: char = 'l';

    fn fetch(
        &self,
        view: &LedgerView,
        filter: FilterOf<Logs>,
        page: PageRequest<LogId>,
    ) -> Result<Page<LogView>, ReadError> {
        view.logs(&LogQuery { filter, hashes: self.hashes, page })
    }

    fn key(&self, log: &LogView) -> LogId {
        log.entry.id
    }

    fn write_key(&self, key: &LogId) -> String {
        key.to_string()
    }

    fn read_key(&self, text: &str) -> Option<LogId> {
        text.parse().ok()
    }
}

impl List<LogKind> {
    /// Selects entries that were recorded at this date or later.
    pub fn since(self, from: Timestamp) -> Self {
        self.compare("date", Operator::Gte, from)
    }

    /// Selects entries that were recorded before this date.
    pub fn before(self, to: Timestamp) -> Self {
        self.compare("date", Operator::Lt, to)
    }

    /// Lists the newest first.
    pub fn newest_first(mut self) -> Self {
        self.direction = Direction::Descending;
        self
    }
}
