//! Compares stored events with the stored records.

use std::collections::{BTreeMap, BTreeSet};

use ledger_store::{DocumentRange, Snapshot};
use serde_json::Value;

use super::server::{Server, all, plain, references};
use crate::collections::PAYMENT_EVENTS;
use crate::payments::account::Account;
use crate::payments::bank_account::BankAccount;
use crate::payments::ids::ConnectorId;
use crate::payments::initiation::Initiation;
use crate::payments::installation::Installation;
use crate::payments::payment::Payment;
use crate::payments::pool::{self, Pool};

/// Returns the types and payloads of all stored events, oldest first.
fn stored(snapshot: &Snapshot) -> Vec<(String, Value)> {
    let (mut events, mut range) = (Vec::new(), DocumentRange::default());
    loop {
        let page = snapshot.documents(PAYMENT_EVENTS, &range).expect("events");
        let Some(last) = page.last() else { return events };
        range.beyond = Some((vec![], last.key.clone()));
        for document in page {
            let end = document.value.iter().position(|byte| *byte == 0).expect("a type");
            let mut event: Value = serde_json::from_slice(&document.value[end + 1..]).expect("JSON");
            let kind = std::str::from_utf8(&document.value[..end]).expect("UTF-8").to_owned();
            events.push((kind, event["payload"].take()));
        }
    }
}

/// The newest event of each record, by the type of the record and its id.
struct Newest(BTreeMap<(String, String), (String, Value)>);

impl Newest {
    fn of(events: Vec<(String, Value)>) -> Self {
        let mut newest = BTreeMap::new();
        for (kind, payload) in events {
            let subject = kind.split_once('_').expect("two words").1.to_owned();
            newest.insert((subject, plain(&payload["id"])), (kind, payload));
        }
        Self(newest)
    }

    /// Returns the payload of the newest event of a record, which must not say that the record is deleted.
    #[track_caller]
    fn saved(&self, subject: &str, id: &str, place: &str) -> &Value {
        let found = self.0.get(&(subject.to_owned(), id.to_owned()));
        let (kind, payload) = found.unwrap_or_else(|| panic!("{place}: no event of {subject} {id}"));
        assert_eq!(kind, &format!("SAVED_{subject}"), "{place}: {id}");
        payload
    }

    /// Checks each record of this type that has an event: the newest event must be `DELETED` exactly if the record is
    /// not stored.
    fn assert_deleted(&self, subject: &str, stored: &BTreeSet<String>, place: &str) {
        for ((_, id), (kind, payload)) in self.0.iter().filter(|((have, _), _)| have == subject) {
            let is_deleted = kind.starts_with("DELETED");
            assert_ne!(is_deleted, stored.contains(id), "{place}: {kind} {payload}");
        }
    }
}

impl Server {
    /// Checks that the newest event of each record describes the record. Also checks that there is exactly one
    /// `CONNECTOR_RESET` for each of these installations that was removed, and none for one that is still installed.
    pub(super) fn assert_told(&self, installations: &[ConnectorId], place: &str) {
        let snapshot = self.world.store.snapshot();
        let events = stored(&snapshot);
        let installed: Vec<_> = all::<Installation>(&snapshot).into_iter().map(|one| one.id.text()).collect();
        for id in installations.iter().map(ConnectorId::text) {
            let is_reset = |(kind, payload): &&(String, Value)| {
                kind == "CONNECTOR_RESET" && plain(&payload["connectorId"]) == id
            };
            let resets = events.iter().filter(is_reset).count();
            assert_eq!(resets, usize::from(!installed.contains(&id)), "{place}: events of a removal");
        }
        // The removal of an installation writes no events for the removal of its records. Ignore their older events.
        let of_installed = |(_, payload): &(String, Value)| {
            payload["connectorId"].as_str().is_none_or(|id| installed.iter().any(|have| have == id))
        };
        let newest = Newest::of(events.clone().into_iter().filter(of_installed).collect());
        for payment in all::<Payment>(&snapshot) {
            let told = newest.saved("PAYMENT", &payment.id.text(), place);
            assert_eq!(plain(&told["amount"]), payment.amount.to_string(), "{place}: {told}");
        }
        for account in all::<Account>(&snapshot) {
            let told = newest.saved("ACCOUNT", &account.id.text(), place);
            assert_eq!(plain(&told["accountName"]), account.name, "{place}: {told}");
        }
        for account in all::<BankAccount>(&snapshot).iter().filter(|account| !account.related.is_empty()) {
            let told = newest.saved("BANK_ACCOUNT", &account.id.to_string(), place);
            let related = told["adjustments"].as_array().map(Vec::len);
            assert_eq!(related, Some(account.related.len()), "{place}: {told}");
        }
        assert_initiations_told(&newest, &snapshot, place);
        assert_pools_told(&newest, &snapshot, place);
    }
}

fn assert_initiations_told(newest: &Newest, snapshot: &Snapshot, place: &str) {
    let mut ids = BTreeSet::new();
    for initiation in all::<Initiation>(snapshot) {
        let told = newest.saved("TRANSFER_INITIATION", &initiation.id.text(), place);
        let (status, attempts) = (plain(&told["status"]), plain(&told["attempts"]));
        let expected = (initiation.status().name().to_owned(), initiation.steps.len().to_string());
        assert_eq!((status, attempts), expected, "{place}: {told}");
        ids.insert(initiation.id.text());
    }
    newest.assert_deleted("TRANSFER_INITIATION", &ids, place);
}

fn assert_pools_told(newest: &Newest, snapshot: &Snapshot, place: &str) {
    let mut ids = BTreeSet::new();
    let existing: BTreeSet<_> = all::<Account>(snapshot).into_iter().map(|one| one.id.reference).collect();
    for pool in all::<Pool>(snapshot) {
        let told = newest.saved("POOL", &pool.id.to_string(), place);
        let accounts = pool::members(snapshot, &pool.id).expect("members");
        let accounts: BTreeSet<_> = accounts.into_iter().map(|account| account.reference).collect();
        // The removal of an installation also removes its accounts from pools, without an event for the pools.
        let mut named = references(&told["accountIDs"]);
        named.retain(|reference| existing.contains(reference));
        assert_eq!(named, accounts, "{place}: {told}");
        ids.insert(pool.id.to_string());
    }
    newest.assert_deleted("POOL", &ids, place);
}
