//! A connection that times out if the client stops reading a response or stops sending a request.

use std::io;
use std::net::TcpListener;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::{Read, ReadBufCursor, Write};
use tokio::time::Sleep;

/// Limits how many unsent bytes the kernel buffers for each connection (`TCP_NOTSENT_LOWAT`). The connections that the
/// listener accepts inherit the limit. If the system refuses it, the kernel buffers more.
#[cfg(target_os = "linux")]
pub(crate) fn limit_unsent(listener: &TcpListener) {
    let _ = socket2::SockRef::from(listener).set_tcp_notsent_lowat(crate::limits::UNSENT_BYTES_MAX);
}

/// Does nothing: only Linux is known to support this limit.
#[cfg(not(target_os = "linux"))]
pub(crate) fn limit_unsent(_listener: &TcpListener) {}

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
pub(crate) struct ClientTimeouts {
    /// Maximum time from the first byte of a request head to its last. For the first head the time starts with the
    /// connection.
    pub(crate) head: Duration,
    /// Maximum time that a write waits for the client to read, and the minimum number of bytes that a client with a
    /// backlog must take within that time.
    pub(crate) write: Duration,
    pub(crate) write_bytes: usize,
}

/// A stream that fails once a write, or the rest of a request head, has waited for too long. A response that nobody
/// reads would hold its memory forever, and both cases would hold a connection slot. hyper closes connections that
/// are idle between requests.
pub(crate) struct TimedStream<T> {
    inner: T,
    timeouts: ClientTimeouts,
    progress: Progress,
    /// The step at which the first bytes of a head arrived.
    begun: Option<u64>,
    /// The timer that runs while the rest of a head is awaited. Most heads arrive whole, so few connections need
    /// one.
    reading: Option<Pin<Box<Sleep>>>,
    /// The timer that runs while the client has a backlog. Few clients have one.
    writing: Option<Pin<Box<Sleep>>>,
    /// Number of bytes that the client has taken since the timer started.
    taken: usize,
}

impl<T> TimedStream<T> {
    pub(crate) fn new(inner: T, timeouts: ClientTimeouts, progress: Progress) -> Self {
        Self { inner, timeouts, progress, begun: Some(0), reading: None, writing: None, taken: 0 }
    }

    /// Returns the result of a write of this many bytes, or an error if the client takes its backlog too slowly.
    fn judge(
        &mut self,
        written: Poll<io::Result<usize>>,
        offered: usize,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let Poll::Ready(result) = written else { return self.wait(context).map(|never| never.map(|()| 0)) };
        let bytes = *result.as_ref().unwrap_or(&0);
        self.taken += bytes;
        if bytes >= offered || self.taken >= self.timeouts.write_bytes {
            self.writing = None;
        }
        Poll::Ready(result)
    }

    /// Waits for the client to read, and fails once it has waited for too long.
    fn wait(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let timeout = self.timeouts.write;
        let writing = self.writing.get_or_insert_with(|| {
            self.taken = 0;
            Box::pin(tokio::time::sleep(timeout))
        });
        ready!(writing.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<T: Read + Unpin> Read for TimedStream<T> {
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
        let timeout = self.timeouts.head;
        let reading = self.reading.get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        ready!(reading.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<T: Write + Unpin> Write for TimedStream<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.judge(written, bytes.len(), context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(context);
        if flushed.is_ready() { flushed } else { self.wait(context) }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.inner).poll_shutdown(context);
        if shut.is_ready() { shut } else { self.wait(context) }
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
        let offered = buffers.iter().map(|buffer| buffer.len()).sum();
        self.judge(written, offered, context)
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

    fn timed(is_busy: bool, millis: u64) -> (TimedStream<Peer>, Progress) {
        let (timeout, progress) = (Duration::from_millis(millis), Progress::default());
        let both = ClientTimeouts { head: timeout, write: timeout, write_bytes: 10 };
        (TimedStream::new(Peer { is_busy }, both, progress.clone()), progress)
    }

    fn write(is_busy: bool, millis: u64) -> Result<usize, io::ErrorKind> {
        let (mut connection, _) = timed(is_busy, millis);
        let written = std::future::poll_fn(|context| Pin::new(&mut connection).poll_write(context, b"x"));
        run(written).map_err(|error| error.kind())
    }

    async fn read(connection: &mut TimedStream<Peer>) -> Result<(), io::ErrorKind> {
        let mut bytes = [0; 1];
        let mut buffer = hyper::rt::ReadBuf::new(&mut bytes);
        let read =
            std::future::poll_fn(|context| Pin::new(&mut *connection).poll_read(context, buffer.unfilled()));
        read.await.map_err(|error| error.kind())
    }

    /// Tells whether a read waits without a timeout.
    async fn waits_for_ever(connection: &mut TimedStream<Peer>) -> bool {
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
    fn times_out_on_slow_reader() {
        run(async {
            let (mut connection, _) = timed(false, 1);
            let mut write = async |offered: usize, is_busy: bool| {
                connection.inner.is_busy = is_busy;
                let bytes = vec![b'x'; offered];
                let write = std::future::poll_fn(|context| {
                    match Pin::new(&mut connection).poll_write(context, &bytes) {
                        Poll::Pending => Poll::Ready(None),
                        Poll::Ready(written) => Poll::Ready(Some(written.map_err(|error| error.kind()))),
                    }
                });
                write.await
            };
            let pause = || tokio::time::sleep(Duration::from_millis(2));
            // A byte now and then is not enough while more is offered.
            assert_eq!(write(9, false).await, None);
            assert_eq!(write(9, true).await, Some(Ok(1)));
            pause().await;
            assert_eq!(write(9, false).await, Some(Err(io::ErrorKind::TimedOut)));
            // The last byte of the backlog ends the time, and so do enough bytes.
            assert_eq!(write(1, true).await, Some(Ok(1)));
            for (offered, writes) in [(1, 1), (99, 10)] {
                assert_eq!(write(offered, false).await, None);
                for _ in 0..writes {
                    assert_eq!(write(offered, true).await, Some(Ok(1)));
                }
                pause().await;
                assert_eq!(write(offered, false).await, None, "{offered} bytes");
                assert_eq!(write(1, true).await, Some(Ok(1)));
            }
        });
    }

    #[test]
    fn times_out_on_partial_head_but_not_between_requests() {
        run(async {
            // The time for the first head starts at once.
            let (mut connection, _) = timed(false, 1);
            assert_eq!(read(&mut connection).await, Err(io::ErrorKind::TimedOut));

            let (mut connection, progress) = timed(true, 1);
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
