//! The log route of v2.

use ledger_core::{LogId, Resource};
use ledger_store::{Direction, LedgerView, LogHashes, LogQuery};

use crate::api::context::Context;
use crate::api::cursor::Sort;
use crate::api::ledger_v2::list::{List, ListSpec};
use crate::http::error::ApiError;
use crate::http::response::Reply;
use crate::shapes::log::{LogShape, write_log};
use crate::shapes::transaction::keeps_effective_volumes;

pub(crate) static LIST: ListSpec = ListSpec {
    name: "logs",
    resource: Resource::Logs,
    direction: Direction::Descending,
    // Dates never decrease as ids grow, so both columns have the same order.
    sortable: &[("id", Sort::Natural), ("date", Sort::Natural)],
    until: &[],
    since: &[],
};

pub(crate) async fn list(context: &Context<'_>) -> Result<Reply, ApiError> {
    let ledger = context.ledger()?;
    let list = List::of(context, &LIST)?;
    page(context, ledger, &list).await
}

/// Answers a list of logs with one page.
pub(crate) async fn page(context: &Context<'_>, ledger: LedgerView, list: &List) -> Result<Reply, ApiError> {
    let query = store_query(list)?;
    let shape = shape_for(context, &ledger);
    // Always run this as long work, even for a short page: the hashes of recent entries may not have been computed yet.
    let page = context.app.long(move || Ok(ledger.logs(&query)?)).await?;
    Ok(list.reply(
        context,
        &page,
        |view| view.entry.id.get().to_string(),
        |json, view| write_log(json, view, shape),
    ))
}

/// Builds the query for the store.
pub(crate) fn store_query(list: &List) -> Result<LogQuery, ApiError> {
    Ok(LogQuery {
        filter: list.filter()?,
        hashes: LogHashes::Wire,
        page: list.page(|text| text.parse().ok().map(LogId::new))?,
    })
}

/// Returns which optional members the written logs contain. They depend on the client and on the ledger's features.
pub(crate) fn shape_for(context: &Context<'_>, ledger: &LedgerView) -> LogShape {
    LogShape {
        whole_reverts: context.reads_later_forms(),
        effective_volumes: keeps_effective_volumes(ledger.info().features),
    }
}
