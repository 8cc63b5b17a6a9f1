//! Ingestion: converts fetched data to records. Fetching the same data again changes nothing.

use std::collections::BTreeMap;

use ledger_core::Timestamp;
use ledger_store::{DOCUMENT_BYTES_MAX, DocumentChange, Expected, Snapshot};

use crate::http::error::ApiError;
use crate::payments::account::{Account, NewAccount};
use crate::payments::balance::{self, AccountBalance, NewBalance};
use crate::payments::event::Event;
use crate::payments::ids::{AccountId, ConnectorId, PaymentId, REFERENCE_BYTES_MAX};
use crate::payments::payment::{NewPayment, Payment};
use crate::payments::postings::write::PaymentChanges;
use crate::payments::record::{self, CHANGES_MAX, Record};
use crate::payments::service::{Payments, require_installation};

/// Records that a connector fetched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Batch {
    pub(crate) accounts: Vec<NewAccount>,
    pub(crate) balances: Vec<NewBalance>,
    pub(crate) payments: Vec<NewPayment>,
}

/// Maximum number of items in one commit. Each may take two documents, one of them the posting of a payment, and an
/// event for each publisher, and a commit has at most 1000 changes. The connectors ask for pages of at most 100
/// records, so only a provider that sends more than it was asked for needs several commits.
const ITEMS_MAX: usize = 200;

impl Batch {
    fn len(&self) -> usize {
        self.accounts.len() + self.balances.len() + self.payments.len()
    }

    /// Removes and returns the first items.
    fn take(&mut self, mut most: usize) -> Self {
        let mut first = |have: usize| {
            let taken = have.min(most);
            most -= taken;
            taken
        };
        let accounts = self.accounts.drain(..first(self.accounts.len())).collect();
        let balances = self.balances.drain(..first(self.balances.len())).collect();
        let payments = self.payments.drain(..first(self.payments.len())).collect();
        Self { accounts, balances, payments }
    }

    /// Removes the items that do not fit into a document. Returns a message about the first removed item.
    pub(crate) fn remove_oversized(&mut self) -> Option<String> {
        let mut removed: Option<String> = None;
        let mut note = |fits: bool, what: &str, reference: &str| {
            if !fits && removed.is_none() {
                let reference: String = reference.chars().take(64).collect();
                removed = Some(format!("{what} {reference:?} was passed over: it is too long, or has no id"));
            }
            fits
        };
        let named = |reference: &str| !reference.is_empty() && reference.len() <= REFERENCE_BYTES_MAX;
        self.accounts.retain(|account| {
            let raw = account.raw.as_ref().map_or(0, String::len);
            let size = account.name.len() + account.default_asset.len() + raw + length(&account.metadata);
            note(named(&account.reference) && size < ITEM_BYTES_MAX, "account", &account.reference)
        });
        self.balances.retain(|balance| note(balance.fits(), "balance of", &balance.account));
        self.payments.retain(|payment| {
            let adjustments: usize = payment.adjustments.iter().map(|one| one.raw.len() + 200).sum();
            let raw = payment.raw.as_ref().map_or(0, String::len);
            let size = payment.asset.len() + raw + adjustments + length(&payment.metadata);
            let links = [&payment.source, &payment.destination].into_iter().flatten();
            let is_linked = links.into_iter().all(|account| named(&account.reference));
            let fits = named(&payment.reference) && is_linked && size < ITEM_BYTES_MAX;
            note(fits, "payment", &payment.reference)
        });
        removed
    }
}

/// Maximum size of an item in bytes: half a document, so that adjustments and metadata can be added later.
const ITEM_BYTES_MAX: usize = DOCUMENT_BYTES_MAX / 2;

fn length(metadata: &BTreeMap<String, String>) -> usize {
    metadata.iter().map(|(key, value)| key.len() + value.len() + 8).sum()
}

/// Records fetched data together with the changes of `finish`, such as the state of the task and new tasks. A batch
/// that is too long for one commit is recorded in several commits. The last one contains the changes of `finish`.
///
/// # Errors
///
/// `VALIDATION` if the installation does not exist any more. Returns errors of `finish`. Also fails if the store cannot
/// be written.
pub(crate) fn ingest<T>(
    payments: &Payments,
    connector: &ConnectorId,
    mut batch: Batch,
    now: Timestamp,
    mut finish: impl FnMut(&Snapshot) -> Result<(Vec<DocumentChange>, T), ApiError>,
) -> Result<T, ApiError> {
    while batch.len() > ITEMS_MAX {
        let part = batch.take(ITEMS_MAX);
        payments.write_payments(connector, now, |snapshot| {
            require_installation(snapshot, connector)?;
            merge_batch(payments, snapshot, connector, &part, now)
        })?;
    }
    payments.write_payments(connector, now, |snapshot| {
        require_installation(snapshot, connector)?;
        let PaymentChanges { mut changes, payments, .. } =
            merge_batch(payments, snapshot, connector, &batch, now)?;
        let (last, answer) = finish(snapshot)?;
        changes.extend(last);
        debug_assert!(changes.len() + payments.len() <= CHANGES_MAX + 100, "{} changes", changes.len());
        Ok(PaymentChanges { changes, payments, answer })
    })
}

