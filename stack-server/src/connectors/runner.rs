//! The tasks of one installation.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::blocking;
use crate::connectors::clock::Clock;
use crate::connectors::error::{TaskError, log_fault};
use crate::connectors::money;
use crate::connectors::transfers::MoneyMovement;
use crate::connectors::{Connector, Failure, NewTask, Order, OrderResult, Page, Restart, Retry, TaskContext};
use crate::http::error::ApiError;
use crate::limits::{PAY_TIMEOUT, TASK_PAUSE_MIN};
use crate::payments::enumerations::TaskStatus;
use crate::payments::ids::ConnectorId;
use crate::payments::ingest;
use crate::payments::record;
use crate::payments::service::Payments;
use crate::payments::task::{self, Schedule, Task};
use crate::uuid::Uuid;
use ledger_core::Timestamp;
use ledger_store::{DocumentChange, Expected, Snapshot};

/// Number of permits for running tasks. An installation never runs this many tasks at the same time.
const ALIVE_MAX: u32 = 1 << 24;

/// The parts that the tasks of all installations share.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) payments: Arc<Payments>,
    pub(super) clock: Arc<dyn Clock>,
    /// The runtime of the tasks.
    pub(super) runtime: Handle,
}

/// Runs the tasks of an installation.
pub(super) struct Runner {
    context: Context,
    installation: ConnectorId,
    pub(super) connector: Arc<dyn Connector>,
    period: Duration,
    /// Limits the number of tasks that fetch at the same time.
    slots: Semaphore,
    /// Each running task holds a permit. [`Runner::stop`] acquires all permits, so that it waits until no task runs.
    alive: Arc<Semaphore>,
    stop: watch::Sender<bool>,
    active: Mutex<BTreeSet<Uuid>>,
}

/// The result of a step of a task.
enum StepOutcome {
    /// The next step follows at once.
    Continue,
    /// The task has nothing left to do in this run.
    Done,
    /// The task has failed for good.
    Failed,
    /// The next step follows after this pause.
    Pause(Duration),
    Stopped,
}

impl Runner {
    pub(super) fn new(
        context: Context,
        installation: ConnectorId,
        connector: Arc<dyn Connector>,
        period: Duration,
        slots: usize,
    ) -> Self {
        Self {
            context,
            installation,
            connector,
            period,
            slots: Semaphore::new(slots),
            alive: Arc::new(Semaphore::new(ALIVE_MAX as usize)),
            stop: watch::Sender::new(false),
            active: Mutex::default(),
        }
    }

