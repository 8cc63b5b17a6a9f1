//! The log of a ledger, as this generation tells it.
//!
//! There are two types of entries: a revert is the transaction that it records, a removal of metadata sets the key
//! to null. Ids are those of the ledger's one log.

use ledger_core::{
    Condition, FilterNode, LogEntry, LogId, LogPayload, Metadata, MetadataValue, Resource, Target, TextField,
    TextTest, Timestamp, Transaction, WireHash,
};
use ledger_store::{LogQuery, LogView};
use sha2::{Digest as _, Sha256};

use crate::call::Call;
use crate::error::ApiError;
use crate::ledger_v1::list::{Kind, List, Parameters};
use crate::ledger_v1::{filter, ledger};
use crate::response::{Json, Numbers, Reply};
use crate::shape::write_posting;

static LIST: Kind = Kind {
    name: "v1 logs",
    resource: Resource::Logs,
    parameters: &["after", "startTime", "start_time", "endTime", "end_time"],
    metadata: false,
    select,
};

fn select(parameters: &Parameters) -> Result<Vec<FilterNode>, ApiError> {
    let mut nodes: Vec<FilterNode> = filter::below_id(parameters)?.into_iter().collect();
    nodes.extend(filter::window(parameters)?);
    // Clients fail on a type that they do not know.
    let schema = Condition::Text { field: TextField::Type, test: TextTest::Equal("INSERTED_SCHEMA".into()) };
    nodes.push(FilterNode::Not(Box::new(FilterNode::Is(schema))));
    Ok(nodes)
}

pub(crate) async fn list(call: &Call<'_>) -> Result<Reply, ApiError> {
    let ledger = ledger::view(call)?;
    let list = List::of(call, &LIST)?;
    let page = match ledger {
        None => None,
        Some(ledger) => {
            let question = LogQuery {
                filter: list.filter.clone(),
                page: list.page(|text| text.parse().ok().map(LogId::new))?,
            };
            // Always long: the hashes of recent entries may still have to be computed.
            Some(call.app.long(move || Ok(ledger.logs(&question)?)).await?)
        }
    };
    Ok(list.reply(call, page.as_ref(), |view| view.entry.id.get().to_string(), write_log))
}

fn write_log(json: &mut Json, view: &LogView) {
    let hash = if let Some(hash) = view.hash {
        WireHash::from_bytes(hash)
    } else {
        // Where the ledger keeps no hashes there is a digest of the entry alone: stable, and never empty.
        let mut text = Json::new(Numbers::Plain);
        write_entry(&mut text, &view.entry, "");
        WireHash::from_bytes(Sha256::digest(text.into_bytes()).into())
    };
    write_entry(json, &view.entry, &hash.to_hex());
}

fn write_entry(json: &mut Json, entry: &LogEntry, hash: &str) {
    json.raw("{\"id\":").integer(entry.id.get());
    match &entry.payload {
        LogPayload::NewTransaction { transaction, .. }
        | LogPayload::RevertedTransaction { transaction, .. } => {
            json.raw(",\"type\":\"NEW_TRANSACTION\",\"data\":");
            write_recorded(json, transaction);
        }
        LogPayload::SetMetadata { target, metadata } => write_set(json, target, metadata),
        LogPayload::DeleteMetadata { target, key } => {
            let mut metadata = Metadata::EMPTY;
            metadata.insert(key.clone(), MetadataValue::Json("null".into()));
            write_set(json, target, &metadata);
        }
        // The list leaves these out.
        LogPayload::InsertedSchema { .. } => {
            json.raw(",\"type\":\"SET_METADATA\",\"data\":{}");
        }
    }
    json.raw(",\"hash\":").plain_string(hash);
    json.raw(",\"date\":").time(date_of(entry)).raw("}");
}

/// A transaction is dated like its log; what sets metadata is dated when it was recorded.
fn date_of(entry: &LogEntry) -> Timestamp {
    entry.payload.effective_date().unwrap_or(entry.date)
}

fn write_recorded(json: &mut Json, transaction: &Transaction) {
    json.raw("{\"postings\":[").list(&transaction.postings, write_posting).raw("],\"reference\":");
    json.string(transaction.reference.as_ref().map_or("", |reference| reference.as_str()));
    json.raw(",\"metadata\":").any_metadata(&transaction.metadata);
    json.raw(",\"timestamp\":").time(transaction.timestamp);
    json.raw(",\"txid\":").integer(transaction.id.get()).raw("}");
}

fn write_set(json: &mut Json, target: &Target, metadata: &Metadata) {
    json.raw(",\"type\":\"SET_METADATA\",\"data\":");
    match target {
        Target::Account(address) => {
            json.raw("{\"targetType\":\"ACCOUNT\",\"targetId\":").plain_string(address.as_str());
        }
        Target::Transaction(id) => {
            json.raw("{\"targetType\":\"TRANSACTION\",\"targetId\":").integer(id.get());
        }
    }
    json.raw(",\"metadata\":").any_metadata(metadata).raw("}");
}
