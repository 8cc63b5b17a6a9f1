//! Callbacks that run after each commit.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

type Wake = Box<dyn Fn() + Send + Sync>;

/// The registered callbacks. There are few: a server registers one for all its consumers.
#[derive(Default)]
pub(crate) struct Watchers(Mutex<Watching>);

#[derive(Default)]
struct Watching {
    /// The number of the next callback.
    next: u64,
    all: Vec<(u64, Wake)>,
}

impl Watchers {
    /// Registers a callback until the returned value is dropped.
    pub(crate) fn add(self: &Arc<Self>, wake: Wake) -> CommitWatch {
        let mut watching = self.0.lock();
        let number = watching.next;
        watching.next += 1;
        watching.all.push((number, wake));
        CommitWatch { watchers: self.clone(), number }
    }

    /// Calls all callbacks.
    pub(crate) fn wake(&self) {
        for (_, wake) in &self.0.lock().all {
            wake();
        }
    }
}

/// Keeps a callback registered; see [`crate::Store::watch_commits`]. Dropping it removes the callback.
pub struct CommitWatch {
    watchers: Arc<Watchers>,
    number: u64,
}

impl Drop for CommitWatch {
    fn drop(&mut self) {
        self.watchers.0.lock().all.retain(|(number, _)| *number != self.number);
    }
}

impl fmt::Debug for CommitWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommitWatch").finish_non_exhaustive()
    }
}
