//! Events and status of the index of an open store, and how they reach the repair thread and the application.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// Maximum number of events that are kept until the application registers a watcher, and of the reasons in
/// [`IndexStatus::rebuilt`].
const EVENTS_KEPT: usize = 32;

/// A change in the health of the index while the store is open.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IndexEvent {
    /// The store is building a new index beside the current one. Reads that meet damage fail until it is done.
    Rebuilding {
        /// The defect of the current index.
        reason: String,
    },
    /// The new index has replaced the old one.
    Rebuilt {
        /// The defect of the old one.
        reason: String,
        /// How long it took to build.
        took: Duration,
    },
    /// Building a new index failed. The store will try again.
    RebuildFailed {
        /// The error.
        reason: String,
    },
    /// The disk refused an access to the index. The store will try again.
    Unavailable {
        /// The refused access.
        reason: String,
    },
    /// The index can be written again.
    Available,
}

/// The health of the index of an open store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexStatus {
    /// The reason why a new index is being built, or `None` if none is.
    pub rebuilding: Option<String>,
    /// The reasons of the rebuilds since the store was opened, oldest first. Only the latest are kept.
    pub rebuilt: Vec<String>,
    /// The reason why the index cannot be written, or `None` if it can. Writes to the store go on until memory is full,
    /// and are then refused with errors that can be retried.
    pub unavailable: Option<String>,
}

type Watcher = Box<dyn Fn(&IndexEvent) + Send>;

/// State shared by the threads that notice a fault and the thread that repairs it.
#[derive(Default)]
pub(crate) struct RepairState {
    /// True if a thread has asked for a check, and the check has not begun.
    is_check_requested: Mutex<bool>,
    wake: Condvar,
    report: Mutex<Report>,
}

#[derive(Default)]
struct Report {
    status: IndexStatus,
    events: VecDeque<IndexEvent>,
    watcher: Option<Watcher>,
}

impl RepairState {
    /// Asks the repair thread to check the index.
    pub(crate) fn request_check(&self) {
        *self.is_check_requested.lock() = true;
        self.wake.notify_all();
    }

    /// Waits until a thread asks for a check, but at most this long.
    pub(super) fn wait(&self, at_most: Duration) {
        let mut is_requested = self.is_check_requested.lock();
        if !*is_requested {
            self.wake.wait_for(&mut is_requested, at_most);
        }
        *is_requested = false;
    }

    pub(super) fn status(&self) -> IndexStatus {
        self.report.lock().status.clone()
    }

    /// Calls `watcher` for the kept events now, and for every later event. Each call holds the lock of the report, so
    /// the watcher must not use the store.
    pub(crate) fn watch(&self, watcher: impl Fn(&IndexEvent) + Send + 'static) {
        let mut report = self.report.lock();
        for event in report.events.drain(..) {
            watcher(&event);
        }
        report.watcher = Some(Box::new(watcher));
    }

    /// Updates the status, and passes the event to the watcher. Keeps the event if there is no watcher yet.
    pub(super) fn emit(&self, event: IndexEvent) {
        let mut report = self.report.lock();
        let status = &mut report.status;
        match &event {
            IndexEvent::Rebuilding { reason } => status.rebuilding = Some(reason.clone()),
            IndexEvent::Rebuilt { reason, .. } => {
                status.rebuilding = None;
                status.unavailable = None;
                if status.rebuilt.len() == EVENTS_KEPT {
                    status.rebuilt.remove(0);
                }
                status.rebuilt.push(reason.clone());
            }
            IndexEvent::RebuildFailed { .. } => status.rebuilding = None,
            IndexEvent::Unavailable { reason } => status.unavailable = Some(reason.clone()),
            IndexEvent::Available => status.unavailable = None,
        }
        if let Some(watcher) = &report.watcher {
            watcher(&event);
        } else {
            if report.events.len() == EVENTS_KEPT {
                report.events.pop_front();
            }
            report.events.push_back(event);
        }
    }

    /// Records that the index cannot be written, unless that is already known.
    pub(super) fn note_unavailable(&self, reason: &str) {
        if self.report.lock().status.unavailable.is_none() {
            self.emit(IndexEvent::Unavailable { reason: reason.to_owned() });
        }
    }

    /// Records that the index can be written again.
    pub(super) fn note_available(&self) {
        if self.report.lock().status.unavailable.is_some() {
            self.emit(IndexEvent::Available);
        }
    }
}
