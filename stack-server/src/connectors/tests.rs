//! Tests of the engine with an in-memory provider and a manual clock.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ledger_core::{Balance, Timestamp};
use ledger_store::Store;

use crate::connectors::clock::Clock as _;
use crate::connectors::clock::manual::ManualClock;
use crate::connectors::config::{Parameter, ParameterType, Values, optional};
use crate::connectors::definition::{Capabilities, Definition};
use crate::connectors::engine::{Engine, Worker};
use crate::connectors::http::ProviderAccess;
use crate::connectors::{
    Connector, ConnectorFuture, Failure, NewTask, Order, OrderResult, Page, Restart, TaskContext,
};
use crate::outbound::OutboundPolicy;
use crate::payments::codec::Metadata;
use crate::payments::enumerations::{PaymentStatus, PaymentType, Scheme, TaskStatus};
use crate::payments::event::Events;
use crate::payments::ids::ConnectorId;
use crate::payments::payment::{NewPayment, Payment};
use crate::payments::record;
use crate::payments::service::Payments;
use crate::payments::task::{self, Task};
use crate::sealing::Sealer;

mod changes;
mod next_page;
mod orders;
mod power_cuts;
mod random_work;
pub(crate) mod world;

/// The next responses of the provider, and the requests that it has received.
#[derive(Default)]
struct Script {
    answers: VecDeque<Result<Page, Failure>>,
    states: Vec<String>,
    /// True if the connector has a synchronous task.
    has_setup: bool,
    /// True if the connector has no tasks.
    is_idle: bool,
    /// Number of received orders. The provider never responds to them.
    orders: usize,
}

#[derive(Clone, Default)]
struct Provider(Arc<Mutex<Script>>);

impl Connector for Provider {
    fn first_tasks(&self) -> Vec<NewTask> {
        if self.0.lock().expect("no panic").is_idle {
            return vec![];
        }
        let mut new_tasks = vec![NewTask::periodic("{\"name\":\"main\"}".to_owned())];
        if self.0.lock().expect("no panic").has_setup {
            let setup = NewTask::once("{\"name\":\"setup\"}".to_owned(), Restart::Never);
            new_tasks.insert(0, NewTask { is_synchronous: true, ..setup });
        }
        new_tasks
    }

    fn poll<'a>(&'a self, context: &'a TaskContext) -> ConnectorFuture<'a, Page> {
        let mut script = self.0.lock().expect("no panic");
        script.states.push(format!("{} {}", context.descriptor_member("name"), context.state));
        let answer = script.answers.pop_front().unwrap_or_else(|| Ok(Page::default()));
        Box::pin(async move { answer })
    }

    fn pay<'a>(&'a self, _: &'a Order) -> ConnectorFuture<'a, OrderResult> {
        self.0.lock().expect("no panic").orders += 1;
        Box::pin(std::future::pending())
    }
}

const PARAMETERS: &[Parameter] = &[
    optional("name", ParameterType::Text, "TEST"),
    optional("pollingPeriod", ParameterType::Duration, "1m0s"),
];

/// An engine on a store, with its provider and clock.
struct Fixture {
    store: Store,
    engine: Engine,
    worker: Worker,
    provider: Provider,
    clock: ManualClock,
    runtime: tokio::runtime::Runtime,
}

/// Returns an engine whose only connector is TEST, which `build` creates.
fn engine<C: Connector + 'static>(
    store: &Store,
    clock: &ManualClock,
    build: impl Fn() -> Arc<C> + Sync + 'static,
) -> Engine {
    let build = move |_: &Values, _: &ProviderAccess| Ok(build() as Arc<dyn Connector>);
    let definition = Definition {
        provider: "TEST",
        parameters: PARAMETERS,
        period: "pollingPeriod",
        slots: 2,
        capabilities: Capabilities { pays: true, reverses: true, transfers: true, bank_accounts: true },
        build: Box::leak(Box::new(build)),
        clean: None,
    };
    let definitions: &'static [Definition] = Box::leak(Box::new([definition]));
    let events = Events::new(vec!["test"], String::new(), &store.snapshot(), clock.now());
    let payments = Payments::new(store.clone(), Sealer::of_secret(b"test"), events);
    let access =
        ProviderAccess::new(OutboundPolicy::Any, std::collections::BTreeMap::new(), Duration::from_secs(30));
    Engine::new(Arc::new(payments), definitions, access, Arc::new(clock.clone()))
}

