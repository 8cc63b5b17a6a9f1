//! Runs one pipeline.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ledger_core::LogId;
use ledger_store::{FedLogs, FeedSize, Store, WriteError};
use tokio::sync::watch;

use super::destination::Destinations;
use super::error::LogsError;
use super::exporter::Setup;
use super::monitor::{PipelineMonitor, Progress};
use super::stored::{Pipeline, StoredPosition, move_position, position};
use crate::blocking;
use crate::integrations::events::commits::Commits;
use crate::limits::{PIPELINE_PART_BYTES, POSITION_INTERVAL};

/// The intervals of a pipeline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Intervals {
    /// Maximum time between two reads of new logs.
    pub(super) pull: Duration,
    /// The pause after a failed push.
    pub(super) retry: Duration,
}

/// A running pipeline and its resources.
pub(super) struct RunningPipeline {
    pub(super) store: Store,
    pub(super) commits: Commits,
    pub(super) pipeline: Pipeline,
    pub(super) setup: Setup,
    pub(super) destinations: Arc<Destinations>,
    pub(super) intervals: Intervals,
    pub(super) monitor: Arc<PipelineMonitor>,
    pub(super) stopped: watch::Receiver<bool>,
}

/// The position of a pipeline, in memory and in the store.
struct Positions {
    /// The last log that the destination accepted.
    last: Option<LogId>,
    /// The stored position, which may be older.
    stored: StoredPosition,
    /// The time of the last attempt to store the position, or of the start.
    stored_at: Instant,
}

impl Positions {
    /// Returns when to store the position, or `None` if the stored one is up to date.
    fn due(&self) -> Option<Instant> {
        (self.last != self.stored.last).then(|| self.stored_at + POSITION_INTERVAL)
    }
}

impl RunningPipeline {
    /// Runs until the pipeline is stopped or deleted, or until another writer changes its stored position.
    pub(super) async fn run(self) {
        let stored = loop {
            match position(&self.store.snapshot(), &self.pipeline.id) {
                Ok(Some(stored)) => break stored,
                Ok(None) => return,
                Err(error) => {
                    self.record(None, Some(error.to_string()));
                    if self.pause(self.intervals.retry).await.is_err() {
                        return;
                    }
                }
            }
        };
        let mut positions = Positions { last: stored.last, stored, stored_at: Instant::now() };
        self.record(positions.last, None);
        let mut stopped = self.stopped.clone();
        let mut overtaken = false;
        tokio::select! {
            // An error means that the worker is gone.
            _ = stopped.wait_for(|stop| *stop) => {}
            () = self.push_logs(&mut positions) => overtaken = true,
        }
        if !overtaken && positions.last != positions.stored.last {
            let _ = self.store_position(&mut positions).await;
        }
    }

    /// Pushes logs until another writer changes the stored position.
    async fn push_logs(&self, positions: &mut Positions) {
        let mut commits = self.commits.clone();
        loop {
            commits.begin();
            let part = match self.read(positions.last).await {
                Ok(part) => part,
                Err(error) => {
                    self.record(positions.last, Some(error.to_string()));
                    tokio::time::sleep(self.intervals.retry).await;
                    continue;
                }
            };
            if part.logs.is_empty() {
                let wake = Instant::now() + self.intervals.pull;
                let wake = positions.due().map_or(wake, |due| due.min(wake));
                tokio::select! {
                    () = commits.next() => {}
                    () = tokio::time::sleep_until(wake.into()) => {}
                }
            } else {
                self.push(positions, part).await;
            }
            if positions.due().is_some_and(|due| due <= Instant::now())
                && self.store_position(positions).await.is_err()
            {
                return;
            }
        }
    }

    /// Pushes the available logs. If they do not fill a push, waits for more during the exporter's interval.
    async fn push(&self, positions: &mut Positions, mut part: FedLogs) {
        if !part.has_more && part.logs.len() < self.setup.batching.items {
            tokio::time::sleep(self.setup.batching.interval).await;
            match self.read(positions.last).await {
                Ok(more) => part = more,
                Err(error) => return self.failed(positions, error.to_string()).await,
            }
        }
        match self.destinations.push(&self.setup.driver, &part.logs).await {
            Ok(()) => {
                positions.last = part.logs.last().map(|fed| fed.log.entry.id).or(positions.last);
                self.record(positions.last, None);
            }
            Err(error) => {
                drop(part);
                self.failed(positions, error.to_string()).await;
            }
        }
    }

    async fn failed(&self, positions: &Positions, reason: String) {
        self.record(positions.last, Some(reason));
        tokio::time::sleep(self.intervals.retry).await;
    }

    async fn read(&self, after: Option<LogId>) -> Result<FedLogs, LogsError> {
        let (store, ledger, number) =
            (self.store.clone(), self.pipeline.ledger.clone(), self.pipeline.number);
        let size = FeedSize { logs: self.setup.batching.items, bytes: PIPELINE_PART_BYTES };
        let read = blocking::run(move || {
            let view =
                store.snapshot().ledger(&ledger).filter(|view| number.is_none_or(|is| is == view.info().id));
            Ok(view.ok_or(LogsError::LedgerNotFound)?.logs_after(after, size, true)?)
        });
        read.await?
    }

    /// Stores the position. If the write fails, tells the reason and returns `Ok`: a later write stores the position.
    /// Returns `Err` only if another writer has changed or deleted the stored position, so that the run must end.
    async fn store_position(&self, positions: &mut Positions) -> Result<(), ()> {
        let (store, id, stored, last) =
            (self.store.clone(), self.pipeline.id.clone(), positions.stored, positions.last);
        let stored = blocking::run(move || move_position(&store, &id, stored, last)).await;
        positions.stored_at = Instant::now();
        match stored {
            Ok(Ok(stored)) => positions.stored = stored,
            Ok(Err(WriteError::Document(_))) => return Err(()),
            Ok(Err(error)) => self.record(positions.last, Some(error.to_string())),
            Err(error) => self.record(positions.last, Some(error.to_string())),
        }
        Ok(())
    }

    fn record(&self, last: Option<LogId>, error: Option<String>) {
        self.monitor.record(&self.pipeline, Progress { run: self.pipeline.run, last, error });
    }

    /// Waits. An error means that the pipeline must stop.
    async fn pause(&self, time: Duration) -> Result<(), ()> {
        let mut stopped = self.stopped.clone();
        tokio::select! {
            _ = stopped.wait_for(|stop| *stop) => Err(()),
            () = tokio::time::sleep(time) => Ok(()),
        }
    }
}
