//! Installations that come, change and go.

use ledger_core::Timestamp;
use ledger_store::{Expected, Snapshot};

use crate::collections::CONNECTORS;
use crate::connectors::Start;
use crate::connectors::config::Values;
use crate::connectors::definition::Row;
use crate::connectors::engine::Engine;
use crate::connectors::error::TaskError;
use crate::connectors::runner::{blocking, start_changes};
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
use crate::payments::record::{self, Versioned};
use crate::payments::service::not_installed;
use crate::payments::task::Task;
use crate::payments::transfer::Transfer;
use crate::uuid::Uuid;

impl Engine {
    /// Installs a connector. Its tasks run when this returns; those that the installation waits for have ended.
    ///
    /// # Errors
    ///
    /// `VALIDATION` if the configuration makes no sense or the name is taken; then nothing is installed.
    pub(crate) async fn install(&self, row: &'static Row, body: &[u8]) -> Result<ConnectorId, ApiError> {
        let values = Values::read(body, row.parameters)?;
        self.install_with(row, values).await
    }

    async fn install_with(&self, row: &'static Row, values: Values) -> Result<ConnectorId, ApiError> {
        let connector = (row.build)(&values, &self.0.tools)?;
        let uuid = Uuid::random().map_err(|error| ApiError::fault(&error.to_string()))?;
        let id = ConnectorId { provider: row.provider.into(), installation: uuid };
        let installation = Installation {
            name: values.text("name").to_owned(),
            created_at: self.0.clock.now(),
            config: self.sealed(&id, row, &values)?,
            is_leaving: false,
            id: id.clone(),
        };
        let starts = connector.first_tasks();
        let engine = self.clone();
        let (added, first) = (installation.clone(), starts.clone());
        let tasks = blocking(move || engine.add(&added, &first)).await?;
        self.begin_first(&installation, &starts, tasks).await?;
        Ok(id)
    }

    /// Records an installation with its first tasks.
    fn add(&self, installation: &Installation, starts: &[Start]) -> Result<Vec<Task>, ApiError> {
        let payments = &self.0.payments;
        let _alone = payments.change_installations();
        record::change(&payments.store, |snapshot| {
            if installation::all(snapshot)?.len() >= INSTALLATIONS_MAX {
                let message = format!("there are {INSTALLATIONS_MAX} installations of connectors already");
                return Err(ApiError::validation(message));
            }
            check_name(snapshot, installation)?;
            let (tasks, mut changes) =
                start_changes(snapshot, &installation.id, starts, installation.created_at)?;
            changes.push(record::put(installation, Expected::Absent));
            Ok((changes, tasks))
        })
    }

    /// Runs the first tasks of an installation. If one fails that it waits for, the installation goes again.
    async fn begin_first(
        &self,
        installation: &Installation,
        starts: &[Start],
        tasks: Vec<Task>,
    ) -> Result<(), ApiError> {
        let prepared = self.prepare(installation).map_err(|error| ApiError::validation(error.to_string()));
        let (Some(runner), Some(runtime)) = (prepared?, self.runtime()) else { return Ok(()) };
        for task in tasks {
            let waits =
                starts.iter().any(|start| start.is_synchronous && start.descriptor == task.descriptor);
            if !waits {
                runner.start(task);
                continue;
            }
            let ended = runtime.spawn(runner.clone().run_to_end(task)).await;
            let ended = ended.unwrap_or(Err(TaskError::Panicked));
            if let Err(reason) = ended {
                self.uninstall_silently(&installation.id).await?;
                return Err(ApiError::validation(format!("the connector could not be set up: {reason}")));
            }
        }
        Ok(())
    }

    /// Removes an installation with everything that it brought in.
    ///
    /// # Errors
    ///
    /// `VALIDATION` if it is not there.
    pub(crate) async fn uninstall(&self, id: &ConnectorId) -> Result<(), ApiError> {
        let found = self.take_out(id, true).await?;
        self.cleaned(&found).await;
        Ok(())
    }

    async fn uninstall_silently(&self, id: &ConnectorId) -> Result<(), ApiError> {
        let found = self.take_out(id, false).await?;
        self.cleaned(&found).await;
        Ok(())
    }

    /// Stops and removes an installation; what it was is returned.
    async fn take_out(&self, id: &ConnectorId, tells: bool) -> Result<Installation, ApiError> {
        let snapshot = self.0.payments.snapshot();
        installation::find(&snapshot, id)?.ok_or_else(not_installed)?;
        self.end(&id.installation).await;
        let (engine, id) = (self.clone(), id.clone());
        blocking(move || {
            let found = engine.mark_leaving(&id, tells)?;
            engine.finish_removal(&id)?;
            Ok(found)
        })
        .await
    }

    /// Lets a connector clean up behind an installation that is gone.
    async fn cleaned(&self, installation: &Installation) {
        let Ok((row, values)) = self.values(installation) else { return };
        if let Some(clean) = row.clean {
            // What is left behind harms nobody.
            let _ = blocking(move || {
                clean(&values);
                Ok(())
            })
            .await;
        }
    }

    /// From now on nobody is shown the installation, also if the process ends here.
    fn mark_leaving(&self, id: &ConnectorId, tells: bool) -> Result<Installation, ApiError> {
        let payments = &self.0.payments;
        let _alone = payments.change_installations();
        let now = self.0.clock.now();
        record::change(&payments.store, |snapshot| {
            let Versioned { value, version } = installation::find(snapshot, id)?.ok_or_else(not_installed)?;
            let leaving = Installation { is_leaving: true, ..value.clone() };
            let mut changes = if tells { payments.tell(&[Event::ConnectorReset(id)], now) } else { vec![] };
            changes.push(record::put(&leaving, Expected::Version(version)));
            Ok((changes, value))
        })
    }

