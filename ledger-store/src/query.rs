//! Questions to a snapshot, and their answers.

use ledger_core::{
    AccountAddress, Accounts, AggregatedBalances, Asset, Balance, BucketName, Features, FilterOf, FirstId,
    HoldingVolumes, LedgerName, LogEntry, LogId, Logs, Metadata, SchemaVersion, Schemas, Timestamp,
    Transaction, Transactions, VolumeRows, Volumes,
};

/// Which of the two dates of a transaction counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TimeAxis {
    /// The date that the caller gave it.
    #[default]
    Effective,
    /// The date on which it was recorded.
    Inserted,
}

/// Where a page begins in its list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start<K> {
    /// At the list's beginning.
    First,
    /// Right after the item with this key.
    After(K),
    /// So that it ends right before the item with this key.
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

/// A part of a list. `K` is what the list is ordered by; it identifies an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRequest<K> {
    /// Most items of the page, at least one.
    pub size: usize,
    /// The order of the whole list.
    pub direction: Direction,
    /// Where the page begins.
    pub start: Start<K>,
}

/// Items in the order of their list, also when the page was reached backwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// Whether there are items after the last.
    pub has_next: bool,
    /// Whether there are items before the first.
    pub has_previous: bool,
}

/// Which volumes an account shall show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Expand {
    /// By insertion.
    pub volumes: bool,
    /// By effective date.
    pub effective_volumes: bool,
}

/// A ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerInfo {
    /// Its number in the store, from 1, in order of creation.
    pub id: u32,
    /// Its name.
    pub name: LedgerName,
    /// Its bucket.
    pub bucket: BucketName,
    /// When it was created.
    pub added_at: Timestamp,
    /// Its metadata.
    pub metadata: Metadata,
    /// The features that it has.
    pub features: Features,
    /// The first id of its transactions and logs.
    pub first_id: FirstId,
    /// When its bucket was deleted, if it was. A deleted ledger is found by nobody, and keeps its name.
    pub deleted_at: Option<Timestamp>,
}

/// Whether a list of ledgers has the deleted ones too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Deleted {
    /// It has not.
    #[default]
    Hidden,
    /// It has.
    Shown,
}

/// An account.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "camelCase"))]
pub struct Account {
    /// Its address.
    pub address: AccountAddress,
    /// Its metadata.
    pub metadata: Metadata,
    /// The earliest effective date of its moves or, without one, the date of its first metadata.
    pub first_usage: Timestamp,
    /// When it was first named.
    pub insertion_date: Timestamp,
    /// When its metadata last changed or, without any, when it was first named.
    pub updated_at: Timestamp,
    /// By asset, ascending, where asked for.
    pub volumes: Option<Vec<(Asset, Volumes)>>,
    /// By asset, ascending, where asked for.
    pub effective_volumes: Option<Vec<(Asset, Volumes)>>,
}

/// A transaction with what was asked for beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "camelCase"))]
pub struct TransactionView {
    /// The transaction.
    pub transaction: Transaction,
    /// The transaction that reverts it.
    pub reverted_by: Option<ledger_core::TransactionId>,
    /// Totals of its holdings right after it in effective order, where asked for.
    pub effective_volumes: Option<Vec<HoldingVolumes>>,
}

/// The transaction itself is in reach without a field: `view.id` is `view.transaction.id`.
impl std::ops::Deref for TransactionView {
    type Target = Transaction;

    fn deref(&self) -> &Transaction {
        &self.transaction
    }
}

/// A log entry as lists show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogView {
    /// The entry.
    pub entry: LogEntry,
    /// Its hash, of the chain that was asked for; `None` where the ledger keeps none.
    pub hash: Option<[u8; 32]>,
    /// For a revert, the original as of that entry.
    pub reverted: Option<Box<Transaction>>,
}

/// The order of listed transactions. Equal dates are ordered by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TransactionOrder {
    /// By id, the order of insertion.
    #[default]
    Id,
    /// By effective date.
    Timestamp,
    /// By when they last changed. No index serves it: the filter's candidates are looked at one by one.
    UpdatedAt,
    /// By when they were reverted, those that never were after all others. As [`TransactionOrder::UpdatedAt`].
    RevertedAt,
}

impl TransactionOrder {
    /// The date that a transaction has its place by. Without one its place is after all that have one.
    pub fn date_of(self, transaction: &Transaction) -> Timestamp {
        match self {
            Self::Id | Self::Timestamp => transaction.timestamp,
            Self::UpdatedAt => transaction.updated_at,
            Self::RevertedAt => transaction.reverted_at.unwrap_or(AFTER_ALL),
        }
    }
}

/// The place of what has no date: after every date.
pub(crate) const AFTER_ALL: Timestamp = Timestamp::from_micros(i64::MAX);

/// The order of listed accounts. Equal dates are ordered by address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum AccountOrder {
    /// By address, bytewise.
    #[default]
    Address,
    /// By when they were first used. No index serves it or the orders below: the filter's candidates are looked at one
    /// by one.
    FirstUsage,
    /// By when they were first named.
    InsertionDate,
    /// By when they last changed.
    UpdatedAt,
}

