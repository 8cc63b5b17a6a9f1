//! The public interface of reads: a snapshot of the store, and the ledgers in it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use ledger_core::{
    AccountAddress, Accounts, Asset, Balance, FilterOf, FilterSubject, LedgerName, Ledgers, MetadataValue,
    SchemaVersion, TextField, Timestamp, TransactionId, Transactions,
};
use ledger_journal::JournalReader;

use super::page::PageBuilder;
use super::reader::LedgerReader;
use super::session::Session;
use super::{account, accounts, explain, hash, logs, schemas, transaction, transactions, volumes};
use crate::error::ReadError;
use crate::feature::Feature;
use crate::fingerprint::Fingerprints;
use crate::hashes::{Chain, ChainId, Hashes};
use crate::query::{
    Account, AccountQuery, Balances, BalancesQuery, Deleted, Direction, Expand, Explanation, LedgerInfo,
    LogQuery, LogView, Page, PageRequest, SchemaQuery, SchemaView, Stats, TransactionQuery, TransactionView,
    VolumesQuery, VolumesRow,
};
use crate::view::{Counters, Directory, LedgerHead, View};

/// The store at one time: everything that was acknowledged by then, and nothing later. A snapshot never changes, and
/// delays no writer.
///
/// While it lives, the memory and the space in the index that it can read are not reused. Replace long-lived snapshots
/// regularly.
#[derive(Clone)]
pub struct Snapshot {
    journal: Arc<dyn JournalReader>,
    view: Arc<View>,
    directory: Directory,
    fingerprints: Fingerprints,
    hashes: Arc<Hashes>,
    page_bytes: usize,
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("next", &self.view.next).finish_non_exhaustive()
    }
}

impl Snapshot {
    /// Creates a snapshot of a view with everything that reading it needs.
    pub(crate) fn new(
        journal: Arc<dyn JournalReader>,
        view: Arc<View>,
        directory: Directory,
        fingerprints: Fingerprints,
        hashes: Arc<Hashes>,
    ) -> Self {
        Self { journal, view, directory, fingerprints, hashes, page_bytes: usize::MAX }
    }

    /// Limits the memory of pages: a page of this snapshot and of its ledgers ends early once its items have about
    /// this many bytes, with [`Page::has_next`] set as for a full page. It contains at least one item of any size. By
    /// default there is no limit.
    ///
    /// ```
    /// use ledger_store::ledger_core::FilterOf;
    /// use ledger_store::{Deleted, Direction, PageRequest, Start, prelude::*};
    /// let store = Store::in_memory();
    /// store.ledger("main")?.create(LedgerOptions::default())?;
    /// store.ledger("audit")?.create(LedgerOptions::default())?;
    /// let snapshot = store.snapshot().with_page_bytes(1);
    /// let page = PageRequest { size: 10, direction: Direction::Ascending, start: Start::First };
    /// let first = snapshot.ledgers(&page, &FilterOf::all(), Deleted::Hidden)?;
    /// assert_eq!((first.items.len(), first.has_next), (1, true));
    /// assert!(!snapshot.is_removed(first.items[0].id));
    /// # Ok::<(), LedgerError>(())
    /// ```
    #[must_use]
    pub fn with_page_bytes(self, bytes: usize) -> Self {
        Self { page_bytes: bytes, ..self }
    }

    /// Returns the view of the snapshot.
    pub(super) fn view(&self) -> &View {
        &self.view
    }

    /// Returns the session for one ledger, by its number.
    pub(super) fn session(&self, ledger: u32) -> Result<Session, ReadError> {
        let reader = LedgerReader::new(self.journal.clone(), self.view.clone(), ledger);
        let head = reader.head()?.clone();
        Ok(Session::new(reader, head, self.fingerprints.clone(), self.hashes.clone()))
    }

    /// Returns the journal.
    pub(super) fn journal(&self) -> &dyn JournalReader {
        &*self.journal
    }

    /// Returns a page of the ledgers that a filter selects, in order of their numbers.
    ///
    /// # Errors
    ///
    /// None yet. Reserved for lists that come from storage.
    pub fn ledgers(
        &self,
        page: &PageRequest<u32>,
        filter: &FilterOf<Ledgers>,
        deleted: Deleted,
    ) -> Result<Page<LedgerInfo>, ReadError> {
        let (direction, beyond) = page.walk();
        let mut builder = PageBuilder::new(page, self.page_bytes);
        let count = u32::try_from(self.view.heads.len()).expect("ledgers have 32-bit numbers");
        let mut next = match (direction, beyond) {
            (Direction::Ascending, None) => Some(1),
            (Direction::Ascending, Some(beyond)) => beyond.checked_add(1),
            (Direction::Descending, None) => Some(count),
            (Direction::Descending, Some(beyond)) => Some(beyond.saturating_sub(1).min(count)),
        };
        while let Some(head) = next.and_then(|number| self.view.heads.get(number)) {
            let number = head.info.id;
            next = match direction {
                Direction::Ascending => number.checked_add(1),
                Direction::Descending => number.checked_sub(1),
            };
            let hidden = deleted == Deleted::Hidden && head.info.deleted_at.is_some();
            if hidden || head.is_removed || !filter.matches(&*head.info)? {
                continue;
            }
            if builder.is_full() {
                builder.has_more();
                break;
            }
            builder.push(LedgerInfo::clone(&head.info));
        }
        Ok(builder.finish(page))
    }

