//! Logs as v2 lists, exports and pipelines write them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ledger_core::{AccountAddress, LogPayload, Metadata, Target, log_request_hash};
use ledger_store::{FedLog, LogView};

use crate::http::response::Json;
use crate::shapes::transaction::{keeps_effective_volumes, write_recorded, write_transaction};

/// The optional members of a written log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogShape {
    /// A revert holds the whole reverted transaction instead of its id.
    pub(crate) whole_reverts: bool,
    /// Transactions hold their volumes by effective date.
    pub(crate) effective_volumes: bool,
}

/// A log as lists and exports have it.
pub(crate) fn write_log(json: &mut Json, view: &LogView, shape: LogShape) {
    write_members(json, view, shape);
    json.raw("}");
}

/// A log that says beside all else of which ledger it is.
pub(crate) fn write_log_of(json: &mut Json, fed: &FedLog) {
    let effective_volumes = keeps_effective_volumes(fed.features);
    write_members(json, &fed.log, LogShape { whole_reverts: true, effective_volumes });
    json.raw(",\"ledger\":").plain_string(fed.ledger.as_str()).raw("}");
}

fn write_members(json: &mut Json, view: &LogView, shape: LogShape) {
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
    match &view.hash {
        Some(hash) => json.plain_string(&STANDARD.encode(hash)),
        None => json.raw("null"),
    };
    if let Some(version) = &entry.schema_version {
        json.raw(",\"schemaVersion\":").string(version);
    }
}

/// The members of `data` are exactly those that clients know: they refuse a list with others.
pub(crate) fn write_data(json: &mut Json, view: &LogView, shape: LogShape) {
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

fn write_target(json: &mut Json, target: &Target) {
    match target {
        Target::Account(address) => {
            json.raw("{\"targetType\":\"ACCOUNT\",\"targetId\":").plain_string(address.as_str());
        }
        Target::Transaction(id) => {
            json.raw("{\"targetType\":\"TRANSACTION\",\"targetId\":").integer(id.get());
        }
    }
}
