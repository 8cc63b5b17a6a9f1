//! The v1 route `POST /script`: runs a script and records its postings as a transaction.
//!
//! The response has status 200 even if the script is refused. A refusal contains the error and an empty transaction,
//! whose id is 0.

use hyper::StatusCode;
use ledger_core::{Command, Rejection};
use ledger_store::Detail;

use crate::api::context::Context;
use crate::api::ledger_v1::client::Client;
use crate::api::ledger_v1::wire::{RunBody, malformed};
use crate::api::ledger_v1::{error, ledger, transactions, write};
use crate::http::error::{ApiError, Code};
use crate::http::json::{self, Object};
use crate::http::response::{self, Reply};

/// Answers the request: with the recorded transaction, or with the refusal of the script.
pub(crate) async fn run(context: &Context<'_>) -> Result<Reply, ApiError> {
    let view = ledger::view(context)?;
    let Object(body) =
        json::first::<Object<RunBody<'_>>>(&context.body).map_err(|error| malformed(&error))?;
    if body.is_empty() {
        return Ok(refusal(context, &error::script_refused(Code::NoScript, "no script to execute")));
    }
    // The rules of API v1 check the date and the reference before the script runs, and drop sends that move nothing.
    let create = match body.into_create(context.app.legacy_rules(view.as_ref())?) {
        Ok(create) => create,
        Err(error) => return Ok(refusal(context, &error)),
    };
    let command = Command::CreateTransaction(create);
    let mode = write::mode(context);
    let receipts = match write::outcome(context, vec![command], mode, Detail::Entry).await? {
        Ok(receipts) => receipts,
        // The request is refused before its script runs, so this error has its own status instead of 200.
        Err(mismatch @ Rejection::IdempotencyMismatch { .. }) => return Err(error::refused(mismatch)),
        Err(rejection) => return Ok(refusal(context, &error::refused(rejection))),
    };
    let mut json = context.json();
    json.raw("{\"transaction\":");
    for receipt in &receipts {
        transactions::write_transaction(&mut json, write::transaction(receipt)?, None, Client::of(context));
    }
    json.raw("}");
    Ok(write::mark_replays(json.reply(StatusCode::OK), &receipts))
}

/// Builds the response for a refused script. Its error text lacks the code in brackets with which other routes begin
/// the text. Every error except [`Code::Validation`] has a link to a page that shows the text.
fn refusal(context: &Context<'_>, refused: &ApiError) -> Reply {
    let text = error::script_text(refused).unwrap_or(&refused.message);
    let has_link = !matches!(refused.code, Code::Validation);
    let details = has_link.then(|| error::details(text));
    let mut json = context.json();
    json.raw("{");
    error::write_error(&mut json, refused, text, details.as_deref());
    json.raw(",\"transaction\":{\"postings\":[],\"reference\":\"\",\"metadata\":{},\"txid\":0,");
    json.raw("\"timestamp\":\"0001-01-01T00:00:00Z\"}}");
    let mut reply = json.reply(StatusCode::OK);
    response::mark_refused(&mut reply, error::v1_code(refused));
    reply
}
