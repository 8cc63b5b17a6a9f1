//! Metadata with idempotency keys and in batches, and the creation of ledgers that exist already.

use ledger_core::{Command, LedgerOptions, Metadata, Target};
use ledger_store::{IntoRequest, LedgerError, Request, Store};

use crate::commit_future::block_on;

#[test]
fn key_protects_metadata_of_an_account() {
    let ledger = Store::in_memory().ledger("main").expect("a name");
    let set_name = |name: &str| ledger.update_account("users:1").metadata("name", name).idempotency_key("k");
    assert!(!set_name("Ann").commit().expect("recorded").replayed);
    assert!(block_on(set_name("Ann").commit_async()).expect("a replay").replayed);
    let conflict = set_name("Bob").commit();
    assert!(matches!(conflict, Err(LedgerError::IdempotencyConflict { .. })), "{conflict:?}");
    let account = ledger.get_account("users:1").expect("it exists");
    assert_eq!(account.metadata, Metadata::from([("name", "Ann")]));
    let malformed = ledger.update_account("users:").metadata("a", "b").commit();
    assert!(matches!(malformed, Err(LedgerError::Name(_))), "{malformed:?}");
}

#[test]
fn metadata_joins_a_batch() {
    let ledger = Store::in_memory().ledger("main").expect("a name");
    let paid = ledger.transaction().posting("world", "users:1", 5, "USD").commit().expect("recorded");
    let note = ledger.update_transaction(paid.id).metadata("note", "late");
    let target = Target::Account("users:1".try_into().expect("an address"));
    let key = "delete-1".parse().expect("a key");
    let delete = Request::once(key, Command::DeleteMetadata { target, key: "tier".into() });
    let tier = ledger.update_account("users:1").metadata("tier", "gold");
    let answers = ledger.batch().push(note).push(tier).push(delete).atomic().commit().expect("all");
    assert_eq!(answers.len(), 3);
    assert!(ledger.get_account("users:1").expect("it exists").metadata.is_empty());
    let missing = ledger.update_transaction(7).metadata("note", "late").commit();
    assert!(matches!(missing, Err(LedgerError::TransactionNotFound { .. })), "{missing:?}");
    assert!(ledger.update_account("a:").into_request().is_err());
}

#[test]
fn existing_ledger_keeps_its_options() {
    let store = Store::in_memory();
    let ledger = store.ledger("main").expect("a name");
    let options = |owner| {
        let metadata = Metadata::from([("owner", owner)]);
        LedgerOptions { metadata, ..LedgerOptions::default() }
    };
    let first = ledger.create_if_absent(options("treasury")).expect("created");
    let entries = store.status().entries;
    assert_eq!(ledger.create_if_absent(options("audit")), Ok(first.clone()));
    assert_eq!(block_on(ledger.create_if_absent_async(options("audit"))), Ok(first));
    assert_eq!(store.status().entries, entries, "nothing was recorded");
    let other = store.ledger("other").expect("a name");
    let created = block_on(other.create_if_absent_async(options("audit"))).expect("created");
    assert_eq!(created.metadata, Metadata::from([("owner", "audit")]));
}
