//! The log of a ledger.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ledger_core::{AccountAddress, LogId, LogPayload, Metadata, Resource, Target};
use ledger_store::{Direction, FedLog, LedgerView, LogHashes, LogQuery, LogView};

use crate::call::Call;
use crate::cursor::Sort;
use crate::error::ApiError;
use crate::ledger_v2::list::{Kind, List};
use crate::ledger_v2::transactions::{keeps_effective_volumes, write_recorded, write_transaction};
use crate::response::{Json, Reply};

pub(crate) static LIST: Kind = Kind {
    name: "logs",
    resource: Resource::Logs,
    direction: Direction::Descending,
    // Dates do not decrease along the ids.
    sortable: &[("id", Sort::Natural), ("date", Sort::Natural)],
    until: &[],
    since: &[],
};

pub(crate) async fn list(call: &Call<'_>) -> Result<Reply, ApiError> {
    let ledger = call.ledger()?;
    let list = List::of(call, &LIST)?;
    page(call, ledger, &list).await
}

/// The answer to a list.
pub(crate) async fn page(call: &Call<'_>, ledger: LedgerView, list: &List) -> Result<Reply, ApiError> {
    let question = question(list)?;
    let shown = Shown::of(call, &ledger);
    // Always long: the hashes of recent entries may still have to be computed.
    let page = call.app.long(move || Ok(ledger.logs(&question)?)).await?;
    Ok(list.reply(
        call,
        &page,
        |view| view.entry.id.get().to_string(),
        |json, view| write_log(json, view, shown),
    ))
}

/// What a list of logs asks of the store.
pub(crate) fn question(list: &List) -> Result<LogQuery, ApiError> {
    Ok(LogQuery {
        filter: list.filter.clone(),
        hashes: LogHashes::Wire,
        page: list.page(|text| text.parse().ok().map(LogId::new))?,
    })
}

/// What of a log is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    /// The original inside a revert, rather than its id.
    whole_reverts: bool,
    /// Volumes in effective order.
    effective_volumes: bool,
}

impl Shown {
    /// To this caller, of this ledger.
    pub(crate) fn of(call: &Call<'_>, ledger: &LedgerView) -> Self {
        Self {
            whole_reverts: call.reads_later_forms(),
            effective_volumes: keeps_effective_volumes(ledger.info().features),
        }
    }
}

/// A log as lists and exports have it.
pub(crate) fn write_log(json: &mut Json, view: &LogView, shown: Shown) {
    write_members(json, view, shown);
    json.raw("}");
}

/// A log that says beside all else of which ledger it is.
pub(crate) fn write_log_of(json: &mut Json, fed: &FedLog) {
    let effective_volumes = keeps_effective_volumes(fed.features);
    write_members(json, &fed.log, Shown { whole_reverts: true, effective_volumes });
    json.raw(",\"ledger\":").plain_string(fed.ledger.as_str()).raw("}");
}

fn write_members(json: &mut Json, view: &LogView, shown: Shown) {
    let entry = &view.entry;
    json.raw("{\"type\":").plain_string(entry.payload.type_name());
    json.raw(",\"data\":");
    write_data(json, view, shown);
    json.raw(",\"date\":").time(entry.date);
    let (key, hash) = match &entry.idempotency {
        Some(idempotency) => (idempotency.key.as_str(), idempotency.hash.as_str()),
        None => ("", ""),
    };
    json.raw(",\"idempotencyKey\":").string(key);
    json.raw(",\"idempotencyHash\":").string(hash);
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
fn write_data(json: &mut Json, view: &LogView, shown: Shown) {
    match &view.entry.payload {
        LogPayload::NewTransaction { transaction, account_metadata, effective_volumes } => {
            json.raw("{\"transaction\":");
            write_recorded(json, transaction, effective_volumes.as_deref(), shown.effective_volumes);
            json.raw(",\"accountMetadata\":{");
            json.list(account_metadata, |json, (address, metadata): &(AccountAddress, Metadata)| {
                json.plain_string(address.as_str()).raw(":").metadata(metadata);
            });
            json.raw("}}");
        }
        LogPayload::RevertedTransaction { reverted, transaction, effective_volumes } => {
            match &view.reverted {
                Some(original) if shown.whole_reverts => {
                    json.raw("{\"revertedTransaction\":");
                    write_transaction(json, original, Some(&original.post_commit_volumes), None);
                }
                _ => {
                    json.raw("{\"revertedTransactionID\":").integer(reverted.get());
                }
            }
            json.raw(",\"transaction\":");
            write_recorded(json, transaction, effective_volumes.as_deref(), shown.effective_volumes);
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
