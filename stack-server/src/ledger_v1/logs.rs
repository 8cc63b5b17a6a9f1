//! The log of a ledger, as this generation tells it.
//!
//! There are two types of entries: a revert is the transaction that it records, a removal of metadata sets the key
//! to null. Ids are those of the ledger's one log.

use ledger_core::{Condition, FilterNode, LegacyLog, LogId, Resource, TextField, TextTest, WireHash};
use ledger_store::{LedgerView, LogHashes, LogQuery, LogView};
use sha2::{Digest as _, Sha256};

use crate::call::Call;
use crate::error::ApiError;
use crate::ledger_v1::list::{Kind, List, Parameters};
use crate::ledger_v1::{filter, ledger};
use crate::response::{Json, Reply};

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
    let question = LogQuery {
        filter: list.filter.clone(),
        hashes: LogHashes::Legacy,
        page: list.page(|text| text.parse().ok().map(LogId::new))?,
    };
    // Always long: the hashes of recent entries may still have to be computed.
    let page = List::ask(call, ledger, question, true, LedgerView::logs).await?;
    Ok(list.reply(call, page.as_ref(), |view| view.entry.id.get().to_string(), write_log))
}

fn write_log(json: &mut Json, view: &LogView) {
    let log = LegacyLog::from(&view.entry);
    let hash = if let Some(hash) = view.hash {
        WireHash::from_bytes(hash)
    } else {
        // Where the ledger keeps no hashes there is a digest of the entry alone: stable, and never empty.
        let mut text = Vec::new();
        log.write_to("", &mut text);
        WireHash::from_bytes(Sha256::digest(text).into())
    };
    json.write(|out| log.write_to(&hash.to_hex(), out));
}
