//! Background work, and how it learns that it must stop.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use tokio::sync::watch;

/// A thread that works until it is stopped. It pauses with [`std::thread::park_timeout`], so that a stop ends the pause.
#[derive(Debug)]
pub(crate) struct BackgroundThread {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl BackgroundThread {
    /// Starts a thread. The argument of `work` tells whether it must stop.
    ///
    /// # Errors
    ///
    /// Fails if the operating system cannot start a thread.
    pub(crate) fn start(
        name: &str,
        work: impl FnOnce(&dyn Fn() -> bool) + Send + 'static,
    ) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let is_stopped = stop.clone();
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || work(&|| is_stopped.load(Ordering::Relaxed)))?;
        Ok(Self { stop, thread })
    }

    /// Tells the thread to stop, and waits for it.
    pub(crate) fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        // Ignore a panic of the thread: the panic hook has already printed it.
        let _ = self.thread.join();
    }
}

/// Waits for the signal to stop. Never returns if its sender was dropped without a stop: the work then runs until the
/// process ends.
pub(crate) async fn stop_signal(mut stopped: watch::Receiver<bool>) {
    if stopped.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn stop_ends_the_pause_of_a_thread() {
        let (started, has_started) = mpsc::channel();
        let thread = BackgroundThread::start("test", move |should_stop| {
            started.send(()).expect("the test waits");
            while !should_stop() {
                std::thread::park_timeout(Duration::from_hours(1));
            }
        });
        has_started.recv().expect("the thread runs");
        thread.expect("the thread starts").stop();
    }

    #[tokio::test]
    async fn dropped_sender_is_no_signal() {
        let (stop, stopped) = watch::channel(false);
        let mut waiting = Box::pin(stop_signal(stopped));
        assert!(is_waiting(&mut waiting).await, "nobody stopped yet");
        stop.send(true).expect("the future has the receiver");
        waiting.await;
        let (stop, stopped) = watch::channel(false);
        drop(stop);
        assert!(is_waiting(&mut Box::pin(stop_signal(stopped))).await);
    }

    /// Polls a future once. Returns whether it waits.
    async fn is_waiting(future: &mut (impl Future<Output = ()> + Unpin)) -> bool {
        std::future::poll_fn(|context| {
            std::task::Poll::Ready(std::pin::Pin::new(&mut *future).poll(context).is_pending())
        })
        .await
    }
}
