//! Encodes a log as an event.

use ledger_core::{AccountAddress, LogPayload, Metadata, Target, Timestamp};
use ledger_store::FedLog;

use crate::http::response::{Json, Numbers};
use crate::shapes::transaction::{keeps_effective_volumes, write_recorded, write_transaction};

/// The types of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventType {
    CommittedTransactions,
    RevertedTransaction,
    SavedMetadata,
    DeletedMetadata,
    InsertedSchema,
}

impl EventType {
    /// All types.
    pub(crate) const ALL: [Self; 5] = [
        Self::CommittedTransactions,
        Self::RevertedTransaction,
        Self::SavedMetadata,
        Self::DeletedMetadata,
        Self::InsertedSchema,
    ];

    /// Returns the type of the event for a log.
    pub(crate) const fn of(payload: &LogPayload) -> Self {
        match payload {
            LogPayload::NewTransaction { .. } => Self::CommittedTransactions,
            LogPayload::RevertedTransaction { .. } => Self::RevertedTransaction,
            LogPayload::SetMetadata { .. } => Self::SavedMetadata,
            LogPayload::DeleteMetadata { .. } => Self::DeletedMetadata,
            LogPayload::InsertedSchema { .. } => Self::InsertedSchema,
        }
    }

    /// Returns the name of the type on the wire.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::CommittedTransactions => "COMMITTED_TRANSACTIONS",
            Self::RevertedTransaction => "REVERTED_TRANSACTION",
            Self::SavedMetadata => "SAVED_METADATA",
            Self::DeletedMetadata => "DELETED_METADATA",
            Self::InsertedSchema => "INSERTED_SCHEMA",
        }
    }

    /// Finds the type with this name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Returns the text of an event that is published at `now`.
pub(crate) fn event(fed: &FedLog, now: Timestamp) -> Vec<u8> {
    let mut json = Json::new(Numbers::Plain);
    write_event(&mut json, fed, now);
    json.into_bytes()
}

/// Writes the envelope and its payload on one line.
pub(crate) fn write_event(json: &mut Json, fed: &FedLog, now: Timestamp) {
    let FedLog { ledger, features, log, .. } = fed;
    let kept = keeps_effective_volumes(*features);
    let payload = &log.entry.payload;
    json.raw("{\"idempotency_key\":\"\",\"date\":").time(now);
    json.raw(",\"app\":\"ledger\",\"version\":\"v2\",\"type\":").plain_string(EventType::of(payload).name());
    json.raw(",\"payload\":{\"ledger\":").plain_string(ledger.as_str());
    match payload {
        LogPayload::NewTransaction { transaction, account_metadata, effective_volumes } => {
            json.raw(",\"transactions\":[");
            write_recorded(json, transaction, effective_volumes.as_deref(), kept);
            json.raw("],\"accountMetadata\":{");
            json.list(account_metadata, |json, (address, metadata): &(AccountAddress, Metadata)| {
                json.plain_string(address.as_str()).raw(":").metadata(metadata);
            });
            json.raw("}");
        }
        LogPayload::RevertedTransaction { reverted, transaction, effective_volumes } => {
            json.raw(",\"revertedTransaction\":");
            match &log.reverted {
                Some(original) => {
                    write_transaction(json, original, Some(&original.post_commit_volumes), None);
                }
                None => {
                    json.raw("{\"id\":").integer(reverted.get()).raw("}");
                }
            }
            json.raw(",\"revertTransaction\":");
            write_recorded(json, transaction, effective_volumes.as_deref(), kept);
        }
        LogPayload::SetMetadata { target, metadata } => {
            write_target(json, target);
            json.raw(",\"metadata\":").metadata(metadata);
        }
        LogPayload::DeleteMetadata { target, key } => {
            write_target(json, target);
            json.raw(",\"key\":").string(key);
        }
        LogPayload::InsertedSchema { schema } => {
            json.raw(",\"schema\":").raw(schema);
        }
    }
    json.raw("}}");
}

/// Writes the target of a metadata change. In events, unlike in logs, an id is always a string.
fn write_target(json: &mut Json, target: &Target) {
    match target {
        Target::Account(address) => {
            json.raw(",\"targetType\":\"ACCOUNT\",\"targetId\":").plain_string(address.as_str());
        }
        Target::Transaction(id) => {
            json.raw(",\"targetType\":\"TRANSACTION\",\"targetId\":\"").integer(id.get()).raw("\"");
        }
    }
}
