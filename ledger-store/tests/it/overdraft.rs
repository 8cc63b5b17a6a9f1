//! Overdrafts with a limit, and the details of missing funds.

use ledger_store::prelude::*;

const LIMIT: u64 = 500;

/// Pays from an account that may go down to -5.00 USD.
fn pay(ledger: &Ledger, account: &str, cents: u64, asset: &str) -> Result<Committed, LedgerError> {
    let payment = ledger.transaction().posting(account, "shops:1", cents, asset);
    payment.allow_overdraft_up_to("users:1", LIMIT, "USD/2").commit()
}

fn balance(ledger: &Ledger, account: &str, asset: &str) -> Balance {
    ledger.balance(account, asset).expect("the read succeeds")
}

#[test]
fn overdraft_ends_at_its_limit() {
    let ledger = Store::in_memory().ledger("main").expect("a name");
    ledger.transaction().posting("world", "users:1", 200, "USD/2").commit().expect("a deposit");
    pay(&ledger, "users:1", 600, "USD/2").expect("down to -4.00");
    let refused = pay(&ledger, "users:1", 101, "USD/2").expect_err("beyond the limit");
    assert!(refused.is_insufficient_funds(), "{refused:?}");
    pay(&ledger, "users:1", 100, "USD/2").expect("down to -5.00");
    assert_eq!(balance(&ledger, "users:1", "USD/2"), -500);
    pay(&ledger, "users:1", 0, "USD/2").expect("zero needs no funds");
    let other_account = pay(&ledger, "users:2", 1, "USD/2").expect_err("no limit of its own");
    assert!(other_account.is_insufficient_funds(), "{other_account:?}");
    let other_asset = pay(&ledger, "users:1", 1, "EUR/2").expect_err("a limit of another asset");
    assert!(other_asset.is_insufficient_funds(), "{other_asset:?}");
}

#[test]
fn overdraft_counts_at_each_posting() {
    let ledger = Store::in_memory().ledger("main").expect("a name");
    let payment = || {
        let twice = ledger.transaction().posting("users:1", "shops:1", 300, "USD/2");
        twice.posting("users:1", "shops:2", 300, "USD/2").posting("world", "users:1", 600, "USD/2")
    };
    let refused = payment().allow_overdraft_up_to("users:1", 599, "USD/2").commit();
    assert!(refused.is_err_and(|error| error.is_insufficient_funds()));
    payment().allow_overdraft_up_to("users:1", 600, "USD/2").commit().expect("the limit suffices");
    let replaced = payment().allow_overdraft_up_to("users:1", 900, "USD/2");
    let replaced = replaced.allow_overdraft_up_to("users:1", 1, "USD/2").commit();
    assert!(replaced.is_err_and(|error| error.is_insufficient_funds()), "the later limit counts");
    payment().allow_overdraft().allow_overdraft_up_to("users:1", 1, "USD/2").commit().expect("no limit");
    let malformed = payment().allow_overdraft_up_to("users:", 1, "USD/2").commit();
    assert!(matches!(malformed, Err(LedgerError::Name(_))), "{malformed:?}");
}

#[test]
fn limit_is_part_of_the_request() {
    let ledger = Store::in_memory().ledger("main").expect("a name");
    let pay = |limit: u64| {
        let payment = ledger.transaction().posting("users:1", "shops:1", 5, "USD/2").idempotency_key("once");
        payment.allow_overdraft_up_to("users:1", limit, "USD/2").commit()
    };
    assert!(!pay(5).expect("recorded").replayed);
    assert!(pay(5).expect("a replay").replayed);
    assert!(matches!(pay(6), Err(LedgerError::IdempotencyConflict { .. })));
}

#[test]
fn missing_funds_are_told_for_every_write() {
    let ledger = Store::in_memory().ledger("main").expect("a name");
    let paid = ledger.transaction().posting("world", "users:1", 700, "USD/2").commit().expect("a deposit");
    pay(&ledger, "users:1", 300, "USD/2").expect("it has 7.00");
    let script = "send [USD/2 450] ( source = @users:1 destination = @shops:1 )";
    let missing = |refused: Result<Committed, LedgerError>| {
        let missing = refused.expect_err("it has 4.00").missing_funds().expect("funds are missing");
        assert_eq!((missing.accounts.len(), missing.asset.as_str()), (1, "USD/2"));
        (missing.accounts[0].to_string(), missing.needed.to_string(), missing.available.to_string())
    };
    let of = |needed: &str, available: &str| ("users:1".to_owned(), needed.to_owned(), available.to_owned());
    let posting = ledger.transaction().posting("users:1", "shops:1", 450, "USD/2");
    assert_eq!(missing(posting.commit()), of("450", "400"));
    assert_eq!(missing(pay(&ledger, "users:1", 901, "USD/2")), of("901", "900"));
    assert_eq!(missing(ledger.script(script).commit()), of("450", "400"));
    assert_eq!(missing(ledger.revert(paid.id).commit()), of("700", "400"));
    let other = ledger.transaction().commit().expect_err("it has no postings");
    assert_eq!(other.missing_funds(), None);
}
