//! Ingestion: what a connector fetched becomes records, each once however often it is fetched.

use std::collections::BTreeMap;

use ledger_core::Timestamp;
use ledger_store::{DOCUMENT_BYTES_MAX, DocumentChange, Expected, Snapshot};

use crate::http::error::ApiError;
use crate::payments::account::{Account, NewAccount};
use crate::payments::balance::{self, AccountBalance, NewBalance};
use crate::payments::codec::Encoder;
use crate::payments::event::Event;
use crate::payments::ids::{AccountId, ConnectorId, PaymentId, REFERENCE_BYTES_MAX};
use crate::payments::payment::{NewPayment, Payment};
use crate::payments::postings::write::Recorded;
use crate::payments::record::{self, CHANGES_MAX, Record};
use crate::payments::service::{Payments, installed};

/// Records that a connector fetched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Batch {
    pub(crate) accounts: Vec<NewAccount>,
    pub(crate) balances: Vec<NewBalance>,
    pub(crate) payments: Vec<NewPayment>,
}

/// Maximum number of items in one commit. Each may take two documents, one of them the posting of a payment, and an
/// event for each publisher, and a commit has at most 1000 changes. The connectors ask for pages of at most 100 records,
/// so only a provider that sends more than it was asked for needs several commits.
const ITEMS_MAX: usize = 200;

impl Batch {
    fn len(&self) -> usize {
        self.accounts.len() + self.balances.len() + self.payments.len()
    }

    /// Takes the first items off.
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

    /// Removes what no document can hold, and says what that was.
    pub(crate) fn remove_unfit(&mut self) -> Option<String> {
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

/// Most bytes of an item: half a document, so that adjustments and metadata have room.
const ITEM_BYTES_MAX: usize = DOCUMENT_BYTES_MAX / 2;

fn length(metadata: &BTreeMap<String, String>) -> usize {
    metadata.iter().map(|(key, value)| key.len() + value.len() + 8).sum()
}

/// Records what was fetched together with what `finish` makes of it: the state of the task that fetched it, and the
/// tasks that follow. A batch that is too long for one commit is recorded in parts; the last of them has the state.
///
/// # Errors
///
/// `VALIDATION` if the installation is gone, those of `finish`, and what any write may meet.
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
            installed(snapshot, connector)?;
            recorded(payments, snapshot, connector, &part, now)
        })?;
    }
    payments.write_payments(connector, now, |snapshot| {
        installed(snapshot, connector)?;
        let Recorded { mut changes, payments, .. } = recorded(payments, snapshot, connector, &batch, now)?;
        let (last, answer) = finish(snapshot)?;
        changes.extend(last);
        debug_assert!(changes.len() + payments.len() <= CHANGES_MAX + 100, "{} changes", changes.len());
        Ok(Recorded { changes, payments, answer })
    })
}

/// The documents that a batch changes, the events that tell of it, and the payments that it changes.
fn recorded(
    payments: &Payments,
    snapshot: &Snapshot,
    connector: &ConnectorId,
    batch: &Batch,
    now: Timestamp,
) -> Result<Recorded<()>, ApiError> {
    let mut merged = Merged::new(connector, snapshot);
    for account in &batch.accounts {
        merged.account(account.clone())?;
    }
    for balance in &batch.balances {
        merged.balance(balance.clone())?;
    }
    for payment in &batch.payments {
        merged.payment(payment.clone(), now)?;
    }
    let changes = merged.changes(payments, now);
    let payments = merged.payments.into_values().map(|(_, payment, _)| payment).collect();
    Ok(Recorded { changes, payments, answer: () })
}

/// Records by key, as they were found and as they become.
type Changing<R> = BTreeMap<Vec<u8>, (Expected, R, bool)>;

/// The records of a batch. One that is named twice is merged twice and written once.
struct Merged<'a> {
    connector: &'a ConnectorId,
    snapshot: &'a Snapshot,
    accounts: Changing<Account>,
    balances: Changing<AccountBalance>,
    newest: BTreeMap<(String, String), AccountBalance>,
    payments: Changing<Payment>,
}

/// The current state of a record: from earlier in the batch, or as it is stored.
fn known<R: Record + Clone>(
    changing: &Changing<R>,
    snapshot: &Snapshot,
    key: &[u8],
) -> Result<(Expected, Option<R>), ApiError> {
    if let Some((expected, record, _)) = changing.get(key) {
        return Ok((*expected, Some(record.clone())));
    }
    Ok(match record::find::<R>(snapshot, key)? {
        None => (Expected::Absent, None),
        Some(found) => (Expected::Version(found.version), Some(found.value)),
    })
}

impl<'a> Merged<'a> {
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

    fn account(&mut self, news: NewAccount) -> Result<(), ApiError> {
        let id = AccountId { connector: self.connector.clone(), reference: news.reference.clone() };
        let (expected, stored) = known(&self.accounts, self.snapshot, &id.key())?;
        if let Some(account) = news.merged(self.connector, stored) {
            self.accounts.insert(account.key(), (expected, account, true));
        }
        Ok(())
    }

    fn payment(&mut self, news: NewPayment, now: Timestamp) -> Result<(), ApiError> {
        let id = PaymentId {
            connector: self.connector.clone(),
            kind: news.kind,
            reference: news.reference.clone(),
        };
        let (expected, stored) = known(&self.payments, self.snapshot, &id.key())?;
        // One that has grown too long stays as it is: nothing else may wait for it.
        if let Some(payment) = news.merged(self.connector, stored, now).filter(has_room) {
            self.payments.insert(payment.key(), (expected, payment, true));
        }
        Ok(())
    }

    fn balance(&mut self, news: NewBalance) -> Result<(), ApiError> {
        let place = (news.account.clone(), news.asset.clone());
        let account = AccountId { connector: self.connector.clone(), reference: place.0.clone() };
        let newest = match self.newest.get(&place) {
            Some(newest) => Some(newest.clone()),
            None => balance::newest(self.snapshot, &account, &place.1)?.map(|found| found.value),
        };
        for balance in news.merged(self.connector, newest) {
            let key = balance.key();
            let (expected, _) = known(&self.balances, self.snapshot, &key)?;
            let is_news = expected == Expected::Absent;
            self.newest.insert(place.clone(), balance.clone());
            self.balances.insert(key, (expected, balance, is_news));
        }
        Ok(())
    }

    fn changes(&self, payments: &Payments, now: Timestamp) -> Vec<DocumentChange> {
        let mut events = Vec::new();
        if payments.events.copies() > 0 {
            events.extend(self.accounts.values().map(|(_, account, _)| Event::Account(account)));
            let news = self.balances.values().filter(|(_, _, is_news)| *is_news);
            events.extend(news.map(|(_, balance, _)| Event::Balance(balance)));
            events.extend(self.payments.values().map(|(_, payment, _)| Event::Payment(payment)));
        }
        let mut changes = payments.tell(&events, now);
        changes.extend(self.accounts.values().map(|(expected, account, _)| record::put(account, *expected)));
        changes.extend(self.balances.values().map(|(expected, balance, _)| record::put(balance, *expected)));
        changes.extend(self.payments.values().map(|(expected, payment, _)| record::put(payment, *expected)));
        changes
    }
}

/// Whether a payment's document has room for what it has become.
fn has_room(payment: &Payment) -> bool {
    let mut out = Encoder::default();
    payment.encode(&mut out);
    out.into_bytes().len() <= DOCUMENT_BYTES_MAX
}
