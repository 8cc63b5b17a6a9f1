//! Commits as futures, for any executor.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use super::error::LedgerError;
use crate::error::WriteError;

/// A submitted write. Resolves when the write is on disk or refused.
///
/// The call that returned the future has already submitted the write. Polling only waits for the answer, and
/// **dropping the future does not cancel the write**: the write still happens, but nothing reports its outcome. A task
/// that may be cancelled should give its request an idempotency key and repeat it.
///
/// The future needs no particular executor and never blocks. If the queue is full, it resolves to
/// [`WriteError::Busy`], and the write had no effect.
#[must_use = "it tells whether the write happened"]
pub struct CommitFuture<T>(Box<dyn Pending<T>>);

/// A write without an answer yet, whatever the store answers.
trait Pending<T>: Send {
    fn poll(&mut self, context: &Context<'_>) -> Poll<Result<T, LedgerError>>;

    fn is_answered(&self) -> bool;
}

/// Waits for the answer `A` of the store, from which `finish` creates the result.
struct Waiting<A, F> {
    shared: Arc<Mutex<Shared<A>>>,
    /// Taken when the result is returned.
    finish: Option<F>,
}

struct Shared<A> {
    answer: Option<Result<A, WriteError>>,
    waker: Option<Waker>,
}

impl<A> Shared<A> {
    fn tell(shared: &Mutex<Self>, answer: Result<A, WriteError>) {
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

impl<T: 'static> CommitFuture<T> {
    /// Creates a future, and the callback that resolves it.
    pub(super) fn new<A: Send + 'static>(
        finish: impl FnOnce(A) -> Result<T, LedgerError> + Send + 'static,
    ) -> (Self, impl FnOnce(Result<A, WriteError>) + Send + 'static) {
        let shared = Arc::new(Mutex::new(Shared { answer: None, waker: None }));
        let told = shared.clone();
        let future = Self(Box::new(Waiting { shared, finish: Some(finish) }));
        (future, move |answer| Shared::tell(&told, answer))
    }

    /// Creates the future of a write that was never submitted.
    pub(super) fn failed(error: LedgerError) -> Self {
        let (future, done) = Self::new(move |()| Err(error));
        done(Ok(()));
        future
    }
}

impl<A: Send, T, F: FnOnce(A) -> Result<T, LedgerError> + Send> Pending<T> for Waiting<A, F> {
    fn poll(&mut self, context: &Context<'_>) -> Poll<Result<T, LedgerError>> {
        let answer = {
            let mut shared = self.shared.lock();
            let Some(answer) = shared.answer.take() else {
                match &mut shared.waker {
                    Some(waker) => waker.clone_from(context.waker()),
                    none => *none = Some(context.waker().clone()),
                }
                return Poll::Pending;
            };
            answer
        };
        let finish = self.finish.take().expect("a future is not polled after its answer");
        Poll::Ready(answer.map_err(LedgerError::from).and_then(finish))
    }

    fn is_answered(&self) -> bool {
        self.shared.lock().answer.is_some() || self.finish.is_none()
    }
}

impl<T> Future for CommitFuture<T> {
    type Output = Result<T, LedgerError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(context)
    }
}

impl<T> fmt::Debug for CommitFuture<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommitFuture").field("is_answered", &self.0.is_answered()).finish_non_exhaustive()
    }
}
