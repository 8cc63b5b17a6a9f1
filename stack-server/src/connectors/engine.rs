//! The engine starts, stops and locks installations. The [`Worker`] is the thread that runs their tasks.
//!
//! This one thread fetches for all installations, so that API requests do not wait for providers. A provider that hangs
//! delays only its own tasks. Other threads record the fetched data.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread::JoinHandle;

use tokio::runtime::Handle;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, watch};

use crate::background::stop_signal;
use crate::connectors::clock::Clock;
use crate::connectors::config::Values;
use crate::connectors::definition::Definition;
use crate::connectors::error::{InstallationError, log_fault};
use crate::connectors::http::ProviderAccess;
use crate::connectors::registry;
use crate::connectors::runner::{Context, Runner};
use crate::http::error::ApiError;
use crate::limits::DELIVERY_STOP_TIMEOUT;
use crate::payments::enumerations::TaskStatus;
use crate::payments::ids::ConnectorId;
use crate::payments::installation::{self, Installation};
use crate::payments::service::Payments;
use crate::payments::task;
use crate::uuid::Uuid;

/// Runs connectors. A clone is cheap.
#[derive(Clone)]
pub(crate) struct Engine(pub(super) Arc<Shared>);

pub(super) struct Shared {
    pub(super) payments: Arc<Payments>,
    pub(super) definitions: &'static [Definition],
    pub(super) access: ProviderAccess,
    pub(super) clock: Arc<dyn Clock>,
    /// The runtime of the tasks. Without it, no task runs.
    runtime: OnceLock<Handle>,
    running: Mutex<BTreeMap<Uuid, Arc<Runner>>>,
    /// Locks of the installations that are being changed.
    changing: Mutex<BTreeMap<Uuid, Weak<AsyncMutex<()>>>>,
}

impl Engine {
    pub(crate) fn new(
        payments: Arc<Payments>,
        definitions: &'static [Definition],
        access: ProviderAccess,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let (runtime, running, changing) = (OnceLock::new(), Mutex::default(), Mutex::default());
        Self(Arc::new(Shared { payments, definitions, access, clock, runtime, running, changing }))
    }

    /// Returns the payments service, which contains the records.
    pub(crate) fn payments(&self) -> &Arc<Payments> {
        &self.0.payments
    }

