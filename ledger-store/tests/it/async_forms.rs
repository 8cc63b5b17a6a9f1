//! The async forms of blocking calls, polled without any runtime.

use std::time::Duration;

use ledger_core::{LedgerOptions, Metadata};
use ledger_store::{
    Collection, DocumentAction, DocumentChange, Expected, LedgerError, Options, ProgressWatcher,
    RestorePoint, Store, WriteError,
};

use crate::commit_future::block_on;

#[test]
fn ledgers_are_written_without_blocking() {
    let store = Store::in_memory();
    let ledger = store.ledger("main").expect("a name");
    block_on(ledger.set_metadata_async(Metadata::from([("owner", "a")]))).expect("it creates the ledger");
    assert_eq!(ledger.info().expect("it exists").metadata.len(), 1);
    block_on(ledger.delete_metadata_async("owner")).expect("the write succeeds");
    assert!(ledger.info().expect("it exists").metadata.is_empty());
    let again = block_on(ledger.create_async(LedgerOptions::default()));
    assert_eq!(again, Err(LedgerError::Write(WriteError::LedgerExists)));
    block_on(ledger.insert_schema_async("v1", r#"{"chart": {}}"#)).expect("the write succeeds");
    assert!(block_on(ledger.schema_async("v1")).expect("the read succeeds").is_some());
    let malformed = block_on(ledger.insert_schema_async("v2", "{"));
    assert!(matches!(malformed, Err(LedgerError::Schema(_))), "{malformed:?}");
    let absent = store.ledger("absent").expect("a name");
    let missing = block_on(absent.delete_metadata_async("owner"));
    assert!(matches!(missing, Err(LedgerError::LedgerNotFound { .. })), "{missing:?}");
    assert_eq!(block_on(store.ledgers_async()).expect("the read succeeds").len(), 1);
}

#[test]
fn documents_change_without_blocking() {
    let store = Store::in_memory();
    let change = || DocumentChange {
        collection: Collection::new(100).expect("a free number"),
        key: b"a".to_vec(),
        expected: Expected::Absent,
        action: DocumentAction::Put { value: b"1".to_vec(), keys: vec![] },
    };
    assert_eq!(block_on(store.change_documents_async(vec![change()])).expect("a change").len(), 1);
    let again = block_on(store.change_documents_async(vec![change()]));
    assert!(matches!(again, Err(LedgerError::Write(WriteError::Document(_)))), "{again:?}");
}

#[test]
fn reads_have_async_forms() {
    let ledger = Store::in_memory().ledger("main").expect("a name");
    let pay = ledger.transaction().posting("world", "users:1", 5, "USD").reference("r");
    let paid = pay.commit().expect("recorded");
    let now = ledger.info().expect("it exists").added_at;
    assert_eq!(
        block_on(ledger.account_async("users:1")).expect("read"),
        ledger.account("users:1").expect("read")
    );
    assert_eq!(block_on(ledger.balance_at_async("users:1", "USD", paid.timestamp)), Ok(5.into()));
    assert_eq!(block_on(ledger.account_at_async("users:1", now)), ledger.account_at("users:1", now));
    let found = block_on(ledger.transaction_by_reference_async("r")).expect("read").expect("it exists");
    assert_eq!(found.id, paid.id);
    assert_eq!(block_on(ledger.transaction_at_async(paid.id, paid.timestamp)), Ok(Some(found)));
    assert_eq!(block_on(ledger.stats_async()).expect("read").transactions, 1);
    assert_eq!(block_on(ledger.transactions().explain_async(5)).expect("read").rows_returned, 1);
    assert!(matches!(block_on(ledger.query_async("v1", "q")), Err(LedgerError::Schema(_))));
}

#[test]
fn store_is_kept_without_blocking() {
    let home = tempfile::tempdir().expect("a directory");
    let path = |name: &str| home.path().join(name);
    let store = block_on(Store::open_async(path("data"))).expect("it opens");
    let ledger = store.ledger("main").expect("a name");
    ledger.transaction().posting("world", "users:1", 5, "USD").commit().expect("recorded");
    let stopped = store.wait_until_stopped_async();
    assert_eq!(
        block_on(store.backup_async(path("backup"))).expect("a backup").copied,
        store.status().entries
    );
    assert!(block_on(store.verify_async()).expect("verified").violations.is_empty());
    let (count, text) = block_on(ledger.export_async(Vec::new())).expect("exported");
    assert_eq!(count, 1);
    let copy = store.ledger("copy").expect("a name");
    let imported = block_on(copy.import_async(std::io::Cursor::new(text))).expect("imported");
    assert_eq!(imported.imported, 1);
    let bucket = ledger.info().expect("it exists").bucket;
    block_on(store.delete_bucket_async(bucket.clone())).expect("deleted");
    block_on(store.restore_bucket_async(bucket)).expect("restored");
    assert_eq!(block_on(store.remove_deleted_async(Duration::ZERO)).expect("none").len(), 0);
    assert!(block_on(store.reclaim_async(|| false)).expect("nothing to do").is_done);
    block_on(store.flush_async());
    block_on(store.close_async()).expect("it closes");
    assert_eq!(block_on(stopped), None);
    block_on(Store::verify_backup_async(path("backup"))).expect("it is sound");
    let watcher = ProgressWatcher::default();
    block_on(Store::verify_backup_with_async(path("backup"), watcher.clone())).expect("it is sound");
    let other = Store::restore_with_async(path("backup"), path("other"), RestorePoint::End, watcher);
    block_on(other).expect("restored");
    let restore = || Store::restore_async(path("backup"), path("restored"), RestorePoint::End);
    block_on(restore()).expect("restored");
    let again = block_on(restore()).expect_err("it is a store already");
    let words = "is a store already: choose an absent or empty directory";
    assert!(again.to_string().contains(words), "{again}");
    let restored = block_on(Store::open_with_async(path("restored"), Options::new())).expect("it opens");
    assert_eq!(restored.ledger("main").expect("a name").balance("users:1", "USD"), Ok(5.into()));
}