    /// Starts a task, unless it already runs or the runner stops.
    pub(super) fn start(self: &Arc<Self>, task: Task) {
        let Ok(alive) = self.alive.clone().try_acquire_owned() else { return };
        if *self.stop.borrow() || !self.lock().insert(task.id) {
            return;
        }
        self.context.runtime.spawn(self.clone().run(task, alive));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeSet<Uuid>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops all tasks, and waits until they have ended. Writes in progress complete.
    pub(super) async fn stop(&self) {
        self.stop.send_replace(true);
        // The semaphore is never closed. Keep the permits, so that no task can start any more.
        if let Ok(all) = self.alive.acquire_many(ALIVE_MAX).await {
            all.forget();
        }
    }

    /// Runs a task to its end while the caller waits. Fails after the first failed step.
    pub(super) async fn run_to_end(self: Arc<Self>, mut task: Task) -> Result<(), TaskError> {
        let mut next_page = None;
        loop {
            match self.step(&mut task, &mut 0, &mut next_page).await {
                StepOutcome::Continue => {}
                StepOutcome::Done => return Ok(()),
                StepOutcome::Failed | StepOutcome::Pause(_) => return Err(TaskError::Failed(task.error)),
                StepOutcome::Stopped => return Err(TaskError::Stopped),
            }
        }
    }

    async fn run(self: Arc<Self>, mut task: Task, _alive: OwnedSemaphorePermit) {
        let (mut failures, mut next_page) = (0, None);
        loop {
            if let Schedule::Once(Some(at)) = task.schedule
                && !self.wait_until(at).await
            {
                return;
            }
            let pause = match self.step(&mut task, &mut failures, &mut next_page).await {
                StepOutcome::Continue => continue,
                StepOutcome::Stopped => return,
                StepOutcome::Done if task.schedule == Schedule::Periodic => self.period,
                StepOutcome::Done | StepOutcome::Failed => match self.next_run(&task).await {
                    Some(again) => {
                        task = again;
                        continue;
                    }
                    None => return,
                },
                StepOutcome::Pause(pause) => pause,
            };
            if !self.sleep(pause).await {
                return;
            }
        }
    }

    /// Marks a task as ended in this runner. Returns the task if it was started again in the meantime.
    async fn next_run(&self, task: &Task) -> Option<Task> {
        self.lock().remove(&task.id);
        let (payments, installation, id) =
            (self.context.payments.clone(), self.installation.installation, task.id);
        let found = blocking::answer(move || Ok(task::find(&payments.snapshot(), &installation, &id)?)).await;
        let again = found.ok().flatten()?.value;
        // If the id is already present, another call of `start` runs the task.
        (again.status == TaskStatus::Active && self.lock().insert(task.id)).then_some(again)
    }

    /// Sleeps. Returns `false` if the runner stops meanwhile.
    async fn sleep(&self, pause: Duration) -> bool {
        let mut stopped = self.stop.subscribe();
        tokio::select! {
            () = self.context.clock.sleep(pause) => !*self.stop.borrow(),
            _ = stopped.wait_for(|stop| *stop) => false,
        }
    }

    async fn wait_until(&self, at: Timestamp) -> bool {
        let left = at.as_micros() - self.context.clock.now().as_micros();
        left <= 0 || self.sleep(Duration::from_micros(left.unsigned_abs())).await
    }

    /// Executes one step of a task: fetches and records a page, or moves money. Fetches the next page while it records
    /// one, and leaves it in `next_page` for the next step.
    async fn step(
        self: &Arc<Self>,
        task: &mut Task,
        failures: &mut u32,
        next_page: &mut Option<PageFetch>,
    ) -> StepOutcome {
        let mut stopped = self.stop.subscribe();
        if *stopped.borrow() {
            return StepOutcome::Stopped;
        }
        if let Some(movement) = MoneyMovement::of_task(task) {
            return self.move_money(task, movement, failures).await;
        }
        let fetching = next_page.take().unwrap_or_else(|| self.fetch(task, &task.state));
        let fetched = tokio::select! {
            biased;
            _ = stopped.wait_for(|stop| *stop) => return StepOutcome::Stopped,
            fetched = fetching.finish() => {
                fetched.unwrap_or_else(|_| Err(Failure::permanent("the connector failed; see the log")))
            }
        };
        let page = match fetched {
            Ok(page) => page,
            Err(failure) => return self.failed(task, failure, failures).await,
        };
        // A page that follows one that could not be recorded is dropped: both are fetched again.
        let next = page.state.as_ref().filter(|_| page.has_more).map(|state| self.fetch(task, state));
        match self.record(task, page).await {
            Ok(has_more) => {
                (*failures, *next_page) = (0, next);
                if has_more { StepOutcome::Continue } else { StepOutcome::Done }
            }
            Err(error) => self.failed(task, to_failure(error), failures).await,
        }
    }

    /// Sends the order of a task to the provider, and records the response.
    async fn move_money(&self, task: &mut Task, movement: MoneyMovement, failures: &mut u32) -> StepOutcome {
        let now = self.context.clock.now();
        let (payments, asked, asking) = (self.context.payments.clone(), movement.clone(), task.clone());
        let next = blocking::answer(move || asked.prepare(&payments, &asking, now)).await;
        let next = match next {
            Ok(money::Next::Ask(order)) => Ok(order),
            Ok(money::Next::Nothing) => return StepOutcome::Done,
            Err(error) if error.is_temporary() => {
                return self.failed(task, to_failure(error), failures).await;
            }
            // Refuse the order, and record the reason for its caller.
            Err(error) => Err(Failure::permanent(error.message)),
        };
        let came = match next {
            // Wait for the response even if the runner stops: the response must not be lost.
            Ok(order) => self.pay(*order).await,
            Err(refused) => Err(refused),
        };
        let (payments, noted, asking) = (self.context.payments.clone(), came.clone(), task.clone());
        let now = self.context.clock.now();
        let ends = blocking::answer(move || movement.note(&payments, &asking, &noted, now)).await;
        match (ends, came) {
            (Ok(true), _) => StepOutcome::Done,
            (Ok(false), Ok(_)) => {
                *failures = 0;
                StepOutcome::Pause(self.period)
            }
            (Ok(false), Err(failure)) => self.failed(task, failure, failures).await,
            (Err(error), _) => self.failed(task, to_failure(error), failures).await,
        }
    }

    /// Sends an order to the provider. Fails if there is no response within [`PAY_TIMEOUT`]. The next attempt has the
    /// same idempotency key.
    pub(super) async fn pay(&self, order: Order) -> Result<OrderResult, Failure> {
        let connector = self.connector.clone();
        // Use a separate runtime task, so that a panic ends only this call.
        let asking = AbortOnDrop(tokio::spawn(async move { connector.pay(&order).await }));
        tokio::select! {
            biased;
            came = asking.finish() => {
                came.unwrap_or_else(|_| Err(Failure::retryable("the connector failed; see the log")))
            }
            () = self.context.clock.sleep(PAY_TIMEOUT) => {
                Err(Failure::retryable(format!("the provider did not answer within {} s", PAY_TIMEOUT.as_secs())))
            }
        }
    }

    /// Begins to fetch the page of a task at a state.
    fn fetch(self: &Arc<Self>, task: &Task, state: &str) -> PageFetch {
        let (runner, descriptor, state) = (self.clone(), task.descriptor.clone(), state.to_owned());
        // Use a separate runtime task, so that a panic ends only this task of the installation.
        AbortOnDrop(tokio::spawn(async move {
            let _slot = runner.slots.acquire().await.expect("the semaphore is never closed");
            let (connector, now) = (runner.installation.clone(), runner.context.clock.now());
            runner.connector.poll(&TaskContext { connector, descriptor, state, now }).await
        }))
    }

    /// Records a page with the next state and the new tasks, and starts these tasks. Returns whether there is more to
    /// fetch.
    async fn record(self: &Arc<Self>, task: &mut Task, mut page: Page) -> Result<bool, ApiError> {
        let now = self.context.clock.now();
        let before = task.clone();
        let passed_over = page.batch.remove_oversized();
        let mut after = before.clone();
        after.state = page.state.take().unwrap_or(after.state);
        after.error = page.warning.take().or(passed_over).unwrap_or_default();
        let ends = !page.has_more && matches!(task.schedule, Schedule::Once(_));
        after.status = if ends { TaskStatus::Terminated } else { TaskStatus::Active };
        if after != before {
            after.updated_at = now;
        }
        let (payments, connector) = (self.context.payments.clone(), self.installation.clone());
        let recorded = after.clone();
        let (batch, children) = (page.batch, page.children);
        let begun = blocking::answer(move || {
            ingest::ingest(&payments, &connector, batch, now, |snapshot| {
                let mut changes = Vec::new();
                if recorded != before {
                    changes.push(record::put(&recorded, Expected::Anything));
                }
                let (started, more) = start_changes(snapshot, &connector, &children, now)?;
                changes.extend(more);
                Ok((changes, started))
            })
        })
        .await?;
        *task = after;
        for child in begun {
            self.start(child);
        }
        Ok(page.has_more)
    }

    /// Records why a step failed. Returns whether and when to try again.
    async fn failed(&self, task: &mut Task, failure: Failure, failures: &mut u32) -> StepOutcome {
        let mut ends = failure.retry == Retry::Never;
        let before = task.clone();
        task.error = failure.reason;
        if ends {
            task.status = TaskStatus::Failed;
        }
        if *task != before {
            task.updated_at = self.context.clock.now();
            let (payments, connector, recorded) =
                (self.context.payments.clone(), self.installation.clone(), task.clone());
            let noted = blocking::answer(move || {
                ingest::ingest(&payments, &connector, ingest::Batch::default(), recorded.updated_at, |_| {
                    Ok((vec![record::put(&recorded, Expected::Anything)], ()))
                })
            });
            if let Err(error) = noted.await {
                log_fault(&self.installation.provider, error.reason());
                // The stored task is still active, so it continues after a pause.
                *task = before;
                ends = false;
            }
        }
        if ends {
            return StepOutcome::Failed;
        }
        let growing = TASK_PAUSE_MIN * 2_u32.saturating_pow(*failures).min(1 << 16);
        *failures = failures.saturating_add(1);
        let pause = jittered(growing.min(self.period.max(TASK_PAUSE_MIN)));
        match failure.retry {
            Retry::After(asked) => StepOutcome::Pause(pause.max(asked)),
            _ => StepOutcome::Pause(pause),
        }
    }
}

/// Returns a pause that is up to a fifth longer, so that tasks do not all try again at the same time.
fn jittered(pause: Duration) -> Duration {
    let mut random = [0];
    // Without random bytes the pause remains unchanged.
    let _ = getrandom::fill(&mut random);
    pause + pause * u32::from(random[0]) / (5 * 256)
}

/// A page that is being fetched.
type PageFetch = AbortOnDrop<Result<Page, Failure>>;

/// A runtime task that is aborted when this handle is dropped.
struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> AbortOnDrop<T> {
    async fn finish(mut self) -> Result<T, tokio::task::JoinError> {
        (&mut self.0).await
    }
}

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Converts an error of this server to the failure of a task. The task shows the message for clients, and the log shows
/// the cause.
fn to_failure(error: ApiError) -> Failure {
    error.log_cause();
    Failure::retryable(error.message)
}

/// Returns the tasks to start, and the changes that record them. A task that already exists keeps its id, creation date
/// and state.
pub(super) fn start_changes(
    snapshot: &Snapshot,
    connector: &ConnectorId,
    new_tasks: &[NewTask],
    now: Timestamp,
) -> Result<(Vec<Task>, Vec<DocumentChange>), ApiError> {
    let (mut tasks, mut changes): (Vec<Task>, _) = (Vec::new(), Vec::new());
    for new_task in new_tasks {
        if tasks.iter().any(|task| task.descriptor == new_task.descriptor) {
            continue;
        }
        let found = task::find_by_descriptor(snapshot, &connector.installation, &new_task.descriptor)?;
        let (task, expected) = match found {
            None => {
                let id = Uuid::random().map_err(|error| ApiError::fault(&error.to_string()))?;
                // Each is a microsecond newer than the one before it, so that lists keep the order.
                let created_at = now.as_micros().saturating_add_unsigned(tasks.len() as u64);
                let created_at = Timestamp::from_micros(created_at);
                let task = Task::new(id, connector, &new_task.descriptor, new_task.schedule, created_at);
                (task, Expected::Absent)
            }
            Some(found) => {
                if new_task.restart == Restart::Never || found.value.status == TaskStatus::Active {
                    continue;
                }
                let (status, error) = (TaskStatus::Active, String::new());
                let again =
                    Task { status, error, schedule: new_task.schedule, updated_at: now, ..found.value };
                (again, Expected::Version(found.version))
            }
        };
        changes.push(record::put(&task, expected));
        tasks.push(task);
    }
    Ok((tasks, changes))
}

/// Returns the changes that stop tasks after a new configuration, periodic tasks first. They stop the periodic tasks
/// that the configuration does not contain. If it contains no periodic task, they also stop the tasks that run once.
/// Orders to move money continue.
pub(super) fn stop_changes(
    snapshot: &Snapshot,
    connector: &ConnectorId,
    new_tasks: &[NewTask],
    now: Timestamp,
) -> Result<Vec<DocumentChange>, ApiError> {
    let is_begun = |task: &Task| new_tasks.iter().any(|new_task| new_task.descriptor == task.descriptor);
    let fetches = new_tasks.iter().any(|new_task| new_task.schedule == Schedule::Periodic);
    let stops = |task: &Task| {
        task.status == TaskStatus::Active
            && !is_begun(task)
            && (task.schedule == Schedule::Periodic || !fetches)
            && MoneyMovement::of_task(task).is_none()
    };
    let mut tasks = task::all(snapshot, &connector.installation)?;
    tasks.retain(stops);
    tasks.sort_by_key(|task| task.schedule != Schedule::Periodic);
    let stopped = tasks.into_iter().map(|task| Task { status: TaskStatus::Stopped, updated_at: now, ..task });
    Ok(stopped.map(|task| record::put(&task, Expected::Anything)).collect())
}
