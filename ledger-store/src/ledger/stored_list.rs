//! Stored queries: lists that a schema of the ledger defines under a name.

use std::sync::Arc;

use ledger_core::schema::{Schema, SchemaError, StoredQuery};
use ledger_core::{
    Accounts, FilterOf, Json, Logs, Resource, SchemaVersion, Selects, SmolStr, Transactions, VolumeRows,
};

use super::account_list::{AccountKind, AccountList};
use super::error::LedgerError;
use super::handle::Ledger;
use super::list::{List, ListKind};
use super::log_list::{LogKind, LogList};
use super::snapshot::LedgerSnapshot;
use super::transaction_list::{TransactionKind, TransactionList};
use super::volume_list::{VolumeKind, VolumeList};
use crate::query::{AccountOrder, Direction, LogQuery, TransactionOrder, VolumesQuery};
use crate::query_params::{QueryParams, parse_sort};
use crate::read::LedgerView;
use crate::readers::Readers;

impl Ledger {
    /// Calls [`LedgerSnapshot::query`] on a new snapshot. Blocks the thread; [`query_async`](Self::query_async) does
    /// not.
    ///
    /// # Errors
    ///
    /// The errors of [`LedgerSnapshot::query`].
    pub fn query(&self, version: impl AsRef<str>, name: &str) -> Result<StoredList, LedgerError> {
        self.snapshot().query(version, name)
    }
}

impl LedgerSnapshot {
    /// Returns the query that a version of the ledger's schema defines under a name. [`Schema::queries`] lists the names:
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use ledger_store::ledger_core::schema::Schema;
    /// use ledger_store::prelude::*;
    /// let ledger = Store::in_memory().ledger("main")?;
    /// ledger.insert_schema("v1", r#"{"chart": {}, "queries": {"all": {"resource": "accounts"}}}"#)?;
    /// let stored = ledger.schema("v1")?.expect("it was just added");
    /// let names: Vec<String> = Schema::parse(&stored.text)?.queries().map(|(name, _)| name.to_owned()).collect();
    /// assert_eq!(names, ["all"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LedgerError::LedgerNotFound`], [`LedgerError::Name`] for a malformed version, [`LedgerError::Schema`] if the
    /// ledger does not have the version or the version does not have the query, [`LedgerError::Read`].
    pub fn query(&self, version: impl AsRef<str>, name: &str) -> Result<StoredList, LedgerError> {
        let version = SchemaVersion::parse(version.as_ref())?;
        let view = self.existing()?;
        let missing = |what: String| LedgerError::Schema(SchemaError::new(what));
        let stored = view.schema(&version)?;
        let stored = stored.ok_or_else(|| missing(format!("schema version '{version}' not found")))?;
        let schema = Schema::parse_recorded(&stored.text)?;
        let query = schema.query(name);
        let query = query.ok_or_else(|| missing(format!("schema version '{version}' has no such query")))?;
        Ok(StoredList {
            view: view.clone(),
            readers: self.readers().clone(),
            params: QueryParams::of(query.params())?,
            query: query.clone(),
            values: Vec::new(),
        })
    }
}

/// A list that a schema defines, with variables in its filter. [`Ledger::query`] returns it.
///
/// The method with the name of the query's resource turns it into a list with the stored filter, order, dates and
/// volumes, to which a program can add conditions.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use ledger_store::prelude::*;
/// let ledger = Store::in_memory().ledger("main")?;
/// ledger.transaction().posting("world", "users:1", 7, "USD").posting("world", "users:2", 90, "USD").commit()?;
/// let schema = r#"{
///     "chart": {"users": {"$user": {}}},
///     "queries": {"rich": {
///         "resource": "accounts",
///         "vars": {"least": "int"},
///         "params": {"expand": ["volumes"]},
///         "body": {"$gte": {"balance[USD]": "${least}"}}
///     }}
/// }"#;
/// ledger.insert_schema("v1", schema)?;
/// let rich: Vec<_> = ledger.query("v1", "rich")?.var("least", 50).accounts()?.into_iter().collect::<Result<_, _>>()?;
/// assert_eq!(rich.len(), 1);
/// assert_eq!(rich[0].address.as_str(), "users:2");
///
/// use ledger_store::{QueryParams, ledger_core::Resource};
/// let stored = ledger.query("v1", "rich")?.params(QueryParams { page_size: Some(5), ..QueryParams::default() });
/// assert_eq!((stored.resource(), stored.page_size()), (Resource::Accounts, Some(5)));
/// assert!(stored.logs().is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is read before it is turned into a list"]
pub struct StoredList {
    view: LedgerView,
    readers: Arc<Readers>,
    query: StoredQuery,
    params: QueryParams,
    values: Vec<(SmolStr, Json)>,
}

