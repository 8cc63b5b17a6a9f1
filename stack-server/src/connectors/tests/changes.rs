//! Tests of concurrent, failed and interrupted changes of installations.

use ledger_store::Expected;
use ledger_testkit::SimDisk;

use super::world::{Pages, World};
use super::*;
use crate::connectors::manage::FLUSHED_REMOVAL;
use crate::http::error::Code;
use crate::payments::account::NewAccount;
use crate::payments::enumerations::AccountType;
use crate::payments::installation::{self, Installation};

fn installed(fixture: &Fixture) -> Vec<Installation> {
    let mut all = installation::all_even_removing(&fixture.store.snapshot()).expect("installations");
    all.retain(|one| !one.is_being_removed);
    all
}

#[test]
fn changes_at_once_leave_no_runner_behind() {
    let fixture = Fixture::new();
    let id = fixture.install();
    fixture.until("it waits", |fixture| fixture.clock.waiting() == 1);
    let changes: Vec<_> = (0..8)
        .map(|_| {
            let (engine, id) = (fixture.engine.clone(), id.clone());
            let definition = engine.definition("test").expect("the definition");
            fixture.runtime.spawn(async move { engine.configure(definition, &id, b"{}").await })
        })
        .collect();
    for change in changes {
        fixture.runtime.block_on(change).expect("no panic").expect("configured");
    }
    fixture.until("one task waits", |fixture| fixture.clock.waiting() == 1);
    fixture.runtime.block_on(fixture.engine.uninstall(&id)).expect("removed");
    assert_eq!(fixture.clock.waiting(), 0);
    fixture.worker.stop();
}

#[test]
fn tasks_have_dates_in_the_order_of_their_start() {
    let fixture = Fixture::new();
    fixture.provider.0.lock().expect("no panic").has_setup = true;
    let id = fixture.install();
    let mut tasks = fixture.tasks(&id);
    tasks.sort_by_key(|task| task.created_at);
    let names: Vec<_> = tasks.iter().map(|task| &*task.descriptor).collect();
    assert_eq!(names, ["{\"name\":\"setup\"}", "{\"name\":\"main\"}"]);
    assert_ne!(tasks[0].created_at, tasks[1].created_at);
    fixture.worker.stop();
}

/// Installs a connector, and waits until it has fetched a payment.
fn with_payment(fixture: &Fixture) -> ConnectorId {
    fixture.answer([Ok(page(&[payment("a", 1)], "{}", false))]);
    let id = fixture.install();
    fixture.until("the page is there", |fixture| fixture.clock.waiting() == 1);
    id
}

#[test]
fn failed_reset_keeps_the_installation() {
    let fixture = Fixture::new();
    let id = with_payment(&fixture);
    fixture.provider.0.lock().expect("no panic").has_setup = true;
    fixture.answer([Err(Failure::retryable("no room"))]);
    let error = fixture.runtime.block_on(fixture.engine.reset(&id)).expect_err("the setup fails");
    assert_eq!(error.code, Code::Validation);
    assert!(error.message.contains("no room"), "{}", error.message);
    let left: Vec<_> = installed(&fixture).into_iter().map(|one| one.id).collect();
    assert_eq!((left, fixture.payments().len()), (vec![id], 1));
    fixture.until("it runs again", |fixture| fixture.clock.waiting() == 1);
    let asked = fixture.asked();
    fixture.clock.advance(Duration::from_mins(1));
    fixture.until("it asks once a period", |fixture| fixture.asked() > asked);
    fixture.worker.stop();
}

#[test]
fn reset_begins_with_nothing_under_another_id() {
    let fixture = Fixture::new();
    let id = with_payment(&fixture);
    let new = fixture.runtime.block_on(fixture.engine.reset(&id)).expect("reset");
    assert_ne!(new, id);
    fixture.until("the new one runs alone", |fixture| fixture.clock.waiting() == 1);
    let all: Vec<_> = installation::all_even_removing(&fixture.store.snapshot()).expect("installations");
    assert_eq!(all.into_iter().map(|one| one.id).collect::<Vec<_>>(), [new]);
    assert!(fixture.payments().is_empty());
    fixture.worker.stop();
}

#[test]
fn interrupted_reset_has_the_new_installation() {
    let fixture = Fixture::new();
    let id = with_payment(&fixture);
    let definition = fixture.engine.definition("test").expect("the definition");
    let values = Values::read(b"{}", definition.parameters).expect("values");
    let made = fixture.runtime.block_on(fixture.engine.new_installation(definition, &values));
    let (new, new_tasks) = made.expect("an installation");
    fixture.engine.replace(&id, &new, &new_tasks).expect("replaced");
    let Fixture { store, worker, provider, clock, .. } = fixture;
    worker.stop();
    let fixture = Fixture::on(store, provider, clock);
    fixture.until("its task waits", |fixture| fixture.clock.waiting() == 1);
    let left: Vec<_> = installation::all_even_removing(&fixture.store.snapshot()).expect("installations");
    assert_eq!(left, [new]);
    assert!(fixture.payments().is_empty());
    fixture.worker.stop();
}

