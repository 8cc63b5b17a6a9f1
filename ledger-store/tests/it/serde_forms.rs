//! Values in a data format of `serde`: each reads back as it was.

use std::fmt::Debug;

use ledger_core::{LogPayload, Metadata, Timestamp};
use ledger_store::{Committed, LedgerInfo, ListPage, LogView, Store, TimeAxis, TransactionView};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Writes a value, checks that it reads back, and returns its text.
fn there_and_back<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) -> String {
    let text = serde_json::to_string(value).expect("it is written");
    assert_eq!(&serde_json::from_str::<T>(&text).expect(&text), value);
    text
}

/// A ledger with a log entry of every type.
fn filled() -> (Store, Committed) {
    let store = Store::in_memory();
    let ledger = store.ledger("main").expect("a name");
    ledger.insert_schema("v1", r#"{"chart": {"users": {"$user": {}}}}"#).expect("it is accepted");
    let at: Timestamp = "2024-05-01T12:00:00.5Z".parse().expect("a date");
    let huge = "9".repeat(40).parse::<ledger_core::Amount>().expect("an amount");
    let pay =
        ledger.transaction().posting("world", "users:1", 5, "USD/2").posting("world", "users:1", huge, "EUR");
    let pay = pay.timestamp(at).reference("r").metadata("k", "v").idempotency_key("once");
    let paid = pay.account_metadata("users:1", "tier", "gold").commit().expect("it is accepted");
    ledger.revert(paid.id).commit().expect("it is accepted");
    ledger.set_transaction_metadata(paid.id, Metadata::from([("a", "b")])).expect("it is accepted");
    ledger.delete_account_metadata("users:1", "tier").expect("it is accepted");
    (store, paid)
}

#[test]
fn logs_of_every_type_read_back() {
    let (store, _) = filled();
    let logs = store.ledger("main").expect("a name").logs().page(100).expect("it reads");
    let types: Vec<&str> = logs.items.iter().map(|log| log.entry.payload.type_name()).collect();
    let all =
        ["INSERTED_SCHEMA", "NEW_TRANSACTION", "REVERTED_TRANSACTION", "SET_METADATA", "DELETE_METADATA"];
    assert_eq!(types, all);
    for log in &logs.items {
        let text = there_and_back::<LogView>(log);
        assert!(text.contains(&format!(r#""type":"{}""#, log.entry.payload.type_name())), "{text}");
    }
    let text = there_and_back::<ListPage<LogView>>(&logs);
    assert!(text.contains(r#""hash":""#) && !text.contains("[0"), "hashes are text: {text}");
    there_and_back::<LogPayload>(&logs.items[1].entry.payload);
}

#[test]
fn answers_of_a_ledger_read_back() {
    let (store, paid) = filled();
    let ledger = store.ledger("main").expect("a name");
    let info = there_and_back::<LedgerInfo>(&ledger.info().expect("it is there"));
    assert!(info.contains(r#""name":"main""#) && info.contains(r#""hashLogs":"sync""#), "{info}");
    there_and_back(&paid);
    there_and_back::<TransactionView>(&ledger.get_transaction(paid.id).expect("it is there"));
    there_and_back(&ledger.get_account("users:1").expect("it is there"));
    there_and_back(&ledger.volumes().page(10).expect("it reads"));
    there_and_back(&ledger.schemas().page(10).expect("it reads"));
    there_and_back(&ledger.balances().now().expect("it reads"));
    there_and_back(&ledger.stats().expect("it reads"));
    let dry = ledger.transaction().posting("world", "users:1", 5, "USD/2").dry_run();
    there_and_back(&dry.expect("it would be accepted"));
    assert_eq!(there_and_back(&TimeAxis::Inserted), r#""inserted""#);
}
