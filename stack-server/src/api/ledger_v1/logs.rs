//! The log route of v1.
//!
//! v1 has two types of log entries. A revert appears as the transaction that it records. A removal of metadata
//! appears as a key that is set to null. The ids are the same as in v2.

use ledger_core::{
    AccountAddress, Condition, FilterNode, LegacyLog, LogId, LogPayload, Metadata, Resource, TextField,
    TextTest, WireHash,
};
use ledger_store::{LedgerView, LogHashes, LogQuery, LogView};
use sha2::{Digest as _, Sha256};

use crate::api::context::Context;
use crate::api::ledger_v1::client::Client;
use crate::api::ledger_v1::list::{List, ListSpec, Parameters};
use crate::api::ledger_v1::{filter, ledger};
use crate::http::error::ApiError;
use crate::http::response::{Json, Reply};
use crate::shapes::transaction::write_transaction;

static LIST: ListSpec = ListSpec {
    name: "v1 logs",
    resource: Resource::Logs,
    parameters: &["after", "startTime", "start_time", "endTime", "end_time"],
    metadata: false,
    ascends_for_2_4: false,
    ignored_by_1_10_counts: &[],
    select,
};

fn select(parameters: &Parameters) -> Result<Vec<FilterNode>, ApiError> {
    let mut nodes: Vec<FilterNode> = filter::below_id(parameters)?.into_iter().collect();
    nodes.extend(filter::window(parameters)?);
    // v1 clients fail on entry types that they do not know.
    let schema = Condition::Text { field: TextField::Type, test: TextTest::Equal("INSERTED_SCHEMA".into()) };
    nodes.push(FilterNode::Not(Box::new(FilterNode::Is(schema))));
    Ok(nodes)
}

pub(crate) async fn list(context: &Context<'_>) -> Result<Reply, ApiError> {
    let ledger = ledger::view(context)?;
    let list = List::of(context, &LIST)?;
    let question = LogQuery {
        filter: list.filter()?,
        hashes: LogHashes::Legacy,
        page: list.page(|text| text.parse().ok().map(LogId::new))?,
    };
    // Always long, because the hashes of recent entries may not have been computed yet.
    let page = List::ask(context, ledger, question, true, LedgerView::logs).await?;
    let is_2_4 = Client::of(context).is_2_4();
    let write = |json: &mut Json, view: &LogView| {
        if is_2_4 { write_later_log(json, view) } else { write_log(json, view) }
    };
    Ok(list.reply(context, page.as_ref(), |view| view.entry.id.get().to_string(), write))
}

/// Writes a log for clients of 2.4: the data are a transaction in the form of v2, and a revert appears as the
/// transaction that it records. Other entries have the same form for all clients.
fn write_later_log(json: &mut Json, view: &LogView) {
    const NONE: &[(AccountAddress, Metadata)] = &[];
    let entry = &view.entry;
    let (transaction, account_metadata) = match &entry.payload {
        LogPayload::NewTransaction { transaction, account_metadata, .. } => {
            (transaction, account_metadata.as_slice())
        }
        LogPayload::RevertedTransaction { transaction, .. } => (transaction, NONE),
        LogPayload::SetMetadata { .. }
        | LogPayload::DeleteMetadata { .. }
        | LogPayload::InsertedSchema { .. } => return write_log(json, view),
    };
    json.raw("{\"id\":")
        .integer(entry.id.get())
        .raw(",\"type\":\"NEW_TRANSACTION\",\"data\":{\"transaction\":");
    write_transaction(json, transaction, None, None);
    json.raw(",\"accountMetadata\":{");
    json.list(account_metadata, |json, (address, metadata): &(AccountAddress, Metadata)| {
        json.plain_string(address.as_str()).raw(":").metadata(metadata);
    });
    json.raw("}},\"hash\":").plain_string(&hash_of(view, &LegacyLog::from(entry)).to_hex());
    json.raw(",\"date\":").time(entry.date).raw("}");
}

fn write_log(json: &mut Json, view: &LogView) {
    let log = LegacyLog::from(&view.entry);
    let hash = hash_of(view, &log);
    json.write(|out| log.write_to(&hash.to_hex(), out));
}

/// Returns the hash of a log. If the ledger has no hashes, returns a digest of the entry alone, which is stable and
/// never empty.
fn hash_of(view: &LogView, log: &LegacyLog<'_>) -> WireHash {
    view.hash.map_or_else(
        || {
            let mut text = Vec::new();
            log.write_to("", &mut text);
            WireHash::from_bytes(Sha256::digest(text).into())
        },
        WireHash::from_bytes,
    )
}
