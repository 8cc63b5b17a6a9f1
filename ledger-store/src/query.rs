//! Queries to a snapshot, and their answers.

use ledger_core::{
    AccountAddress, Accounts, AggregatedBalances, Asset, Balance, BucketName, Features, FilterOf, FirstId,
    HoldingVolumes, LedgerName, LogEntry, LogId, Logs, Metadata, SchemaVersion, Schemas, Timestamp,
    Transaction, Transactions, VolumeRows, Volumes,
};

/// The date of a transaction that a query refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "camelCase"))]
pub enum TimeAxis {
    /// The effective date, which the caller stated.
    #[default]
    Effective,
    /// The insertion date, when the store recorded the transaction.
    Inserted,
}

/// The start of a page within its list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start<K> {
    /// The beginning of the list.
    First,
    /// The page begins right after the item with this key.
    After(K),
    /// The page ends right before the item with this key.
    Before(K),
}

/// The direction of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Smallest key first.
    Ascending,
    /// Largest key first.
    Descending,
}

impl Direction {
    /// Parses `asc` or `desc`, in any case.
    pub fn parse(word: &str) -> Option<Self> {
        if word.eq_ignore_ascii_case("asc") {
            Some(Self::Ascending)
        } else if word.eq_ignore_ascii_case("desc") {
            Some(Self::Descending)
        } else {
            None
        }
    }
}

/// Selects a page of a list. `K` is the sort key, which identifies an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRequest<K> {
    /// Maximum number of items in the page, at least 1.
    pub size: usize,
    /// The order of the whole list.
    pub direction: Direction,
    /// The start of the page.
    pub start: Start<K>,
}

/// A page of items in list order, even if it was reached backwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// True if the list has items after this page.
    pub has_next: bool,
    /// True if the list has items before this page.
    pub has_previous: bool,
}

/// Selects the volumes that an answer about accounts includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Expand {
    /// Includes volumes of all transactions by insertion date.
    pub volumes: bool,
    /// Includes volumes by effective date.
    pub effective_volumes: bool,
}

/// A description of a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "camelCase"))]
pub struct LedgerInfo {
    /// The number of the ledger in the store, from 1, in order of creation.
    pub id: u32,
    /// The name of the ledger.
    pub name: LedgerName,
    /// The bucket of the ledger.
    pub bucket: BucketName,
    /// The date when the ledger was created.
    pub added_at: Timestamp,
    /// The metadata of the ledger.
    pub metadata: Metadata,
    /// The features of the ledger.
    pub features: Features,
    /// The first id of the ledger's transactions and logs.
    pub first_id: FirstId,
    /// The date when its bucket was deleted, if it was. Requests do not find a deleted ledger, but its name stays
    /// taken.
    pub deleted_at: Option<Timestamp>,
}

/// Treatment of deleted ledgers in a list of ledgers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Deleted {
    /// Leaves out deleted ledgers.
    #[default]
    Hidden,
    /// Includes deleted ledgers.
    Shown,
}

/// An account.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "camelCase"))]
pub struct Account {
    /// The address of the account.
    pub address: AccountAddress,
    /// The metadata of the account.
    pub metadata: Metadata,
    /// The earliest effective date of its transactions, or else the date of its first metadata.
    pub first_usage: Timestamp,
    /// The date when an entry first named the account.
    pub insertion_date: Timestamp,
    /// The date when its metadata last changed, or else when an entry first named the account.
    pub updated_at: Timestamp,
    /// Volumes by asset, in ascending order, if the query includes them.
    pub volumes: Option<Vec<(Asset, Volumes)>>,
    /// Effective volumes by asset, in ascending order, if the query includes them.
    pub effective_volumes: Option<Vec<(Asset, Volumes)>>,
}

/// A transaction with the additional data that the query includes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "camelCase"))]
pub struct TransactionView {
    /// The transaction.
    pub transaction: Transaction,
    /// The transaction that reverts it.
    pub reverted_by: Option<ledger_core::TransactionId>,
    /// Volumes of its holdings right after the transaction in effective order, if the query includes them.
    pub effective_volumes: Option<Vec<HoldingVolumes>>,
}

/// Makes the members of the transaction available directly: `view.id` is `view.transaction.id`.
impl std::ops::Deref for TransactionView {
    type Target = Transaction;

    fn deref(&self) -> &Transaction {
        &self.transaction
    }
}