impl StoredList {
    /// Sets the value of a variable: a boolean, an integer, a text or a date.
    pub fn var(mut self, name: &str, value: impl Into<Json>) -> Self {
        self.values.retain(|(known, _)| known != name);
        self.values.push((name.into(), value.into()));
        self
    }

    /// Overrides stored parameters. Missing ones keep their stored value.
    pub fn params(mut self, over: QueryParams) -> Self {
        self.params = self.params.with(over);
        self
    }

    /// Returns the resource that the query lists.
    pub fn resource(&self) -> Resource {
        self.query.resource()
    }

    /// Returns the number of items in a page, if the query or [`StoredList::params`] states one.
    pub fn page_size(&self) -> Option<usize> {
        self.params.page_size.filter(|size| *size > 0).map(|size| size as usize)
    }

    /// Returns the list of accounts.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Schema`] if the query lists another resource, if a variable has no value or one of another type,
    /// and if a parameter is wrong. [`LedgerError::Filter`] if a value makes the filter malformed.
    pub fn accounts(&self) -> Result<AccountList, LedgerError> {
        self.list(AccountKind::of)
    }

    /// Returns the list of transactions, newest first unless the query states another order.
    ///
    /// # Errors
    ///
    /// The errors of [`StoredList::accounts`].
    pub fn transactions(&self) -> Result<TransactionList, LedgerError> {
        self.list(TransactionKind::of)
    }

    /// Returns the list of log entries, newest first unless the query states another order.
    ///
    /// # Errors
    ///
    /// The errors of [`StoredList::accounts`].
    pub fn logs(&self) -> Result<LogList, LedgerError> {
        self.list(LogKind::of)
    }

    /// Returns the list of volumes.
    ///
    /// # Errors
    ///
    /// The errors of [`StoredList::accounts`].
    pub fn volumes(&self) -> Result<VolumeList, LedgerError> {
        self.list(VolumeKind::of)
    }

    fn list<K: ListKind>(
        &self,
        with_params: fn(&QueryParams) -> Result<(K, Direction), SchemaError>,
    ) -> Result<List<K>, LedgerError> {
        if self.resource() != <K::Selected as Selects>::RESOURCE {
            let found = self.query.resource_name();
            return Err(SchemaError::new(format!("the query lists {found}")).into());
        }
        let (kind, direction) = with_params(&self.params)?;
        let filter = self.query.filter(&self.values)?;
        let filter = FilterOf::parse(&filter.map_or(String::new(), |filter| filter.to_string()))?;
        let mut list = List::new(Some(self.view.clone()), self.readers.clone(), kind).filter(filter);
        list.direction = direction;
        Ok(list)
    }
}

/// Checks that each stored query of a schema can run: its parameters are valid, and some values of its variables make
/// its filter valid for its resource. Other values may still make the filter malformed.
///
/// # Errors
///
/// [`SchemaError`] with the name of the query and the reason.
///
/// ```
/// use ledger_store::{check_queries, ledger_core::schema::Schema};
/// let schema = Schema::parse(
///     r#"{"chart": {}, "queries": {"rich": {"resource": "accounts", "params": {"sort": "balance:desc"}}}}"#,
/// )?;
/// let refused = check_queries(&schema).unwrap_err();
/// assert_eq!(refused.to_string(), "queries 'rich': 'sort': field balance is not paginated");
/// # Ok::<(), ledger_store::ledger_core::schema::SchemaError>(())
/// ```
pub fn check_queries(schema: &Schema) -> Result<(), SchemaError> {
    for (name, query) in schema.queries() {
        check(query).map_err(|error| {
            let name: String = name.chars().take(100).collect();
            SchemaError::new(format!("queries '{name}': {error}"))
        })?;
    }
    Ok(())
}

fn check(query: &StoredQuery) -> Result<(), SchemaError> {
    match query.resource() {
        Resource::Accounts => check_as::<Accounts, _>(query, &AccountOrder::FIELDS),
        Resource::Logs => check_as::<Logs, _>(query, &LogQuery::SORT_FIELDS),
        Resource::Volumes => check_as::<VolumeRows, _>(query, &VolumesQuery::SORT_FIELDS),
        _ => check_as::<Transactions, _>(query, &TransactionOrder::FIELDS),
    }
}

fn check_as<R: Selects, O: Copy>(query: &StoredQuery, fields: &[(&str, O)]) -> Result<(), SchemaError> {
    let sort = QueryParams::of(query.params())?.sort.unwrap_or_default();
    parse_sort(&sort, fields, Direction::Ascending)
        .map_err(|error| SchemaError::new(format!("'sort': {error}")))?;
    let mut fault = None;
    for sample in query.samples() {
        let text = sample.map_or(String::new(), |sample| sample.to_string());
        match FilterOf::<R>::parse(&text) {
            Ok(_) => return Ok(()),
            Err(error) => fault = fault.or(Some(error)),
        }
    }
    fault.map_or(Ok(()), |error| Err(SchemaError::new(format!("'body': {error}"))))
}
