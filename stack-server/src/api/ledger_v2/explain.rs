//! Explains which index a list uses, for operators who investigate a slow list. Only this server has this route, so no
//! client depends on it.

use hyper::StatusCode;
use ledger_store::{Explanation, ReadError};

use crate::api::context::Context;
use crate::api::ledger_v2::list::List;
use crate::api::ledger_v2::{accounts, logs, transactions, volumes};
use crate::http::error::ApiError;
use crate::http::response::Reply;

pub(crate) async fn accounts(context: &Context<'_>) -> Result<Reply, ApiError> {
    let ledger = context.ledger()?;
    let query = accounts::store_query(&List::of(context, &accounts::LIST)?)?;
    explained(context, move || ledger.explain_accounts(&query)).await
}

pub(crate) async fn transactions(context: &Context<'_>) -> Result<Reply, ApiError> {
    let ledger = context.ledger()?;
    let query = transactions::store_query(&List::of(context, &transactions::LIST)?)?;
    explained(context, move || ledger.explain_transactions(&query)).await
}

pub(crate) async fn volumes(context: &Context<'_>) -> Result<Reply, ApiError> {
    let ledger = context.ledger()?;
    let query = volumes::store_query(&List::of(context, &volumes::LIST)?)?;
    explained(context, move || ledger.explain_volumes(&query)).await
}

pub(crate) async fn balances(context: &Context<'_>) -> Result<Reply, ApiError> {
    let ledger = context.ledger()?;
    let query = volumes::balances_query(context)?;
    explained(context, move || ledger.explain_balances(&query)).await
}

pub(crate) async fn logs(context: &Context<'_>) -> Result<Reply, ApiError> {
    let ledger = context.ledger()?;
    let query = logs::store_query(&List::of(context, &logs::LIST)?)?;
    explained(context, move || ledger.explain_logs(&query)).await
}

async fn explained(
    context: &Context<'_>,
    explain: impl FnOnce() -> Result<Explanation, ReadError> + Send + 'static,
) -> Result<Reply, ApiError> {
    let explanation = context.app.long(|| Ok(explain()?)).await?;
    let mut json = context.json();
    json.raw("{\"data\":{\"index\":").string(&explanation.index);
    json.raw(",\"exact\":").boolean(explanation.is_exact);
    json.raw(",\"sorted\":").boolean(explanation.is_sorted);
    json.raw(",\"rowsPlanning\":").integer(explanation.rows_planning);
    json.raw(",\"rowsScanned\":").integer(explanation.rows_scanned);
    json.raw(",\"rowsReturned\":").integer(explanation.rows_returned).raw("}}");
    Ok(json.reply(StatusCode::OK))
}
