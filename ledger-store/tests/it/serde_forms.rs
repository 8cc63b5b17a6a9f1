//! Values in a data format of `serde`: deserializing a serialized value returns the same value.

use std::fmt::Debug;

use ledger_core::{LogPayload, Metadata, Timestamp};
use ledger_store::{Committed, LedgerInfo, ListPage, LogView, Store, TimeAxis, TransactionView};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Serializes a value, checks that its text deserializes to the same value, and returns the text.
fn there_and_back<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) -> String {
    let text = serde_json::to_string(value).expect("the write succeeds");
    assert_eq!(&serde_json::from_str::<T>(&text).expect(&text), value);
    text
}

/// Creates a ledger with a log entry of every type. Also returns a committed transaction.
fn filled() -> (Store, Committed) {
    let store = Store::in_memory();
    let ledger = store.ledger("main").expect("a name");
    ledger.insert_schema("v1", r#"{"chart": {"users": {"$user": {}}}}"#).expect("the write succeeds");
    let at: Timestamp = "2024-05-01T12:00:00.5Z".parse().expect("a date");
    let huge = "9".repeat(40).parse::<ledger_core::Amount>().expect("an amount");
    let pay =
        ledger.transaction().posting("world", "users:1", 5, "USD/2").posting("world", "users:1", huge, "EUR");
    let pay = pay.timestamp(at).reference("r").metadata("k", "v").idempotency_key("once");
    let paid = pay.account_metadata("users:1", "tier", "gold").commit().expect("the write succeeds");
    ledger.revert(paid.id).commit().expect("the write succeeds");
    ledger.set_transaction_metadata(paid.id, Metadata::from([("a", "b")])).expect("the write succeeds");
    ledger.delete_account_metadata("users:1", "tier").expect("the write succeeds");
    (store, paid)
}

#[test]
fn logs_of_every_type_read_back() {
    let (store, _) = filled();
    let logs = store.ledger("main").expect("a name").logs().page(100).expect("the read succeeds");
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
    let info = there_and_back::<LedgerInfo>(&ledger.info().expect("the ledger exists"));
    assert!(info.contains(r#""name":"main""#) && info.contains(r#""hashLogs":"sync""#), "{info}");
    there_and_back(&paid);
    there_and_back::<TransactionView>(&ledger.get_transaction(paid.id).expect("the transaction exists"));
    there_and_back(&ledger.get_account("users:1").expect("the account exists"));
    there_and_back(&ledger.volumes().page(10).expect("the read succeeds"));
    there_and_back(&ledger.schemas().page(10).expect("the read succeeds"));
    there_and_back(&ledger.balances().now().expect("the read succeeds"));
    there_and_back(&ledger.stats().expect("the read succeeds"));
    let dry = ledger.transaction().posting("world", "users:1", 5, "USD/2").dry_run();
    there_and_back(&dry.expect("the dry run succeeds"));
    assert_eq!(there_and_back(&TimeAxis::Inserted), r#""inserted""#);
}
