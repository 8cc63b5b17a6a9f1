//! A provider with a list of payments, and a server on a simulated disk that fetches them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ledger_store::Options;
use ledger_testkit::{Disk, SimDisk};

use super::*;
use crate::connectors::OrderState;
use crate::http::error::ApiError;
use crate::payments::installation::{self, Installation};
use crate::payments::payment::Adjustment;
use crate::payments::record::Record as _;

/// The payments of the provider, and the orders that it has received.
#[derive(Default)]
pub(crate) struct Book {
    /// All amounts of each payment, with the current one last.
    pub(crate) amounts: Vec<Vec<i64>>,
    /// True if each run reads all payments again. Otherwise it continues after the known ones.
    pub(crate) walks_again: bool,
    /// True if the connector has no tasks.
    pub(crate) is_idle: bool,
    /// The orders to move money, by idempotency key. A repeated order gets the first response again.
    pub(crate) orders: BTreeMap<String, OrderState>,
}

/// The description of a transfer that the provider refuses the first time.
pub(crate) const REFUSED_ONCE: &str = "refused once";
/// The description of a transfer that takes the provider some time.
pub(crate) const SLOW: &str = "slow";

impl Book {
    /// Executes an order. The id of a transfer is its idempotency key.
    fn execute(&mut self, order: &Order) -> OrderResult {
        let (transfer, is_payment) = match order {
            Order::Send(transfer) => (transfer, true),
            Order::Reverse { transfer, .. } => (transfer, false),
            Order::GetState { provider_id, .. } => {
                self.orders.insert(provider_id.clone(), OrderState::Done);
                return order_result(OrderState::Done, provider_id, true);
            }
        };
        let key = &transfer.idempotency_key;
        if let Some(outcome) = self.orders.get(key) {
            return order_result(outcome.clone(), key, is_payment);
        }
        let outcome = match transfer.description.as_str() {
            SLOW => OrderState::InProgress,
            REFUSED_ONCE if self.results_of(&attempts_of(key)).is_empty() => {
                OrderState::Failed("no funds".to_owned())
            }
            _ => OrderState::Done,
        };
        self.orders.insert(key.clone(), outcome.clone());
        order_result(outcome, key, is_payment)
    }

    /// Returns the results of the orders whose idempotency keys begin with this text.
    pub(crate) fn results_of(&self, beginning: &str) -> Vec<OrderState> {
        let orders = self.orders.iter().filter(|(key, _)| key.starts_with(beginning));
        orders.map(|(_, outcome)| outcome.clone()).collect()
    }

    /// Returns a payment with its current amount, and with an adjustment for each earlier amount.
    fn payment(&self, number: usize) -> NewPayment {
        let amounts = &self.amounts[number];
        let adjustments = (1..amounts.len()).map(|change| Adjustment {
            reference: format!("{number}-{change}"),
            created_at: Timestamp::from_micros(change as i64),
            status: PaymentStatus::Refunded,
            amount: Some(Balance::from(amounts[change - 1] - amounts[change])),
            raw: "{}".to_owned(),
        });
        let revision = Some(Timestamp::from_micros(amounts.len() as i64));
        let adjustments = adjustments.collect();
        NewPayment { adjustments, revision, ..payment(&number.to_string(), amounts[amounts.len() - 1]) }
    }
}

/// Returns the common beginning of the idempotency keys of all attempts of an order.
fn attempts_of(key: &str) -> String {
    key.rsplit_once('_').map_or_else(|| key.to_owned(), |(reference, _)| format!("{reference}_"))
}

/// Returns a response of the provider. Only an executed payment is listed as a payment later.
fn order_result(outcome: OrderState, id: &str, is_payment: bool) -> OrderResult {
    let is_listed = is_payment && outcome == OrderState::Done;
    let payment = is_listed.then(|| (PaymentType::Transfer, id.to_owned()));
    OrderResult { outcome, payment, provider_id: id.to_owned(), raw: String::new() }
}

/// A provider with two new payments per page. Each page also repeats the last payment of the previous page.
#[derive(Clone, Default)]
pub(crate) struct Pages(pub(crate) Arc<Mutex<Book>>);

impl Connector for Pages {
    fn first_tasks(&self) -> Vec<NewTask> {
        let is_idle = self.0.lock().expect("no panic").is_idle;
        let main = NewTask::periodic("{\"name\":\"main\"}".to_owned());
        if is_idle { vec![] } else { vec![main] }
    }

    fn poll<'a>(&'a self, context: &'a TaskContext) -> ConnectorFuture<'a, Page> {
        let book = self.0.lock().expect("no panic");
        let at: usize = context.state_member("at").parse().unwrap_or(0);
        let end = (at + 2).min(book.amounts.len());
        let payments: Vec<_> = (at.saturating_sub(1)..end).map(|number| book.payment(number)).collect();
        let has_more = end < book.amounts.len();
        let next = if has_more || !book.walks_again { end } else { 0 };
        let answer = page(&payments, &format!("{{\"at\":\"{next}\"}}"), has_more);
        Box::pin(async move { Ok(answer) })
    }

    fn pay<'a>(&'a self, order: &'a Order) -> ConnectorFuture<'a, OrderResult> {
        let paid = self.0.lock().expect("no panic").execute(order);
        Box::pin(async move { Ok(paid) })
    }
}