    /// Returns whether the ledger with a number was removed for good when the snapshot was taken.
    pub fn is_removed(&self, number: u32) -> bool {
        self.view.heads.get(number).is_some_and(|head| head.is_removed)
    }

    /// Returns the ledger with a name, if it exists in the snapshot and is not deleted.
    pub fn ledger(&self, name: &LedgerName) -> Option<LedgerView> {
        let number = self.directory.get(name)?;
        let head = self.view.heads.get(number).filter(|head| head.info.deleted_at.is_none())?.clone();
        Some(LedgerView {
            journal: self.journal.clone(),
            view: self.view.clone(),
            head,
            fingerprints: self.fingerprints.clone(),
            hashes: self.hashes.clone(),
            page_bytes: self.page_bytes,
        })
    }
}

/// One ledger in a [`Snapshot`]. All queries are answered from that snapshot.
///
/// Every query has a limit of work; a query that exceeds it fails with [`ReadError::TooExpensive`]. Damaged stored
/// bytes cause [`ReadError::Damaged`]: an answer is never incomplete.
///
/// Its queries have no builders. They suit a program that translates the requests of others, as a server does:
///
/// ```
/// use ledger_store::ledger_core::FilterOf;
/// use ledger_store::{BalancesQuery, Direction, FeedSize, PageRequest, Start, Store, TimeAxis, TransactionQuery};
/// let ledger = Store::in_memory().ledger("main")?;
/// ledger.transaction().posting("world", "users:1", 5, "USD").commit()?;
/// let view = ledger.view().expect("the first write created it");
/// assert_eq!((view.stats()?.transactions, view.info().name.as_str()), (1, "main"));
/// assert_eq!(view.count_accounts(&FilterOf::all(), None)?, 2);
/// assert_eq!(view.count_transactions(&FilterOf::all(), None)?, 1);
/// let page = PageRequest { size: 15, direction: Direction::Descending, start: Start::First };
/// let query = TransactionQuery {
///     filter: FilterOf::all(),
///     at: None,
///     effective_volumes: false,
///     order: Default::default(),
///     page,
/// };
/// assert_eq!(view.transactions(&query)?.items.len(), 1);
/// assert_eq!(view.explain_transactions(&query)?.rows_returned, 1);
/// let filter = FilterOf::parse(r#"{"$match": {"address": "users:"}}"#)?;
/// let sums = view.aggregated_balances(&BalancesQuery { filter, at: None, axis: TimeAxis::Inserted })?;
/// assert_eq!(sums[0].1, 5);
/// let new = view.logs_after(None, FeedSize { logs: 100, bytes: 1 << 20 }, false)?;
/// assert_eq!(new.logs.last().map(|log| log.log.entry.id), view.last_log());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Each query can be explained, and schemas are lists as well:
///
/// ```
/// use ledger_store::ledger_core::FilterOf;
/// use ledger_store::{
///     AccountQuery, BalancesQuery, Direction, LogQuery, PageRequest, SchemaOrder, SchemaQuery, Start, Store, TimeAxis,
///     VolumesQuery,
/// };
/// fn page<K>() -> PageRequest<K> {
///     PageRequest { size: 15, direction: Direction::Ascending, start: Start::First }
/// }
/// let ledger = Store::in_memory().ledger("main")?;
/// ledger.transaction().posting("world", "users:1", 5, "USD").commit()?;
/// ledger.insert_schema("v1", r#"{"chart": {"world": {}, "users": {"$user": {}}}}"#)?;
/// let view = ledger.view().expect("the first write created it");
/// let accounts = AccountQuery {
///     filter: FilterOf::all(),
///     at: None,
///     expand: Default::default(),
///     order: Default::default(),
///     page: page(),
/// };
/// assert_eq!(view.explain_accounts(&accounts)?.rows_returned, 2);
/// let volumes = VolumesQuery {
///     filter: FilterOf::all(),
///     from: None,
///     to: None,
///     axis: TimeAxis::Effective,
///     group_by: 0,
///     page: page(),
/// };
/// assert_eq!(view.explain_volumes(&volumes)?.rows_returned, 2);
/// let balances = BalancesQuery { filter: FilterOf::all(), at: None, axis: TimeAxis::Inserted };
/// assert_eq!(view.explain_balances(&balances)?.rows_returned, 1);
/// let logs = LogQuery { filter: FilterOf::all(), hashes: Default::default(), page: page() };
/// assert_eq!(view.explain_logs(&logs)?.rows_returned, 2);
/// let schemas = SchemaQuery { filter: FilterOf::all(), order: SchemaOrder::Created, page: page() };
/// let version = view.schemas(&schemas)?.items.remove(0).version;
/// assert!(view.schema(&version)?.is_some() && view.mapping().is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct LedgerView {
    journal: Arc<dyn JournalReader>,
    view: Arc<View>,
    head: LedgerHead,
    fingerprints: Fingerprints,
    hashes: Arc<Hashes>,
    page_bytes: usize,
}

