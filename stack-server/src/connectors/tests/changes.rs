//! Changes of installations that meet each other, fail or are interrupted.

use super::*;
use crate::http::error::Code;
use crate::payments::installation::{self, Installation};

fn installed(bench: &Bench) -> Vec<Installation> {
    let mut all = installation::all(&bench.store.snapshot()).expect("installations");
    all.retain(|one| !one.is_leaving);
    all
}

#[test]
fn changes_at_once_leave_no_runner_behind() {
    let bench = Bench::new();
    let id = bench.install();
    bench.until("it waits", |bench| bench.clock.waiting() == 1);
    let changes: Vec<_> = (0..8)
        .map(|_| {
            let (engine, id) = (bench.engine.clone(), id.clone());
            let row = engine.row("test").expect("the row");
            bench.runtime.spawn(async move { engine.configure(row, &id, b"{}").await })
        })
        .collect();
    for change in changes {
        bench.runtime.block_on(change).expect("no panic").expect("configured");
    }
    bench.until("one task waits", |bench| bench.clock.waiting() == 1);
    bench.runtime.block_on(bench.engine.uninstall(&id)).expect("removed");
    assert_eq!(bench.clock.waiting(), 0);
    bench.worker.stop();
}

/// An installation that brought a payment in.
fn with_payment(bench: &Bench) -> ConnectorId {
    bench.answer([Ok(page(&[payment("a", 1)], "{}", false))]);
    let id = bench.install();
    bench.until("the page is there", |bench| bench.clock.waiting() == 1);
    id
}

#[test]
fn failed_reset_keeps_the_installation() {
    let bench = Bench::new();
    let id = with_payment(&bench);
    bench.provider.0.lock().expect("no panic").has_setup = true;
    bench.answer([Err(Failure::later("no room"))]);
    let error = bench.runtime.block_on(bench.engine.reset(&id)).expect_err("it is not set up");
    assert_eq!(error.code, Code::Validation);
    assert!(error.message.contains("no room"), "{}", error.message);
    let left: Vec<_> = installed(&bench).into_iter().map(|one| one.id).collect();
    assert_eq!((left, bench.payments().len()), (vec![id], 1));
    bench.until("it runs again", |bench| bench.clock.waiting() == 1);
    let asked = bench.asked();
    bench.clock.advance(Duration::from_mins(1));
    bench.until("it asks once a period", |bench| bench.asked() > asked);
    bench.worker.stop();
}

#[test]
fn reset_begins_with_nothing_under_another_id() {
    let bench = Bench::new();
    let id = with_payment(&bench);
    let new = bench.runtime.block_on(bench.engine.reset(&id)).expect("reset");
    assert_ne!(new, id);
    bench.until("the new one runs alone", |bench| bench.clock.waiting() == 1);
    let all: Vec<_> = installation::all(&bench.store.snapshot()).expect("installations");
    assert_eq!(all.into_iter().map(|one| one.id).collect::<Vec<_>>(), [new]);
    assert!(bench.payments().is_empty());
    bench.worker.stop();
}

#[test]
fn interrupted_reset_has_the_new_installation() {
    let bench = Bench::new();
    let id = with_payment(&bench);
    let row = bench.engine.row("test").expect("the row");
    let values = Values::read(b"{}", row.parameters).expect("values");
    let made = bench.runtime.block_on(bench.engine.new_installation(row, &values));
    let (new, starts) = made.expect("an installation");
    bench.engine.replace(&id, &new, &starts).expect("replaced");
    let Bench { store, worker, provider, clock, .. } = bench;
    worker.stop();
    let bench = Bench::on(store, provider, clock);
    bench.until("its task waits", |bench| bench.clock.waiting() == 1);
    let left: Vec<_> = installation::all(&bench.store.snapshot()).expect("installations");
    assert_eq!(left, [new]);
    assert!(bench.payments().is_empty());
    bench.worker.stop();
}

#[test]
fn task_pauses_while_writes_are_refused() {
    let bench = Bench::new();
    let id = bench.install();
    bench.until("it waits", |bench| bench.clock.waiting() == 1);
    let asked = bench.asked();
    bench.store.close().expect("closed");
    bench.answer([Err(Failure::final_("a bad configuration"))]);
    bench.clock.advance(Duration::from_mins(1));
    bench.until("it waits again", |bench| bench.asked() > asked && bench.clock.waiting() == 1);
    assert_eq!((bench.asked(), bench.tasks(&id)[0].status), (asked + 1, TaskStatus::Active));
    bench.worker.stop();
}
