//! The embedded interface, as applications use it.

use ledger_core::{
    AccountAddress, Amount, AmountError, Asset, Balance, Monetary, NameKind, Rejection, Timestamp,
};
use ledger_store::{DryRun, LedgerError, Store, TransactionList};

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
    let first = pay(10_000, None).expect("the write succeeds");
    assert!(!first.replayed);
    let again = pay(10_000, None).expect("a replay");
    assert_eq!((again.replayed, again.id, again.log), (true, first.id, first.log));
    assert_eq!(again.transaction, first.transaction);
    for other in [pay(777, None), pay(10_000, Some("r"))] {
        let Err(LedgerError::IdempotencyConflict { key }) = other else { panic!("{other:?}") };
        assert_eq!(key.as_str(), "once");
    }
    assert_eq!(ledger.balance("users:1", "USD/2").expect("the read succeeds").to_string(), "10000");
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
    let error = ledger.revert(7).commit().unwrap_err();
    assert_eq!(error.to_string(), "transaction 7 not found in ledger \"main\"");
}

#[test]
fn missing_ledger_is_named() {
    let ledger = Store::in_memory().ledger("absent").expect("a name");
    let text = "ledger \"absent\" not found";
    for error in [
        ledger.info().unwrap_err(),
        ledger.snapshot().info().cloned().unwrap_err(),
        ledger.query("v1", "all").unwrap_err(),
    ] {
        assert!(matches!(error, LedgerError::LedgerNotFound { .. }), "{error:?}");
        assert_eq!(error.to_string(), text);
    }
    let exported = ledger.export(Vec::new()).unwrap_err();
    assert_eq!(exported.to_string(), text);
}

#[test]
fn dry_run_reserves_nothing() {
    let store = Store::in_memory();
    let ledger = store.ledger("main").expect("a name");
    let pay = |source: &str| ledger.transaction().posting(source, "users:1", 5, "USD");
    let dry = pay("world").dry_run().expect("the dry run succeeds");
    let DryRun { postings, post_commit_volumes, .. } = &dry;
    assert_eq!((postings.len(), post_commit_volumes.len()), (1, 2));
    assert!(ledger.view().is_none(), "the ledger is not created");
    let error = pay("users:2").dry_run().unwrap_err();
    assert!(matches!(error, LedgerError::Refused(Rejection::InsufficientFunds { .. })), "{error:?}");
    let done = pay("world").idempotency_key("k").commit().expect("the write succeeds");
    assert_eq!((done.postings.clone(), done.id.get()), (dry.postings, 1));
    pay("world").dry_run().expect("the dry run succeeds");
    assert_eq!(pay("world").commit().expect("the write succeeds").id.get(), 2);
    let conflict = pay("world").metadata("a", "b").idempotency_key("k").dry_run();
    assert!(matches!(conflict, Err(LedgerError::IdempotencyConflict { .. })), "{conflict:?}");
}

