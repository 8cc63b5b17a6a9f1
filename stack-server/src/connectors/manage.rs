//! Installation, configuration, reset and removal of connectors.

use std::future::Future;

use ledger_core::Timestamp;
use ledger_store::{Expected, Snapshot};

use crate::blocking;
use crate::collections::CONNECTORS;
use crate::connectors::NewTask;
use crate::connectors::config::Values;
use crate::connectors::definition::Definition;
use crate::connectors::engine::Engine;
use crate::connectors::error::{TaskError, log_fault};
use crate::connectors::runner::{start_changes, stop_changes};
use crate::http::error::ApiError;
use crate::limits::INSTALLATIONS_MAX;
use crate::payments::account::Account;
use crate::payments::balance::AccountBalance;
use crate::payments::bank_account::{self, BankAccount};
use crate::payments::event::Event;
use crate::payments::ids::ConnectorId;
use crate::payments::initiation::Initiation;
use crate::payments::installation::{self, Installation};
use crate::payments::payment::Payment;
use crate::payments::pool::{self, Member};
use crate::payments::postings::posting::Posting;
use crate::payments::postings::rule::PostingRule;
use crate::payments::record::{self, CHANGES_MAX, Versioned};
use crate::payments::service::not_installed;
use crate::payments::task::Task;
use crate::payments::transfer::Transfer;
use crate::uuid::Uuid;

/// Number of deleted records at which a removal ends with a flush. Until a flush, every list passes over the deleted
/// records.
pub(super) const FLUSHED_REMOVAL: usize = 1_000;

impl Engine {
    /// Installs a connector and starts its tasks. Returns after the synchronous tasks have ended.
    ///
    /// # Errors
    ///
    /// `VALIDATION` if the configuration is not valid, the name is taken, or the connector cannot be set up. Then
    /// nothing is installed.
    pub(crate) async fn install(
        &self,
        definition: &'static Definition,
        body: &[u8],
    ) -> Result<ConnectorId, ApiError> {
        let values = Values::read(body, definition.parameters)?;
        let engine = self.clone();
        run_to_completion(async move { engine.install_with(definition, &values).await }).await
    }

    async fn install_with(
        &self,
        definition: &'static Definition,
        values: &Values,
    ) -> Result<ConnectorId, ApiError> {
        let (installation, new_tasks) = self.new_installation(definition, values).await?;
        let _lock = self.lock_installation(&installation.id.installation).await;
        let engine = self.clone();
        let (added, first) = (installation.clone(), new_tasks.clone());
        let tasks = blocking::answer(move || engine.add(&added, &first)).await?;
        if let Err(error) = self.start_first_tasks(&installation, &new_tasks, tasks).await {
            self.remove(&installation.id, false).await?;
            return Err(error);
        }
        Ok(installation.id)
    }

    /// Checks a connector, and returns a new installation with its first tasks. The installation is not recorded yet.
    pub(super) async fn new_installation(
        &self,
        definition: &'static Definition,
        values: &Values,
    ) -> Result<(Installation, Vec<NewTask>), ApiError> {
        let connector = (definition.build)(values, &self.0.access)?;
        let new_tasks = connector.first_tasks();
        let checked = blocking::answer(move || Ok(connector.check())).await?;
        checked.map_err(|failure| setup_error(&failure.reason))?;
        let uuid = Uuid::random().map_err(|error| ApiError::fault(&error.to_string()))?;
        let id = ConnectorId { provider: definition.provider.into(), installation: uuid };
        let installation = Installation {
            name: values.text("name").to_owned(),
            created_at: self.0.clock.now(),
            config: self.sealed_config(&id, definition, values)?,
            is_being_removed: false,
            id,
        };
        Ok((installation, new_tasks))
    }

    /// Records an installation with its first tasks.
    fn add(&self, installation: &Installation, new_tasks: &[NewTask]) -> Result<Vec<Task>, ApiError> {
        let payments = &self.0.payments;
        let _lock = payments.write_lock();
        record::change(&payments.store, |snapshot| {
            if installation::all_even_removing(snapshot)?.len() >= INSTALLATIONS_MAX {
                let message = format!("there are {INSTALLATIONS_MAX} installations of connectors already");
                return Err(ApiError::validation(message));
            }
            check_name(snapshot, installation)?;
            let (tasks, mut changes) =
                start_changes(snapshot, &installation.id, new_tasks, installation.created_at)?;
            changes.push(record::put(installation, Expected::Absent));
            Ok((changes, tasks))
        })
    }

