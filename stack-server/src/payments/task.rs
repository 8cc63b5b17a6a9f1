//! Tasks: the units of work of a connector installation, such as fetching all payments of a provider.
//!
//! An installation is one configured connector. Two tasks of an installation never have the same descriptor.

use std::sync::Arc;

use ledger_core::Timestamp;
use ledger_store::{Collection, DocumentKey, DocumentRange, ReadError, Snapshot};
use std::ops::Bound;

use crate::collections::TASKS;
use crate::payments::codec::{Decoder, Encoder, date_key};
use crate::payments::enumerations::TaskStatus;
use crate::payments::ids::ConnectorId;
use crate::payments::record::{self, Record, Versioned, ordered, unique};
use crate::uuid::Uuid;

/// Index of tasks by installation and creation date.
pub(crate) const BY_DATE: u32 = 1;
/// Index of tasks by installation and descriptor. Its keys are unique.
pub(crate) const BY_DESCRIPTOR: u32 = 2;

/// The times at which a task runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Schedule {
    /// Once, at this time, or as soon as possible if there is no time.
    Once(Option<Timestamp>),
    /// Now, and then again after each polling period of the installation.
    Periodic,
}

/// A task of an installation, with its progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) id: Uuid,
    pub(crate) connector: ConnectorId,
    /// A JSON object that says what to do. Its text identifies the task within its installation.
    pub(crate) descriptor: String,
    pub(crate) schedule: Schedule,
    pub(crate) status: TaskStatus,
    /// A JSON object in which the connector keeps its progress. Nothing else reads it.
    pub(crate) state: String,
    /// The reason of the failure, or the last error of a task that continues. Empty if there was none.
    pub(crate) error: String,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}

/// The empty state, with which a task begins.
pub(crate) const NO_STATE: &str = "{}";

impl Task {
    /// Creates an active task that has not run yet.
    pub(crate) fn new(
        id: Uuid,
        connector: &ConnectorId,
        descriptor: &str,
        schedule: Schedule,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            connector: connector.clone(),
            descriptor: descriptor.to_owned(),
            schedule,
            status: TaskStatus::Active,
            state: NO_STATE.to_owned(),
            error: String::new(),
            created_at: now,
            updated_at: now,
        }
    }

    /// Returns the common prefix of the keys of an installation's tasks.
    pub(crate) fn prefix(installation: &Uuid) -> Vec<u8> {
        installation.bytes().to_vec()
    }
}

/// Returns the key in the index [`BY_DESCRIPTOR`]. It holds a digest, because a descriptor may be longer than a key.
fn descriptor_key(installation: &Uuid, descriptor: &str) -> Vec<u8> {
    [&installation.bytes()[..], blake3::hash(descriptor.as_bytes()).as_bytes()].concat()
}

impl Record for Task {
    const COLLECTION: Collection = TASKS;
    const NAME: &'static str = "a task";

    fn key(&self) -> Vec<u8> {
        [&self.connector.installation.bytes()[..], self.id.bytes()].concat()
    }

    fn keys(&self) -> Vec<DocumentKey> {
        let installation = &self.connector.installation;
        let by_date = [&installation.bytes()[..], &date_key(self.created_at)].concat();
        vec![ordered(BY_DATE, by_date), unique(BY_DESCRIPTOR, descriptor_key(installation, &self.descriptor))]
    }

    fn encode(&self, out: &mut Encoder) {
        out.text(&self.connector.provider).text(&self.descriptor);
        match self.schedule {
            Schedule::Periodic => out.byte(0),
            Schedule::Once(None) => out.byte(1),
            Schedule::Once(Some(at)) => out.byte(2).time(at),
        };
        out.byte(self.status.number()).text(&self.state).text(&self.error);
        out.time(self.created_at).time(self.updated_at);
    }

    fn decode(key: &[u8], input: &mut Decoder<'_>) -> Option<Self> {
        let provider: Arc<str> = input.text()?.into();
        let (installation, id) = key.split_first_chunk::<16>()?;
        Some(Self {
            id: Uuid::from_bytes(id.try_into().ok()?),
            connector: ConnectorId { provider, installation: Uuid::from_bytes(*installation) },
            descriptor: input.string()?,
            schedule: match input.byte()? {
                0 => Schedule::Periodic,
                1 => Schedule::Once(None),
                2 => Schedule::Once(Some(input.time()?)),
                _ => return None,
            },
            status: TaskStatus::of_number(input.byte()?)?,
            state: input.string()?,
            error: input.string()?,
            created_at: input.time()?,
            updated_at: input.time()?,
        })
    }
}

/// Finds the task of an installation by its descriptor.
pub(crate) fn find_by_descriptor(
    snapshot: &Snapshot,
    installation: &Uuid,
    descriptor: &str,
) -> Result<Option<Versioned<Task>>, ReadError> {
    let key = descriptor_key(installation, descriptor);
    let range = DocumentRange {
        from: Bound::Included(key.clone()),
        to: Bound::Included(key),
        limit: 1,
        ..DocumentRange::default()
    };
    snapshot.documents_by(TASKS, BY_DESCRIPTOR, &range)?.first().map(record::of).transpose()
}

/// Finds the task of an installation by its id.
pub(crate) fn find(
    snapshot: &Snapshot,
    installation: &Uuid,
    id: &Uuid,
) -> Result<Option<Versioned<Task>>, ReadError> {
    record::find(snapshot, &[&installation.bytes()[..], id.bytes()].concat())
}

/// Returns all tasks of an installation.
pub(crate) fn all(snapshot: &Snapshot, installation: &Uuid) -> Result<Vec<Task>, ReadError> {
    let found = record::with_prefix::<Task>(snapshot, None, &Task::prefix(installation))?;
    Ok(found.into_iter().map(|found| found.value).collect())
}