impl fmt::Debug for LedgerView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LedgerView").field("info", self.info()).finish_non_exhaustive()
    }
}

impl LedgerView {
    /// Returns the session for one query.
    pub(super) fn session(&self) -> Session {
        let reader = LedgerReader::new(self.journal.clone(), self.view.clone(), self.head.info.id);
        let mut session =
            Session::new(reader, self.head.clone(), self.fingerprints.clone(), self.hashes.clone());
        session.page_bytes = self.page_bytes;
        session
    }

    /// Returns the description of the ledger.
    pub fn info(&self) -> &LedgerInfo {
        &self.head.info
    }

    /// Returns the counters of the ledger.
    pub(crate) fn counters(&self) -> &Counters {
        &self.head.counters
    }

    /// Returns the chain of wire hashes after the last log.
    pub(crate) fn chain(&self) -> Result<Chain, ReadError> {
        hash::recent_chain_before(
            &self.session(),
            ChainId::wire(self.head.info.id),
            self.head.counters.next_log,
        )
    }

    /// Returns the v1 mapping as it was set, or `None` if it never was.
    pub fn mapping(&self) -> Option<&Arc<str>> {
        self.head.mapping.as_ref()
    }

    /// Reads a page of transactions and explains how it was found.
    ///
    /// # Errors
    ///
    /// The errors of [`LedgerView::transactions`].
    pub fn explain_transactions(&self, query: &TransactionQuery) -> Result<Explanation, ReadError> {
        explain::transactions(&self.session(), query)
    }

    /// Reads a page of accounts and explains how it was found.
    ///
    /// # Errors
    ///
    /// The errors of [`LedgerView::accounts`].
    pub fn explain_accounts(&self, query: &AccountQuery) -> Result<Explanation, ReadError> {
        explain::accounts(&self.session(), query)
    }

    /// Reads a page of volumes and explains how it was found.
    ///
    /// # Errors
    ///
    /// The errors of [`LedgerView::volumes`].
    pub fn explain_volumes(&self, query: &VolumesQuery) -> Result<Explanation, ReadError> {
        explain::volumes(&self.session(), query)
    }

    /// Sums balances and explains how they were found.
    ///
    /// # Errors
    ///
    /// The errors of [`LedgerView::aggregated_balances`].
    pub fn explain_balances(&self, query: &BalancesQuery) -> Result<Explanation, ReadError> {
        explain::balances(&self.session(), query)
    }

    /// Reads a page of logs and explains how it was found.
    ///
    /// # Errors
    ///
    /// The errors of [`LedgerView::logs`].
    pub fn explain_logs(&self, query: &LogQuery) -> Result<Explanation, ReadError> {
        explain::logs(&self.session(), query)
    }

    /// Returns the version of the ledger's schema with a name.
    ///
    /// # Errors
    ///
    /// [`ReadError::Damaged`], [`ReadError::Io`].
    pub fn schema(&self, version: &SchemaVersion) -> Result<Option<SchemaView>, ReadError> {
        schemas::schema(&self.view, self.head.info.id, version)
    }

    /// Returns a page of the versions of the ledger's schema.
    ///
    /// # Errors
    ///
    /// The errors of [`LedgerView::schema`], and [`ReadError::TooExpensive`].
    pub fn schemas(&self, query: &SchemaQuery) -> Result<Page<SchemaView>, ReadError> {
        schemas::schemas(&self.view, self.head.info.id, query, self.page_bytes)
    }

    /// Returns the numbers of transactions and accounts.
    ///
    /// # Errors
    ///
    /// None yet.
    pub fn stats(&self) -> Result<Stats, ReadError> {
        let counters = &self.head.counters;
        Ok(Stats { transactions: counters.transactions, accounts: u64::from(counters.accounts) })
    }

