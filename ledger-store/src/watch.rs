//! Callbacks that are called after a commit.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

type Wake = Box<dyn Fn() + Send + Sync>;

/// Those who want to be told. There are few: one of a server tells all its consumers.
#[derive(Default)]
pub(crate) struct Watchers(Mutex<Watching>);

#[derive(Default)]
struct Watching {
    /// The number of the next one.
    next: u64,
    all: Vec<(u64, Wake)>,
}

impl Watchers {
    /// Adds one, until what is returned is dropped.
    pub(crate) fn add(self: &Arc<Self>, wake: Wake) -> CommitWatch {
        let mut watching = self.0.lock();
        let number = watching.next;
        watching.next += 1;
        watching.all.push((number, wake));
        CommitWatch { watchers: self.clone(), number }
    }

    /// Tells all.
    pub(crate) fn wake(&self) {
        for (_, wake) in &self.0.lock().all {
            wake();
        }
    }
}

/// Keeps a call after every commit alive, see [`crate::Store::watch_commits`]. Once it is dropped there is none.
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