/// A log entry as lists return it. Its hash covers the entry and all entries before it, so anybody can check them:
///
/// ```
/// use ledger_store::ledger_core::HashChain;
/// let ledger = ledger_store::Store::in_memory().ledger("main")?;
/// ledger.transaction().posting("world", "users:1", 5, "USD").commit()?;
/// ledger.revert(1).commit()?;
/// let mut chain = HashChain::after(None);
/// for log in ledger.logs() {
///     let log = log?;
///     let hash = chain.append(&log.entry);
///     assert_eq!(log.hash, Some(*hash.as_bytes()));
///     println!("{} {} {} {}", log.entry.id, log.entry.payload.type_name(), hash.to_hex(), hash.to_base64());
/// }
/// # Ok::<(), ledger_store::LedgerError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "camelCase"))]
pub struct LogView {
    /// The entry.
    pub entry: LogEntry,
    /// The hash in the requested chain. `None` if the ledger does not keep this chain.
    #[cfg_attr(feature = "serde", serde(with = "hash_text"))]
    pub hash: Option<[u8; 32]>,
    /// For a revert: the original transaction as of that entry.
    pub reverted: Option<Box<Transaction>>,
}

/// The order of a list of transactions. Transactions with equal dates are ordered by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TransactionOrder {
    /// By id, which is the order of insertion.
    #[default]
    Id,
    /// By effective date.
    Timestamp,
    /// By date of the last change. No index supports this order, so a query examines every candidate of its filter.
    UpdatedAt,
    /// By date of the revert; transactions that were not reverted come last. No index supports this order either.
    RevertedAt,
}

impl TransactionOrder {
    /// The fields by which transactions can be sorted. Insertion dates never decrease as ids grow, so both have the same
    /// order.
    pub const FIELDS: [(&str, Self); 5] = [
        ("id", Self::Id),
        ("inserted_at", Self::Id),
        ("timestamp", Self::Timestamp),
        ("updated_at", Self::UpdatedAt),
        ("reverted_at", Self::RevertedAt),
    ];

    /// Returns the date that determines the position of a transaction in this order. Without one, returns a date after
    /// all others.
    ///
    /// ```
    /// use ledger_store::{Store, TransactionOrder};
    /// let ledger = Store::in_memory().ledger("main")?;
    /// let payment = ledger.transaction().posting("world", "users:1", 5, "USD").commit()?;
    /// assert_eq!(TransactionOrder::UpdatedAt.date_of(&payment), payment.updated_at);
    /// assert!(TransactionOrder::RevertedAt.date_of(&payment) > payment.updated_at); // it is not reverted
    /// # Ok::<(), ledger_store::LedgerError>(())
    /// ```
    pub fn date_of(self, transaction: &Transaction) -> Timestamp {
        match self {
            Self::Id | Self::Timestamp => transaction.timestamp,
            Self::UpdatedAt => transaction.updated_at,
            Self::RevertedAt => transaction.reverted_at.unwrap_or(AFTER_ALL),
        }
    }
}

/// The sort date of items that have no date. It is after every real date.
pub(crate) const AFTER_ALL: Timestamp = Timestamp::from_micros(i64::MAX);

/// The order of a list of accounts. Accounts with equal dates are ordered by address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum AccountOrder {
    /// By address, byte by byte.
    #[default]
    Address,
    /// By first usage. No index supports this order or the ones below, so a query examines every candidate of its
    /// filter.
    FirstUsage,
    /// By the date when an entry first named the account.
    InsertionDate,
    /// By date of the last change.
    UpdatedAt,
}

impl AccountOrder {
    /// The fields by which accounts can be sorted.
    pub const FIELDS: [(&str, Self); 4] = [
        ("address", Self::Address),
        ("first_usage", Self::FirstUsage),
        ("insertion_date", Self::InsertionDate),
        ("updated_at", Self::UpdatedAt),
    ];

    /// Returns the date that determines the position of an account in this order. The order by address ignores it.
    pub fn date_of(self, account: &Account) -> Timestamp {
        match self {
            Self::Address | Self::FirstUsage => account.first_usage,
            Self::InsertionDate => account.insertion_date,
            Self::UpdatedAt => account.updated_at,
        }
    }
}

/// The sort key of an account. Lists by address ignore the date.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AccountKey {
    /// The date that the list is ordered by.
    pub date: Timestamp,
    /// The address of the account.
    pub address: AccountAddress,
}

impl From<AccountAddress> for AccountKey {
    /// Creates the sort key for a list by address.
    fn from(address: AccountAddress) -> Self {
        Self { date: Timestamp::from_micros(0), address }
    }
}

/// The sort key of a transaction. Lists by id ignore the timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TransactionKey {
    /// The date that the list is ordered by.
    pub timestamp: Timestamp,
    /// The id of the transaction.
    pub id: ledger_core::TransactionId,
}

/// Explains how a page was computed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explanation {
    /// The index that supplied the candidates, as text for a person.
    pub index: String,
    /// True if the index selects exactly the items of the filter, so that the filter need not be tested.
    pub is_exact: bool,
    /// True if candidates come in list order, so that the search can stop at a full page.
    pub is_sorted: bool,
    /// Number of rows that were read to choose the index.
    pub rows_planning: u64,
    /// Number of rows that were read for the page.
    pub rows_scanned: u64,
    /// Number of rows in the page.
    pub rows_returned: u64,
}

