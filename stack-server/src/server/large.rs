//! A thread for large requests, one for each HTTP thread.
//!
//! Parsing a large body and writing its response takes so long that the small requests of an HTTP thread would have to
//! wait. With two threads, the operating system divides the processors between large and small requests.

use std::io;
use std::thread::JoinHandle;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::http::error::ApiError;

/// A handle to run requests on the thread for large requests. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct LargeRequests(Handle);

/// The thread for large requests.
#[derive(Debug)]
pub(crate) struct LargeThread {
    end: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl LargeRequests {
    /// Starts the thread that belongs to the HTTP thread with this number.
    ///
    /// # Errors
    ///
    /// Fails if the operating system refuses a thread or timers.
    pub(crate) fn start(number: usize) -> io::Result<(Self, LargeThread)> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let requests = Self(runtime.handle().clone());
        let (end, ended) = oneshot::channel();
        let thread = std::thread::Builder::new().name(format!("http-large-{number}"));
        let thread = thread.spawn(move || {
            // A dropped sender ends the thread as well.
            let _ = runtime.block_on(ended);
        })?;
        Ok((requests, LargeThread { end, thread }))
    }

    /// Returns the runtime of the thread.
    pub(super) fn handle(&self) -> &Handle {
        &self.0
    }

    /// Runs a request on the thread for large requests, and waits for it without blocking the caller's thread. The
    /// request continues if the caller stops waiting.
    ///
    /// # Errors
    ///
    /// `INTERNAL` if the request panics, or the thread ends before it.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        request: impl Future<Output = Result<T, ApiError>> + Send + 'static,
    ) -> Result<T, ApiError> {
        match self.0.spawn(request).await {
            Ok(answer) => answer,
            Err(error) => Err(ApiError::fault(&error.to_string())),
        }
    }
}

impl LargeThread {
    /// Ends the thread. Drops its requests where they wait. The store still records the writes that it has received.
    pub(crate) fn end(self) {
        // Errors mean that the thread has already ended or panicked. The panic was reported.
        let _ = self.end.send(());
        let _ = self.thread.join();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;
    use crate::http::error::Code;

    /// Maximum time to wait for another thread. Only a failing test waits that long.
    const LONG: Duration = Duration::from_secs(30);

    fn run<R>(test: impl Future<Output = R>) -> R {
        Builder::new_current_thread().build().expect("a runtime").block_on(test)
    }

    #[test]
    fn large_request_leaves_the_thread_to_others() {
        let (large, thread) = LargeRequests::start(0).expect("a thread");
        let (sender, receiver) = mpsc::channel();
        // The large request keeps its thread busy until a small one on the other thread is done.
        let busy = large.run(async move { Ok(receiver.recv_timeout(LONG).is_ok()) });
        let small = async move { sender.send(()).expect("the large request waits") };
        let (is_answered, ()) = run(async { tokio::join!(busy, small) });
        assert_eq!(is_answered, Ok(true));
        thread.end();
    }

    #[test]
    fn request_goes_on_without_its_caller() {
        let (large, thread) = LargeRequests::start(0).expect("a thread");
        let (go, may_go) = oneshot::channel::<()>();
        let (done, is_done) = mpsc::channel();
        let request = async move {
            may_go.await.expect("a message");
            done.send(()).expect("the test waits");
            Ok(())
        };
        run(async {
            tokio::select! {
                biased;
                _ = large.run(request) => unreachable!("it waits"),
                () = std::future::ready(()) => {}
            }
        });
        go.send(()).expect("the request waits");
        assert_eq!(is_done.recv_timeout(LONG), Ok(()));
        thread.end();
    }

    #[test]
    fn panic_of_a_request_is_its_answer() {
        let (large, thread) = LargeRequests::start(0).expect("a thread");
        let empty = Vec::<u8>::new();
        let error = run(large.run(async move { Ok(empty[0]) })).expect_err("no answer");
        assert_eq!(error.code, Code::Internal);
        assert_eq!(run(large.run(async { Ok(1) })), Ok(1), "the thread goes on");
        thread.end();
    }

    #[test]
    fn end_drops_requests_that_wait() {
        let (large, thread) = LargeRequests::start(0).expect("a thread");
        let ending = async { thread.end() };
        let (answer, ()) =
            run(async { tokio::join!(large.run(std::future::pending::<Result<(), _>>()), ending) });
        assert!(answer.is_err(), "{answer:?}");
        assert!(run(large.run(async { Ok(()) })).is_err(), "none is taken on any more");
    }
}
