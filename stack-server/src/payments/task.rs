//! Tasks of installations: units of work, each known by its descriptor.

use std::sync::Arc;

use ledger_core::Timestamp;
use ledger_store::{Collection, DocumentKey, DocumentRange, ReadError, Snapshot};
use std::ops::Bound;

use crate::collections::TASKS;
use crate::payments::codec::{Decoder, Encoder, date_key};
use crate::payments::ids::ConnectorId;
use crate::payments::record::{self, Record, Versioned, ordered, unique};
use crate::payments::words::TaskStatus;
use crate::uuid::Uuid;

/// Further keys of tasks, each below the installation: the date, and the descriptor, which one has.
pub(crate) const BY_DATE: u32 = 1;
pub(crate) const BY_DESCRIPTOR: u32 = 2;

/// When a task runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Schedule {
    /// Once, at this time or as soon as may be.
    Once(Option<Timestamp>),
    /// At once, and then again and again after the polling period of its installation.
    Periodic,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) id: Uuid,
    pub(crate) connector: ConnectorId,
    /// A JSON object. Its text is what tells tasks of an installation apart.
    pub(crate) descriptor: String,
    pub(crate) schedule: Schedule,
    pub(crate) status: TaskStatus,
    /// A JSON object that only the connector reads.
    pub(crate) state: String,
    /// Why it failed, or what went wrong last.
    pub(crate) error: String,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}

/// The state of a task that has none.
pub(crate) const NO_STATE: &str = "{}";

impl Task {
    /// A task that was never there.
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

    /// The common prefix of the keys of an installation's tasks.
    pub(crate) fn prefix(installation: &Uuid) -> Vec<u8> {
        installation.bytes().to_vec()
    }
}

/// A long descriptor is known by its digest.
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

/// The task of an installation with a descriptor.
pub(crate) fn with_descriptor(
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

/// The task of an installation with an id.
pub(crate) fn find(
    snapshot: &Snapshot,
    installation: &Uuid,
    id: &Uuid,
) -> Result<Option<Versioned<Task>>, ReadError> {
    record::find(snapshot, &[&installation.bytes()[..], id.bytes()].concat())
}

/// Every task of an installation.
pub(crate) fn all(snapshot: &Snapshot, installation: &Uuid) -> Result<Vec<Task>, ReadError> {
    let found = record::with_prefix::<Task>(snapshot, None, &Task::prefix(installation))?;
    Ok(found.into_iter().map(|found| found.value).collect())
}