    /// Starts the first tasks of an installation, and waits for the synchronous ones.
    ///
    /// # Errors
    ///
    /// `VALIDATION` if the installation cannot run or a synchronous task fails. The caller must then remove the
    /// installation.
    async fn start_first_tasks(
        &self,
        installation: &Installation,
        new_tasks: &[NewTask],
        tasks: Vec<Task>,
    ) -> Result<(), ApiError> {
        let prepared = self.prepare(installation).map_err(|error| ApiError::validation(error.to_string()));
        let (Some(runner), Some(runtime)) = (prepared?, self.runtime()) else { return Ok(()) };
        for task in tasks {
            let waits = new_tasks
                .iter()
                .any(|new_task| new_task.is_synchronous && new_task.descriptor == task.descriptor);
            if !waits {
                runner.start(task);
                continue;
            }
            let ended = runtime.spawn(runner.clone().run_to_end(task)).await;
            let ended = ended.unwrap_or(Err(TaskError::Panicked));
            ended.map_err(|reason| setup_error(&reason.to_string()))?;
        }
        Ok(())
    }

    /// Removes an installation with all its records.
    ///
    /// # Errors
    ///
    /// `VALIDATION` if there is no such installation.
    pub(crate) async fn uninstall(&self, id: &ConnectorId) -> Result<(), ApiError> {
        let (engine, id) = (self.clone(), id.clone());
        run_to_completion(async move {
            let _lock = engine.lock_installation(&id.installation).await;
            engine.remove(&id, true).await
        })
        .await
    }

    /// Stops and removes an installation. `emits_event` says whether to store an event for the removal.
    async fn remove(&self, id: &ConnectorId, emits_event: bool) -> Result<(), ApiError> {
        let snapshot = self.0.payments.snapshot();
        installation::find(&snapshot, id)?.ok_or_else(not_installed)?;
        self.stop_tasks(&id.installation).await;
        let (engine, leaving) = (self.clone(), id.clone());
        let found = match blocking::answer(move || engine.mark_for_removal(&leaving)).await {
            Ok(found) => found,
            Err(error) => {
                self.restart(id).await;
                return Err(error);
            }
        };
        let (engine, leaving) = (self.clone(), id.clone());
        blocking::answer(move || engine.finish_removal(&leaving, emits_event)).await?;
        self.remove_files(&found).await;
        Ok(())
    }

    /// Starts an installation that was stopped, if it still exists.
    async fn restart(&self, id: &ConnectorId) {
        let (engine, id) = (self.clone(), id.clone());
        let begun = blocking::answer(move || {
            let current = installation::find(&engine.0.payments.snapshot(), &id)?;
            Ok(current.map_or(Ok(()), |current| engine.start_tasks(&current.value))?)
        });
        if let Err(error) = begun.await {
            log_fault("all", error.reason());
        }
    }

    /// Lets a connector remove the files of a removed installation.
    async fn remove_files(&self, installation: &Installation) {
        let Ok((definition, values)) = self.values(installation) else { return };
        if let Some(clean) = definition.clean {
            // Ignore errors: leftover files do no harm.
            let _ = blocking::answer(move || {
                clean(&values);
                Ok(())
            })
            .await;
        }
    }

    /// Marks an installation as being removed. From then on clients do not see it, even if the process ends before the
    /// removal is complete.
    fn mark_for_removal(&self, id: &ConnectorId) -> Result<Installation, ApiError> {
        let payments = &self.0.payments;
        let _lock = payments.write_lock();
        record::change(&payments.store, |snapshot| {
            let Versioned { value, version } = installation::find(snapshot, id)?.ok_or_else(not_installed)?;
            let leaving = Installation { is_being_removed: true, ..value.clone() };
            Ok((vec![record::put(&leaving, Expected::Version(version))], value))
        })
    }

