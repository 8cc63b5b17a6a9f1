//! The worker that permanently removes buckets whose retention period has passed, and reclaims their disk space.
//!
//! The store decides by its own clock which buckets to remove. The worker only decides when to ask. An interrupted
//! removal continues at the next run.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use ledger_store::{ReadError, Store, WriteError};
use thiserror::Error;

use crate::background::BackgroundThread;
use crate::http::error::ApiError;
use crate::integrations::pipelines::{PipelineMonitor, stored};
use crate::log::{self, Level};
use crate::schedule::Schedule;
use crate::settings::Settings;

/// Maximum time between two checks of the clock. Bounds the delay when somebody sets the clock.
const CLOCK_CHECK_INTERVAL: Duration = Duration::from_mins(1);

/// A run that failed. The next run continues.
#[derive(Debug, Error)]
enum CleanupError {
    #[error("removing buckets: {0}")]
    Remove(#[source] WriteError),
    #[error("deleting pipelines: {}", .0.reason())]
    DeletePipelines(ApiError),
    #[error("reclaiming disk space: {0}")]
    Reclaim(#[source] ReadError),
}

/// Starts the worker. A stop interrupts a removal, which continues at the next start.
///
/// # Errors
///
/// Fails if the operating system cannot start a thread.
pub(crate) fn start(
    store: &Store,
    settings: &Settings,
    pipelines: Arc<PipelineMonitor>,
) -> io::Result<BackgroundThread> {
    let store = store.clone();
    let (schedule, retention) = (settings.cleanup_schedule.clone(), settings.cleanup_retention);
    BackgroundThread::start("cleanup", move |should_stop| {
        run_on_schedule(&schedule, should_stop, || run(&store, retention, &pipelines, should_stop));
    })
}

/// Runs the work at the times of the schedule, until it must stop.
fn run_on_schedule(schedule: &Schedule, should_stop: &dyn Fn() -> bool, work: impl Fn()) {
    let mut after = log::now();
    while let Some(due) = schedule.next(after) {
        loop {
            let now = log::now();
            if now >= due {
                break;
            }
            let left = Duration::from_micros(now.as_micros().abs_diff(due.as_micros()));
            std::thread::park_timeout(left.min(CLOCK_CHECK_INTERVAL));
            if should_stop() {
                return;
            }
        }
        work();
        if should_stop() {
            return;
        }
        // Skip the times that passed while the work ran.
        after = log::now().max(due);
    }
}

/// Removes the buckets whose retention period has passed, with their pipelines, and reclaims their space.
fn run(store: &Store, retention: Duration, pipelines: &PipelineMonitor, should_stop: &dyn Fn() -> bool) {
    if let Err(error) = try_run(store, retention, pipelines, should_stop) {
        log::event(Level::Error, "cleanup", &[("reason", &error)]);
    }
}

fn try_run(
    store: &Store,
    retention: Duration,
    pipelines: &PipelineMonitor,
    should_stop: &dyn Fn() -> bool,
) -> Result<(), CleanupError> {
    let removed = store.remove_deleted(retention).map_err(CleanupError::Remove)?;
    if !removed.is_empty() {
        let mut buckets: Vec<&str> = removed.iter().map(|ledger| ledger.bucket.as_str()).collect();
        buckets.sort_unstable();
        buckets.dedup();
        let fields: [(&str, &dyn std::fmt::Display); 2] =
            [("ledgers", &removed.len()), ("buckets", &buckets.join(", "))];
        log::event(Level::Info, "removed", &fields);
    }
    // Also delete pipelines that an interrupted run left behind.
    if stored::delete_orphans(store).map_err(CleanupError::DeletePipelines)? {
        pipelines.wake();
    }
    let reclaimed = store.reclaim(should_stop).map_err(CleanupError::Reclaim)?;
    if reclaimed.ledgers > 0 {
        let fields: [(&str, &dyn std::fmt::Display); 2] =
            [("ledgers", &reclaimed.ledgers), ("journal_bytes", &reclaimed.journal_bytes)];
        log::event(Level::Info, "reclaimed", &fields);
    }
    Ok(())
}
