//! Tests of the engine with an in-memory provider and a manual clock.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ledger_core::{Balance, Timestamp};
use ledger_store::Store;

use crate::connectors::clock::Clock as _;
use crate::connectors::clock::manual::ManualClock;
use crate::connectors::config::{Kind, Parameter, Values, optional};
use crate::connectors::definition::{Abilities, Definition};
use crate::connectors::engine::{Engine, Worker};
use crate::connectors::http::Tools;
use crate::connectors::{Connector, Failure, Order, Page, Paid, Pending, Restart, Start, TaskContext};
use crate::outbound::Outbound;
use crate::payments::codec::Metadata;
use crate::payments::event::Events;
use crate::payments::ids::ConnectorId;
use crate::payments::payment::{NewPayment, Payment};
use crate::payments::record;
use crate::payments::service::Payments;
use crate::payments::task::{self, Task};
use crate::payments::words::{PaymentStatus, PaymentType, Scheme, TaskStatus};
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
    /// Whether the connector has a synchronous task.
    has_setup: bool,
    /// Whether the connector has no tasks.
    is_idle: bool,
    /// Number of received orders. The provider never responds to them.
    orders: usize,
}

#[derive(Clone, Default)]
struct Provider(Arc<Mutex<Script>>);

impl Connector for Provider {
    fn first_tasks(&self) -> Vec<Start> {
        if self.0.lock().expect("no panic").is_idle {
            return vec![];
        }
        let mut starts = vec![Start::periodic("{\"name\":\"main\"}".to_owned())];
        if self.0.lock().expect("no panic").has_setup {
            let setup = Start::once("{\"name\":\"setup\"}".to_owned(), Restart::Never);
            starts.insert(0, Start { is_synchronous: true, ..setup });
        }
        starts
    }

    fn poll<'a>(&'a self, context: &'a TaskContext) -> Pending<'a, Page> {
        let mut script = self.0.lock().expect("no panic");
        script.states.push(format!("{} {}", context.descriptor_member("name"), context.state));
        let answer = script.answers.pop_front().unwrap_or_else(|| Ok(Page::default()));
        Box::pin(async move { answer })
    }

    fn pay<'a>(&'a self, _: &'a Order) -> Pending<'a, Paid> {
        self.0.lock().expect("no panic").orders += 1;
        Box::pin(std::future::pending())
    }
}

const PARAMETERS: &[Parameter] =
    &[optional("name", Kind::Text, "TEST"), optional("pollingPeriod", Kind::Duration, "1m0s")];

/// An engine on a store, with its provider and clock.
struct Bench {
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
    let build = move |_: &Values, _: &Tools| Ok(build() as Arc<dyn Connector>);
    let definition = Definition {
        provider: "TEST",
        parameters: PARAMETERS,
        period: "pollingPeriod",
        slots: 2,
        abilities: Abilities { pays: true, reverses: true, transfers: true, bank_accounts: true },
        build: Box::leak(Box::new(build)),
        clean: None,
    };
    let definitions: &'static [Definition] = Box::leak(Box::new([definition]));
    let events = Events::new(vec!["test"], String::new(), &store.snapshot(), clock.now());
    let payments = Payments::new(store.clone(), Sealer::of_secret(b"test"), events);
    let tools = Tools::new(Outbound::Any, std::collections::BTreeMap::new(), Duration::from_secs(30));
    Engine::new(Arc::new(payments), definitions, tools, Arc::new(clock.clone()))
}

impl Bench {
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
    let bench = Bench::new();
    bench.answer([
        Ok(page(&[payment("a", 1), payment("b", 2), payment("a", 1)], "{\"at\":\"1\"}", true)),
        Ok(page(&[payment("b", 3)], "{\"at\":\"2\"}", false)),
    ]);
    let id = bench.install();
    bench.until("both pages are there", |bench| bench.clock.waiting() == 1);
    let amounts: Vec<_> = bench.payments().iter().map(|payment| payment.amount.to_string()).collect();
    assert_eq!(amounts, ["1", "3"]);
    let [task] = &bench.tasks(&id)[..] else { panic!("one task") };
    assert_eq!((task.status, &*task.state, &*task.error), (TaskStatus::Active, "{\"at\":\"2\"}", ""));
    bench.clock.advance(Duration::from_secs(59));
    assert_eq!(bench.asked(), 2);
    bench.clock.advance(Duration::from_secs(1));
    bench.until("it is asked again", |bench| bench.asked() == 3);
    let states = bench.provider.0.lock().expect("no panic").states.clone();
    assert_eq!(states, ["main {}", "main {\"at\":\"1\"}", "main {\"at\":\"2\"}"]);
    bench.worker.stop();
}

