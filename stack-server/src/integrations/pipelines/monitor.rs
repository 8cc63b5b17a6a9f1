//! The progress of running pipelines, for the API.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use ledger_core::LogId;
use tokio::sync::Notify;

use super::stored::Pipeline;
use crate::log::{self, Level};

/// The progress of a running pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The run of the pipeline that this progress belongs to.
    pub(crate) run: u64,
    /// The last log that the destination accepted.
    pub(crate) last: Option<LogId>,
    /// The error of the last attempt, if it failed.
    pub(crate) error: Option<String>,
}

/// The progress of every running pipeline, and the signal that wakes the worker.
#[derive(Debug, Default)]
pub(crate) struct PipelineMonitor {
    progress: Mutex<BTreeMap<String, Progress>>,
    changed: Notify,
}

impl PipelineMonitor {
    /// Returns the progress of a pipeline, if it runs in this process.
    pub(crate) fn progress(&self, pipeline: &Pipeline) -> Option<Progress> {
        let all = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&pipeline.id).filter(|progress| progress.run == pipeline.run).cloned()
    }

    /// Wakes the worker, so that it compares the running pipelines with the stored ones.
    pub(crate) fn wake(&self) {
        self.changed.notify_one();
    }

    /// Waits until the worker is woken.
    pub(super) async fn woken(&self) {
        self.changed.notified().await;
    }

    /// Records the progress of a pipeline, and logs its error if the error is new.
    pub(super) fn record(&self, pipeline: &Pipeline, progress: Progress) {
        let mut all = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let told = all.get(&pipeline.id).and_then(|before| before.error.as_ref());
        if let Some(reason) = progress.error.as_ref().filter(|reason| told != Some(reason)) {
            let fields: [(&str, &dyn std::fmt::Display); 3] =
                [("pipeline", &pipeline.id), ("ledger", &pipeline.ledger), ("reason", &reason)];
            log::event(Level::Error, "pipeline", &fields);
        }
        all.insert(pipeline.id.clone(), progress);
    }

    /// Removes the progress of a pipeline that no longer runs.
    pub(super) fn forget(&self, id: &str) {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}