#[test]
fn task_pauses_while_writes_are_refused() {
    let fixture = Fixture::new();
    let id = fixture.install();
    fixture.until("it waits", |fixture| fixture.clock.waiting() == 1);
    let asked = fixture.asked();
    fixture.store.close().expect("closed");
    fixture.answer([Err(Failure::permanent("a bad configuration"))]);
    fixture.clock.advance(Duration::from_mins(1));
    fixture.until("it waits again", |fixture| fixture.asked() > asked && fixture.clock.waiting() == 1);
    assert_eq!((fixture.asked(), fixture.tasks(&id)[0].status), (asked + 1, TaskStatus::Active));
    fixture.worker.stop();
}

#[test]
fn configuration_stops_tasks_that_it_does_not_begin() {
    let fixture = Fixture::new();
    let child = NewTask::once("{\"name\":\"child\"}".to_owned(), Restart::IfNotActive);
    let begun = Page { state: Some("{\"at\":\"1\"}".to_owned()), children: vec![child], ..Page::default() };
    fixture.answer([Ok(begun), Err(Failure::retryable("down"))]);
    let id = fixture.install();
    fixture.until("main waits, and its child too", |fixture| fixture.clock.waiting() == 2);
    fixture.configure(&id, true);
    let of = |fixture: &Fixture| {
        let tasks = fixture.tasks(&id).into_iter();
        let mut all: Vec<_> = tasks.map(|task| (task.descriptor, task.status, task.state)).collect();
        all.sort_by(|one, other| one.0.cmp(&other.0));
        all
    };
    let expected = |status| {
        let named = |name: &str, state: &str| (format!("{{\"name\":\"{name}\"}}"), status, state.to_owned());
        vec![named("child", "{}"), named("main", "{\"at\":\"1\"}")]
    };
    assert_eq!(of(&fixture), expected(TaskStatus::Stopped));
    assert_eq!((fixture.clock.waiting(), fixture.asked()), (0, 2));
    // Only another configuration starts them again. A restart does not.
    let Fixture { store, worker, provider, clock, .. } = fixture;
    worker.stop();
    let fixture = Fixture::on(store, provider, clock);
    assert_eq!((of(&fixture), fixture.asked()), (expected(TaskStatus::Stopped), 2));
    fixture.configure(&id, false);
    fixture.until("main goes on where it was", |fixture| fixture.clock.waiting() == 1);
    assert_eq!(fixture.provider.0.lock().expect("no panic").states[2], "main {\"at\":\"1\"}");
    fixture.worker.stop();
}

#[test]
fn new_configuration_keeps_the_tasks_that_it_begins() {
    let fixture = Fixture::new();
    let id = with_payment(&fixture);
    fixture.configure(&id, false);
    fixture.until("it is asked again", |fixture| fixture.asked() == 2 && fixture.clock.waiting() == 1);
    assert_eq!(fixture.tasks(&id)[0].status, TaskStatus::Active);
    fixture.worker.stop();
}

#[test]
fn large_removal_ends_with_a_flush() {
    for (records, is_flushed) in [(1, false), (FLUSHED_REMOVAL, true)] {
        let (disk, pages) = (SimDisk::new(), Pages::default());
        let world = World::start(&disk, &pages);
        let id = world.install("a").expect("installed");
        let account = |number: usize| NewAccount {
            reference: number.to_string(),
            created_at: Timestamp::from_micros(1),
            default_asset: String::new(),
            name: String::new(),
            kind: AccountType::Internal,
            metadata: Metadata::new(),
            raw: None,
        };
        let accounts =
            (0..records).map(|number| account(number).merge_into(&id, None).expect("a new account"));
        let changes: Vec<_> = accounts.map(|account| record::put(&account, Expected::Absent)).collect();
        for part in changes.chunks(record::CHANGES_MAX) {
            world.store.change_documents(part.to_vec()).expect("stored");
        }
        world.run(world.engine.uninstall(&id)).expect("removed");
        // A store replays only entries that no flush has written.
        let next = World::at_rest(&disk.after_power_cut(0), &pages);
        assert_eq!(next.store.opening().replayed == 0, is_flushed, "{:?}", next.store.opening());
        next.stop();
        world.stop();
    }
}
