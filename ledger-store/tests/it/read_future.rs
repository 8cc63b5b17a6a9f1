//! Reads as futures, polled without any runtime.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;

use ledger_store::{LedgerError, Store};

use crate::commit_future::block_on;

#[test]
fn reads_answer_of_the_moment_of_their_call() {
    let store = Store::in_memory();
    let ledger = store.ledger("main").expect("a name");
    let pay = || ledger.transaction().posting("world", "users:1", 5, "USD").commit().expect("recorded");
    let first = pay();
    let (open, gate) = mpsc::channel::<()>();
    let held = ledger.read_async(move |ledger| {
        // Ends when the test drops its side.
        let _ = gate.recv();
        ledger.balance("users:1", "USD")
    });
    let page = ledger.transactions().newest_first().page_async(10);
    let count = ledger.accounts().matching("users:*").count_async();
    let balance = ledger.balance_async("users:1", "USD");
    let entries = store.read_async(ledger_store::Snapshot::feed_end);
    let end = store.snapshot().feed_end();
    pay();
    drop(open);
    assert_eq!(block_on(held), Ok(5.into()));
    assert_eq!(block_on(balance), Ok(5.into()));
    assert_eq!(block_on(page).expect("it reads").items.len(), 1);
    assert_eq!(block_on(count), Ok(1));
    assert_eq!(block_on(entries), end);
    let read = block_on(ledger.get_transaction_async(first.id)).expect("it is there");
    assert_eq!(read.postings, first.postings);
    assert!(block_on(ledger.get_account_async("users:1")).expect("it is there").volumes.is_some());
}

#[test]
fn read_future_resolves_to_errors() {
    let ledger = Store::in_memory().ledger("main").expect("a name");
    let malformed = block_on(ledger.balance_async("users:", "USD"));
    assert!(matches!(malformed, Err(LedgerError::Name(_))), "{malformed:?}");
    let malformed = block_on(ledger.balance_async("users", "usd"));
    assert!(matches!(malformed, Err(LedgerError::Name(_))), "{malformed:?}");
    let absent = block_on(ledger.get_transaction_async(7));
    assert!(matches!(absent, Err(LedgerError::TransactionNotFound { .. })), "{absent:?}");
    let cursor = block_on(ledger.logs().from_cursor("x").page_async(5));
    assert!(matches!(cursor, Err(LedgerError::Cursor { .. })), "{cursor:?}");
}

#[test]
fn panic_of_a_read_reaches_its_caller() {
    let store = Store::in_memory();
    let future = store.read_async(|_| panic!("in the read"));
    let caught = catch_unwind(AssertUnwindSafe(|| block_on::<()>(future))).expect_err("it panics");
    assert_eq!(caught.downcast_ref::<&str>(), Some(&"in the read"));
    // The threads go on.
    assert_eq!(block_on(store.read_async(|_| 7)), 7);
}

#[test]
fn reads_outlive_the_store() {
    let store = Store::in_memory();
    let ledger = store.ledger("main").expect("a name");
    ledger.transaction().posting("world", "a", 5, "USD").commit().expect("recorded");
    let futures: Vec<_> = (0..100).map(|_| ledger.transactions().count_async()).collect();
    store.close().expect("nothing has failed");
    drop((store, ledger));
    assert!(futures.into_iter().all(|future| block_on(future) == Ok(1)));
}
