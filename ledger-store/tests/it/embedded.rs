//! A ledger as an application embeds it.

use ledger_core::{NameKind, Rejection, TransactionId};
use ledger_store::{DryRun, LedgerError, Store};

#[test]
fn key_of_another_request_is_a_conflict() {
    let ledger = Store::in_memory().ledger("main").expect("a name");
    let pay = |amount: u64, reference: Option<&str>| {
        let mut transaction = ledger.transaction().posting("world", "users:1", amount, "USD/2");
        if let Some(reference) = reference {
            transaction = transaction.reference(reference);
        }
        transaction.idempotency_key("once").commit()
    };
    let first = pay(10_000, None).expect("it is accepted");
    assert!(!first.replayed);
    let again = pay(10_000, None).expect("it is the same request");
    assert_eq!((again.replayed, again.id, again.log), (true, first.id, first.log));
    assert_eq!(again.transaction, first.transaction);
    for other in [pay(777, None), pay(10_000, Some("r"))] {
        let Err(LedgerError::IdempotencyConflict { key }) = other else { panic!("{other:?}") };
        assert_eq!(key.as_str(), "once");
    }
    assert_eq!(ledger.balance("users:1", "USD/2").expect("it reads").to_string(), "10000");
}

#[test]
fn malformed_address_is_an_address_error() {
    let ledger = Store::in_memory().ledger("main").expect("a name");
    let kind = |error: LedgerError| match error {
        LedgerError::Name(error) => error.kind,
        other => panic!("{other:?}"),
    };
    assert_eq!(kind(ledger.balance("users::1", "USD").unwrap_err()), NameKind::Address);
    assert_eq!(kind(ledger.balance("users:1", "usd").unwrap_err()), NameKind::Asset);
    let pay = ledger.transaction().posting("world", "users:", 1, "USD").commit();
    assert_eq!(kind(pay.unwrap_err()), NameKind::Address);
}

#[test]
fn missing_transaction_is_named() {
    let ledger = Store::in_memory().ledger("main").expect("a name");
    let error = ledger.revert(TransactionId::new(7)).unwrap_err();
    assert_eq!(error.to_string(), "transaction 7 not found in ledger \"main\"");
}

#[test]
fn dry_run_reserves_nothing() {
    let store = Store::in_memory();
    let ledger = store.ledger("main").expect("a name");
    let pay = |source: &str| ledger.transaction().posting(source, "users:1", 5, "USD");
    let dry = pay("world").dry_run().expect("it would be accepted");
    let DryRun { postings, post_commit_volumes, .. } = &dry;
    assert_eq!((postings.len(), post_commit_volumes.len()), (1, 2));
    assert!(ledger.view().is_none(), "the ledger is not created");
    let error = pay("users:2").dry_run().unwrap_err();
    assert!(matches!(error, LedgerError::Refused(Rejection::InsufficientFunds { .. })), "{error:?}");
    let done = pay("world").idempotency_key("k").commit().expect("it is accepted");
    assert_eq!((done.postings.clone(), done.id.get()), (dry.postings, 1));
    pay("world").dry_run().expect("it would be accepted");
    assert_eq!(pay("world").commit().expect("it is accepted").id.get(), 2);
    let conflict = pay("world").metadata("a", "b").idempotency_key("k").dry_run();
    assert!(matches!(conflict, Err(LedgerError::IdempotencyConflict { .. })), "{conflict:?}");
}