    /// Returns the connectors that can be installed.
    pub(crate) fn definitions(&self) -> &'static [Definition] {
        self.0.definitions
    }

    /// Returns the connector with this name in any case.
    ///
    /// # Errors
    ///
    /// `NOT_FOUND` if there is none.
    pub(crate) fn definition(&self, name: &str) -> Result<&'static Definition, ApiError> {
        let found = registry::find(self.0.definitions, name);
        found.ok_or_else(|| ApiError::not_found(format!("connector {name:?} is unknown")))
    }

    /// Returns the runtime of the tasks, if this process runs them.
    pub(super) fn runtime(&self) -> Option<&Handle> {
        self.0.runtime.get()
    }

    /// Returns the definition of an installation's connector, and the decrypted configuration.
    ///
    /// # Errors
    ///
    /// Fails if the configuration does not decrypt, or cannot be parsed.
    pub(crate) fn values(
        &self,
        installation: &Installation,
    ) -> Result<(&'static Definition, Values), InstallationError> {
        let name = &installation.id.provider;
        let definition = registry::find(self.0.definitions, name);
        let definition =
            definition.ok_or_else(|| InstallationError::UnknownConnector(name.as_ref().into()))?;
        let purpose = purpose(&installation.id);
        let opened = self.0.payments.sealer.open(&purpose, &installation.config);
        let not_decrypted = |reason| InstallationError::Sealed { name: installation.name.clone(), reason };
        let text = opened.map_err(not_decrypted)?;
        Ok((definition, Values::read(&text, definition.parameters)?))
    }

    /// Encrypts a configuration.
    pub(super) fn sealed_config(
        &self,
        id: &ConnectorId,
        definition: &Definition,
        values: &Values,
    ) -> Result<Vec<u8>, ApiError> {
        let text = values.stored_json(definition.parameters);
        let sealed = self.0.payments.sealer.seal(&purpose(id), text.as_bytes());
        sealed.map_err(|error| ApiError::fault(&error.to_string()))
    }

    /// Locks an installation, so that only one caller at a time installs, changes or removes it. Without the lock, two
    /// concurrent changes could each start a runner, and only one of the runners could be stopped later.
    pub(super) async fn lock_installation(&self, installation: &Uuid) -> OwnedMutexGuard<()> {
        let lock = {
            let mut changing = self.0.changing.lock().unwrap_or_else(PoisonError::into_inner);
            changing.retain(|_, lock| lock.strong_count() > 0);
            changing.get(installation).and_then(Weak::upgrade).unwrap_or_else(|| {
                let lock = Arc::default();
                changing.insert(*installation, Arc::downgrade(&lock));
                lock
            })
        };
        lock.lock_owned().await
    }

    pub(super) fn runner(&self, installation: &Uuid) -> Option<Arc<Runner>> {
        self.0.running.lock().unwrap_or_else(PoisonError::into_inner).get(installation).cloned()
    }

    /// Creates the runner of an installation and registers it, without starting tasks. Returns `None` if this process
    /// runs no tasks.
    pub(super) fn prepare(
        &self,
        installation: &Installation,
    ) -> Result<Option<Arc<Runner>>, InstallationError> {
        let Some(runtime) = self.runtime().cloned() else { return Ok(None) };
        let (definition, values) = self.values(installation)?;
        let connector = (definition.build)(&values, &self.0.access)?;
        let period = values.duration(definition.period);
        let context = Context { payments: self.0.payments.clone(), clock: self.0.clock.clone(), runtime };
        let runner =
            Arc::new(Runner::new(context, installation.id.clone(), connector, period, definition.slots));
        let mut running = self.0.running.lock().unwrap_or_else(PoisonError::into_inner);
        let before = running.insert(installation.id.installation, runner.clone());
        debug_assert!(before.is_none(), "an installation has one runner");
        Ok(Some(runner))
    }

    /// Starts all active tasks of an installation.
    pub(super) fn start_tasks(&self, installation: &Installation) -> Result<(), InstallationError> {
        let Some(runner) = self.prepare(installation)? else { return Ok(()) };
        let id = &installation.id.installation;
        let tasks = task::all(&self.0.payments.snapshot(), id)?;
        for task in tasks.into_iter().filter(|task| task.status == TaskStatus::Active) {
            runner.start(task);
        }
        Ok(())
    }

    /// Stops an installation. Waits until none of its tasks runs or writes.
    pub(super) async fn stop_tasks(&self, installation: &Uuid) {
        let runner = {
            let mut running = self.0.running.lock().unwrap_or_else(PoisonError::into_inner);
            running.remove(installation)
        };
        if let Some(runner) = runner {
            runner.stop().await;
        }
    }

    /// Starts all installations, and continues interrupted removals.
    fn start_all(&self) {
        let installations = match installation::all_even_removing(&self.0.payments.snapshot()) {
            Ok(installations) => installations,
            Err(error) => return log_fault("all", &error.to_string()),
        };
        for installation in installations {
            let begun = if installation.is_being_removed {
                self.finish_removal(&installation.id, true).map_err(|error| error.reason().to_owned())
            } else {
                self.start_tasks(&installation).map_err(|error| error.to_string())
            };
            if let Err(reason) = begun {
                log_fault(&installation.name, &reason);
            }
        }
    }

    async fn stop_all(&self) {
        let runners = {
            let mut running = self.0.running.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *running)
        };
        for runner in runners.values() {
            runner.stop().await;
        }
    }

    /// Checks that every configuration decrypts, so that a start with a wrong key fails.
    ///
    /// # Errors
    ///
    /// Returns the error of the first configuration that does not decrypt.
    pub(crate) fn check_key(&self) -> Result<(), InstallationError> {
        let all = installation::all_even_removing(&self.0.payments.snapshot())?;
        all.iter().filter(|one| !one.is_being_removed).try_for_each(|one| self.values(one).map(drop))
    }
}

/// Returns the purpose under which a configuration is encrypted. It contains the installation's id, so a configuration
/// that is copied to another installation does not decrypt.
pub(super) fn purpose(id: &ConnectorId) -> Vec<u8> {
    format!("connector {}", id.text()).into_bytes()
}

/// The thread that runs tasks.
#[derive(Debug)]
pub(crate) struct Worker {
    stop: watch::Sender<bool>,
    thread: JoinHandle<()>,
}

impl Worker {
    /// Starts the thread and all installations.
    ///
    /// # Errors
    ///
    /// Fails if the operating system cannot start a thread.
    pub(crate) fn start(engine: Engine) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        // Only set here: each engine has one worker.
        let _ = engine.0.runtime.set(runtime.handle().clone());
        // Start the installations before a request can install or remove one, so that each has one runner.
        engine.start_all();
        let (stop, stopped) = watch::channel(false);
        let thread = std::thread::Builder::new().name("connectors".to_owned()).spawn(move || {
            runtime.block_on(async {
                stop_signal(stopped).await;
                engine.stop_all().await;
            });
            runtime.shutdown_timeout(DELIVERY_STOP_TIMEOUT);
        })?;
        Ok(Self { stop, thread })
    }

    /// Stops all tasks. Active tasks continue at the next start.
    pub(crate) fn stop(self) {
        let _ = self.stop.send(true);
        // Ignore a panic of the thread: the panic hook has already printed it.
        let _ = self.thread.join();
    }
}
