//! A few threads that run reads for callers who must not block, and the futures of their answers.

use std::any::Any;
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

/// Maximum number of threads. More reads wait for their turn, so that they do not starve the threads that write.
const THREADS_MAX: usize = 8;

/// Maximum number of reads in the queue. The futures of further reads hold them until there is capacity, so that
/// callers who ask faster than the store reads do not fill its memory.
const QUEUE_MAX: usize = 1024;

/// Time without work after which a thread ends.
const IDLE_TIME: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

thread_local! {
    /// True on the threads of a pool.
    static IS_READER: Cell<bool> = const { Cell::new(false) };
}

/// Lets other threads run, if this is a thread of a pool. Long reads call it between two pieces of work. Otherwise, with
/// as many busy readers as processors, the system lets each of them work for milliseconds before the threads of the
/// caller's runtime can handle an answer or a timer.
pub(crate) fn give_way() {
    if IS_READER.get() {
        std::thread::yield_now();
    }
}

/// A pool of threads. They are started when they are needed.
pub(crate) struct Readers {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// Notified when there is a job or the pool is closed.
    changed: Condvar,
    threads_max: usize,
    queue_max: usize,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// The callers that wait for capacity in the queue, in the order of their calls.
    callers: BTreeMap<u64, Waker>,
    /// The number of the next caller that has to wait.
    next_call: u64,
    threads: usize,
    idle: usize,
    is_closed: bool,
}

impl Default for Readers {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self::new(cores.clamp(2, THREADS_MAX), QUEUE_MAX)
    }
}

impl fmt::Debug for Readers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readers").field("threads_max", &self.shared.threads_max).finish_non_exhaustive()
    }
}

impl Readers {
    fn new(threads_max: usize, queue_max: usize) -> Self {
        let (state, changed) = (Mutex::default(), Condvar::new());
        Self { shared: Arc::new(Shared { state, changed, threads_max, queue_max }) }
    }

    /// Runs a read on a thread of its own, which ends with it, and returns a future of its answer.
    pub(crate) fn run_alone<T: Send + 'static>(read: impl FnOnce() -> T + Send + 'static) -> ReadFuture<T> {
        // A closed pool still works off its queue.
        Self::new(1, 1).run(read)
    }

    /// Runs a read on one of the threads, and returns a future of its answer.
    pub(crate) fn run<T: Send + 'static>(&self, read: impl FnOnce() -> T + Send + 'static) -> ReadFuture<T> {
        let slot = Arc::new(Mutex::new(Slot { answer: None, waker: None, is_abandoned: false }));
        let filled = slot.clone();
        let queued = self.shared.add(Box::new(move || {
            if filled.lock().is_abandoned {
                return;
            }
            let answer = catch_unwind(AssertUnwindSafe(read));
            let waker = {
                let mut slot = filled.lock();
                slot.answer = Some(answer);
                slot.waker.take()
            };
            if let Some(waker) = waker {
                waker.wake();
            }
        }));
        ReadFuture { slot, unqueued: queued.err() }
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.shared.state.lock().is_closed = true;
        self.shared.changed.notify_all();
    }
}

/// A read that is not queued yet.
struct Unqueued {
    job: Job,
    /// The number of its caller among the waiting ones.
    call: u64,
    shared: Arc<Shared>,
}

impl Unqueued {
    /// Queues the read if there is capacity now. Otherwise registers the caller to be woken.
    fn retry(self, context: &Context<'_>) -> Option<Self> {
        let mut state = self.shared.state.lock();
        if state.jobs.len() >= self.shared.queue_max {
            state.callers.insert(self.call, context.waker().clone());
            drop(state);
            return Some(self);
        }
        state.callers.remove(&self.call);
        self.shared.push(state, self.job);
        None
    }
}

