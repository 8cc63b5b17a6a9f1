//! Lists of accounts: their conditions, orders and cursors.

use ledger_core::schema::SchemaError;
use ledger_core::{AccountAddress, Accounts, FilterOf, Timestamp};

use super::conditions;
use super::list::sealed::{Explained, ListSpec};
use super::list::{List, ListKind};
use crate::error::ReadError;
use crate::query::{
    Account, AccountKey, AccountOrder, AccountQuery, Direction, Expand, Explanation, Page, PageRequest,
};
use crate::query_params::{QueryParams, parse_sort};
use crate::read::LedgerView;

/// A list of accounts, by address.
pub type AccountList = List<AccountKind>;

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

impl ListSpec for AccountKind {
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
        self.select(conditions::address("address", address.as_ref()))
    }

    /// Selects accounts with this value of a metadata key.
    pub fn metadata(self, key: impl AsRef<str>, value: impl AsRef<str>) -> Self {
        self.select(conditions::metadata(key.as_ref(), value.as_ref()))
    }

    /// Reads the volumes of the accounts, too. Otherwise [`Account::volumes`] is `None`.
    pub fn with_volumes(mut self) -> Self {
        self.kind.expand.volumes = true;
        self
    }

    /// Reads the volumes by effective date, too. Otherwise [`Account::effective_volumes`] is `None`.
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
    ///
    /// ```
    /// use ledger_store::{AccountOrder, prelude::*};
    /// let ledger = Store::in_memory().ledger("main")?;
    /// ledger.update_account("users:1").metadata("name", "Ann").commit()?;
    /// ledger.transaction().posting("world", "users:2", 5, "USD").commit()?;
    /// ledger.update_account("users:1").metadata("name", "Anna").commit()?;
    /// let changed = ledger.accounts().order_by(AccountOrder::UpdatedAt).descending().with_effective_volumes();
    /// assert_eq!(changed.page(1)?.items[0].address.as_str(), "users:1");
    /// # Ok::<(), LedgerError>(())
    /// ```
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
