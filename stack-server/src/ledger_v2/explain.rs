//! How lists are found, for operators who wonder why one is slow. Of this server alone: no client knows it.

use hyper::StatusCode;
use ledger_store::Explanation;

use crate::call::Call;
use crate::error::ApiError;
use crate::ledger_v2::list::List;
use crate::ledger_v2::{accounts, logs, transactions, volumes};
use crate::response::Reply;

pub(crate) async fn accounts(call: &Call<'_>) -> Result<Reply, ApiError> {
    let ledger = call.ledger()?;
    let question = accounts::question(&List::of(call, &accounts::LIST)?)?;
    let explanation = call.app.long(move || Ok(ledger.explain_accounts(&question)?)).await?;
    Ok(reply(call, &explanation))
}

pub(crate) async fn transactions(call: &Call<'_>) -> Result<Reply, ApiError> {
    let ledger = call.ledger()?;
    let question = transactions::question(&List::of(call, &transactions::LIST)?)?;
    let explanation = call.app.long(move || Ok(ledger.explain_transactions(&question)?)).await?;
    Ok(reply(call, &explanation))
}

pub(crate) async fn volumes(call: &Call<'_>) -> Result<Reply, ApiError> {
    let ledger = call.ledger()?;
    let question = volumes::question(&List::of(call, &volumes::LIST)?)?;
    let explanation = call.app.long(move || Ok(ledger.explain_volumes(&question)?)).await?;
    Ok(reply(call, &explanation))
}

pub(crate) async fn balances(call: &Call<'_>) -> Result<Reply, ApiError> {
    let ledger = call.ledger()?;
    let question = volumes::balances_question(call)?;
    let explanation = call.app.long(move || Ok(ledger.explain_balances(&question)?)).await?;
    Ok(reply(call, &explanation))
}

pub(crate) async fn logs(call: &Call<'_>) -> Result<Reply, ApiError> {
    let ledger = call.ledger()?;
    let question = logs::question(&List::of(call, &logs::LIST)?)?;
    let explanation = call.app.long(move || Ok(ledger.explain_logs(&question)?)).await?;
    Ok(reply(call, &explanation))
}

fn reply(call: &Call<'_>, explanation: &Explanation) -> Reply {
    let mut json = call.json();
    json.raw("{\"data\":{\"index\":").string(&explanation.index);
    json.raw(",\"exact\":").boolean(explanation.is_exact);
    json.raw(",\"sorted\":").boolean(explanation.is_sorted);
    json.raw(",\"rowsPlanning\":").integer(explanation.rows_planning);
    json.raw(",\"rowsScanned\":").integer(explanation.rows_scanned);
    json.raw(",\"rowsReturned\":").integer(explanation.rows_returned).raw("}}");
    json.reply(StatusCode::OK)
}
