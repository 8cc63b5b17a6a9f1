//! The payments API over a store: who writes when, what is encrypted, and which events are written along.

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
    /// Held by whoever writes into an installation, and alone by whoever installs or removes one: nothing is written
    /// into an installation that is gone. One process has the store.
    gate: RwLock<()>,
}

impl Payments {
    pub(crate) fn new(store: Store, sealer: Sealer, events: Events) -> Self {
        Self { store, sealer, events, gate: RwLock::new(()) }
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.store.snapshot()
    }

    /// Keeps installations from coming and going.
    pub(crate) fn keep_installations(&self) -> RwLockReadGuard<'_, ()> {
        self.gate.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps everybody else from writing.
    pub(crate) fn change_installations(&self) -> RwLockWriteGuard<'_, ()> {
        self.gate.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes changes that depend on what is read, while no installation comes or goes.
    ///
    /// # Errors
    ///
    /// Those of `changes`, and what any write may meet.
    pub(crate) fn write<T>(
        &self,
        changes: impl FnMut(&Snapshot) -> Result<(Vec<DocumentChange>, T), ApiError>,
    ) -> Result<T, ApiError> {
        let _gate = self.keep_installations();
        record::change(&self.store, changes)
    }

    /// The documents of events that are written with a change.
    pub(crate) fn tell(&self, events: &[Event<'_>], now: Timestamp) -> Vec<DocumentChange> {
        self.events.changes(events, now)
    }
}

/// The installation with an id.
///
/// # Errors
///
/// `VALIDATION` if it is not installed.
pub(crate) fn installed(snapshot: &Snapshot, id: &ConnectorId) -> Result<Versioned<Installation>, ApiError> {
    installation::find(snapshot, id)?.ok_or_else(not_installed)
}

/// The refusal of what wants an installation that is not there.
pub(crate) fn not_installed() -> ApiError {
    ApiError::validation("connector is not installed")
}
