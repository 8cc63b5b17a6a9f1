//! Finds or creates the ledger of a v1 request, and handles the routes that describe a ledger.

use hyper::StatusCode;
use ledger_core::{BucketName, Features, FirstId, LedgerName, LedgerOptions, Switch};
use ledger_store::{LedgerView, WriteError};

use crate::api::context::Context;
use crate::api::ledger_v1::client::Client;
use crate::http::error::ApiError;
use crate::http::response::Reply;

/// Returns the ledger name in the path.
///
/// # Errors
///
/// Returns `VALIDATION` if the name is invalid.
pub(crate) fn name(context: &Context<'_>) -> Result<LedgerName, ApiError> {
    let text = context.variable(0);
    LedgerName::parse(text).map_err(|_| {
        let text: String = text.chars().take(100).collect();
        ApiError::validation(format!(
            "invalid ledger name '{text}': name must match format '^[0-9a-zA-Z_-]{{1,63}}$'"
        ))
    })
}

/// Returns a snapshot of the ledger in the path, or `None` if it does not exist.
///
/// # Errors
///
/// Fails like [`name`].
pub(crate) fn view(context: &Context<'_>) -> Result<Option<LedgerView>, ApiError> {
    Ok(context.app.snapshot().ledger(&name(context)?))
}

/// Returns the options of ledgers that v1 creates. Ids begin at 0, or at 1 for clients of 2.4.
pub(crate) fn options(context: &Context<'_>) -> LedgerOptions {
    let first_id = if Client::of(context).is_2_4() { FirstId::One } else { FirstId::Zero };
    LedgerOptions {
        first_id: context.app.settings().first_id.unwrap_or(first_id),
        features: Features { legacy_hashes: Switch::On, ..Features::default() },
        ..LedgerOptions::default()
    }
}

/// Returns the ledger in the path, and creates it if it does not exist.
///
/// # Errors
///
/// Fails like [`name`], and if the store cannot create the ledger.
pub(crate) async fn ensured(context: &Context<'_>) -> Result<LedgerView, ApiError> {
    let name = name(context)?;
    if let Some(ledger) = context.app.snapshot().ledger(&name) {
        return Ok(ledger);
    }
    // The bucket takes the name of the ledger, which is where v2 clients look for it.
    let options = LedgerOptions {
        bucket: BucketName::parse(name.as_str()).map_err(|error| ApiError::validation(error.to_string()))?,
        ..options(context)
    };
    let new = name.clone();
    let made = context.app.blocking(move |store| match store.create_ledger(new, options) {
        Ok(_) | Err(WriteError::LedgerExists) => Ok(()),
        Err(error) => Err(error.into()),
    });
    made.await?;
    // The name may belong to a ledger in a deleted bucket.
    context.app.snapshot().ledger(&name).ok_or_else(|| ApiError::validation("the ledger was deleted"))
}

pub(crate) fn stats(context: &Context<'_>) -> Result<Reply, ApiError> {
    let (transactions, accounts) = match view(context)? {
        Some(ledger) => {
            let stats = ledger.stats()?;
            (stats.transactions, stats.accounts)
        }
        None => (0, 0),
    };
    let mut json = context.json();
    json.raw("{\"data\":{\"transactions\":").integer(transactions);
    json.raw(",\"accounts\":").integer(accounts).raw("}}");
    Ok(json.reply(StatusCode::OK))
}

pub(crate) fn info(context: &Context<'_>) -> Result<Reply, ApiError> {
    let (name, ledger, client) = (name(context)?, view(context)?, Client::of(context));
    let mut json = context.json();
    json.raw("{\"data\":{\"name\":").plain_string(name.as_str()).raw(",\"storage\":{\"migrations\":[");
    if let Some(ledger) = ledger {
        json.raw("{\"version\":").raw(if client.has_text_versions() { "\"1\"" } else { "1" });
        json.raw(",\"name\":\"init\",\"state\":");
        json.plain_string(if client.is_1_10() { "done" } else { "DONE" });
        json.raw(",\"date\":").time(ledger.info().added_at).raw("}");
    }
    json.raw("]}}}");
    Ok(json.reply(StatusCode::OK))
}
