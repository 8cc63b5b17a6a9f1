//! The payments API over a store: locks between writers, encryption, and events.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use ledger_core::Timestamp;
use ledger_store::{DocumentChange, Snapshot, Store};

use crate::http::error::ApiError;
use crate::payments::event::{Event, Events};
use crate::payments::ids::ConnectorId;
use crate::payments::installation::{self, Installation};
use crate::payments::record::{self, Versioned};
use crate::sealing::Sealer;

/// The context of every operation on payments.
pub(crate) struct Payments {
    pub(crate) store: Store,
    pub(crate) sealer: Sealer,
    pub(crate) events: Events,
    /// Writers of an installation's records hold this lock for reading. The installation or removal of a connector
    /// holds it for writing, so that nothing is written into a removed installation. A store has only one process.
    lock: RwLock<()>,
}

impl Payments {
    pub(crate) fn new(store: Store, sealer: Sealer, events: Events) -> Self {
        Self { store, sealer, events, lock: RwLock::new(()) }
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.store.snapshot()
    }

    /// Prevents installations and removals of connectors while the guard exists.
    pub(crate) fn read_lock(&self) -> RwLockReadGuard<'_, ()> {
        self.lock.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prevents all other writes while the guard exists.
    pub(crate) fn write_lock(&self) -> RwLockWriteGuard<'_, ()> {
        self.lock.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Commits changes that depend on the current state. No connector is installed or removed meanwhile.
    ///
    /// # Errors
    ///
    /// Returns errors of `changes`. Also fails if the store cannot be written.
    pub(crate) fn write<T>(
        &self,
        changes: impl FnMut(&Snapshot) -> Result<(Vec<DocumentChange>, T), ApiError>,
    ) -> Result<T, ApiError> {
        let _guard = self.read_lock();
        record::change(&self.store, changes)
    }

    /// Returns the changes that store events, for the commit of the change that caused them.
    pub(crate) fn event_changes(&self, events: &[Event<'_>], now: Timestamp) -> Vec<DocumentChange> {
        self.events.changes(events, now)
    }
}

/// Returns the installation with this id.
///
/// # Errors
///
/// `VALIDATION` if it is not installed.
pub(crate) fn require_installation(
    snapshot: &Snapshot,
    id: &ConnectorId,
) -> Result<Versioned<Installation>, ApiError> {
    installation::find(snapshot, id)?.ok_or_else(not_installed)
}

/// Returns the error for an installation that does not exist.
pub(crate) fn not_installed() -> ApiError {
    ApiError::validation("connector is not installed")
}
