//! Moves connections between an HTTP thread and its thread for large requests.
//!
//! Reading a large body from its socket, and writing its response, takes about as long as many small requests. A
//! connection that sends large requests is therefore on the thread for large requests with its socket, and returns when
//! it sends a small one.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use tokio::runtime::Handle;

use super::large::LargeRequests;
use crate::limits::INLINE_BODY_BYTES_MAX;

/// A connection until its end.
type Serving = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The thread on which a connection should be. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Placement {
    is_large: Arc<AtomicBool>,
    large: LargeRequests,
}

impl Placement {
    /// Creates the placement of a connection that begins on its HTTP thread.
    pub(crate) fn new(large: LargeRequests) -> Self {
        Self { is_large: Arc::default(), large }
    }

    /// Returns the thread for large requests.
    pub(crate) fn large(&self) -> &LargeRequests {
        &self.large
    }

    /// Asks for the thread for a request with a body of this many bytes. The connection moves as soon as it waits. It
    /// stays if the client does not tell how long the body is.
    pub(crate) fn ask_for(&self, bytes: Option<u64>) {
        let is_large = bytes.map_or(self.is_large(), |bytes| bytes > INLINE_BODY_BYTES_MAX as u64);
        // Most requests change nothing, and a load is cheaper than a store that other processors see.
        if self.is_large() != is_large {
            self.is_large.store(is_large, Ordering::Relaxed);
        }
    }

    fn is_large(&self) -> bool {
        self.is_large.load(Ordering::Relaxed)
    }
}

/// An HTTP thread and its thread for large requests. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Threads {
    http: Handle,
    large: LargeRequests,
}

impl Threads {
    /// Returns the caller's HTTP thread and its thread for large requests.
    pub(super) fn of_this(large: LargeRequests) -> Self {
        Self { http: Handle::current(), large }
    }

    /// Returns the placement of a new connection.
    pub(super) fn placement(&self) -> Placement {
        Placement::new(self.large.clone())
    }

    /// Serves a connection to its end, on the threads that `placement` asks for. It begins on the HTTP thread.
    pub(super) fn serve(&self, connection: impl Future<Output = ()> + Send + 'static, placement: Placement) {
        self.serve_on(false, Box::pin(connection), placement);
    }

    fn serve_on(&self, is_large: bool, mut connection: Serving, placement: Placement) {
        let threads = self.clone();
        let serving = async move {
            let moves = poll_fn(|context| match connection.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(false),
                Poll::Pending if placement.is_large() != is_large => Poll::Ready(true),
                Poll::Pending => Poll::Pending,
            });
            if moves.await {
                threads.serve_on(!is_large, connection, placement);
            }
        };
        let thread = if is_large { self.large.handle() } else { &self.http };
        thread.spawn(serving);
    }
}

#[cfg(test)]
mod tests {
    use std::thread::{self, ThreadId};
    use std::time::Duration;

    use tokio::sync::oneshot;

    use super::*;

    /// Maximum time to wait for another thread. Only a failing test waits that long.
    const LONG: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn connection_follows_its_requests() {
        let (large, thread) = LargeRequests::start(0).expect("a thread");
        let threads = Threads::of_this(large);
        let placement = threads.placement();
        let (done, seen) = oneshot::channel();
        let asking = placement.clone();
        let connection = async move {
            let mut seen: Vec<ThreadId> = vec![];
            let large = INLINE_BODY_BYTES_MAX as u64 + 1;
            for bytes in [Some(0), Some(large), None, Some(large - 1)] {
                asking.ask_for(bytes);
                tokio::task::yield_now().await;
                seen.push(thread::current().id());
            }
            done.send(seen).expect("the test waits");
        };
        threads.serve(connection, placement);
        let seen = tokio::time::timeout(LONG, seen).await.expect("it ends").expect("threads");
        let here = thread::current().id();
        let is_here: Vec<bool> = seen.iter().map(|thread| *thread == here).collect();
        assert_eq!(is_here, [true, false, false, true]);
        thread.end();
    }
}
