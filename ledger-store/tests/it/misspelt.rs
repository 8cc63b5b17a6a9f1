//! Malformed names in the conditions of lists and sums.

use ledger_core::{AccountAddress, NameKind};
use ledger_store::{Ledger, LedgerError, Store};

fn ledger() -> Ledger {
    let ledger = Store::in_memory().ledger("main").expect("a name");
    ledger.transaction().posting("world", "users:1", 5, "USD").commit().expect("the write succeeds");
    ledger
}

fn kind<T: std::fmt::Debug>(read: Result<T, LedgerError>) -> NameKind {
    match read {
        Err(LedgerError::Name(error)) => error.kind,
        other => panic!("{other:?}"),
    }
}

#[test]
fn malformed_address_in_a_condition_is_an_error() {
    let ledger = ledger();
    assert_eq!(kind(ledger.accounts().matching("users 1").page(5)), NameKind::Address);
    assert_eq!(kind(ledger.accounts().matching("users 1").count()), NameKind::Address);
    assert_eq!(kind(ledger.volumes().matching("users:1.5").page(5)), NameKind::Address);
    assert_eq!(kind(ledger.transactions().account("f 1").page(5)), NameKind::Address);
    assert_eq!(kind(ledger.transactions().source("f 1").explain(5)), NameKind::Address);
    let first = ledger.transactions().destination("f 1").into_iter().next().expect("an error");
    assert_eq!(kind(first), NameKind::Address);
    assert_eq!(kind(ledger.balances().matching("users 1").now()), NameKind::Address);
    for malformed in ["users 1", "users:*", "users::", ""] {
        assert_eq!(kind(ledger.balances().under(malformed).now()), NameKind::Address, "{malformed}");
    }
}

#[test]
fn malformed_name_in_a_filter_is_an_error() {
    let ledger = ledger();
    let accounts = ledger.accounts().filter_json(r#"{"$gt": {"balance[usd]": 1}}"#).expect("a filter");
    assert_eq!(kind(accounts.page(5)), NameKind::Asset);
    let transactions = ledger.transactions().filter_json(r#"{"$match": {"account": "f 1"}}"#);
    assert_eq!(kind(transactions.expect("a filter").count()), NameKind::Address);
    let sums = ledger.balances().filter_json(r#"{"$match": {"address": "f 1"}}"#).expect("a filter");
    assert_eq!(kind(sums.now()), NameKind::Address);
    assert_eq!(kind(ledger.transactions().reference("").page(5)), NameKind::Reference);
    let no_key = ledger.transactions().metadata("", "topup").page(5);
    assert!(matches!(no_key, Err(LedgerError::Filter(_))), "{no_key:?}");
}

#[test]
fn address_selects_one_account() {
    let ledger = ledger();
    let user = AccountAddress::parse("users:1").expect("an address");
    assert_eq!(ledger.transactions().account(&user).count(), Ok(1));
    assert_eq!(ledger.accounts().matching(&user).count(), Ok(1));
    assert_eq!(ledger.accounts().matching("users:*").count(), Ok(1));
    assert_eq!(ledger.accounts().matching("users:").count(), Ok(1));
    let users = AccountAddress::parse("users").expect("an address");
    assert_eq!(ledger.balances().under(&users).now().expect("the read succeeds").len(), 1);
}