/// Returns the changes of documents for a batch, including their events, and the changed payments.
fn merge_batch(
    payments: &Payments,
    snapshot: &Snapshot,
    connector: &ConnectorId,
    batch: &Batch,
    now: Timestamp,
) -> Result<PaymentChanges<()>, ApiError> {
    let mut merged = MergedBatch::new(connector, snapshot);
    for account in &batch.accounts {
        merged.account(account.clone())?;
    }
    for balance in &batch.balances {
        merged.balance(balance.clone())?;
    }
    for payment in &batch.payments {
        merged.payment(payment.clone(), now)?;
    }
    let changes = merged.take_changes(payments, now);
    let payments = merged.payments.into_values().map(|changed| changed.record).collect();
    Ok(PaymentChanges { changes, payments, answer: () })
}

/// A changed record.
struct Changed<R> {
    /// The state of its document before the batch.
    expected: Expected,
    record: R,
    /// The content of its document.
    content: Vec<u8>,
    /// If set, the commit publishes an event for it.
    is_new: bool,
}

impl<R: Record> Changed<R> {
    fn new(expected: Expected, record: R, is_new: bool) -> Self {
        let content = record::content(&record);
        Self { expected, record, content, is_new }
    }

    /// Returns the change that stores the record. Takes the content, so it can be called once.
    fn take_change(&mut self) -> DocumentChange {
        record::put_content(&self.record, std::mem::take(&mut self.content), self.expected)
    }
}

/// Changed records by key.
type ChangedRecords<R> = BTreeMap<Vec<u8>, Changed<R>>;

/// The changed records of a batch. A record that occurs twice in the batch is merged twice and written once.
struct MergedBatch<'a> {
    connector: &'a ConnectorId,
    snapshot: &'a Snapshot,
    accounts: ChangedRecords<Account>,
    balances: ChangedRecords<AccountBalance>,
    newest: BTreeMap<(String, String), AccountBalance>,
    payments: ChangedRecords<Payment>,
}

/// Returns the current state of a record: from an earlier item of the batch, or as stored.
fn current<R: Record + Clone>(
    changed_records: &ChangedRecords<R>,
    snapshot: &Snapshot,
    key: &[u8],
) -> Result<(Expected, Option<R>), ApiError> {
    if let Some(changed) = changed_records.get(key) {
        return Ok((changed.expected, Some(changed.record.clone())));
    }
    Ok(match record::find::<R>(snapshot, key)? {
        None => (Expected::Absent, None),
        Some(found) => (Expected::Version(found.version), Some(found.value)),
    })
}

impl<'a> MergedBatch<'a> {
    fn new(connector: &'a ConnectorId, snapshot: &'a Snapshot) -> Self {
        Self {
            connector,
            snapshot,
            accounts: BTreeMap::new(),
            balances: BTreeMap::new(),
            newest: BTreeMap::new(),
            payments: BTreeMap::new(),
        }
    }

    fn account(&mut self, fetched: NewAccount) -> Result<(), ApiError> {
        let id = AccountId { connector: self.connector.clone(), reference: fetched.reference.clone() };
        let (expected, stored) = current(&self.accounts, self.snapshot, &id.key())?;
        if let Some(account) = fetched.merge_into(self.connector, stored) {
            self.accounts.insert(account.key(), Changed::new(expected, account, true));
        }
        Ok(())
    }

    fn payment(&mut self, fetched: NewPayment, now: Timestamp) -> Result<(), ApiError> {
        let id = PaymentId {
            connector: self.connector.clone(),
            kind: fetched.kind,
            reference: fetched.reference.clone(),
        };
        let (expected, stored) = current(&self.payments, self.snapshot, &id.key())?;
        if let Some(payment) = fetched.merge_into(self.connector, stored, now) {
            let changed = Changed::new(expected, payment, true);
            // A payment that would become too long stays unchanged, so that it does not block other records.
            if changed.content.len() <= DOCUMENT_BYTES_MAX {
                self.payments.insert(id.key(), changed);
            }
        }
        Ok(())
    }

    fn balance(&mut self, fetched: NewBalance) -> Result<(), ApiError> {
        let place = (fetched.account.clone(), fetched.asset.clone());
        let account = AccountId { connector: self.connector.clone(), reference: place.0.clone() };
        let newest = match self.newest.get(&place) {
            Some(newest) => Some(newest.clone()),
            None => balance::newest(self.snapshot, &account, &place.1)?.map(|found| found.value),
        };
        for balance in fetched.merge_into(self.connector, newest) {
            let key = balance.key();
            let (expected, _) = current(&self.balances, self.snapshot, &key)?;
            let is_new = expected == Expected::Absent;
            self.newest.insert(place.clone(), balance.clone());
            self.balances.insert(key, Changed::new(expected, balance, is_new));
        }
        Ok(())
    }

    /// Returns the changes that store the records and their events. Can be called once.
    fn take_changes(&mut self, payments: &Payments, now: Timestamp) -> Vec<DocumentChange> {
        let mut events = Vec::new();
        if payments.events.copies() > 0 {
            events.extend(self.accounts.values().map(|changed| Event::Account(&changed.record)));
            let fetched = self.balances.values().filter(|changed| changed.is_new);
            events.extend(fetched.map(|changed| Event::Balance(&changed.record)));
            events.extend(self.payments.values().map(|changed| Event::Payment(&changed.record)));
        }
        let mut changes = payments.event_changes(&events, now);
        changes.extend(self.accounts.values_mut().map(Changed::take_change));
        changes.extend(self.balances.values_mut().map(Changed::take_change));
        changes.extend(self.payments.values_mut().map(Changed::take_change));
        changes
    }
}
