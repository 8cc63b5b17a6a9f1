//! A connection that gives up on a client which takes no answer, or begins a request and does not go on.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::{Read, ReadBufCursor, Write};
use tokio::time::Sleep;

/// How far a connection is: the number of answers begun and ended, so odd while one is under way.
#[derive(Clone, Default)]
pub(crate) struct Progress(Arc<AtomicU64>);

impl Progress {
    /// Notes that the head of a request is there, or that its answer is.
    pub(crate) fn step(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// The step at which the next head is awaited; `None` while a request is answered.
    fn between(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|step| step % 2 == 0)
    }
}

/// How long a client may keep a connection waiting.
#[derive(Clone, Copy)]
pub(crate) struct Patience {
    /// For the rest of a head, from its first byte on; the first from the beginning of the connection.
    pub(crate) head: Duration,
    /// With a write that it does not take.
    pub(crate) write: Duration,
}

/// Reads and writes like what it wraps, but fails once a write or the rest of a head has waited for too long: an
/// answer that nobody takes would hold its memory, and either a connection slot, for ever. A client that begins
/// nothing may wait: hyper ends the connection when that takes too long.
pub(crate) struct Patient<T> {
    inner: T,
    patience: Patience,
    progress: Progress,
    /// The step at which bytes of a head came.
    begun: Option<u64>,
    /// Runs while the rest of a head is awaited. Most come whole.
    reading: Option<Pin<Box<Sleep>>>,
    /// Runs while a write waits. Writes seldom do.
    writing: Option<Pin<Box<Sleep>>>,
}

impl<T> Patient<T> {
    pub(crate) fn new(inner: T, patience: Patience, progress: Progress) -> Self {
        Self { inner, patience, progress, begun: Some(0), reading: None, writing: None }
    }

    /// Passes on what came of a write, or that it has waited too long.
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

    /// Takes or has a byte when it is told to, and else nothing.
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

    /// Whether a read waits, without an end that this connection would set.
    async fn waits_for_ever(connection: &mut Patient<Peer>) -> bool {
        let waits = tokio::select! {
            biased;
            _ = read(connection) => false,
            () = std::future::ready(()) => true,
        };
        waits && connection.reading.is_none()
    }

    #[test]
    fn a_write_that_nobody_takes_fails_in_the_end() {
        assert_eq!(write(false, 1), Err(io::ErrorKind::TimedOut));
        assert_eq!(write(true, 0), Ok(1));
    }

    #[test]
    fn the_rest_of_a_head_is_awaited_for_some_time_and_the_next_one_for_ever() {
        run(async {
            // The first head has to begin at once.
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
