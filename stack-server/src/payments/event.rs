//! Events of the payments API. The commit of a change also stores its events, one copy for each publisher. A copy
//! remains until its publisher has delivered it.

use std::sync::atomic::{AtomicU64, Ordering};

use ledger_core::Timestamp;
use ledger_store::{Direction, DocumentAction, DocumentChange, DocumentRange, Expected, Snapshot};

use crate::collections::PAYMENT_EVENTS;
use crate::http::response::{Json, Numbers};
use crate::payments::account::Account;
use crate::payments::balance::AccountBalance;
use crate::payments::bank_account::{self, BankAccount};
use crate::payments::codec::Metadata;
use crate::payments::ids::{AccountId, ConnectorId, InitiationId};
use crate::payments::initiation::Initiation;
use crate::payments::payment::Payment;
use crate::payments::pool::Pool;
use crate::payments::record::prefixed;
use crate::uuid::Uuid;

/// The types of events.
pub(crate) const KINDS: [&str; 9] = [
    "SAVED_PAYMENT",
    "SAVED_ACCOUNT",
    "SAVED_BALANCE",
    "SAVED_BANK_ACCOUNT",
    "SAVED_TRANSFER_INITIATION",
    "DELETED_TRANSFER_INITIATION",
    "SAVED_POOL",
    "DELETED_POOL",
    "CONNECTOR_RESET",
];

/// Creates the documents of events, if there are publishers.
#[derive(Debug)]
pub(crate) struct Events {
    publishers: Vec<&'static str>,
    /// The prefix of this server's addresses.
    base: String,
    next: AtomicU64,
}