#[test]
fn lists_page_forwards_and_backwards() {
    let ledger = Store::in_memory().ledger("main").expect("a name");
    for number in 1..=7_i64 {
        let at = Timestamp::from_micros(number * 1_000_000);
        let pay = ledger.transaction().posting("world", format!("users:{number}:main"), number, "USD");
        pay.timestamp(at).metadata("odd", (number % 2).to_string()).commit().expect("the write succeeds");
    }
    let ids = |list: TransactionList| -> Vec<u64> {
        list.into_iter().map(|found| found.expect("the read succeeds").id.get()).collect()
    };
    assert_eq!(ids(ledger.transactions()), [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(ids(ledger.transactions().newest_first().metadata("odd", "1")), [7, 5, 3, 1]);
    let second = |number: i64| Timestamp::from_micros(number * 1_000_000);
    assert_eq!(ids(ledger.transactions().since(second(3)).before(second(5))), [3, 4]);
    assert_eq!(ids(ledger.transactions().account("users:2:*").by_effective_date()), [2]);
    let list = || ledger.transactions().newest_first();
    let first = list().page(3).expect("the read succeeds");
    let next = first.next.expect("a next page");
    let second_page = list().from_cursor(&next).page(3).expect("the read succeeds");
    assert_eq!(second_page.items.iter().map(|found| found.id.get()).collect::<Vec<_>>(), [4, 3, 2]);
    let previous = second_page.previous.expect("a previous page");
    assert_eq!(list().from_cursor(&previous).page(3).expect("the read succeeds").items, first.items);
    assert_eq!(first.previous, None);
    let error = ledger.transactions().from_cursor(&next).page(3).unwrap_err();
    assert!(matches!(&error, LedgerError::Cursor { text } if *text == next), "another order: {error:?}");
    let error = ledger.accounts().from_cursor(&next).page(3).unwrap_err();
    assert!(matches!(error, LedgerError::Cursor { .. }), "another list: {error:?}");
    assert_eq!(ledger.accounts().matching("users:*:main").count().expect("the count succeeds"), 7);
    assert_eq!(ledger.logs().since(second(0)).count().expect("the count succeeds"), 7);
    let error = ledger.accounts().filter_json(r#"{"$match": {"reverted": true}}"#).unwrap_err();
    assert_eq!(error.to_string(), "unknown key 'reverted' when building query");
}

#[test]
fn iterator_crosses_pages_at_one_moment() {
    let ledger = Store::in_memory().ledger("main").expect("a name");
    let pay = || ledger.transaction().posting("world", "users:1", 1, "USD");
    let all = (0..450).fold(ledger.batch(), |batch, _| batch.push(pay()));
    assert!(all.commit().expect("the write succeeds").iter().all(Result::is_ok));
    let mut transactions = ledger.transactions().into_iter();
    assert_eq!(transactions.next().expect("a transaction").expect("the read succeeds").id.get(), 1);
    pay().commit().expect("the write succeeds");
    let rest: Vec<_> = transactions.map(|found| found.expect("the read succeeds").id.get()).collect();
    assert_eq!((rest.len(), rest[0], rest[448]), (449, 2, 450));
    assert_eq!(ledger.stats().expect("the read succeeds").transactions, 451);
}

#[test]
fn amounts_are_exact_in_any_form() {
    let ledger = Store::in_memory().ledger("main").expect("a name");
    let usd = Asset::parse("USD/2").expect("an asset");
    let huge: Amount = "9".repeat(60).parse().expect("digits");
    let pay = ledger.transaction();
    let pay = pay.posting("world", "a", 5, "USD/2").posting("world", "a", 5_u64, &usd);
    let pay = pay.posting("world", "a", 5_i128, usd.clone()).posting("world", "b", &huge, &usd);
    pay.commit().expect("the write succeeds");
    assert_eq!(ledger.balance("a", &usd).expect("the read succeeds"), 15);
    assert_eq!(ledger.balance("b", "USD/2").expect("the read succeeds").to_string(), huge.to_string());
    let error = ledger.transaction().posting("world", "a", -1, "USD/2").commit().unwrap_err();
    assert_eq!(error, LedgerError::Amount(AmountError::Negative));
    let sum = ledger.balances().now().expect("the read succeeds");
    assert_eq!(sum, [(usd, Balance::ZERO)]);
}

#[test]
fn script_takes_typed_variables() {
    let ledger = Store::in_memory().ledger("main").expect("a name");
    let usd = Asset::parse("USD/2").expect("an asset");
    let text = "vars {\n account $to\n monetary $price\n number $order\n}\nsend $price (\n source = @world\n \
                destination = $to\n)\nset_tx_meta(\"order\", $order)\n";
    let to = AccountAddress::parse("shops:42").expect("an address");
    let script = || {
        let script = ledger.script(text).var("to", &to).var("order", 17);
        script.var("price", Monetary::new(&usd, 1_60)).metadata("kind", "sale").idempotency_key("17")
    };
    let dry = script().dry_run().expect("the dry run succeeds");
    let done = script().commit().expect("the write succeeds");
    assert_eq!((&dry.postings, &dry.metadata), (&done.postings, &done.metadata));
    assert_eq!(done.postings[0].amount.to_u64(), Some(1_60));
    assert!(script().commit().expect("a replay").replayed);
    let other = script().var("order", 18).commit();
    assert!(matches!(other, Err(LedgerError::IdempotencyConflict { .. })), "{other:?}");
}

#[test]
fn reverts_as_asked() {
    let ledger = Store::in_memory().ledger("main").expect("a name");
    let at = Timestamp::from_micros(1_000_000);
    let paid = ledger.transaction().posting("world", "a", 5, "USD").timestamp(at).commit().expect("accepted");
    ledger.transaction().posting("a", "b", 5, "USD").commit().expect("accepted");
    let refused = ledger.revert(paid.id).commit().unwrap_err();
    assert!(matches!(refused, LedgerError::Refused(Rejection::InsufficientFunds { .. })), "{refused:?}");
    let revert = || ledger.revert(paid.id).force().at_effective_date().metadata("why", "fraud");
    assert_eq!(revert().dry_run().expect("the dry run succeeds").timestamp, at);
    let reverted = revert().commit().expect("the write succeeds");
    assert_eq!((reverted.timestamp, reverted.metadata.get("why").is_some()), (at, true));
    assert_eq!(ledger.get_transaction(paid.id).expect("the read succeeds").reverted_by, Some(reverted.id));
    let again = revert().commit().unwrap_err();
    assert!(matches!(again, LedgerError::Refused(Rejection::AlreadyReverted { .. })), "{again:?}");
    assert_eq!(
        ledger.get_account("c").unwrap_err().to_string(),
        "account \"c\" not found in ledger \"main\""
    );
}

#[test]
fn metadata_of_accounts_and_transactions_changes() {
    let ledger = Store::in_memory().ledger("main").expect("a name");
    let gold = || [("tier", "gold")].into_iter().collect();
    ledger.set_account_metadata("users:1", gold()).expect("the write succeeds");
    let paid = ledger.transaction().posting("world", "users:1", 5, "USD").commit().expect("accepted");
    ledger.set_transaction_metadata(paid.id, gold()).expect("the write succeeds");
    assert_eq!(ledger.accounts().metadata("tier", "gold").count().expect("the count succeeds"), 1);
    assert_eq!(ledger.transactions().metadata("tier", "gold").count().expect("the count succeeds"), 1);
    ledger.delete_account_metadata("users:1", "tier").expect("the write succeeds");
    ledger.delete_transaction_metadata(paid.id, "tier").expect("the write succeeds");
    assert_eq!(ledger.accounts().metadata("tier", "gold").count().expect("the count succeeds"), 0);
    assert_eq!(ledger.transactions().metadata("tier", "gold").count().expect("the count succeeds"), 0);
    let missing = ledger.set_transaction_metadata(9, gold()).unwrap_err();
    assert!(matches!(missing, LedgerError::TransactionNotFound { .. }), "{missing:?}");
}
