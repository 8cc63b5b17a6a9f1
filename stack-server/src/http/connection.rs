//! A connection that times out if the client stops reading a response or stops sending a request.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::{Read, ReadBufCursor, Write};
use tokio::time::Sleep;

/// The progress of a connection: the number of responses begun plus those finished. It is odd while a request is
/// being answered.
#[derive(Clone, Default)]
pub(crate) struct Progress(Arc<AtomicU64>);

impl Progress {
    /// Counts a received request head, or a finished response.
    pub(crate) fn step(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the current step while the connection awaits a request, and `None` while it answers one.
    fn between(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|step| step % 2 == 0)
    }
}

/// How long a connection waits for its client.
#[derive(Clone, Copy)]
pub(crate) struct Patience {
    /// Maximum time from the first byte of a request head to its last. For the first head the time starts with the
    /// connection.
    pub(crate) head: Duration,
    /// Maximum time that a write waits for the client to read.
    pub(crate) write: Duration,
}

/// A stream that fails once a write, or the rest of a request head, has waited for too long. A response that nobody
/// reads would hold its memory forever, and both cases would hold a connection slot. hyper closes connections that
/// are idle between requests.
pub(crate) struct Patient<T> {
    inner: T,
    patience: Patience,
    progress: Progress,
    /// The step at which the first bytes of a head arrived.
    begun: Option<u64>,
    /// The timer that runs while the rest of a head is awaited. Most heads arrive whole, so few connections need
    /// one.
    reading: Option<Pin<Box<Sleep>>>,
    /// The timer that runs while a write waits. Few writes do.
    writing: Option<Pin<Box<Sleep>>>,
}

impl<T> Patient<T> {
    pub(crate) fn new(inner: T, patience: Patience, progress: Progress) -> Self {
        Self { inner, patience, progress, begun: Some(0), reading: None, writing: None }
    }

    /// Returns the result of a write, or an error if the write has waited for too long.
    fn judge<R>(&mut self, written: Poll<io::Result<R>>, context: &mut Context<'_>) -> Poll<io::Result<R>> {
        if written.is_ready() {
            self.writing = None;
            return written;
        }
        let patience = self.patience.write;
        let writing = self.writing.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        ready!(writing.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<T: Read + Unpin> Read for Patient<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.inner).poll_read(context, buffer);
        let between = self.progress.between();
        if read.is_ready() {
            if between.is_some() && self.begun != between {
                (self.begun, self.reading) = (between, None);
            }
            return read;
        }
        if between.is_none() || self.begun != between {
            self.reading = None;
            return Poll::Pending;
        }
        let patience = self.patience.head;
        let reading = self.reading.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        ready!(reading.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<T: Write + Unpin> Write for Patient<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.judge(written, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(context);
        self.judge(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.inner).poll_shutdown(context);
        self.judge(shut, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(context, buffers);
        self.judge(written, context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A peer that reads or writes one byte when it is told to.
    struct Peer {
        is_busy: bool,
    }

    impl Read for Peer {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            mut buffer: ReadBufCursor<'_>,
        ) -> Poll<io::Result<()>> {
            if !self.is_busy {
                return Poll::Pending;
            }
            buffer.put_slice(b"x");
            Poll::Ready(Ok(()))
        }
    }

    impl Write for Peer {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
            if self.is_busy { Poll::Ready(Ok(1)) } else { Poll::Pending }
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    fn run<R>(future: impl Future<Output = R>) -> R {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime").block_on(future)
    }

    fn patient(is_busy: bool, millis: u64) -> (Patient<Peer>, Progress) {
        let (patience, progress) = (Duration::from_millis(millis), Progress::default());
        let both = Patience { head: patience, write: patience };
        (Patient::new(Peer { is_busy }, both, progress.clone()), progress)
    }

    fn write(is_busy: bool, millis: u64) -> Result<usize, io::ErrorKind> {
        let (mut connection, _) = patient(is_busy, millis);
        let written = std::future::poll_fn(|context| Pin::new(&mut connection).poll_write(context, b"x"));
        run(written).map_err(|error| error.kind())
    }

    async fn read(connection: &mut Patient<Peer>) -> Result<(), io::ErrorKind> {
        let mut bytes = [0; 1];
        let mut buffer = hyper::rt::ReadBuf::new(&mut bytes);
        let read =
            std::future::poll_fn(|context| Pin::new(&mut *connection).poll_read(context, buffer.unfilled()));
        read.await.map_err(|error| error.kind())
    }

    /// Tells whether a read waits without a timeout.
    async fn waits_for_ever(connection: &mut Patient<Peer>) -> bool {
        let waits = tokio::select! {
            biased;
            _ = read(connection) => false,
            () = std::future::ready(()) => true,
        };
        waits && connection.reading.is_none()
    }

    #[test]
    fn times_out_on_stalled_write() {
        assert_eq!(write(false, 1), Err(io::ErrorKind::TimedOut));
        assert_eq!(write(true, 0), Ok(1));
    }

    #[test]
    fn times_out_on_partial_head_but_not_between_requests() {
        run(async {
            // The time for the first head starts at once.
            let (mut connection, _) = patient(false, 1);
            assert_eq!(read(&mut connection).await, Err(io::ErrorKind::TimedOut));

            let (mut connection, progress) = patient(true, 1);
            assert_eq!(read(&mut connection).await, Ok(()));
            progress.step();
            connection.inner.is_busy = false;
            assert!(waits_for_ever(&mut connection).await, "the body has a limit of its own");
            progress.step();
            assert!(waits_for_ever(&mut connection).await, "nothing has begun");
            connection.inner.is_busy = true;
            assert_eq!(read(&mut connection).await, Ok(()));
            connection.inner.is_busy = false;
            assert_eq!(read(&mut connection).await, Err(io::ErrorKind::TimedOut));
        });
    }
}