#[test]
fn a_failure_is_shown_and_tried_again_later() {
    let bench = Bench::new();
    bench.answer([Err(Failure::later("down")), Ok(page(&[payment("a", 1)], "{}", false))]);
    let id = bench.install();
    bench.until("it waits", |bench| bench.clock.waiting() == 1);
    let task = bench.tasks(&id).remove(0);
    assert_eq!((task.status, &*task.error), (TaskStatus::Active, "down"));
    // The first pause is between 1 s and 1.2 s.
    bench.clock.advance(Duration::from_millis(1_200));
    bench.until("it has recovered", |bench| bench.tasks(&id)[0].error.is_empty());
    assert_eq!(bench.payments().len(), 1);
    bench.worker.stop();
}

#[test]
fn a_failure_for_good_ends_the_task() {
    let bench = Bench::new();
    bench.answer([Err(Failure::final_("a bad configuration"))]);
    let id = bench.install();
    bench.until("it has failed", |bench| bench.tasks(&id)[0].status == TaskStatus::Failed);
    assert_eq!(bench.tasks(&id)[0].error, "a bad configuration");
    bench.worker.stop();
}

#[test]
fn children_run_once_for_each_start() {
    let bench = Bench::new();
    let child = |restart| {
        let start = Start::once("{\"name\":\"child\"}".to_owned(), restart);
        Ok(Page { children: vec![start.clone(), start], ..Page::default() })
    };
    bench.answer([child(Restart::IfNotActive)]);
    let id = bench.install();
    let is_done = |bench: &Bench| {
        bench.tasks(&id).iter().any(|task| task.status == TaskStatus::Terminated)
            && bench.clock.waiting() == 1
    };
    bench.until("the child has ended", is_done);
    for (restart, asked) in [(Restart::IfNotActive, 4), (Restart::Never, 5)] {
        bench.answer([child(restart)]);
        bench.clock.advance(Duration::from_mins(1));
        bench.until("all was asked", |bench| bench.asked() == asked && is_done(bench));
    }
    assert_eq!(bench.tasks(&id).len(), 2);
    bench.worker.stop();
}

#[test]
fn tasks_go_on_where_they_were_after_a_restart() {
    let bench = Bench::new();
    bench.answer([Ok(page(&[payment("a", 1)], "{\"at\":\"7\"}", false))]);
    bench.install();
    bench.until("the page is there", |bench| bench.clock.waiting() == 1);
    let Bench { store, worker, provider, clock, .. } = bench;
    worker.stop();
    let asked = provider.0.lock().expect("no panic").states.len();
    let bench = Bench::on(store, provider, clock);
    bench.until("it is asked", |bench| bench.asked() > asked);
    let states = bench.provider.0.lock().expect("no panic").states.clone();
    assert_eq!(states.last().map(String::as_str), Some("main {\"at\":\"7\"}"));
    bench.worker.stop();
}

#[test]
fn removing_an_installation_removes_all_of_it() {
    let bench = Bench::new();
    bench.answer([Ok(page(&[payment("a", 1)], "{}", false))]);
    let id = bench.install();
    bench.until("the page is there", |bench| bench.clock.waiting() == 1);
    bench.runtime.block_on(bench.engine.uninstall(&id)).expect("removed");
    assert_eq!((bench.payments().len(), bench.tasks(&id).len()), (0, 0));
    assert!(bench.runtime.block_on(bench.engine.uninstall(&id)).is_err());
    // The name can be used again.
    let other = bench.install();
    assert_ne!(other, id);
    bench.worker.stop();
}