impl AccountOrder {
    /// The date that an account has its place by; by address it is not looked at.
    pub fn date_of(self, account: &Account) -> Timestamp {
        match self {
            Self::Address | Self::FirstUsage => account.first_usage,
            Self::InsertionDate => account.insertion_date,
            Self::UpdatedAt => account.updated_at,
        }
    }
}

/// An account's place in a list. Lists by address ignore the date.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AccountKey {
    /// The date that the list is ordered by.
    pub date: Timestamp,
    /// Its address.
    pub address: AccountAddress,
}

impl From<AccountAddress> for AccountKey {
    /// A place in a list by address.
    fn from(address: AccountAddress) -> Self {
        Self { date: Timestamp::from_micros(0), address }
    }
}

/// A transaction's place in a list. Lists by id ignore the timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TransactionKey {
    /// The date that the list is ordered by.
    pub timestamp: Timestamp,
    /// Its id.
    pub id: ledger_core::TransactionId,
}

/// How a page was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The index that led to the candidates, in words.
    pub index: String,
    /// Whether all candidates are selected, so that the filter is not tested.
    pub is_exact: bool,
    /// Whether candidates come in the order of the list, so that a page ends the search.
    pub is_sorted: bool,
    /// Rows that were looked at to choose the index.
    pub rows_planning: u64,
    /// Rows that were looked at for the page.
    pub rows_scanned: u64,
    /// Rows of the page.
    pub rows_returned: u64,
}

/// A list of accounts.
#[derive(Clone, Debug)]
pub struct AccountQuery {
    /// Which ones.
    pub filter: FilterOf<Accounts>,
    /// As of this date.
    pub at: Option<Timestamp>,
    /// The additions to an answer.
    pub expand: Expand,
    /// By what it is ordered.
    pub order: AccountOrder,
    /// Which part of the list.
    pub page: PageRequest<AccountKey>,
}

/// A list of transactions.
#[derive(Clone, Debug)]
pub struct TransactionQuery {
    /// Which ones.
    pub filter: FilterOf<Transactions>,
    /// As of this date: those with a later effective date are not there yet.
    pub at: Option<Timestamp>,
    /// Whether to compute effective volumes.
    pub effective_volumes: bool,
    /// By what it is ordered.
    pub order: TransactionOrder,
    /// Which part of the list.
    pub page: PageRequest<TransactionKey>,
}

/// Which hashes a list of log entries shall show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LogHashes {
    /// The wire hashes.
    #[default]
    Wire,
    /// Those of the first generation of the API where the ledger keeps them, else the wire hashes.
    Legacy,
}

/// A list of log entries by id.
#[derive(Clone, Debug)]
pub struct LogQuery {
    /// Which ones.
    pub filter: FilterOf<Logs>,
    /// Which hashes to show.
    pub hashes: LogHashes,
    /// Which part of the list.
    pub page: PageRequest<LogId>,
}

/// A version of a ledger's schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaView {
    /// Its name.
    pub version: SchemaVersion,
    /// When it was added.
    pub created_at: Timestamp,
    /// It as compact JSON, version and date included.
    pub text: String,
    /// Its place in lists.
    pub key: SchemaKey,
}

/// A schema's place in a list. Lists by version ignore the position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaKey {
    /// The position of the entry that added it.
    pub position: u64,
    /// Its name.
    pub version: SchemaVersion,
}

/// The order of listed schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SchemaOrder {
    /// By when they were added.
    #[default]
    Created,
    /// By what they are called, bytewise.
    Version,
}

/// A list of schemas.
#[derive(Clone, Debug)]
pub struct SchemaQuery {
    /// Which ones.
    pub filter: FilterOf<Schemas>,
    /// By what it is ordered.
    pub order: SchemaOrder,
    /// Which part of the list.
    pub page: PageRequest<SchemaKey>,
}

/// Sums of balances over accounts.
#[derive(Clone, Debug)]
pub struct BalancesQuery {
    /// Of which accounts.
    pub filter: FilterOf<AggregatedBalances>,
    /// As of this date.
    pub at: Option<Timestamp>,
    /// By which of the two dates.
    pub axis: TimeAxis,
}

/// Volumes of many accounts.
#[derive(Clone, Debug)]
pub struct VolumesQuery {
    /// Of which accounts, and with a balance filter which rows.
    pub filter: FilterOf<VolumeRows>,
    /// Flows from this date on.
    pub from: Option<Timestamp>,
    /// Flows up to this date.
    pub to: Option<Timestamp>,
    /// By which of the two dates.
    pub axis: TimeAxis,
    /// Join accounts by so many first segments; 0 joins none.
    pub group_by: usize,
    /// Which part of the list, by account and asset.
    pub page: PageRequest<(String, Asset)>,
}

/// A row of [`VolumesQuery`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumesRow {
    /// The account, or the segments that a group shares.
    pub account: String,
    /// The asset.
    pub asset: Asset,
    /// The flows.
    pub volumes: Volumes,
}

/// Sums per asset, ascending by asset.
pub type Balances = Vec<(Asset, Balance)>;

/// How much there is in a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Stats {
    /// Transactions.
    pub transactions: u64,
    /// Accounts, `world` included.
    pub accounts: u64,
}
