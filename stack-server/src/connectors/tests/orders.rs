//! Tests of orders to a slow provider, and of orders that the server refuses before it sends them.

use ledger_store::{Expected, Snapshot};

use super::*;
use crate::connectors::money::Action;
use crate::connectors::orders;
use crate::connectors::transfers::NewTransfer;
use crate::payments::account::NewAccount;
use crate::payments::enumerations::{AccountType, InitiationStatus, InitiationType, TransferStatus};
use crate::payments::ids::{AccountId, InitiationId};
use crate::payments::initiation::{self, Initiation, Step};
use crate::payments::transfer::{self, Transfer};

/// Starts a transfer from an account.
fn begin(fixture: &Fixture, id: &ConnectorId, source: &str) {
    let new = NewTransfer {
        amount: Balance::from(5_i64),
        asset: "EUR/2".to_owned(),
        source: source.to_owned(),
        destination: "b".to_owned(),
        metadata: Metadata::new(),
    };
    fixture.runtime.block_on(orders::begin_transfer(&fixture.engine, id, new)).expect("begun");
}

fn transfer(fixture: &Fixture, id: &ConnectorId) -> Transfer {
    transfer::all(&fixture.store.snapshot(), &id.installation).expect("transfers").remove(0)
}

#[test]
fn slow_order_ends_without_an_answer() {
    let fixture = Fixture::new();
    let id = fixture.install();
    fixture.until("it waits", |fixture| fixture.clock.waiting() == 1);
    begin(&fixture, &id, "");
    let orders = |fixture: &Fixture| fixture.provider.0.lock().expect("no panic").orders;
    fixture.until("the provider is asked", |fixture| orders(fixture) == 1 && fixture.clock.waiting() == 2);
    fixture.clock.advance(Duration::from_secs(10));
    fixture.until("the transfer shows it", |fixture| !transfer(fixture, &id).error.is_empty());
    let shown = transfer(&fixture, &id);
    assert_eq!(
        (shown.status, &*shown.error),
        (TransferStatus::Pending, "the provider did not answer within 10 s")
    );
    fixture.until("it pauses", |fixture| fixture.clock.waiting() == 2);
    fixture.clock.advance(Duration::from_secs(2));
    fixture.until("the provider is asked again", |fixture| orders(fixture) == 2);
    fixture.clock.advance(Duration::from_secs(10));
    fixture.worker.stop();
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
    let fixture = Fixture::new();
    fixture.answer([Ok(their_account())]);
    let id = fixture.install();
    fixture.until("the account is there", |fixture| fixture.clock.waiting() == 1);
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
    let begun = orders::change_initiation(&fixture.engine, Some(Action::Pay), change);
    fixture.runtime.block_on(begun).expect("begun");
    let error = "the source is an EXTERNAL account";
    fixture.until("its task shows why", |fixture| fixture.tasks(&id).iter().any(|task| task.error == error));
    let found = initiation::find(&fixture.store.snapshot(), &initiation.id).expect("read").expect("there");
    assert_eq!(found.value.status(), InitiationStatus::Processing);
    fixture.worker.stop();
}

#[test]
fn refused_order_fails_with_the_reason() {
    let fixture = Fixture::new();
    fixture.answer([Ok(their_account())]);
    let id = fixture.install();
    fixture.until("the account is there", |fixture| fixture.clock.waiting() == 1);
    begin(&fixture, &id, "theirs");
    fixture.until("it has failed", |fixture| transfer(fixture, &id).status == TransferStatus::Failed);
    assert_eq!(transfer(&fixture, &id).error, "the source is an EXTERNAL account");
    assert_eq!(fixture.provider.0.lock().expect("no panic").orders, 0);
    fixture.worker.stop();
}

#[test]
fn transfer_that_may_have_been_sent_stays_open() {
    let fixture = Fixture::new();
    let id = fixture.install();
    fixture.until("it waits", |fixture| fixture.clock.waiting() == 1);
    begin(&fixture, &id, "theirs");
    let orders = |fixture: &Fixture| fixture.provider.0.lock().expect("no panic").orders;
    fixture.until("the provider is asked", |fixture| orders(fixture) == 1 && fixture.clock.waiting() == 2);
    // Only now the server learns that the account belongs to a counterparty.
    fixture.answer([Ok(their_account())]);
    fixture.clock.advance(Duration::from_mins(1));
    let error = "the source is an EXTERNAL account";
    fixture.until("the call ended without an answer", |fixture| !transfer(fixture, &id).error.is_empty());
    fixture.until("main waits, and the transfer too", |fixture| fixture.clock.waiting() == 2);
    fixture.clock.advance(Duration::from_secs(2));
    fixture.until("its task shows why", |fixture| fixture.tasks(&id).iter().any(|task| task.error == error));
    assert_eq!((transfer(&fixture, &id).status, orders(&fixture)), (TransferStatus::Pending, 1));
    fixture.worker.stop();
}

#[test]
fn transfer_notes_that_it_may_be_sent_before_it_is() {
    let fixture = Fixture::new();
    let id = fixture.install();
    fixture.until("it waits", |fixture| fixture.clock.waiting() == 1);
    begin(&fixture, &id, "");
    fixture
        .until("the provider is asked", |fixture| fixture.provider.0.lock().expect("no panic").orders == 1);
    assert!(transfer(&fixture, &id).is_sent);
    fixture.clock.advance(Duration::from_secs(10));
    fixture.worker.stop();
}
