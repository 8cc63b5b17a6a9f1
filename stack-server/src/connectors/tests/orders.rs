//! Tests of orders to a slow provider, and of orders that the server refuses before it sends them.

use ledger_store::{Expected, Snapshot};

use super::*;
use crate::connectors::money::Action;
use crate::connectors::orders;
use crate::connectors::transfers::NewTransfer;
use crate::payments::account::NewAccount;
use crate::payments::ids::{AccountId, InitiationId};
use crate::payments::initiation::{self, Initiation, Step};
use crate::payments::transfer::{self, Transfer};
use crate::payments::words::{AccountType, InitiationStatus, InitiationType, TransferStatus};

/// Starts a transfer from an account.
fn begin(bench: &Bench, id: &ConnectorId, source: &str) {
    let new = NewTransfer {
        amount: Balance::from(5_i64),
        asset: "EUR/2".to_owned(),
        source: source.to_owned(),
        destination: "b".to_owned(),
        metadata: Metadata::new(),
    };
    bench.runtime.block_on(orders::begin_transfer(&bench.engine, id, new)).expect("begun");
}

fn transfer(bench: &Bench, id: &ConnectorId) -> Transfer {
    transfer::all(&bench.store.snapshot(), &id.installation).expect("transfers").remove(0)
}

#[test]
fn slow_order_ends_without_an_answer() {
    let bench = Bench::new();
    let id = bench.install();
    bench.until("it waits", |bench| bench.clock.waiting() == 1);
    begin(&bench, &id, "");
    let orders = |bench: &Bench| bench.provider.0.lock().expect("no panic").orders;
    bench.until("the provider is asked", |bench| orders(bench) == 1 && bench.clock.waiting() == 2);
    bench.clock.advance(Duration::from_secs(10));
    bench.until("the transfer shows it", |bench| !transfer(bench, &id).error.is_empty());
    let shown = transfer(&bench, &id);
    assert_eq!(
        (shown.status, &*shown.error),
        (TransferStatus::Pending, "the provider did not answer within 10 s")
    );
    bench.until("it pauses", |bench| bench.clock.waiting() == 2);
    bench.clock.advance(Duration::from_secs(2));
    bench.until("the provider is asked again", |bench| orders(bench) == 2);
    bench.clock.advance(Duration::from_secs(10));
    bench.worker.stop();
}

/// Returns a page with an account of a counterparty.
fn their_account() -> Page {
    let mut accounts = Page::default();
    accounts.batch.accounts.push(NewAccount {
        reference: "theirs".to_owned(),
        created_at: Timestamp::from_micros(1),
        default_asset: String::new(),
        name: String::new(),
        kind: AccountType::External,
        metadata: Metadata::new(),
        raw: None,
    });
    accounts
}

#[test]
fn order_that_may_have_been_sent_stays_open() {
    let bench = Bench::new();
    bench.answer([Ok(their_account())]);
    let id = bench.install();
    bench.until("the account is there", |bench| bench.clock.waiting() == 1);
    let account = |reference: &str| AccountId { connector: id.clone(), reference: reference.into() };
    let initiation = Initiation {
        id: InitiationId { connector: id.clone(), reference: "i".into() },
        created_at: Timestamp::from_micros(1),
        scheduled_at: Timestamp::default(),
        description: String::new(),
        kind: InitiationType::Payout,
        source: Some(account("theirs")),
        destination: account("b"),
        initial_amount: Balance::from(5_i64),
        amount: Balance::from(5_i64),
        asset: "EUR/2".to_owned(),
        metadata: Metadata::new(),
        steps: vec![
            Step::new(InitiationStatus::Processing, Timestamp::from_micros(1)).expect("random bytes"),
        ],
        payments: vec![],
        reversals: vec![],
    };
    let stored = initiation.clone();
    let change = move |_: &Snapshot| Ok((vec![record::put(&stored, Expected::Absent)], stored.clone()));
    let begun = orders::change_initiation(&bench.engine, Some(Action::Pay), change);
    bench.runtime.block_on(begun).expect("begun");
    let error = "the source is an EXTERNAL account";
    bench.until("its task shows why", |bench| bench.tasks(&id).iter().any(|task| task.error == error));
    let found = initiation::find(&bench.store.snapshot(), &initiation.id).expect("read").expect("there");
    assert_eq!(found.value.status(), InitiationStatus::Processing);
    bench.worker.stop();
}

#[test]
fn refused_order_fails_with_the_reason() {
    let bench = Bench::new();
    bench.answer([Ok(their_account())]);
    let id = bench.install();
    bench.until("the account is there", |bench| bench.clock.waiting() == 1);
    begin(&bench, &id, "theirs");
    bench.until("it has failed", |bench| transfer(bench, &id).status == TransferStatus::Failed);
    assert_eq!(transfer(&bench, &id).error, "the source is an EXTERNAL account");
    assert_eq!(bench.provider.0.lock().expect("no panic").orders, 0);
    bench.worker.stop();
}

#[test]
fn transfer_that_may_have_been_sent_stays_open() {
    let bench = Bench::new();
    let id = bench.install();
    bench.until("it waits", |bench| bench.clock.waiting() == 1);
    begin(&bench, &id, "theirs");
    let orders = |bench: &Bench| bench.provider.0.lock().expect("no panic").orders;
    bench.until("the provider is asked", |bench| orders(bench) == 1 && bench.clock.waiting() == 2);
    // Only now the server learns that the account belongs to a counterparty.
    bench.answer([Ok(their_account())]);
    bench.clock.advance(Duration::from_mins(1));
    let error = "the source is an EXTERNAL account";
    bench.until("the call ended without an answer", |bench| !transfer(bench, &id).error.is_empty());
    bench.until("main waits, and the transfer too", |bench| bench.clock.waiting() == 2);
    bench.clock.advance(Duration::from_secs(2));
    bench.until("its task shows why", |bench| bench.tasks(&id).iter().any(|task| task.error == error));
    assert_eq!((transfer(&bench, &id).status, orders(&bench)), (TransferStatus::Pending, 1));
    bench.worker.stop();
}

#[test]
fn transfer_notes_that_it_may_be_sent_before_it_is() {
    let bench = Bench::new();
    let id = bench.install();
    bench.until("it waits", |bench| bench.clock.waiting() == 1);
    begin(&bench, &id, "");
    bench.until("the provider is asked", |bench| bench.provider.0.lock().expect("no panic").orders == 1);
    assert!(transfer(&bench, &id).is_sent);
    bench.clock.advance(Duration::from_secs(10));
    bench.worker.stop();
}
