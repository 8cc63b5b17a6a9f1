//! The first stage of a write: takes jobs from the queue and decides them.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{ArcMutexGuard, Condvar, Mutex, MutexGuard, RawMutex};

use super::Engine;
use super::commit::refuse;
use super::handover::DecidedBatch;
use super::panics::StopOnPanic;
use super::pending::Pending;
use super::queue::QueueError;
use super::work::{Callback, Job, RejectedWork, WorkItem};
use super::{commit, decide, flushes, panics};
use crate::cause::Cause;
use crate::error::WriteError;
use crate::free_space::FreeSpace;
use crate::projection::MemtableBuilder;
use crate::view::LedgerHead;
use crate::writer::{Batch, State};

/// A batch accepts no more commands once it holds this many bytes of them.
pub(super) const BATCH_BYTES: usize = 2 << 20;
/// How long to wait for the previous commit before more jobs are added to the batch. On a slow disk, larger batches
/// share the cost of an append.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(2);

/// The committer lock: the right to commit next.
type CommitGuard = ArcMutexGuard<RawMutex, ()>;

/// Queues work for the writer thread. The thread that commits the work gives the answer, exactly once. If the
/// queue is full, the answer is [`WriteError::Busy`], at once.
pub(crate) fn submit(engine: &Engine, work: WorkItem, bytes: usize) {
    push(engine, Job { work, bytes }, false);
    engine.queue.wake_writer();
}

/// Queues work, waiting if the queue is full. If no other thread is deciding, decides and commits it on the
/// calling thread, which saves a switch of threads. Otherwise the other threads do.
pub(crate) fn submit_here(engine: &Engine, work: WorkItem, bytes: usize) {
    push(engine, Job { work, bytes }, true);
    match engine.decider.try_lock() {
        Some(state) => lead(engine, state, false),
        None => engine.queue.wake_writer(),
    }
}

/// Queues work like [`submit_here`], and waits for its answer. The kind of the work determines the type of the answer.
pub(crate) fn run<T: Send + 'static>(
    engine: &Engine,
    bytes: usize,
    work: impl FnOnce(Callback<T>) -> WorkItem,
) -> Result<T, WriteError> {
    let slot = Arc::new(Slot::default());
    let filled = slot.clone();
    let done = move |answer| {
        *filled.answer.lock() = Some(answer);
        filled.ready.notify_one();
    };
    submit_here(engine, work(Callback::new(done)), bytes);
    let mut answer = slot.answer.lock();
    loop {
        if let Some(answer) = answer.take() {
            return answer;
        }
        slot.ready.wait(&mut answer);
    }
}

/// The slot in which a caller waits for an answer.
struct Slot<T> {
    answer: Mutex<Option<Result<T, WriteError>>>,
    ready: Condvar,
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self { answer: Mutex::new(None), ready: Condvar::new() }
    }
}

fn push(engine: &Engine, job: Job, wait: bool) {
    match engine.queue.with_capacity_for(job.bytes, wait) {
        Ok(mut waiting) => waiting.push(job),
        Err(QueueError::Full) => job.work.refuse(WriteError::Busy),
        Err(QueueError::Closed) => {
            let reason = engine.stopped().unwrap_or_else(|| "it is closing".to_owned());
            job.work.refuse(WriteError::Stopped { reason });
        }
    }
}

/// Runs the writer thread until the queue is closed and empty.
pub(crate) fn write_loop(engine: &Engine) {
    while engine.queue.wait_for_jobs() {
        panics::catch_panic(engine, |engine| lead(engine, engine.decider.lock(), true));
    }
}