    /// Deletes all records of an installation, and finally the installation. If `emits_event` is true, the last commit
    /// also stores the event.
    pub(super) fn finish_removal(&self, id: &ConnectorId, emits_event: bool) -> Result<(), ApiError> {
        let store = &self.0.payments.store;
        let prefix = id.installation.bytes();
        // Remove the accounts from their pools first, because the pools are found through the accounts.
        for found in record::with_prefix::<Account>(&store.snapshot(), None, prefix)? {
            for pool in pool::pools_of(&store.snapshot(), &found.value.id)? {
                let member = Member { pool, account: found.value.id.clone() };
                let key = record::Record::key(&member);
                store.change_documents(vec![record::delete::<Member>(key, Expected::Anything)])?;
            }
        }
        for found in record::with_prefix::<BankAccount>(&store.snapshot(), None, &[])? {
            if found.value.related.iter().any(|related| related.account.connector == *id) {
                self.unlink_accounts(&found.value.id, id)?;
            }
        }
        let mut deleted = record::delete_all::<Payment>(store, prefix)?;
        // The ledger keeps the transactions of the postings.
        deleted += record::delete_all::<Posting>(store, prefix)?;
        deleted += record::delete_all::<PostingRule>(store, prefix)?;
        deleted += record::delete_all::<AccountBalance>(store, prefix)?;
        deleted += record::delete_all::<Account>(store, prefix)?;
        deleted += record::delete_all::<Initiation>(store, prefix)?;
        deleted += record::delete_all::<Transfer>(store, prefix)?;
        deleted += record::delete_all::<Task>(store, prefix)?;
        let gone = record::delete::<Installation>(prefix.to_vec(), Expected::Anything);
        debug_assert_eq!(gone.collection, CONNECTORS);
        let payments = &self.0.payments;
        let now = self.0.clock.now();
        let mut changes =
            if emits_event { payments.event_changes(&[Event::ConnectorReset(id)], now) } else { vec![] };
        changes.push(gone);
        store.change_documents(changes)?;
        if deleted >= FLUSHED_REMOVAL {
            store.flush();
        }
        Ok(())
    }

    /// Removes the installation's accounts from a bank account.
    fn unlink_accounts(&self, bank_account: &Uuid, id: &ConnectorId) -> Result<(), ApiError> {
        record::change(&self.0.payments.store, |snapshot| {
            let found = bank_account::find(snapshot, bank_account)?;
            let Some(Versioned { mut value, version }) = found else { return Ok((vec![], ())) };
            value.related.retain(|related| related.account.connector != *id);
            Ok((vec![record::put(&value, Expected::Version(version))], ()))
        })
    }

    /// Replaces an installation with an empty one that has the same name and configuration, and another id.
    ///
    /// # Errors
    ///
    /// `VALIDATION` if there is no such installation, or if the new one cannot be set up. Then the old one remains with
    /// all its records.
    pub(crate) async fn reset(&self, id: &ConnectorId) -> Result<ConnectorId, ApiError> {
        let (engine, id) = (self.clone(), id.clone());
        run_to_completion(async move { engine.reset_locked(&id).await }).await
    }

    async fn reset_locked(&self, id: &ConnectorId) -> Result<ConnectorId, ApiError> {
        let _lock = self.lock_installation(&id.installation).await;
        let found = installation::find(&self.0.payments.snapshot(), id)?.ok_or_else(not_installed)?;
        let (definition, values) = self.values(&found.value)?;
        let (new, new_tasks) = self.new_installation(definition, &values).await?;
        // Lock the new installation before clients can see it. Otherwise another change could hold this lock while it
        // waits for the lock of the old installation.
        let _new_lock = self.lock_installation(&new.id.installation).await;
        self.stop_tasks(&id.installation).await;
        let engine = self.clone();
        let (old, added, first) = (id.clone(), new.clone(), new_tasks.clone());
        let tasks = match blocking::answer(move || engine.replace(&old, &added, &first)).await {
            Ok(tasks) => tasks,
            Err(error) => {
                self.restart(id).await;
                return Err(error);
            }
        };
        self.remove_files(&found.value).await;
        if let Err(error) = self.start_first_tasks(&new, &new_tasks, tasks).await {
            self.restore(id, &new.id).await?;
            return Err(error);
        }
        let (engine, old) = (self.clone(), id.clone());
        // The new installation already runs. If this removal fails, the next start completes it.
        if let Err(error) = blocking::answer(move || engine.finish_removal(&old, true)).await {
            log_fault(&new.name, error.reason());
        }
        Ok(new.id)
    }

    /// Records a new installation with its first tasks, and marks the old one as being removed, in one commit.
    pub(super) fn replace(
        &self,
        old: &ConnectorId,
        new: &Installation,
        new_tasks: &[NewTask],
    ) -> Result<Vec<Task>, ApiError> {
        let payments = &self.0.payments;
        let _lock = payments.write_lock();
        record::change(&payments.store, |snapshot| {
            let Versioned { value, version } =
                installation::find(snapshot, old)?.ok_or_else(not_installed)?;
            let leaving = Installation { is_being_removed: true, ..value };
            let (tasks, more) = start_changes(snapshot, &new.id, new_tasks, new.created_at)?;
            let mut changes = vec![record::put(&leaving, Expected::Version(version))];
            changes.push(record::put(new, Expected::Absent));
            changes.extend(more);
            Ok((changes, tasks))
        })
    }

