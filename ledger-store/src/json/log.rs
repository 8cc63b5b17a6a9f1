//! Logs as v2 lists, exports and pipelines write them.

use ledger_core::{
    AccountAddress, Features, JsonWriter, LogPayload, Metadata, Target, WireHash, log_request_hash,
};

use super::transaction::{keeps_effective_volumes, write_recorded, write_transaction};
use crate::query::LogView;
use crate::read::FedLog;

/// The optional members of a written log.
#[derive(Clone, Copy, Debug)]
pub struct LogShape {
    /// True if a revert contains the whole reverted transaction instead of its id.
    pub whole_reverts: bool,
    /// True if transactions contain their volumes by effective date.
    pub effective_volumes: bool,
}

impl LogShape {
    /// Returns the shape for an export: everything that a ledger with these features keeps.
    pub fn of_export(features: Features) -> Self {
        Self { whole_reverts: true, effective_volumes: keeps_effective_volumes(features) }
    }
}

/// Writes a log in the form of lists and exports.
pub fn write_log(json: &mut JsonWriter, view: &LogView, shape: LogShape) {
    write_members(json, view, shape);
    json.raw("}");
}

/// Writes a log of a feed in the form of an export, with the name of its ledger as an additional last member.
///
/// ```
/// use ledger_store::{Store, json, ledger_core::JsonWriter};
/// let store = Store::in_memory();
/// let start = store.snapshot().feed_end();
/// store.ledger("main")?.transaction().posting("world", "users:1", 5, "USD").commit()?;
/// let fed = store.snapshot().feed(start)?.logs.remove(0);
/// let mut line = JsonWriter::with_capacity(1_000);
/// json::write_log_of(&mut line, &fed);
/// assert!(line.as_bytes().ends_with(br#","ledger":"main"}"#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_log_of(json: &mut JsonWriter, fed: &FedLog) {
    write_members(json, &fed.log, LogShape::of_export(fed.features));
    json.raw(",\"ledger\":").plain_string(fed.ledger.as_str()).raw("}");
}

fn write_members(json: &mut JsonWriter, view: &LogView, shape: LogShape) {
    let entry = &view.entry;
    json.raw("{\"type\":").plain_string(entry.payload.type_name());
    json.raw(",\"data\":");
    write_data(json, view, shape);
    json.raw(",\"date\":").time(entry.date);
    let key = entry.idempotency.as_ref().map_or("", |idempotency| idempotency.key.as_str());
    json.raw(",\"idempotencyKey\":").string(key);
    json.raw(",\"idempotencyHash\":");
    match (&entry.idempotency, &entry.request_hash) {
        (Some(idempotency), _) => json.string(&idempotency.hash),
        (None, Some(hash)) => json.string(hash),
        (None, None) => json.plain_string(&log_request_hash(&entry.payload)),
    };
    json.raw(",\"id\":").integer(entry.id.get());
    json.raw(",\"hash\":");
    match view.hash {
        Some(hash) => {
            json.raw("\"").write(|out| WireHash::from_bytes(hash).write_base64(out)).raw("\"");
        }
        None => {
            json.raw("null");
        }
    }
    if let Some(version) = &entry.schema_version {
        json.raw(",\"schemaVersion\":").string(version);
    }
}

/// Writes the member `data` of a log. It contains only members that every client knows, because some clients
/// refuse unknown ones.
///
/// ```
/// use ledger_store::{Store, json, ledger_core::JsonWriter};
/// let ledger = Store::in_memory().ledger("main")?;
/// ledger.set_account_metadata("users:1", [("tier", "gold")].into())?;
/// let log = ledger.logs().page(1)?.items.remove(0);
/// let mut data = JsonWriter::with_capacity(1_000);
/// json::write_data(&mut data, &log, json::LogShape::of_export(ledger.info()?.features));
/// let expected = r#"{"targetType":"ACCOUNT","targetId":"users:1","metadata":{"tier":"gold"}}"#;
/// assert_eq!(data.as_bytes(), expected.as_bytes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_data(json: &mut JsonWriter, view: &LogView, shape: LogShape) {
    match &view.entry.payload {
        LogPayload::NewTransaction { transaction, account_metadata, effective_volumes } => {
            json.raw("{\"transaction\":");
            write_recorded(json, transaction, effective_volumes.as_deref(), shape.effective_volumes);
            json.raw(",\"accountMetadata\":{");
            json.list(account_metadata, |json, (address, metadata): &(AccountAddress, Metadata)| {
                json.plain_string(address.as_str()).raw(":").metadata(metadata);
            });
            json.raw("}}");
        }
        LogPayload::RevertedTransaction { reverted, transaction, effective_volumes } => {
            match &view.reverted {
                Some(original) if shape.whole_reverts => {
                    json.raw("{\"revertedTransaction\":");
                    write_transaction(json, original, Some(&original.post_commit_volumes), None);
                }
                _ => {
                    json.raw("{\"revertedTransactionID\":").integer(reverted.get());
                }
            }
            json.raw(",\"transaction\":");
            write_recorded(json, transaction, effective_volumes.as_deref(), shape.effective_volumes);
            json.raw("}");
        }
        LogPayload::SetMetadata { target, metadata } => {
            write_target(json, target);
            json.raw(",\"metadata\":").metadata(metadata).raw("}");
        }
        LogPayload::DeleteMetadata { target, key } => {
            write_target(json, target);
            json.raw(",\"key\":").string(key).raw("}");
        }
        LogPayload::InsertedSchema { schema } => {
            json.raw("{\"schema\":").raw(schema).raw("}");
        }
    }
}

fn write_target(json: &mut JsonWriter, target: &Target) {
    match target {
        Target::Account(address) => {
            json.raw("{\"targetType\":\"ACCOUNT\",\"targetId\":").plain_string(address.as_str());
        }
        Target::Transaction(id) => {
            json.raw("{\"targetType\":\"TRANSACTION\",\"targetId\":").integer(id.get());
        }
    }
}
