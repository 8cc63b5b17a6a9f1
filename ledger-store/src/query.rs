//! Questions to a snapshot, and their answers.

use ledger_core::{
    AccountAddress, Asset, Balance, Features, FirstId, HoldingVolumes, LedgerName, LogEntry, Metadata,
    Timestamp, Transaction, Volumes,
};
use ledger_core::{BucketName, LogId};

/// Which of the two dates of a transaction counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Clock {
    /// The date that the caller gave it.
    #[default]
    Effective,
    /// The date on which it was recorded.
    Insertion,
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
    /// What it keeps.
    pub features: Features,
    /// The first id of its transactions and logs.
    pub first_id: FirstId,
}

/// An account.
#[derive(Clone, Debug, PartialEq, Eq)]
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
pub struct TransactionView {
    /// The transaction.
    pub transaction: Transaction,
    /// The transaction that reverts it.
    pub reverted_by: Option<ledger_core::TransactionId>,
    /// Totals of its holdings right after it in effective order, where asked for.
    pub effective_volumes: Option<Vec<HoldingVolumes>>,
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

/// What transactions are listed by. Equal dates are ordered by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TransactionOrder {
    /// By id, the order of insertion.
    #[default]
    Id,
    /// By effective date.
    Timestamp,
}

/// A transaction's place in a list. Lists by id ignore the timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TransactionKey {
    /// Its effective date.
    pub timestamp: Timestamp,
    /// Its id.
    pub id: ledger_core::TransactionId,
}

/// A list of accounts by address.
#[derive(Clone, Debug)]
pub struct AccountQuery {
    /// Which ones.
    pub filter: ledger_core::Filter,
    /// As of this date.
    pub at: Option<Timestamp>,
    /// What to show.
    pub expand: Expand,
    /// Which part of the list.
    pub page: PageRequest<AccountAddress>,
}

/// A list of transactions.
#[derive(Clone, Debug)]
pub struct TransactionQuery {
    /// Which ones.
    pub filter: ledger_core::Filter,
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
    pub filter: ledger_core::Filter,
    /// Which hashes to show.
    pub hashes: LogHashes,
    /// Which part of the list.
    pub page: PageRequest<LogId>,
}

/// Sums of balances over accounts.
#[derive(Clone, Debug)]
pub struct BalancesQuery {
    /// Of which accounts.
    pub filter: ledger_core::Filter,
    /// As of this date.
    pub at: Option<Timestamp>,
    /// By which of the two dates.
    pub clock: Clock,
}

/// Volumes of many accounts.
#[derive(Clone, Debug)]
pub struct VolumesQuery {
    /// Of which accounts, and with a balance filter which rows.
    pub filter: ledger_core::Filter,
    /// Flows from this date on.
    pub from: Option<Timestamp>,
    /// Flows up to this date.
    pub to: Option<Timestamp>,
    /// By which of the two dates.
    pub clock: Clock,
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
pub struct Stats {
    /// Transactions.
    pub transactions: u64,
    /// Accounts, `world` included.
    pub accounts: u64,
}
