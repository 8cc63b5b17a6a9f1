//! Events of the index of an open store, and the thread and the watcher that are told.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// The most events that are kept for who has not asked for them yet.
const EVENTS_KEPT: usize = 32;
/// An event of the index of an open store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IndexEvent {
    /// A new index is being built beside the one in use. Reads that meet damage fail until it is done.
    Rebuilding {
        /// The defect of the one in use.
        reason: String,
    },
    /// A new index has taken the place of the old one.
    Rebuilt {
        /// The defect of the old one.
        reason: String,
        /// How long it took to build.
        took: Duration,
    },
    /// No new index could be built. It is tried again.
    RebuildFailed {
        /// The failure.
        reason: String,
    },
    /// The disk refused an access to the index. It is tried again.
    Unavailable {
        /// The refused access.
        reason: String,
    },
    /// The index can be written again.
    Available,
}

/// How the index of an open store stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexStatus {
    /// Why a new one is being built, if so.
    pub rebuilding: Option<String>,
    /// Why others were built since the store was opened, oldest first; the last ones, if there were many.
    pub rebuilt: Vec<String>,
    /// Why the index cannot be written, if so. Writes go on until memory is full, and then wait to be tried again.
    pub unavailable: Option<String>,
}

type Watcher = Box<dyn Fn(&IndexEvent) + Send>;

/// The state shared by the threads that notice a fault and the thread that mends it.
#[derive(Default)]
pub(crate) struct Mending {
    wanted: Mutex<bool>,
    told: Condvar,
    report: Mutex<Report>,
}

#[derive(Default)]
struct Report {
    status: IndexStatus,
    events: VecDeque<IndexEvent>,
    watcher: Option<Watcher>,
}

impl Mending {
    /// Has the thread look at the index.
    pub(crate) fn want(&self) {
        *self.wanted.lock() = true;
        self.told.notify_all();
    }

    /// Waits until the index is to be looked at, or for this time.
    pub(super) fn wait(&self, at_most: Duration) {
        let mut wanted = self.wanted.lock();
        if !*wanted {
            self.told.wait_for(&mut wanted, at_most);
        }
        *wanted = false;
    }

    pub(super) fn status(&self) -> IndexStatus {
        self.report.lock().status.clone()
    }

    /// Calls `watcher` for each event, those of before first.
    pub(crate) fn watch(&self, watcher: impl Fn(&IndexEvent) + Send + 'static) {
        let mut report = self.report.lock();
        for event in report.events.drain(..) {
            watcher(&event);
        }
        report.watcher = Some(Box::new(watcher));
    }

    pub(super) fn tell(&self, event: IndexEvent) {
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

    /// Notes that the index cannot be written, unless that is known.
    pub(super) fn note_unavailable(&self, reason: &str) {
        if self.report.lock().status.unavailable.is_none() {
            self.tell(IndexEvent::Unavailable { reason: reason.to_owned() });
        }
    }

    /// Notes that the index can be written.
    pub(super) fn note_available(&self) {
        if self.report.lock().status.unavailable.is_some() {
            self.tell(IndexEvent::Available);
        }
    }
}
