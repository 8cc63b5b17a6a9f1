//! The background thread of the authorization server. It deletes expired sessions, pending logins, records of refused
//! tokens and assertions, and old signing keys. It also rotates the key that signs tokens when that is due.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::auth::authority::Authority;
use crate::background::BackgroundThread;
use crate::log::{self, Level};

/// Pause between two rounds. An expired record is deleted at most about this long after it expires.
const PAUSE: Duration = Duration::from_secs(30);

/// Starts the thread. Its first round begins at once. A round that fails is logged, and the next one tries again. A stop
/// waits for the end of the current round.
///
/// # Errors
///
/// Fails if the operating system cannot start a thread.
pub(crate) fn start(authority: Arc<Authority>) -> io::Result<BackgroundThread> {
    BackgroundThread::start("auth", move |should_stop| {
        while !should_stop() {
            if let Err(error) = authority.run_housekeeping() {
                log::event(Level::Error, "auth", &[("reason", &error.reason())]);
            }
            std::thread::park_timeout(PAUSE);
        }
    })
}