impl Fixture {
    fn new() -> Self {
        Self::on(Store::in_memory(), Provider::default(), ManualClock::default())
    }

    fn on(store: Store, provider: Provider, clock: ManualClock) -> Self {
        let built = provider.clone();
        let engine = engine(&store, &clock, move || Arc::new(built.clone()));
        let worker = Worker::start(engine.clone()).expect("a thread");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        Self { store, engine, worker, provider, clock, runtime }
    }

    fn answer(&self, answers: impl IntoIterator<Item = Result<Page, Failure>>) {
        self.provider.0.lock().expect("no panic").answers.extend(answers);
    }

    /// Configures an installation again with the default configuration.
    fn configure(&self, id: &ConnectorId, is_idle: bool) {
        self.provider.0.lock().expect("no panic").is_idle = is_idle;
        let definition = self.engine.definition("test").expect("the definition");
        self.runtime.block_on(self.engine.configure(definition, id, b"{}")).expect("configured");
    }

    fn install(&self) -> ConnectorId {
        let definition = self.engine.definition("test").expect("the definition");
        self.runtime.block_on(self.engine.install(definition, b"{}")).expect("installed")
    }

    /// Waits until a condition is true. `what` describes the condition if the wait fails.
    #[track_caller]
    fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        while !holds(self) {
            assert!(began.elapsed() < Duration::from_secs(20), "{what}");
            std::thread::yield_now();
        }
    }

    fn tasks(&self, id: &ConnectorId) -> Vec<Task> {
        task::all(&self.store.snapshot(), &id.installation).expect("tasks")
    }

    fn payments(&self) -> Vec<Payment> {
        let found = record::with_prefix::<Payment>(&self.store.snapshot(), None, &[]).expect("payments");
        found.into_iter().map(|found| found.value).collect()
    }

    fn asked(&self) -> usize {
        self.provider.0.lock().expect("no panic").states.len()
    }
}

fn payment(reference: &str, amount: i64) -> NewPayment {
    NewPayment {
        kind: PaymentType::PayIn,
        reference: reference.to_owned(),
        source: None,
        destination: None,
        status: PaymentStatus::Succeeded,
        initial_amount: Balance::from(amount),
        amount: Balance::from(amount),
        scheme: Scheme::Other,
        asset: "EUR/2".to_owned(),
        created_at: Timestamp::from_micros(1),
        raw: None,
        adjustments: vec![],
        metadata: Metadata::new(),
        revision: None,
    }
}

fn page(payments: &[NewPayment], state: &str, has_more: bool) -> Page {
    let mut page = Page { state: Some(state.to_owned()), has_more, ..Page::default() };
    page.batch.payments = payments.to_vec();
    page
}

#[test]
fn a_periodic_task_fetches_all_and_then_once_a_period() {
    let fixture = Fixture::new();
    fixture.answer([
        Ok(page(&[payment("a", 1), payment("b", 2), payment("a", 1)], "{\"at\":\"1\"}", true)),
        Ok(page(&[payment("b", 3)], "{\"at\":\"2\"}", false)),
    ]);
    let id = fixture.install();
    fixture.until("both pages are there", |fixture| fixture.clock.waiting() == 1);
    let amounts: Vec<_> = fixture.payments().iter().map(|payment| payment.amount.to_string()).collect();
    assert_eq!(amounts, ["1", "3"]);
    let [task] = &fixture.tasks(&id)[..] else { panic!("one task") };
    assert_eq!((task.status, &*task.state, &*task.error), (TaskStatus::Active, "{\"at\":\"2\"}", ""));
    fixture.clock.advance(Duration::from_secs(59));
    assert_eq!(fixture.asked(), 2);
    fixture.clock.advance(Duration::from_secs(1));
    fixture.until("it is asked again", |fixture| fixture.asked() == 3);
    let states = fixture.provider.0.lock().expect("no panic").states.clone();
    assert_eq!(states, ["main {}", "main {\"at\":\"1\"}", "main {\"at\":\"2\"}"]);
    fixture.worker.stop();
}

