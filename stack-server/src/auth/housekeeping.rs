//! The thread that removes what has expired, and lets the next key sign when it is due.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::auth::authority::Authority;
use crate::log::{self, Level};

/// Pause between two rounds.
const PAUSE: Duration = Duration::from_secs(30);

/// The thread.
#[derive(Debug)]
pub(crate) struct Housekeeping {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Housekeeping {
    /// Begins at once.
    ///
    /// # Errors
    ///
    /// If the operating system refuses a thread.
    pub(crate) fn start(authority: Arc<Authority>) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::Builder::new().name("auth".to_owned()).spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                if let Err(error) = authority.keep_house() {
                    log::event(Level::Error, "auth", &[("reason", &error.message)]);
                }
                std::thread::park_timeout(PAUSE);
            }
        })?;
        Ok(Self { stop, thread })
    }

    /// Ends it.
    pub(crate) fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        // A thread that panicked has told so itself.
        let _ = self.thread.join();
    }
}
