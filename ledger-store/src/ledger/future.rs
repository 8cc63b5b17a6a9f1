//! Commits as futures, for any executor.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use super::error::LedgerError;
use crate::atomic::AtomicWrite;
use crate::error::WriteError;
use crate::store::Store;
use crate::submission::Outcome;

type Answer = Result<Vec<Outcome>, WriteError>;

/// A submitted write. Resolves when the write is on disk or refused.
///
/// The call that returned the future has already submitted the write. Polling only waits for the answer, and
/// **dropping the future does not cancel the write**: the write still happens, but nothing reports its outcome. A task
/// that may be cancelled should give its request an idempotency key and repeat it.
///
/// The future needs no particular executor and never blocks. If the queue is full, it resolves to
/// [`WriteError::Busy`], and the write had no effect.
#[must_use = "it tells whether the write happened"]
pub struct CommitFuture<T> {
    shared: Arc<Mutex<Shared>>,
    /// Creates the result from the outcomes. Taken when the result is returned.
    finish: Option<Finish<T>>,
}

type Finish<T> = Box<dyn FnOnce(Answer) -> Result<T, LedgerError> + Send>;

#[derive(Default)]
struct Shared {
    answer: Option<Answer>,
    waker: Option<Waker>,
}

impl Shared {
    fn tell(shared: &Mutex<Self>, answer: Answer) {
        let waker = {
            let mut shared = shared.lock();
            shared.answer = Some(answer);
            shared.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> CommitFuture<T> {
    /// Creates a future, and the callback that resolves it.
    pub(super) fn new(
        finish: impl FnOnce(Vec<Outcome>) -> Result<T, LedgerError> + Send + 'static,
    ) -> (Self, impl FnOnce(Answer) + Send + 'static) {
        let shared = Arc::<Mutex<Shared>>::default();
        let told = shared.clone();
        let finish: Finish<T> = Box::new(move |answer| finish(answer?));
        (Self { shared, finish: Some(finish) }, move |answer| Shared::tell(&told, answer))
    }

    /// Creates the future of a write that was never submitted.
    pub(super) fn failed(error: LedgerError) -> Self
    where
        T: 'static,
    {
        let shared = Shared { answer: Some(Ok(Vec::new())), waker: None };
        Self { shared: Arc::new(Mutex::new(shared)), finish: Some(Box::new(|_| Err(error))) }
    }
}

impl Store {
    /// As [`Store::write_atomically`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Store::write_atomically`]: [`LedgerError::LedgerNotFound`] for a ledger that
    /// does not exist, else [`LedgerError::Write`].
    pub fn write_atomically_async(&self, write: AtomicWrite) -> CommitFuture<Vec<Outcome>> {
        let (future, done) = CommitFuture::new(Ok);
        self.submit_atomically(write, done);
        future
    }
}

impl<T> Future for CommitFuture<T> {
    type Output = Result<T, LedgerError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = {
            let mut shared = self.shared.lock();
            if let Some(answer) = shared.answer.take() {
                answer
            } else {
                match &mut shared.waker {
                    Some(waker) => waker.clone_from(context.waker()),
                    none => *none = Some(context.waker().clone()),
                }
                return Poll::Pending;
            }
        };
        let finish = self.finish.take().expect("a future is not polled after its answer");
        Poll::Ready(finish(answer))
    }
}

impl<T> fmt::Debug for CommitFuture<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_answered = self.shared.lock().answer.is_some() || self.finish.is_none();
        f.debug_struct("CommitFuture").field("is_answered", &is_answered).finish_non_exhaustive()
    }
}
