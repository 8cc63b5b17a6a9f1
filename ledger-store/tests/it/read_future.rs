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
        // This wait ends when the test drops its side of the channel.
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
    assert_eq!(block_on(page).expect("the read succeeds").items.len(), 1);
    assert_eq!(block_on(count), Ok(1));
    assert_eq!(block_on(entries), end);
    let read = block_on(ledger.get_transaction_async(first.id)).expect("the transaction exists");
    assert_eq!(read.postings, first.postings);
    assert!(block_on(ledger.get_account_async("users:1")).expect("the account exists").volumes.is_some());
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
    let caught = catch_unwind(AssertUnwindSafe(|| block_on::<()>(future))).expect_err("the read panics");
    assert_eq!(caught.downcast_ref::<&str>(), Some(&"in the read"));
    // The threads keep working.
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

#[test]
fn stream_reads_every_page() {
    let ledger = Store::in_memory().ledger("main").expect("a name");
    let mut batch = ledger.batch();
    for number in 0..450 {
        batch = batch.push(ledger.transaction().posting("world", format!("users:{number}"), 1, "USD"));
    }
    batch.commit().expect("recorded");
    let (ids, sum) = block_on(async {
        let mut transactions = ledger.transactions().newest_first().stream();
        // The stream reads from one snapshot.
        ledger.transaction().posting("world", "late", 1, "USD").commit_async().await.expect("recorded");
        let mut ids = Vec::new();
        while let Some(transaction) = transactions.next().await {
            ids.push(transaction.expect("the read succeeds").id.get());
        }
        (ids, ledger.balances().under("users:").now_async().await.expect("the read succeeds"))
    });
    assert_eq!(ids, (1..=450).rev().collect::<Vec<_>>());
    assert_eq!(sum[0].1, 450);
    let mut malformed = ledger.accounts().from_cursor("x").stream();
    assert!(matches!(block_on(malformed.next()), Some(Err(LedgerError::Cursor { .. }))));
    assert!(block_on(malformed.next()).is_none(), "it ends after an error");
}

#[test]
fn thousands_of_waiting_reads_all_answer() {
    let ledger = Store::in_memory().ledger("main").expect("a name");
    ledger.transaction().posting("world", "a", 5, "USD").commit().expect("recorded");
    let futures: Vec<_> = (0..5_000).map(|_| ledger.balance_async("a", "USD")).collect();
    assert!(futures.into_iter().all(|future| block_on(future) == Ok(5.into())));
}
