//! The worker that removes buckets for good that were deleted long ago, and gives their space back.
//!
//! What is removed is decided by the store, whose clock counts; the worker only says when to look. What was interrupted
//! goes on at the next time.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use ledger_store::Store;

use crate::error::ApiError;
use crate::log::{self, Level};
use crate::pipelines::{Live, stored};
use crate::schedule::Schedule;
use crate::settings::Settings;

/// It looks at the clock so often, at least: the clock may be set.
const LOOK: Duration = Duration::from_mins(1);

/// The thread that does it.
#[derive(Debug)]
pub(crate) struct Cleanup {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Cleanup {
    /// Begins to look when it is due.
    ///
    /// # Errors
    ///
    /// If the operating system refuses a thread.
    pub(crate) fn start(store: &Store, settings: &Settings, pipelines: Arc<Live>) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (store, stopped) = (store.clone(), Arc::clone(&stop));
        let (schedule, retention) = (settings.cleanup_schedule.clone(), settings.cleanup_retention);
        let thread = std::thread::Builder::new().name("cleanup".to_owned()).spawn(move || {
            let should_stop = || stopped.load(Ordering::Relaxed);
            look(&schedule, &should_stop, || run(&store, retention, &pipelines, &should_stop));
        })?;
        Ok(Self { stop, thread })
    }

    /// Ends it; what it was doing goes on at another time.
    pub(crate) fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        // A thread that panicked has told so itself.
        let _ = self.thread.join();
    }
}

/// Does the work whenever it is due, until it is to stop.
fn look(schedule: &Schedule, should_stop: &dyn Fn() -> bool, work: impl Fn()) {
    let mut after = log::now();
    while let Some(due) = schedule.next(after) {
        loop {
            let now = log::now();
            if now >= due {
                break;
            }
            let left = Duration::from_micros(now.as_micros().abs_diff(due.as_micros()));
            std::thread::park_timeout(left.min(LOOK));
            if should_stop() {
                return;
            }
        }
        work();
        if should_stop() {
            return;
        }
        // Times that passed meanwhile are passed over.
        after = log::now().max(due);
    }
}

/// Removes what is due, with its pipelines, and gives the space back.
fn run(store: &Store, retention: Duration, pipelines: &Live, should_stop: &dyn Fn() -> bool) {
    if let Err(error) = try_run(store, retention, pipelines, should_stop) {
        log::event(Level::Error, "cleanup", &[("reason", &error)]);
    }
}

fn try_run(
    store: &Store,
    retention: Duration,
    pipelines: &Live,
    should_stop: &dyn Fn() -> bool,
) -> Result<(), String> {
    let removed = store.remove_deleted(retention).map_err(|error| error.to_string())?;
    if !removed.is_empty() {
        let mut buckets: Vec<&str> = removed.iter().map(|ledger| ledger.bucket.as_str()).collect();
        buckets.sort_unstable();
        buckets.dedup();
        let fields: [(&str, &dyn std::fmt::Display); 2] =
            [("ledgers", &removed.len()), ("buckets", &buckets.join(", "))];
        log::event(Level::Info, "removed", &fields);
    }
    // Also those of an earlier time that was interrupted.
    if stored::delete_orphans(store).map_err(|error: ApiError| error.message)? {
        pipelines.call();
    }
    let reclaimed = store.reclaim(should_stop).map_err(|error| error.to_string())?;
    if reclaimed.ledgers > 0 {
        let fields: [(&str, &dyn std::fmt::Display); 2] =
            [("ledgers", &reclaimed.ledgers), ("journal_bytes", &reclaimed.journal_bytes)];
        log::event(Level::Info, "reclaimed", &fields);
    }
    Ok(())
}
