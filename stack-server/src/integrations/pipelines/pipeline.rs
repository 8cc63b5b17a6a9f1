//! Runs one pipeline.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ledger_core::LogId;
use ledger_store::{FedLogs, FeedSize, Store, WriteError};
use tokio::sync::watch;

use super::destination::Destinations;
use super::error::LogsError;
use super::exporter::Setup;
use super::live::{Live, Progress};
use super::stored::{KeptPosition, Pipeline, move_position, position};
use crate::blocking;
use crate::integrations::events::commits::Commits;
use crate::limits::{PIPELINE_PART_BYTES, POSITION_INTERVAL};

/// The intervals of a pipeline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Periods {
    /// Maximum time between two reads of new logs.
    pub(super) pull: Duration,
    /// The pause after a failed push.
    pub(super) retry: Duration,
}

/// A running pipeline and its resources.
pub(super) struct Running {
    pub(super) store: Store,
    pub(super) commits: Commits,
    pub(super) pipeline: Pipeline,
    pub(super) setup: Setup,
    pub(super) destinations: Arc<Destinations>,
    pub(super) periods: Periods,
    pub(super) live: Arc<Live>,
    pub(super) stopped: watch::Receiver<bool>,
}

/// The position of a pipeline, in memory and in its document.
struct Place {
    last: Option<LogId>,
    kept: KeptPosition,
    kept_at: Instant,
}

impl Place {
    fn due(&self) -> Option<Instant> {
        (self.last != self.kept.last).then(|| self.kept_at + POSITION_INTERVAL)
    }
}

impl Running {
    /// Runs until the pipeline is stopped, or until another writer changes its document.
    pub(super) async fn run(self) {
        let kept = loop {
            match position(&self.store.snapshot(), &self.pipeline.id) {
                Ok(Some(kept)) => break kept,
                Ok(None) => return,
                Err(error) => {
                    self.tell(None, Some(error.to_string()));
                    if self.pause(self.periods.retry).await.is_err() {
                        return;
                    }
                }
            }
        };
        let mut place = Place { last: kept.last, kept, kept_at: Instant::now() };
        self.tell(place.last, None);
        let mut stopped = self.stopped.clone();
        let mut moved = false;
        tokio::select! {
            // An error means that the worker is gone.
            _ = stopped.wait_for(|stop| *stop) => {}
            () = self.work(&mut place) => moved = true,
        }
        if !moved && place.last != place.kept.last {
            let _ = self.keep(&mut place).await;
        }
    }

    /// Pushes logs until another writer changes the document.
    async fn work(&self, place: &mut Place) {
        let mut commits = self.commits.clone();
        loop {
            commits.begin();
            let part = match self.read(place.last).await {
                Ok(part) => part,
                Err(error) => {
                    self.tell(place.last, Some(error.to_string()));
                    tokio::time::sleep(self.periods.retry).await;
                    continue;
                }
            };
            if part.logs.is_empty() {
                let wake = Instant::now() + self.periods.pull;
                let wake = place.due().map_or(wake, |due| due.min(wake));
                tokio::select! {
                    () = commits.next() => {}
                    () = tokio::time::sleep_until(wake.into()) => {}
                }
            } else {
                self.push(place, part).await;
            }
            if place.due().is_some_and(|due| due <= Instant::now()) && self.keep(place).await.is_err() {
                return;
            }
        }
    }

    /// Pushes the available logs. If they do not fill a push, waits for more during the exporter's interval.
    async fn push(&self, place: &mut Place, mut part: FedLogs) {
        if !part.has_more && part.logs.len() < self.setup.batching.items {
            tokio::time::sleep(self.setup.batching.interval).await;
            match self.read(place.last).await {
                Ok(more) => part = more,
                Err(error) => return self.failed(place, error.to_string()).await,
            }
        }
        match self.destinations.push(&self.setup.driver, &part.logs).await {
            Ok(()) => {
                place.last = part.logs.last().map(|fed| fed.log.entry.id).or(place.last);
                self.tell(place.last, None);
            }
            Err(error) => {
                drop(part);
                self.failed(place, error.to_string()).await;
            }
        }
    }

    async fn failed(&self, place: &Place, reason: String) {
        self.tell(place.last, Some(reason));
        tokio::time::sleep(self.periods.retry).await;
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

    /// Stores the position. An error means that another writer has changed the document. If the write fails, a
    /// later one includes the position.
    async fn keep(&self, place: &mut Place) -> Result<(), ()> {
        let (store, id, kept, last) = (self.store.clone(), self.pipeline.id.clone(), place.kept, place.last);
        let moved = blocking::run(move || move_position(&store, &id, kept, last)).await;
        place.kept_at = Instant::now();
        match moved {
            Ok(Ok(kept)) => place.kept = kept,
            Ok(Err(WriteError::Document(_))) => return Err(()),
            Ok(Err(error)) => self.tell(place.last, Some(error.to_string())),
            Err(error) => self.tell(place.last, Some(error.to_string())),
        }
        Ok(())
    }

    fn tell(&self, last: Option<LogId>, error: Option<String>) {
        self.live.tell(&self.pipeline, Progress { run: self.pipeline.run, last, error });
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
