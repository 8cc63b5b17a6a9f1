//! The worker runs the enabled pipelines with the current configuration of their exporters.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use ledger_store::{ReadError, Store};
use serde_json::value::RawValue;
use tokio::sync::watch;

use super::destination::Destinations;
use super::exporter::{ExporterPolicy, Setup};
use super::monitor::{PipelineMonitor, Progress};
use super::pipeline::{Intervals, RunningPipeline};
use super::stored::{self, Pipeline};
use crate::background::stop_signal;
use crate::integrations::events::commits::Commits;
use crate::limits::DELIVERY_STOP_TIMEOUT;
use crate::log::{self, Level};
use crate::settings::Settings;

/// The thread that runs the pipelines.
#[derive(Debug)]
pub(crate) struct Worker {
    stop: watch::Sender<bool>,
    thread: JoinHandle<()>,
}

impl Worker {
    /// Starts the enabled pipelines.
    ///
    /// # Errors
    ///
    /// Fails if the operating system cannot start a thread, or if the folder for files cannot be created.
    pub(crate) fn start(
        store: &Store,
        settings: &Settings,
        policy: ExporterPolicy,
        monitor: Arc<PipelineMonitor>,
    ) -> io::Result<Self> {
        let destinations = Arc::new(Destinations::new(&policy)?);
        let intervals =
            Intervals { pull: settings.pipelines_pull_interval, retry: settings.pipelines_retry_period };
        let (stop, stopped) = watch::channel(false);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut supervisor = Supervisor {
            store: store.clone(),
            commits: Commits::of(store),
            policy,
            destinations,
            intervals,
            monitor,
            tasks: BTreeMap::new(),
        };
        let sync = settings.pipelines_sync_period;
        let thread = std::thread::Builder::new().name("pipelines".to_owned()).spawn(move || {
            runtime.block_on(async {
                let mut stop = std::pin::pin!(stop_signal(stopped));
                loop {
                    supervisor.sync().await;
                    tokio::select! {
                        () = &mut stop => break,
                        () = supervisor.monitor.woken() => {}
                        () = tokio::time::sleep(sync) => {}
                    }
                }
                supervisor.stop_all().await;
            });
            // Abandon a push to a disk or a terminal that hangs.
            runtime.shutdown_timeout(DELIVERY_STOP_TIMEOUT);
        })?;
        Ok(Self { stop, thread })
    }

    /// Stops all pipelines and stores their positions.
    pub(crate) fn stop(self) {
        let _ = self.stop.send(true);
        // A panic of the thread has been reported already.
        let _ = self.thread.join();
    }
}

/// The configuration that a task was started with. The worker restarts the task if any of it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TaskConfig {
    run: u64,
    exporter: String,
    driver: String,
    config: Box<str>,
}

struct Task {
    config: TaskConfig,
    stop: watch::Sender<bool>,
    handle: tokio::task::JoinHandle<()>,
}

struct Supervisor {
    store: Store,
    /// All pipelines share one watcher, so that the committing thread notifies only one.
    commits: Commits,
    policy: ExporterPolicy,
    destinations: Arc<Destinations>,
    intervals: Intervals,
    monitor: Arc<PipelineMonitor>,
    tasks: BTreeMap<String, Task>,
}

impl Supervisor {
    /// Stops the pipelines that should not run and starts those that should.
    async fn sync(&mut self) {
        let wanted = match self.wanted() {
            Ok(wanted) => wanted,
            Err(error) => {
                log::event(Level::Error, "pipelines", &[("reason", &error)]);
                return;
            }
        };
        let outdated = |id: &String, task: &Task| {
            task.handle.is_finished()
                || wanted.get(id).is_none_or(|(_, task_config)| *task_config != task.config)
        };
        let ended: Vec<String> =
            self.tasks.iter().filter(|(id, task)| outdated(id, task)).map(|(id, _)| id.clone()).collect();
        for id in ended {
            self.stop(&id).await;
        }
        for (id, (pipeline, task_config)) in wanted {
            if !self.tasks.contains_key(&id) {
                self.begin(pipeline, task_config);
            }
        }
    }

    fn wanted(&self) -> Result<BTreeMap<String, (Pipeline, TaskConfig)>, ReadError> {
        let snapshot = self.store.snapshot();
        let mut wanted = BTreeMap::new();
        for pipeline in stored::pipelines(&snapshot, None)?.into_iter().filter(|pipeline| pipeline.enabled) {
            // No request can create a pipeline without an exporter.
            let Some(exporter) = stored::exporter(&snapshot, &pipeline.exporter)? else { continue };
            let exporter = exporter.value;
            let task_config = TaskConfig {
                run: pipeline.run,
                exporter: exporter.id,
                driver: exporter.driver,
                config: exporter.config,
            };
            wanted.insert(pipeline.id.clone(), (pipeline, task_config));
        }
        Ok(wanted)
    }

    fn begin(&mut self, pipeline: Pipeline, task_config: TaskConfig) {
        // The configuration was valid when the client sent it. The operator may have set stricter limits since
        // then.
        let setup = serde_json::from_str::<&RawValue>(&task_config.config)
            .map_err(|error| error.to_string())
            .and_then(|config| {
                Setup::read(&task_config.driver, Some(config), &self.policy)
                    .map_err(|error| error.to_string())
            });
        let setup = match setup {
            Ok(setup) => setup,
            Err(reason) => {
                let last = stored::position(&self.store.snapshot(), &pipeline.id);
                let last = last.ok().flatten().and_then(|kept| kept.last);
                let progress = Progress { run: pipeline.run, last, error: Some(reason) };
                return self.monitor.record(&pipeline, progress);
            }
        };
        let (stop, stopped) = watch::channel(false);
        let id = pipeline.id.clone();
        let running = RunningPipeline {
            store: self.store.clone(),
            commits: self.commits.clone(),
            pipeline,
            setup,
            destinations: self.destinations.clone(),
            intervals: self.intervals,
            monitor: self.monitor.clone(),
            stopped,
        };
        self.tasks.insert(id, Task { config: task_config, stop, handle: tokio::spawn(running.run()) });
    }

    async fn stop(&mut self, id: &str) {
        if let Some(task) = self.tasks.remove(id) {
            let _ = task.stop.send(true);
            // A panic of the task has been reported already.
            let _ = task.handle.await;
        }
        self.monitor.forget(id);
    }

    async fn stop_all(&mut self) {
        for task in self.tasks.values() {
            let _ = task.stop.send(true);
        }
        for (_, task) in std::mem::take(&mut self.tasks) {
            let _ = task.handle.await;
        }
    }
}