/// A query for a list of accounts.
#[derive(Clone, Debug)]
pub struct AccountQuery {
    /// The accounts to list.
    pub filter: FilterOf<Accounts>,
    /// The date as of which to answer. `None` means now.
    pub at: Option<Timestamp>,
    /// The volumes to include.
    pub expand: Expand,
    /// The order of the list.
    pub order: AccountOrder,
    /// The page of the list.
    pub page: PageRequest<AccountKey>,
}

/// A query for a list of transactions.
#[derive(Clone, Debug)]
pub struct TransactionQuery {
    /// The transactions to list.
    pub filter: FilterOf<Transactions>,
    /// The date as of which to answer. Leaves out transactions with a later effective date. `None` means now.
    pub at: Option<Timestamp>,
    /// True if the transactions contain their effective volumes.
    pub effective_volumes: bool,
    /// The order of the list.
    pub order: TransactionOrder,
    /// The page of the list.
    pub page: PageRequest<TransactionKey>,
}

/// The hash chain that a list of log entries returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LogHashes {
    /// The wire hashes.
    #[default]
    Wire,
    /// The hashes of the v1 API if the ledger keeps them, else the wire hashes.
    Legacy,
}

/// A query for a list of log entries by id.
#[derive(Clone, Debug)]
pub struct LogQuery {
    /// The log entries to list.
    pub filter: FilterOf<Logs>,
    /// The hashes to return.
    pub hashes: LogHashes,
    /// The page of the list.
    pub page: PageRequest<LogId>,
}

impl LogQuery {
    /// The fields by which log entries can be sorted. Dates never decrease as ids grow, so there is only one order.
    pub const SORT_FIELDS: [(&str, ()); 2] = [("id", ()), ("date", ())];
}

/// A version of a ledger's schema.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "camelCase"))]
pub struct SchemaView {
    /// The name of the version.
    pub version: SchemaVersion,
    /// The date when the version was added.
    pub created_at: Timestamp,
    /// The schema as compact JSON, including version and date.
    pub text: String,
    /// The sort key of the version.
    pub key: SchemaKey,
}

/// The sort key of a schema version. Lists by version ignore the position.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "camelCase"))]
pub struct SchemaKey {
    /// The position of the journal entry that added the version.
    pub position: u64,
    /// The name of the version.
    pub version: SchemaVersion,
}

/// The order of a list of schema versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SchemaOrder {
    /// In the order in which they were added.
    #[default]
    Created,
    /// By name, byte by byte.
    Version,
}

/// A query for a list of schema versions.
#[derive(Clone, Debug)]
pub struct SchemaQuery {
    /// The versions to list.
    pub filter: FilterOf<Schemas>,
    /// The order of the list.
    pub order: SchemaOrder,
    /// The page of the list.
    pub page: PageRequest<SchemaKey>,
}

/// A query for sums of balances over accounts.
#[derive(Clone, Debug)]
pub struct BalancesQuery {
    /// The accounts to sum up.
    pub filter: FilterOf<AggregatedBalances>,
    /// The date as of which to answer. `None` means now.
    pub at: Option<Timestamp>,
    /// The date of a transaction that `at` refers to.
    pub axis: TimeAxis,
}

/// A query for volumes of many accounts.
#[derive(Clone, Debug)]
pub struct VolumesQuery {
    /// The accounts to list. A filter on balances selects rows.
    pub filter: FilterOf<VolumeRows>,
    /// Counts transactions from this date on.
    pub from: Option<Timestamp>,
    /// Counts transactions up to this date.
    pub to: Option<Timestamp>,
    /// The date of a transaction that `from` and `to` refer to.
    pub axis: TimeAxis,
    /// Number of leading address segments by which accounts are grouped. 0 means no grouping.
    pub group_by: usize,
    /// The page of the list, which is ordered by account and asset.
    pub page: PageRequest<(String, Asset)>,
}

impl VolumesQuery {
    /// The fields by which volumes can be sorted. Both names mean the account.
    pub const SORT_FIELDS: [(&str, ()); 2] = [("account", ()), ("address", ())];
}

/// A row of [`VolumesQuery`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "camelCase"))]
pub struct VolumesRow {
    /// The address of the account, or the leading segments that a group shares.
    pub account: String,
    /// The asset.
    pub asset: Asset,
    /// Total input and output in the period.
    pub volumes: Volumes,
}

/// Balances per asset, in ascending order of assets.
pub type Balances = Vec<(Asset, Balance)>;

/// Numbers of records in a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Stats {
    /// Number of transactions.
    pub transactions: u64,
    /// Number of accounts, including `world`.
    pub accounts: u64,
}

/// The hash of a log as base64.
#[cfg(feature = "serde")]
#[allow(clippy::ref_option, reason = "serde passes a reference to the field")]
mod hash_text {
    use ledger_core::WireHash;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        hash: &Option<[u8; 32]>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        hash.map(WireHash::from_bytes).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<[u8; 32]>, D::Error> {
        Ok(Option::<WireHash>::deserialize(deserializer)?.map(|hash| *hash.as_bytes()))
    }
}