    /// Undoes [`Engine::replace`]: removes the new installation and starts the old one again.
    async fn restore(&self, old: &ConnectorId, new: &ConnectorId) -> Result<(), ApiError> {
        self.stop_tasks(&new.installation).await;
        let (engine, returning, going) = (self.clone(), old.clone(), new.clone());
        blocking::answer(move || {
            let payments = &engine.0.payments;
            let alone = payments.write_lock();
            record::change(&payments.store, |snapshot| {
                let found = |id: &ConnectorId| {
                    let found = record::find::<Installation>(snapshot, id.installation.bytes())?;
                    found.ok_or_else(not_installed)
                };
                let turned = |found: Versioned<Installation>, is_being_removed| {
                    let expected = Expected::Version(found.version);
                    record::put(&Installation { is_being_removed, ..found.value }, expected)
                };
                Ok((vec![turned(found(&going)?, true), turned(found(&returning)?, false)], ()))
            })?;
            drop(alone);
            engine.finish_removal(&going, false)
        })
        .await?;
        self.restart(old).await;
        Ok(())
    }

    /// Replaces the configuration of an installation. Its tasks continue with the new configuration, except those that
    /// [`stop_changes`] stops.
    ///
    /// # Errors
    ///
    /// `VALIDATION` if there is no such installation, or if the configuration is not valid. Then the old configuration
    /// remains.
    pub(crate) async fn configure(
        &self,
        definition: &'static Definition,
        id: &ConnectorId,
        body: &[u8],
    ) -> Result<(), ApiError> {
        let values = Values::read(body, definition.parameters)?;
        let connector = (definition.build)(&values, &self.0.access)?;
        let config = self.sealed_config(id, definition, &values)?;
        let name = values.text("name").to_owned();
        let new_tasks = connector.first_tasks();
        let (engine, id) = (self.clone(), id.clone());
        run_to_completion(async move {
            let _lock = engine.lock_installation(&id.installation).await;
            let now = engine.0.clock.now();
            engine.stop_tasks(&id.installation).await;
            let (writer, target) = (engine.clone(), id.clone());
            let changed =
                blocking::answer(move || writer.replace_config(&target, &name, &config, &new_tasks, now))
                    .await;
            // Start the installation again. If the new configuration was refused, it runs with the old one.
            engine.restart(&id).await;
            changed
        })
        .await
    }

    fn replace_config(
        &self,
        id: &ConnectorId,
        name: &str,
        config: &[u8],
        new_tasks: &[NewTask],
        now: Timestamp,
    ) -> Result<(), ApiError> {
        let payments = &self.0.payments;
        let _lock = payments.write_lock();
        // Synchronous tasks only run during the installation.
        let lasting: Vec<NewTask> =
            new_tasks.iter().filter(|new_task| !new_task.is_synchronous).cloned().collect();
        let later = record::change(&payments.store, |snapshot| {
            let Versioned { value, version } = installation::find(snapshot, id)?.ok_or_else(not_installed)?;
            let changed = Installation { name: name.to_owned(), config: config.to_vec(), ..value };
            check_name(snapshot, &changed)?;
            let (_, mut changes) = start_changes(snapshot, id, &lasting, now)?;
            let mut stops = stop_changes(snapshot, id, &lasting, now)?;
            let later = stops.split_off(stops.len().min(CHANGES_MAX / 2));
            changes.append(&mut stops);
            changes.push(record::put(&changed, Expected::Version(version)));
            Ok((changes, later))
        })?;
        for stops in later.chunks(CHANGES_MAX) {
            payments.store.change_documents(stops.to_vec())?;
        }
        Ok(())
    }
}

/// Completes a change of an installation even if the client disconnects. An interrupted change would leave the
/// installation without a runner.
async fn run_to_completion<T: Send + 'static>(
    change: impl Future<Output = Result<T, ApiError>> + Send + 'static,
) -> Result<T, ApiError> {
    match tokio::spawn(change).await {
        Ok(answer) => answer,
        Err(panic) => Err(ApiError::fault(&panic.to_string())),
    }
}

/// Returns the error for a connector that cannot be set up.
fn setup_error(reason: &str) -> ApiError {
    ApiError::validation(format!("the connector could not be set up: {reason}"))
}

/// Refuses the name of another installation.
fn check_name(snapshot: &Snapshot, installation: &Installation) -> Result<(), ApiError> {
    let others = installation::all_even_removing(snapshot)?;
    let taken = others.iter().any(|other| {
        !other.is_being_removed && other.name == installation.name && other.id != installation.id
    });
    if taken {
        let message = format!("a connector is installed by the name {:?} already", installation.name);
        return Err(ApiError::validation(message));
    }
    Ok(())
}