    /// Returns the current balance of an asset in an account, or zero if the account never held it or does not exist.
    ///
    /// # Errors
    ///
    /// [`ReadError::Damaged`], [`ReadError::Io`].
    pub fn balance(&self, address: &AccountAddress, asset: &Asset) -> Result<Balance, ReadError> {
        account::balance(&self.session(), address, asset)
    }

    /// Returns an account, if it was used by `at`.
    ///
    /// # Errors
    ///
    /// [`ReadError::MissingFeature`] for volumes that the ledger does not keep, and the errors of any read.
    pub fn account(
        &self,
        address: &AccountAddress,
        at: Option<Timestamp>,
        expand: Expand,
    ) -> Result<Option<Account>, ReadError> {
        account::find(&self.session(), address, at, expand)
    }

    /// Returns a page of accounts.
    ///
    /// # Errors
    ///
    /// The errors of [`LedgerView::account`], and [`ReadError::TooExpensive`].
    pub fn accounts(&self, query: &AccountQuery) -> Result<Page<Account>, ReadError> {
        accounts::list(&self.session(), query)
    }

    /// Counts the accounts that a filter selects. Without a filter and a date this costs nothing.
    ///
    /// # Errors
    ///
    /// The errors of [`LedgerView::accounts`].
    pub fn count_accounts(
        &self,
        filter: &FilterOf<Accounts>,
        at: Option<Timestamp>,
    ) -> Result<u64, ReadError> {
        accounts::count(&self.session(), filter, at)
    }

    /// Returns a transaction, if its effective date is not after `at`.
    ///
    /// # Errors
    ///
    /// [`ReadError::MissingFeature`] for effective volumes that the ledger does not keep, and the errors of any read.
    pub fn transaction(
        &self,
        id: TransactionId,
        at: Option<Timestamp>,
        effective_volumes: bool,
    ) -> Result<Option<TransactionView>, ReadError> {
        transaction::find(&self.session(), id, at, effective_volumes)
    }

    /// Returns a page of transactions.
    ///
    /// # Errors
    ///
    /// The errors of [`LedgerView::transaction`], and [`ReadError::TooExpensive`].
    pub fn transactions(&self, query: &TransactionQuery) -> Result<Page<TransactionView>, ReadError> {
        transactions::list(&self.session(), query)
    }

    /// Counts the transactions that a filter selects. Without a filter and a date this costs nothing.
    ///
    /// # Errors
    ///
    /// The errors of [`LedgerView::transactions`].
    pub fn count_transactions(
        &self,
        filter: &FilterOf<Transactions>,
        at: Option<Timestamp>,
    ) -> Result<u64, ReadError> {
        transactions::count(&self.session(), filter, at)
    }

    /// Returns a page of log entries.
    ///
    /// # Errors
    ///
    /// [`ReadError::TooExpensive`], and the errors of any read.
    pub fn logs(&self, query: &LogQuery) -> Result<Page<LogView>, ReadError> {
        logs::list(&self.session(), query)
    }

    /// Returns the balances per asset, summed over the accounts that a filter selects. Lists an asset if at least one
    /// of these accounts held it.
    ///
    /// # Errors
    ///
    /// [`ReadError::MissingFeature`] for a date in a ledger that keeps no history of moves,
    /// [`ReadError::TooExpensive`], and the errors of any read.
    pub fn aggregated_balances(&self, query: &BalancesQuery) -> Result<Balances, ReadError> {
        volumes::aggregated(&self.session(), query)
    }

    /// Returns the flows in a window of time, by account and asset.
    ///
    /// # Errors
    ///
    /// The errors of [`LedgerView::aggregated_balances`].
    pub fn volumes(&self, query: &VolumesQuery) -> Result<Page<VolumesRow>, ReadError> {
        volumes::list(&self.session(), query)
    }
}

impl FilterSubject for LedgerInfo {
    type Error = ReadError;

    fn metadata(&self, key: &str) -> Result<Option<Cow<'_, str>>, ReadError> {
        Ok(self.metadata.get(key).map(MetadataValue::as_shown))
    }

    fn text(&self, field: TextField) -> Result<Option<Cow<'_, str>>, ReadError> {
        Ok(match field {
            TextField::Name => Some(Cow::Borrowed(self.name.as_str())),
            TextField::Bucket => Some(Cow::Borrowed(self.bucket.as_str())),
            TextField::Reference | TextField::Type | TextField::Version => None,
        })
    }

    fn feature(&self, name: &str) -> Result<Option<Cow<'_, str>>, ReadError> {
        Ok(Feature::parse(name).map(|feature| Cow::Borrowed(feature.value(&self.features))))
    }
}