    /// Deletes everything that an installation brought in, and the installation last.
    pub(super) fn finish_removal(&self, id: &ConnectorId) -> Result<(), ApiError> {
        let store = &self.0.payments.store;
        let prefix = id.installation.bytes();
        // Pools lose their accounts first: they are found by them.
        for found in record::with_prefix::<Account>(&store.snapshot(), None, prefix)? {
            for pool in pool::pools_of(&store.snapshot(), &found.value.id)? {
                let member = Member { pool, account: found.value.id.clone() };
                let key = record::Record::key(&member);
                store.change_documents(vec![record::delete::<Member>(key, Expected::Anything)])?;
            }
        }
        for found in record::with_prefix::<BankAccount>(&store.snapshot(), None, &[])? {
            if found.value.related.iter().any(|related| related.account.connector == *id) {
                self.separate(&found.value.id, id)?;
            }
        }
        record::delete_all::<Payment>(store, prefix)?;
        // The transactions stay in their ledger.
        record::delete_all::<Posting>(store, prefix)?;
        record::delete_all::<PostingRule>(store, prefix)?;
        record::delete_all::<AccountBalance>(store, prefix)?;
        record::delete_all::<Account>(store, prefix)?;
        record::delete_all::<Initiation>(store, prefix)?;
        record::delete_all::<Transfer>(store, prefix)?;
        record::delete_all::<Task>(store, prefix)?;
        let gone = record::delete::<Installation>(prefix.to_vec(), Expected::Anything);
        debug_assert_eq!(gone.collection, CONNECTORS);
        store.change_documents(vec![gone])?;
        Ok(())
    }

    /// Takes the account of an installation off a bank account.
    fn separate(&self, bank_account: &Uuid, id: &ConnectorId) -> Result<(), ApiError> {
        record::change(&self.0.payments.store, |snapshot| {
            let found = bank_account::find(snapshot, bank_account)?;
            let Some(Versioned { mut value, version }) = found else { return Ok((vec![], ())) };
            value.related.retain(|related| related.account.connector != *id);
            Ok((vec![record::put(&value, Expected::Version(version))], ()))
        })
    }

    /// Removes an installation and installs it again, with the same name and configuration and another id.
    ///
    /// # Errors
    ///
    /// `VALIDATION` if it is not there, or its configuration does not make sense any more.
    pub(crate) async fn reset(&self, id: &ConnectorId) -> Result<ConnectorId, ApiError> {
        let found = installation::find(&self.0.payments.snapshot(), id)?.ok_or_else(not_installed)?;
        let (row, values) = self.values(&found.value)?;
        self.uninstall(id).await?;
        self.install_with(row, values).await
    }

    /// Gives an installation another configuration; its tasks go on with it.
    ///
    /// # Errors
    ///
    /// `VALIDATION` if it is not there, or the configuration makes no sense; then the old one stays.
    pub(crate) async fn configure(
        &self,
        row: &'static Row,
        id: &ConnectorId,
        body: &[u8],
    ) -> Result<(), ApiError> {
        let values = Values::read(body, row.parameters)?;
        let connector = (row.build)(&values, &self.0.tools)?;
        let (engine, target, config) = (self.clone(), id.clone(), self.sealed(id, row, &values)?);
        let name = values.text("name").to_owned();
        let starts = connector.first_tasks();
        let now = self.0.clock.now();
        self.end(&id.installation).await;
        let changed = blocking(move || engine.replace_config(&target, &name, &config, &starts, now)).await;
        // Whatever came of it, what is installed runs.
        let current = installation::find(&self.0.payments.snapshot(), id)?;
        if let Some(current) = current {
            let engine = self.clone();
            blocking(move || Ok(engine.begin(&current.value)?)).await?;
        }
        changed
    }

    fn replace_config(
        &self,
        id: &ConnectorId,
        name: &str,
        config: &[u8],
        starts: &[Start],
        now: Timestamp,
    ) -> Result<(), ApiError> {
        let payments = &self.0.payments;
        let _alone = payments.change_installations();
        // What was done when it was installed is not done again.
        let lasting: Vec<Start> = starts.iter().filter(|start| !start.is_synchronous).cloned().collect();
        record::change(&payments.store, |snapshot| {
            let Versioned { value, version } = installation::find(snapshot, id)?.ok_or_else(not_installed)?;
            let changed = Installation { name: name.to_owned(), config: config.to_vec(), ..value };
            check_name(snapshot, &changed)?;
            let (_, mut changes) = start_changes(snapshot, id, &lasting, now)?;
            changes.push(record::put(&changed, Expected::Version(version)));
            Ok((changes, ()))
        })
    }
}

/// Refuses a name that another installation has.
fn check_name(snapshot: &Snapshot, installation: &Installation) -> Result<(), ApiError> {
    let others = installation::all(snapshot)?;
    let taken = others
        .iter()
        .any(|other| !other.is_leaving && other.name == installation.name && other.id != installation.id);
    if taken {
        let message = format!("a connector is installed by the name {:?} already", installation.name);
        return Err(ApiError::validation(message));
    }
    Ok(())
}