impl Shared {
    /// Queues a job, unless the queue is full or earlier callers are waiting.
    fn add(self: &Arc<Self>, job: Job) -> Result<(), Unqueued> {
        let mut state = self.state.lock();
        if state.jobs.len() < self.queue_max && state.callers.is_empty() {
            self.push(state, job);
            return Ok(());
        }
        let call = state.next_call;
        state.next_call += 1;
        Err(Unqueued { job, call, shared: self.clone() })
    }

    /// Queues a job, and ensures that a thread runs it.
    fn push(self: &Arc<Self>, mut state: MutexGuard<'_, State>, job: Job) {
        state.jobs.push_back(job);
        if state.jobs.len() <= state.idle || state.threads >= self.threads_max {
            drop(state);
            self.changed.notify_one();
            return;
        }
        state.threads += 1;
        drop(state);
        let shared = self.clone();
        let thread = std::thread::Builder::new().name("ledger-reader".to_owned());
        if thread.spawn(move || shared.work()).is_err() {
            // If no thread could be started, run the job here.
            self.state.lock().threads -= 1;
            self.work_off();
        }
    }

    /// Runs jobs until the pool is closed or there was no job for some time.
    fn work(&self) {
        IS_READER.set(true);
        loop {
            self.work_off();
            let mut state = self.state.lock();
            if state.jobs.is_empty() && !state.is_closed {
                state.idle += 1;
                self.changed.wait_for(&mut state, IDLE_TIME);
                state.idle -= 1;
            }
            if state.jobs.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }

    /// Runs the queued jobs.
    fn work_off(&self) {
        while let Some(job) = self.take() {
            job();
        }
    }

    /// Takes the next job, and wakes the caller that has waited longest. If that caller is not polled again, the
    /// others are delayed until the queue is empty; then all of them are woken.
    fn take(&self) -> Option<Job> {
        let mut state = self.state.lock();
        let job = state.jobs.pop_front();
        let first = state.callers.pop_first();
        let rest = if state.jobs.is_empty() { std::mem::take(&mut state.callers) } else { BTreeMap::new() };
        drop(state);
        for (_, caller) in first.into_iter().chain(rest) {
            caller.wake();
        }
        job
    }
}

/// A read, or other long work, that runs on a thread of the store. It needs no particular executor.
///
/// The call that returned the future has queued the read, which answers from the state at the time of that call. At
/// most 1024 reads of a store are queued. A further read waits in its future, which queues it when it is polled and
/// there is capacity. So a program that asks faster than the store reads is slowed down, and no read is refused.
///
/// Dropping the future cancels the read unless it is already running. If the read panics, polling the future panics.
#[must_use = "it gives the answer"]
pub struct ReadFuture<T> {
    slot: Arc<Mutex<Slot<T>>>,
    /// The read, until the queue has capacity for it.
    unqueued: Option<Unqueued>,
}

struct Slot<T> {
    answer: Option<Result<T, Box<dyn Any + Send>>>,
    waker: Option<Waker>,
    is_abandoned: bool,
}

impl<T> Future for ReadFuture<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        if let Some(unqueued) = self.unqueued.take() {
            self.unqueued = unqueued.retry(context);
            if self.unqueued.is_some() {
                return Poll::Pending;
            }
        }
        let answer = {
            let mut slot = self.slot.lock();
            let Some(answer) = slot.answer.take() else {
                match &mut slot.waker {
                    Some(waker) => waker.clone_from(context.waker()),
                    none => *none = Some(context.waker().clone()),
                }
                return Poll::Pending;
            };
            answer
        };
        Poll::Ready(answer.unwrap_or_else(|panic| resume_unwind(panic)))
    }
}

impl<T> Drop for ReadFuture<T> {
    fn drop(&mut self) {
        self.slot.lock().is_abandoned = true;
        if let Some(Unqueued { call, shared, .. }) = &self.unqueued {
            shared.state.lock().callers.remove(call);
        }
    }
}

impl<T> fmt::Debug for ReadFuture<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_answered = self.slot.lock().answer.is_some();
        f.debug_struct("ReadFuture").field("is_answered", &is_answered).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