#[test]
fn a_failure_is_shown_and_tried_again_later() {
    let fixture = Fixture::new();
    fixture.answer([Err(Failure::retryable("down")), Ok(page(&[payment("a", 1)], "{}", false))]);
    let id = fixture.install();
    fixture.until("it waits", |fixture| fixture.clock.waiting() == 1);
    let task = fixture.tasks(&id).remove(0);
    assert_eq!((task.status, &*task.error), (TaskStatus::Active, "down"));
    // The first pause is between 1 s and 1.2 s.
    fixture.clock.advance(Duration::from_millis(1_200));
    fixture.until("it has recovered", |fixture| fixture.tasks(&id)[0].error.is_empty());
    assert_eq!(fixture.payments().len(), 1);
    fixture.worker.stop();
}

#[test]
fn a_failure_for_good_ends_the_task() {
    let fixture = Fixture::new();
    fixture.answer([Err(Failure::permanent("a bad configuration"))]);
    let id = fixture.install();
    fixture.until("it has failed", |fixture| fixture.tasks(&id)[0].status == TaskStatus::Failed);
    assert_eq!(fixture.tasks(&id)[0].error, "a bad configuration");
    fixture.worker.stop();
}

#[test]
fn children_run_once_for_each_start() {
    let fixture = Fixture::new();
    let child = |restart| {
        let start = NewTask::once("{\"name\":\"child\"}".to_owned(), restart);
        Ok(Page { children: vec![start.clone(), start], ..Page::default() })
    };
    fixture.answer([child(Restart::IfNotActive)]);
    let id = fixture.install();
    let is_done = |fixture: &Fixture| {
        fixture.tasks(&id).iter().any(|task| task.status == TaskStatus::Terminated)
            && fixture.clock.waiting() == 1
    };
    fixture.until("the child has ended", is_done);
    for (restart, asked) in [(Restart::IfNotActive, 4), (Restart::Never, 5)] {
        fixture.answer([child(restart)]);
        fixture.clock.advance(Duration::from_mins(1));
        fixture.until("all was asked", |fixture| fixture.asked() == asked && is_done(fixture));
    }
    assert_eq!(fixture.tasks(&id).len(), 2);
    fixture.worker.stop();
}

#[test]
fn tasks_go_on_where_they_were_after_a_restart() {
    let fixture = Fixture::new();
    fixture.answer([Ok(page(&[payment("a", 1)], "{\"at\":\"7\"}", false))]);
    fixture.install();
    fixture.until("the page is there", |fixture| fixture.clock.waiting() == 1);
    let Fixture { store, worker, provider, clock, .. } = fixture;
    worker.stop();
    let asked = provider.0.lock().expect("no panic").states.len();
    let fixture = Fixture::on(store, provider, clock);
    fixture.until("it is asked", |fixture| fixture.asked() > asked);
    let states = fixture.provider.0.lock().expect("no panic").states.clone();
    assert_eq!(states.last().map(String::as_str), Some("main {\"at\":\"7\"}"));
    fixture.worker.stop();
}

#[test]
fn removing_an_installation_removes_all_of_it() {
    let fixture = Fixture::new();
    fixture.answer([Ok(page(&[payment("a", 1)], "{}", false))]);
    let id = fixture.install();
    fixture.until("the page is there", |fixture| fixture.clock.waiting() == 1);
    fixture.runtime.block_on(fixture.engine.uninstall(&id)).expect("removed");
    assert_eq!((fixture.payments().len(), fixture.tasks(&id).len()), (0, 0));
    assert!(fixture.runtime.block_on(fixture.engine.uninstall(&id)).is_err());
    // The name can be used again.
    let other = fixture.install();
    assert_ne!(other, id);
    fixture.worker.stop();
}