/// A change of which clients are notified.
pub(crate) enum Event<'a> {
    Payment(&'a Payment),
    Account(&'a Account),
    Balance(&'a AccountBalance),
    /// A bank account that a connector uses, with its numbers masked.
    BankAccount(&'a BankAccount, &'a bank_account::Numbers),
    Initiation(&'a Initiation),
    InitiationDeleted(&'a InitiationId),
    Pool(&'a Pool, &'a [AccountId]),
    PoolDeleted(&'a Uuid),
    ConnectorReset(&'a ConnectorId),
}

impl Event<'_> {
    /// Returns the name of the event's type.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Payment(_) => "SAVED_PAYMENT",
            Self::Account(_) => "SAVED_ACCOUNT",
            Self::Balance(_) => "SAVED_BALANCE",
            Self::BankAccount(..) => "SAVED_BANK_ACCOUNT",
            Self::Initiation(_) => "SAVED_TRANSFER_INITIATION",
            Self::InitiationDeleted(_) => "DELETED_TRANSFER_INITIATION",
            Self::Pool(..) => "SAVED_POOL",
            Self::PoolDeleted(_) => "DELETED_POOL",
            Self::ConnectorReset(_) => "CONNECTOR_RESET",
        }
    }
}

impl Events {
    /// Creates the events for these publishers. Their numbers are higher than those of all stored events, so that no
    /// event replaces one that is not delivered yet, even if the clock ran backwards.
    pub(crate) fn new(
        publishers: Vec<&'static str>,
        base: String,
        snapshot: &Snapshot,
        now: Timestamp,
    ) -> Self {
        let last = publishers.iter().filter_map(|publisher| last_number(snapshot, publisher)).max();
        let next = last.map_or(0, |last| last + 1).max(now.as_micros().cast_unsigned());
        Self { publishers, base, next: AtomicU64::new(next) }
    }

    /// Returns the changes that store events. They belong into the commit of the change that caused the events.
    pub(crate) fn changes(&self, events: &[Event<'_>], now: Timestamp) -> Vec<DocumentChange> {
        let mut changes = Vec::with_capacity(events.len() * self.publishers.len());
        if self.publishers.is_empty() {
            return changes;
        }
        for event in events {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let value = self.text(event, now);
            for publisher in &self.publishers {
                let key = [&prefix(publisher)[..], &number.to_be_bytes()].concat();
                let action = DocumentAction::Put { value: value.clone(), keys: vec![] };
                let expected = Expected::Anything;
                changes.push(DocumentChange { collection: PAYMENT_EVENTS, key, expected, action });
            }
        }
        changes
    }

    /// Returns the number of documents per event.
    pub(crate) fn copies(&self) -> usize {
        self.publishers.len()
    }

    /// Returns the stored form of an event: its type, a zero byte, and the JSON text.
    fn text(&self, event: &Event<'_>, now: Timestamp) -> Vec<u8> {
        let mut json = Json::new(Numbers::Plain);
        json.raw(event.kind()).raw("\0{\"date\":").time(now);
        json.raw(",\"app\":\"payments\",\"version\":\"v1\",\"type\":").plain_string(event.kind());
        json.raw(",\"payload\":{");
        match event {
            Event::Payment(payment) => self.payment(&mut json, payment),
            Event::Account(account) => write_account(&mut json, account),
            Event::Balance(balance) => write_balance(&mut json, balance),
            Event::BankAccount(account, masked) => write_bank_account(&mut json, account, masked),
            Event::Initiation(initiation) => write_initiation(&mut json, initiation),
            Event::InitiationDeleted(id) => {
                json.raw("\"createdAt\":").time(now).raw(",\"id\":").plain_string(&id.text());
            }
            Event::Pool(pool, accounts) => {
                json.raw("\"id\":\"").raw(&pool.id.to_string()).raw("\",\"name\":").string(&pool.name);
                json.raw(",\"createdAt\":").time(pool.created_at).raw(",\"accountIDs\":[");
                json.list(*accounts, |json, account| {
                    json.plain_string(&account.text());
                });
                json.raw("]");
            }
            Event::PoolDeleted(id) => {
                json.raw("\"createdAt\":").time(now).raw(",\"id\":\"").raw(&id.to_string()).raw("\"");
            }
            Event::ConnectorReset(id) => {
                json.raw("\"createdAt\":").time(now).raw(",\"connectorId\":").plain_string(&id.text());
            }
        }
        json.raw("}}");
        json.into_bytes()
    }

    fn payment(&self, json: &mut Json, payment: &Payment) {
        json.raw("\"id\":").plain_string(&payment.id.text());
        json.raw(",\"reference\":").string(&payment.id.reference);
        json.raw(",\"createdAt\":").time(payment.created_at);
        write_connector(json, &payment.id.connector);
        json.raw(",\"type\":").plain_string(payment.id.kind.name());
        json.raw(",\"status\":").plain_string(payment.status.name());
        json.raw(",\"scheme\":").plain_string(payment.scheme.name());
        json.raw(",\"asset\":").string(&payment.asset);
        if let Some(source) = &payment.source {
            json.raw(",\"sourceAccountId\":").plain_string(&source.text());
        }
        if let Some(destination) = &payment.destination {
            json.raw(",\"destinationAccountId\":").plain_string(&destination.text());
        }
        let named = [("source_account", &payment.source), ("destination_account", &payment.destination)];
        let links: Vec<_> =
            named.into_iter().filter_map(|(name, account)| Some((name, account.as_ref()?))).collect();
        if links.is_empty() {
            json.raw(",\"links\":null");
        } else {
            json.raw(",\"links\":[").list(links, |json, (name, account)| {
                let uri = format!("{}/api/payments/accounts/{}", self.base, account.text());
                json.raw("{\"name\":").plain_string(name).raw(",\"uri\":").string(&uri).raw("}");
            });
            json.raw("]");
        }
        json.raw(",\"rawData\":").raw(payment.raw.as_deref().unwrap_or("{}"));
        json.raw(",\"initialAmount\":").balance(&payment.initial_amount);
        json.raw(",\"amount\":").balance(&payment.amount).raw(",\"metadata\":");
        write_metadata(json, &payment.metadata);
    }
}

/// Returns the common prefix of the keys of a publisher's events.
pub(crate) fn prefix(publisher: &str) -> Vec<u8> {
    [publisher.as_bytes(), &[0]].concat()
}

/// Returns the number of the newest stored event of a publisher. Without one, or if the store cannot be read, the date
/// alone gives the next number.
fn last_number(snapshot: &Snapshot, publisher: &str) -> Option<u64> {
    let range = DocumentRange { limit: 1, ..prefixed(&prefix(publisher), Direction::Descending) };
    let newest = snapshot.documents(PAYMENT_EVENTS, &range).ok()?.pop()?;
    newest.key.last_chunk().map(|number| u64::from_be_bytes(*number))
}

/// Writes metadata as a JSON object.
pub(crate) fn write_metadata(json: &mut Json, metadata: &Metadata) {
    json.raw("{").list(metadata, |json, (key, value)| {
        json.string(key).raw(":").string(value);
    });
    json.raw("}");
}

fn write_connector(json: &mut Json, connector: &ConnectorId) {
    json.raw(",\"connectorId\":").plain_string(&connector.text());
    json.raw(",\"provider\":").plain_string(&connector.provider);
}

fn write_account(json: &mut Json, account: &Account) {
    json.raw("\"id\":").plain_string(&account.id.text()).raw(",\"createdAt\":").time(account.created_at);
    json.raw(",\"reference\":").string(&account.id.reference);
    write_connector(json, &account.id.connector);
    json.raw(",\"defaultAsset\":").string(&account.default_asset);
    json.raw(",\"accountName\":").string(&account.name);
    json.raw(",\"type\":").plain_string(account.kind.name());
}

fn write_balance(json: &mut Json, balance: &AccountBalance) {
    json.raw("\"accountID\":").plain_string(&balance.account.text());
    write_connector(json, &balance.account.connector);
    json.raw(",\"createdAt\":").time(balance.created_at).raw(",\"asset\":").string(&balance.asset);
    json.raw(",\"balance\":").balance(&balance.balance);
}

fn write_bank_account(json: &mut Json, account: &BankAccount, masked: &bank_account::Numbers) {
    json.raw("\"id\":\"").raw(&account.id.to_string()).raw("\",\"createdAt\":").time(account.created_at);
    json.raw(",\"name\":").string(&account.name);
    json.raw(",\"accountNumber\":").string(&masked.account_number).raw(",\"iban\":").string(&masked.iban);
    json.raw(",\"swiftBicCode\":").string(&account.swift_bic_code);
    json.raw(",\"country\":").string(&account.country).raw(",\"adjustments\":[");
    json.list(&account.related, |json, related| {
        json.raw("{\"id\":\"").raw(&related.id.to_string()).raw("\",\"createdAt\":").time(related.created_at);
        json.raw(",\"accountID\":").plain_string(&related.account.text());
        json.raw(",\"connectorID\":").plain_string(&related.account.connector.text());
        json.raw(",\"provider\":").plain_string(&related.account.connector.provider).raw("}");
    });
    json.raw("]");
}

fn write_initiation(json: &mut Json, initiation: &Initiation) {
    json.raw("\"id\":").plain_string(&initiation.id.text());
    json.raw(",\"createdAt\":").time(initiation.created_at);
    json.raw(",\"scheduledAt\":").time(initiation.scheduled_at);
    write_connector(json, &initiation.id.connector);
    json.raw(",\"description\":").string(&initiation.description);
    json.raw(",\"type\":").plain_string(initiation.kind.name());
    let source = initiation.source.as_ref().map(AccountId::text).unwrap_or_default();
    json.raw(",\"sourceAccountId\":").plain_string(&source);
    json.raw(",\"destinationAccountId\":").plain_string(&initiation.destination.text());
    json.raw(",\"amount\":").balance(&initiation.amount).raw(",\"asset\":").string(&initiation.asset);
    json.raw(",\"attempts\":").integer(initiation.steps.len() as u64);
    json.raw(",\"status\":").plain_string(initiation.status().name());
    json.raw(",\"error\":").string(&initiation.step().error).raw(",\"relatedPayments\":[");
    json.list(&initiation.payments, |json, payment| {
        json.raw("{\"transferInitiationId\":").plain_string(&initiation.id.text());
        json.raw(",\"paymentId\":").plain_string(&payment.payment.text());
        json.raw(",\"createdAt\":").time(payment.created_at);
        json.raw(",\"status\":").plain_string(payment.status.name());
        json.raw(",\"error\":").string(&payment.error).raw("}");
    });
    json.raw("]");
}