/// Takes jobs, decides them, makes them durable, publishes them, and answers. When the queue is long, the writer
/// thread leaves the second stage to the committer thread.
fn lead(engine: &Engine, mut state: MutexGuard<'_, State>, is_writer: bool) {
    // Dropped before the state's lock: after a panic, no thread may decide on a half-changed state.
    let _stopping = StopOnPanic::new(engine);
    // When the queue is short, wait for the previous commit first and then take everything that has arrived.
    // Deciding early would gain nothing, and later arrivals would need a commit of their own.
    let is_short = engine.queue.is_short();
    let mut turn = is_short.then(|| engine.committer.lock_arc());
    let jobs = engine.queue.take_part();
    if jobs.is_empty() {
        return;
    }
    if let Some(reason) = engine.stopped() {
        drop((turn, state));
        for job in jobs {
            job.work.refuse(WriteError::Stopped { reason: reason.clone() });
        }
        return;
    }
    let (jobs, mut turned_away) = reject_work(engine, jobs, &state);
    if jobs.is_empty() {
        drop((turn, state));
        return refuse(turned_away);
    }
    flushes::make_room(engine, &mut state);
    let (batch, answers) = decide_jobs(engine, &mut state, jobs, &mut turn, &mut turned_away);
    let heads: Vec<(u32, LedgerHead)> =
        batch.ledgers.iter().map(|ledger| (*ledger, state.ledgers[*ledger].head.clone())).collect();
    let turn = turn.unwrap_or_else(|| engine.committer.lock_arc());
    drop(state);
    let decided = DecidedBatch { turn, batch, heads, answers, turned_away };
    // When the queue is long, keep this thread deciding and let the committer thread do the rest. The writer's
    // tables stay hot in this core's cache.
    if is_writer && !is_short {
        commit::hand_over(engine, decided);
    } else {
        commit::finish(engine, decided);
    }
}

/// Decides jobs, and further ones that arrive while the previous batch is being made durable.
fn decide_jobs(
    engine: &Engine,
    state: &mut State,
    mut jobs: Vec<Job>,
    turn: &mut Option<CommitGuard>,
    turned_away: &mut Vec<RejectedWork>,
) -> (Batch, Vec<Pending>) {
    let now = engine.clock.now();
    let mut commands = jobs.iter().map(|job| job.work.commands()).sum();
    let rows = MemtableBuilder::with_capacity_for(commands, state.last_rows, state.last_commands);
    let mut batch = Batch::new(state.next, state.flush, rows, engine.hashes.feed.take_buffer());
    let mut answers = Vec::with_capacity(jobs.len());
    loop {
        for job in jobs {
            batch.queued_bytes += job.bytes;
            answers.push(decide::decide_work(engine, state, job.work, now, &mut batch, turn.is_some()));
        }
        // While a slow disk makes the previous batch durable, add the jobs that arrived meanwhile to this one.
        *turn = turn.take().or_else(|| engine.committer.try_lock_arc_for(FLUSH_TIMEOUT));
        if turn.is_some() || batch.queued_bytes >= BATCH_BYTES {
            break;
        }
        let away;
        (jobs, away) = reject_work(engine, engine.queue.take_part(), state);
        turned_away.extend(away);
        if jobs.is_empty() {
            break;
        }
        commands += jobs.iter().map(|job| job.work.commands()).sum::<usize>();
    }
    #[cfg(debug_assertions)]
    if engine.stopped().is_none() {
        let decided = state.next.get() - batch.first.get();
        assert_eq!(batch.chunks.entries(), decided, "the batch holds the entries that the state has");
    }
    (state.last_rows, state.last_commands) = (batch.rows.mark(), commands);
    (batch, answers)
}

/// Splits jobs into those that can be decided and those for which disk or memory is short.
fn reject_work(engine: &Engine, jobs: Vec<Job>, state: &State) -> (Vec<Job>, Vec<RejectedWork>) {
    let (why, may_stay): (_, fn(&WorkItem) -> bool) = match flushes::lack_of_memory(engine, state) {
        Some(why) => (why, WorkItem::writes_nothing),
        None => match disk_space_error(engine) {
            Some(why) => (why, WorkItem::is_allowed_on_full_disk),
            None => return (jobs, Vec::new()),
        },
    };
    let (kept, away): (Vec<Job>, Vec<Job>) = jobs.into_iter().partition(|job| may_stay(&job.work));
    (kept, away.into_iter().map(|job| (job.work, why.clone())).collect())
}

/// Returns the reason to refuse writes for lack of disk space, if there is one. The caller asks before it decides
/// anything, so refused work has no effect.
fn disk_space_error(engine: &Engine) -> Option<WriteError> {
    if engine.free_space.as_ref().is_some_and(FreeSpace::is_low) {
        return Some(WriteError::DiskNearlyFull);
    }
    let error = engine.journal.make_room().err()?;
    Some(if error.is_out_of_space() {
        WriteError::DiskNearlyFull
    } else {
        WriteError::Storage(Cause::of(error))
    })
}
