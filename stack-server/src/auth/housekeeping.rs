//! The background thread of the authorization server. It deletes expired sessions, pending logins, records of refused
//! tokens and assertions, and old signing keys. It also rotates the key that signs tokens when that is due.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::auth::authority::Authority;
use crate::log::{self, Level};

/// Pause between two rounds. An expired record is deleted at most about this long after it expires.
const PAUSE: Duration = Duration::from_secs(30);

/// A handle of the background thread.
#[derive(Debug)]
pub(crate) struct Housekeeping {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Housekeeping {
    /// Starts the thread. Its first round begins at once. A round that fails is logged, and the next one tries again.
    ///
    /// # Errors
    ///
    /// Fails if the operating system cannot start a thread.
    pub(crate) fn start(authority: Arc<Authority>) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let is_stopped = stop.clone();
        let thread = std::thread::Builder::new().name("auth".to_owned()).spawn(move || {
            while !is_stopped.load(Ordering::Relaxed) {
                if let Err(error) = authority.run_housekeeping() {
                    log::event(Level::Error, "auth", &[("reason", &error.reason())]);
                }
                std::thread::park_timeout(PAUSE);
            }
        })?;
        Ok(Self { stop, thread })
    }

    /// Ends the thread after its current round, and waits for it.
    pub(crate) fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        // Ignore a panic of the thread: the panic hook has already printed it.
        let _ = self.thread.join();
    }
}
