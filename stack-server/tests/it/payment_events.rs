//! Events of the payments API, which a publisher delivers after the writes.

use std::collections::BTreeMap;
use std::net::TcpListener;

use ledger_store::Store;
use serde_json::{Value, json};
use stack_server::{PublishSettings, Publishers, Server, Settings, Topics};

use crate::client::TestServer;
use crate::payments::{get, install, manual, pay, post, until};
use crate::provider::Provider;
use crate::receiver::{Received, Receiver};

/// Starts a server with a fake provider for STRIPE, and a receiver that gets the payment events.
fn published(provider: &Provider) -> (TestServer, Publishers, Receiver) {
    let (store, receiver) = (Store::in_memory(), Receiver::start());
    let topics = Topics::parse(&format!("*:{}", receiver.url("/in"))).expect("pairs");
    let publishing = PublishSettings { topics, http: true, ..PublishSettings::default() };
    let mut settings = Settings::default();
    settings.payment_publishers = publishing.publishers();
    settings.provider_addresses.insert("STRIPE".to_owned(), provider.url());
    "https://stack.example".clone_into(&mut settings.public_url);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let server = Server::start(&store, settings, listener).expect("a server");
    let publishers = Publishers::start(&store, &publishing).expect("the publishers start");
    (TestServer { address: server.address(), server: Some(server) }, publishers, receiver)
}

/// The members of an event's payload, by the type of the event.
const PAYLOADS: [(&str, &str); 8] = [
    ("SAVED_ACCOUNT", "accountName connectorId createdAt defaultAsset id provider reference type"),
    (
        "SAVED_PAYMENT",
        "amount asset connectorId createdAt destinationAccountId id initialAmount links metadata provider rawData \
         reference scheme status type",
    ),
    ("SAVED_POOL", "accountIDs createdAt id name"),
    ("DELETED_POOL", "createdAt id"),
    (
        "SAVED_TRANSFER_INITIATION",
        "amount asset attempts connectorId createdAt description destinationAccountId error id provider \
         relatedPayments scheduledAt sourceAccountId status type",
    ),
    ("DELETED_TRANSFER_INITIATION", "createdAt id"),
    ("CONNECTOR_RESET", "connectorId createdAt"),
    ("SAVED_BALANCE", "accountID asset balance connectorId createdAt provider"),
];

/// Sends a write of each kind that has an event, and one of each kind that has none.
fn write_all_kinds(server: &TestServer, provider: &Provider) -> String {
    let connector = manual(server);
    let account = |reference: &str| {
        let body = json!({"reference": reference, "connectorID": connector, "createdAt": "2024-01-01T00:00:00Z",
            "type": "INTERNAL"});
        post(server, "/accounts", &body).is(200).json()["data"]["id"].as_str().expect("an id").to_owned()
    };
    let till = account("till");
    let body = json!({"reference": "p", "connectorID": connector, "createdAt": "2024-05-01T00:00:00Z", "amount": 7,
        "type": "PAY-IN", "status": "SUCCEEDED", "scheme": "visa", "asset": "EUR/2", "destinationAccountID": till});
    let paid =
        post(server, "/payments", &body).is(200).json()["data"]["id"].as_str().expect("an id").to_owned();
    let path = format!("/api/payments/payments/{paid}/metadata");
    server.send("PATCH", &path, &[], r#"{"order":"77"}"#).is(204);
    post(server, "/bank-accounts", &json!({"name": "n", "country": "FR", "iban": "FR7630001"})).is(200);
    let pool = post(server, "/pools", &json!({"name": "pool", "accountIDs": [till]})).is(200).json();
    let pool = pool["data"]["id"].as_str().expect("an id");
    server.send("DELETE", &format!("/api/payments/pools/{pool}"), &[], "").is(204);
    let body = json!({"reference": "t", "connectorID": connector, "type": "TRANSFER", "amount": 5, "asset": "EUR/2",
        "destinationAccountID": till});
    let made = post(server, "/transfer-initiations", &body).is(200).json();
    let made = made["data"]["id"].as_str().expect("an id");
    server.send("DELETE", &format!("/api/payments/transfer-initiations/{made}"), &[], "").is(204);
    provider.answer("/v1/balance", &json!({"available": [{"amount": 120, "currency": "usd"}]}));
    install(server, "STRIPE", &json!({"name": "s", "apiKey": "sk", "pollingPeriod": "1h"}));
    until("the balance", || {
        let found = get(server, "/connectors/STRIPE/tasks?pageSize=100").is(200).json();
        let tasks = found["cursor"]["data"].as_array().expect("a list").clone();
        tasks.iter().any(|task| {
            task["descriptor"]["name"] == "Fetch balance for the root account"
                && task["status"] == "TERMINATED"
        })
    });
    post(server, &format!("/connectors/GENERIC/{connector}/reset"), &json!({})).is(204);
    connector
}

#[test]
fn every_kind_of_event_is_delivered_once() {
    let provider = Provider::start();
    let (server, publishers, receiver) = published(&provider);
    let connector = write_all_kinds(&server, &provider);
    let received = receiver.wait("the last event", |received| {
        received.iter().any(|one| one.status < 300 && one.json()["type"] == "CONNECTOR_RESET")
    });
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for event in received.iter().map(Received::json) {
        let kind = event["type"].as_str().expect("a type").to_owned();
        let members: Vec<_> = event.as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!(members, ["app", "date", "payload", "type", "version"]);
        assert_eq!((&event["app"], &event["version"]), (&json!("payments"), &json!("v1")));
        let (_, wanted) = PAYLOADS.iter().find(|(name, _)| *name == kind).expect("a known type");
        let payload = event["payload"].as_object().expect("an object");
        assert_eq!(payload.keys().cloned().collect::<Vec<_>>().join(" "), *wanted, "{kind}");
        *counts.entry(kind).or_default() += 1;
    }
    let once = |kind: &str| counts.get(kind) == Some(&1);
    assert!(PAYLOADS.iter().all(|(kind, _)| *kind == "SAVED_ACCOUNT" || once(kind)), "{counts:?}");
    // One account was created manually, and the other is the platform's account at the provider.
    assert_eq!(counts["SAVED_ACCOUNT"], 2);
    let of = |kind: &str| {
        let event = received.iter().map(Received::json).find(|event| event["type"] == kind);
        event.expect("an event")["payload"].clone()
    };
    let payment: Value = of("SAVED_PAYMENT");
    let link = format!(
        "https://stack.example/api/payments/accounts/{}",
        payment["destinationAccountId"].as_str().expect("an id")
    );
    assert_eq!(payment["links"], json!([{"name": "destination_account", "uri": link}]));
    assert_eq!(of("CONNECTOR_RESET")["connectorId"], json!(connector));
    publishers.stop();
}

#[test]
fn an_update_by_hand_is_an_event_each_time() {
    let provider = Provider::start();
    let (server, publishers, receiver) = published(&provider);
    let connector = manual(&server);
    for amount in [5, 5, 6] {
        pay(&server, &connector, "p", amount);
    }
    let taken = receiver.taken(3);
    let amounts: Vec<_> = taken.iter().map(|one| one.json()["payload"]["amount"].clone()).collect();
    assert_eq!(amounts, [5, 5, 6]);
    publishers.stop();
}
