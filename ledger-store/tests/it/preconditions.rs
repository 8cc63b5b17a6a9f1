//! Accounts that must exist, or be new, when a command is decided.

use ledger_core::limits::PRECONDITIONS_MAX;
use ledger_store::prelude::*;

fn ledger() -> Ledger {
    Store::in_memory().ledger("main").expect("a name")
}

/// Pays into an account that must exist.
fn pay<'a>(ledger: &'a Ledger, account: &str) -> ledger_store::TransactionBuilder<'a> {
    ledger.transaction().posting("world", account, 5, "USD").require_account(account)
}

/// Creates an account with a name.
fn open<'a>(ledger: &'a Ledger, account: &str, name: &str) -> ledger_store::MetadataBuilder<'a> {
    ledger.update_account(account).metadata("name", name).require_new_account(account)
}

#[track_caller]
fn assert_missing<T: std::fmt::Debug>(answer: Result<T, LedgerError>, address: &str) {
    match answer {
        Err(LedgerError::AccountNotFound { account, .. }) => assert_eq!(account.as_str(), address),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn assert_existing<T: std::fmt::Debug>(answer: Result<T, LedgerError>, address: &str) {
    match answer {
        Err(LedgerError::AccountExists { account, .. }) => assert_eq!(account.as_str(), address),
        other => panic!("{other:?}"),
    }
}

#[test]
fn account_exists_once_it_is_named() {
    let ledger = ledger();
    assert_missing(pay(&ledger, "users:1").commit(), "users:1");
    assert_missing(pay(&ledger, "users:1").dry_run(), "users:1");
    ledger.delete_account_metadata("users:1", "none").expect("nothing to remove");
    assert_missing(pay(&ledger, "users:1").commit(), "users:1");
    open(&ledger, "users:1", "Ann").commit().expect("it is new");
    pay(&ledger, "users:1").commit().expect("metadata named it");
    pay(&ledger, "world").commit().expect("the payment named it");
    ledger.delete_account_metadata("users:1", "name").expect("the only key");
    assert_existing(open(&ledger, "users:1", "Bob").commit(), "users:1");
    let other = ledger.script("send [USD 1] ( source = @world destination = @users:2 )");
    assert_existing(other.require_new_account("users:1").commit(), "users:1");
    assert_eq!(ledger.account("users:2").expect("a read"), None, "nothing was recorded");
}

#[test]
fn batch_sees_its_earlier_commands() {
    let ledger = ledger();
    let both = || ledger.batch().push(open(&ledger, "users:1", "Ann")).push(pay(&ledger, "users:1"));
    let undone = both().push(pay(&ledger, "users:2")).atomic().commit();
    assert_missing(undone, "users:2");
    both().atomic().commit().expect("the account is new again");
    let answers = both().commit().expect("a batch");
    assert_existing(answers[0].as_ref().map_err(Clone::clone), "users:1");
    assert!(answers[1].is_ok(), "{answers:?}");
}

#[test]
fn replay_does_not_check_again() {
    let ledger = ledger();
    let create = || open(&ledger, "users:1", "Ann").idempotency_key("create").commit();
    assert!(!create().expect("it is new").replayed);
    assert!(create().expect("the first answer").replayed);
    let other = open(&ledger, "users:1", "Bob").idempotency_key("create").commit();
    assert!(matches!(other, Err(LedgerError::IdempotencyConflict { .. })), "{other:?}");
}

#[test]
fn number_of_conditions_has_a_limit() {
    let ledger = ledger();
    let with = |conditions: usize| {
        let payment = ledger.transaction().posting("world", "users:1", 5, "USD");
        (0..conditions).fold(payment, |payment, number| payment.require_new_account(format!("new:{number}")))
    };
    let refused = with(PRECONDITIONS_MAX + 1).require_account("users:1").commit();
    let accounts = PRECONDITIONS_MAX + 2;
    let expected = LedgerError::Refused(Rejection::TooManyPreconditions { accounts });
    assert_eq!(refused.expect_err("too many").to_string(), expected.to_string());
    assert_eq!(ledger.account("users:1").expect("a read"), None, "nothing was recorded");
    with(PRECONDITIONS_MAX).commit().expect("as many as allowed");
}

#[test]
fn refuses_malformed_addresses() {
    let ledger = ledger();
    let malformed = pay(&ledger, "users:1").require_account("users:").commit();
    assert!(matches!(malformed, Err(LedgerError::Name(_))), "{malformed:?}");
    let malformed = pay(&ledger, "users:1").require_new_account("*").commit();
    assert!(matches!(malformed, Err(LedgerError::Name(_))), "{malformed:?}");
}