/// A server on a disk.
pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) engine: Engine,
    pub(crate) clock: ManualClock,
    pub(crate) runtime: tokio::runtime::Runtime,
    /// The thread that runs the tasks; `None` if they do not run.
    worker: Option<Worker>,
    disk: SimDisk,
}

impl World {
    pub(crate) fn start(disk: &SimDisk, pages: &Pages) -> Self {
        let mut world = Self::at_rest(disk, pages);
        world.worker = Some(Worker::start(world.engine.clone()).expect("a thread"));
        world
    }

    /// Opens a server that runs no tasks and does not complete removals.
    pub(crate) fn at_rest(disk: &SimDisk, pages: &Pages) -> Self {
        let opened: Arc<dyn Disk> = Arc::new(disk.clone());
        let store = Store::open_on_disk(opened, Path::new("data"), &Options::default()).expect("it opens");
        let clock = ManualClock::default();
        let built = pages.clone();
        let engine = engine(&store, &clock, move || Arc::new(built.clone()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        Self { store, engine, clock, runtime, worker: None, disk: disk.clone() }
    }

    pub(crate) fn stop(self) {
        if let Some(worker) = self.worker {
            worker.stop();
        }
        // Closing fails if the disk has no power.
        let _ = self.store.close();
    }

    /// Returns whether the power of the disk has failed.
    pub(crate) fn power_is_off(&self) -> bool {
        self.disk.power_is_off()
    }

    /// Runs a change of an installation. Returns `None` if the server did not acknowledge it.
    pub(crate) fn run<T>(&self, change: impl Future<Output = Result<T, ApiError>>) -> Option<T> {
        self.runtime.block_on(change).ok()
    }

    pub(crate) fn install(&self, name: &str) -> Option<ConnectorId> {
        let definition = self.engine.definition("test").expect("the definition");
        self.run(self.engine.install(definition, format!("{{\"name\":{name:?}}}").as_bytes()))
    }

    /// Waits until this number of tasks waits for the next period. Returns `None` if the power fails first.
    #[track_caller]
    pub(crate) fn settle(&self, tasks: usize) -> Option<()> {
        let began = Instant::now();
        while !self.disk.power_is_off() {
            if self.clock.waiting() == tasks {
                return Some(());
            }
            assert!(began.elapsed() < Duration::from_secs(20), "{} of {tasks} wait", self.clock.waiting());
            std::thread::yield_now();
        }
        None
    }

    /// Advances the clock by one period, and waits until the tasks have run.
    #[track_caller]
    pub(crate) fn poll(&self, tasks: usize) -> Option<()> {
        self.clock.advance(Duration::from_mins(1));
        self.settle(tasks)
    }

    /// Returns the installations that clients see.
    pub(crate) fn installations(&self) -> Vec<Installation> {
        let mut all = installation::all_even_removing(&self.store.snapshot()).expect("installations");
        all.retain(|one| !one.is_being_removed);
        let names: BTreeSet<_> = all.iter().map(|one| one.name.clone()).collect();
        assert_eq!(names.len(), all.len(), "two installations have one name");
        all
    }

    pub(crate) fn tasks(&self, id: &ConnectorId) -> Vec<Task> {
        task::all(&self.store.snapshot(), &id.installation).expect("tasks")
    }

    /// Returns all amounts of each payment of an installation, by the number of the payment.
    pub(crate) fn payments(&self, id: &ConnectorId) -> BTreeMap<usize, Vec<i64>> {
        let prefix = id.installation.bytes();
        let found = record::with_prefix::<Payment>(&self.store.snapshot(), None, prefix).expect("payments");
        let amount = |balance: &Balance| balance.to_string().parse::<i64>().expect("a small amount");
        let read = |payment: Payment| {
            let mut amounts = vec![amount(&payment.amount)];
            let mut changes = payment.adjustments;
            changes.sort_by_key(|change| change.created_at);
            for change in changes.iter().rev() {
                let less = change.amount.as_ref().map_or(0, amount);
                amounts.insert(0, amounts[0] + less);
            }
            (payment.id.reference.parse().expect("a number"), amounts)
        };
        found.into_iter().map(|found| read(found.value)).collect()
    }

    /// Checks that all stored records belong to installations that clients see.
    pub(crate) fn assert_no_leftovers(&self, place: &str) {
        let snapshot = self.store.snapshot();
        let all = installation::all_even_removing(&snapshot).expect("installations");
        let known: BTreeSet<_> = self.installations().iter().map(|one| one.id.installation).collect();
        let leaving = all.iter().filter(|one| one.is_being_removed).count();
        assert_eq!(leaving, 0, "{place}: an installation is still being removed");
        let payments = record::with_prefix::<Payment>(&snapshot, None, &[]).expect("payments");
        let tasks = record::with_prefix::<Task>(&snapshot, None, &[]).expect("tasks");
        let keys =
            payments.iter().map(|found| found.value.key()).chain(tasks.iter().map(|found| found.value.key()));
        for key in keys {
            let owner = key.first_chunk::<16>().expect("a key begins with an installation");
            assert!(
                known.iter().any(|one| one.bytes() == owner),
                "{place}: a record of a removed installation is left"
            );
        }
    }
}
