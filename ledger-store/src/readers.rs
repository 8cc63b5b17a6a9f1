//! A few threads that run reads for callers who must not block, and the futures of their answers.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// Maximum number of threads. More reads wait for their turn, so that they do not starve the threads that write.
const THREADS_MAX: usize = 8;

/// A thread without work ends after this time.
const IDLE_TIME: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

/// The threads, which are started when they are needed.
pub(crate) struct Readers {
    shared: Arc<Shared>,
    threads_max: usize,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// There is a job, or the pool is closed.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
    is_closed: bool,
}

impl Default for Readers {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self { shared: Arc::default(), threads_max: cores.clamp(2, THREADS_MAX) }
    }
}

impl fmt::Debug for Readers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readers").field("threads_max", &self.threads_max).finish_non_exhaustive()
    }
}

impl Readers {
    /// Runs a read on one of the threads, and returns a future of its answer.
    pub(crate) fn run<T: Send + 'static>(&self, read: impl FnOnce() -> T + Send + 'static) -> ReadFuture<T> {
        let slot = Arc::new(Mutex::new(Slot { answer: None, waker: None, is_abandoned: false }));
        let filled = slot.clone();
        self.add(Box::new(move || {
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
        ReadFuture { slot }
    }

    fn add(&self, job: Job) {
        let mut state = self.shared.state.lock();
        state.jobs.push_back(job);
        if state.jobs.len() <= state.idle || state.threads >= self.threads_max {
            drop(state);
            self.shared.changed.notify_one();
            return;
        }
        state.threads += 1;
        drop(state);
        let shared = self.shared.clone();
        let thread = std::thread::Builder::new().name("ledger-reader".to_owned());
        if thread.spawn(move || shared.work()).is_err() {
            // Without any thread nobody would run the job.
            self.shared.state.lock().threads -= 1;
            self.shared.work_off();
        }
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.shared.state.lock().is_closed = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    /// Runs jobs until there was none for a time.
    fn work(&self) {
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

    /// Runs the jobs that wait.
    fn work_off(&self) {
        loop {
            let Some(job) = self.state.lock().jobs.pop_front() else { return };
            job();
        }
    }
}

/// A read that runs on a thread of the store. It needs no particular executor.
///
/// The call that returned it has begun the read, at the moment of that call. Dropping the future abandons the read, unless
/// it runs already. A panic of the read is passed on by the poll.
#[must_use = "it gives the answer"]
pub struct ReadFuture<T> {
    slot: Arc<Mutex<Slot<T>>>,
}

struct Slot<T> {
    answer: Option<Result<T, Box<dyn Any + Send>>>,
    waker: Option<Waker>,
    is_abandoned: bool,
}

impl<T> Future for ReadFuture<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
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
    }
}

impl<T> fmt::Debug for ReadFuture<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_answered = self.slot.lock().answer.is_some();
        f.debug_struct("ReadFuture").field("is_answered", &is_answered).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn runs_no_more_reads_at_once_than_it_has_threads() {
        let readers = Readers { shared: Arc::default(), threads_max: 2 };
        let (begun, begins) = mpsc::channel();
        let mut gates = Vec::new();
        let mut futures = Vec::new();
        for number in 0..5 {
            let (open, gate) = mpsc::channel::<()>();
            let begun = begun.clone();
            futures.push(readers.run(move || {
                begun.send(number).expect("the test waits");
                // Ends when the test drops its side.
                let _ = gate.recv();
                number
            }));
            gates.push(open);
        }
        let mut first = [begins.recv().expect("a read begins"), begins.recv().expect("another one")];
        first.sort_unstable();
        assert_eq!(first, [0, 1]);
        assert_eq!(readers.shared.state.lock().jobs.len(), 3);
        // An abandoned read never begins.
        drop(futures.remove(3));
        drop(gates);
        let mut rest = [begins.recv().expect("a read begins"), begins.recv().expect("the last one")];
        rest.sort_unstable();
        assert_eq!(rest, [2, 4]);
        drop((begun, readers));
        assert!(begins.recv().is_err(), "the threads end, and nothing else began");
    }
}
