//! Tests of concurrent, failed and interrupted changes of installations.

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
            let definition = engine.definition("test").expect("the definition");
            bench.runtime.spawn(async move { engine.configure(definition, &id, b"{}").await })
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

#[test]
fn tasks_have_dates_in_the_order_of_their_start() {
    let bench = Bench::new();
    bench.provider.0.lock().expect("no panic").has_setup = true;
    let id = bench.install();
    let mut tasks = bench.tasks(&id);
    tasks.sort_by_key(|task| task.created_at);
    let names: Vec<_> = tasks.iter().map(|task| &*task.descriptor).collect();
    assert_eq!(names, ["{\"name\":\"setup\"}", "{\"name\":\"main\"}"]);
    assert_ne!(tasks[0].created_at, tasks[1].created_at);
    bench.worker.stop();
}

/// Installs a connector, and waits until it has fetched a payment.
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
    let error = bench.runtime.block_on(bench.engine.reset(&id)).expect_err("the setup fails");
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
    let definition = bench.engine.definition("test").expect("the definition");
    let values = Values::read(b"{}", definition.parameters).expect("values");
    let made = bench.runtime.block_on(bench.engine.new_installation(definition, &values));
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

#[test]
fn configuration_stops_tasks_that_it_does_not_begin() {
    let bench = Bench::new();
    let child = Start::once("{\"name\":\"child\"}".to_owned(), Restart::IfNotActive);
    let begun = Page { state: Some("{\"at\":\"1\"}".to_owned()), children: vec![child], ..Page::default() };
    bench.answer([Ok(begun), Err(Failure::later("down"))]);
    let id = bench.install();
    bench.until("main waits, and its child too", |bench| bench.clock.waiting() == 2);
    bench.configure(&id, true);
    let of = |bench: &Bench| {
        let tasks = bench.tasks(&id).into_iter();
        let mut all: Vec<_> = tasks.map(|task| (task.descriptor, task.status, task.state)).collect();
        all.sort_by(|one, other| one.0.cmp(&other.0));
        all
    };
    let expected = |status| {
        let named = |name: &str, state: &str| (format!("{{\"name\":\"{name}\"}}"), status, state.to_owned());
        vec![named("child", "{}"), named("main", "{\"at\":\"1\"}")]
    };
    assert_eq!(of(&bench), expected(TaskStatus::Stopped));
    assert_eq!((bench.clock.waiting(), bench.asked()), (0, 2));
    // Only another configuration starts them again. A restart does not.
    let Bench { store, worker, provider, clock, .. } = bench;
    worker.stop();
    let bench = Bench::on(store, provider, clock);
    assert_eq!((of(&bench), bench.asked()), (expected(TaskStatus::Stopped), 2));
    bench.configure(&id, false);
    bench.until("main goes on where it was", |bench| bench.clock.waiting() == 1);
    assert_eq!(bench.provider.0.lock().expect("no panic").states[2], "main {\"at\":\"1\"}");
    bench.worker.stop();
}

#[test]
fn new_configuration_keeps_the_tasks_that_it_begins() {
    let bench = Bench::new();
    let id = with_payment(&bench);
    bench.configure(&id, false);
    bench.until("it is asked again", |bench| bench.asked() == 2 && bench.clock.waiting() == 1);
    assert_eq!(bench.tasks(&id)[0].status, TaskStatus::Active);
    bench.worker.stop();
}
