//! The ledger of a request, what it tells about itself, and how it comes into being.

use hyper::StatusCode;
use ledger_core::{BucketName, Features, FirstId, LedgerName, LedgerOptions, Switch};
use ledger_store::{LedgerView, WriteError};

use crate::call::Call;
use crate::error::ApiError;
use crate::ledger_v1::client::Client;
use crate::response::Reply;
use crate::settings::Settings;

/// The name in the path.
///
/// # Errors
///
/// `VALIDATION` if no ledger can have it.
pub(crate) fn name(call: &Call<'_>) -> Result<LedgerName, ApiError> {
    let text = call.variable(0);
    LedgerName::parse(text).map_err(|_| {
        let text: String = text.chars().take(100).collect();
        ApiError::validation(format!(
            "invalid ledger name '{text}': name must match format '^[0-9a-zA-Z_-]{{1,63}}$'"
        ))
    })
}

/// The ledger of the path as of now; `None` if nothing was written to it yet.
///
/// # Errors
///
/// As [`name`].
pub(crate) fn view(call: &Call<'_>) -> Result<Option<LedgerView>, ApiError> {
    Ok(call.app.snapshot().ledger(&name(call)?))
}

/// How ledgers of this generation are made: ids begin at 0, as its clients expect.
pub(crate) fn options(settings: &Settings) -> LedgerOptions {
    LedgerOptions {
        first_id: settings.first_id.unwrap_or(FirstId::Zero),
        features: Features { legacy_hashes: Switch::On, ..Features::default() },
        ..LedgerOptions::default()
    }
}

/// The ledger of the path, made if it is not there.
///
/// # Errors
///
/// As [`name`], and what a write may meet.
pub(crate) async fn ensured(call: &Call<'_>) -> Result<LedgerView, ApiError> {
    let name = name(call)?;
    if let Some(ledger) = call.app.snapshot().ledger(&name) {
        return Ok(ledger);
    }
    // The bucket has the ledger's name, as the second generation's clients beside this one find it.
    let options = LedgerOptions {
        bucket: BucketName::parse(name.as_str()).map_err(|error| ApiError::validation(error.to_string()))?,
        ..options(call.app.settings())
    };
    let new = name.clone();
    let made = call.app.blocking(move |store| match store.create_ledger(new, options) {
        Ok(_) | Err(WriteError::LedgerExists) => Ok(()),
        Err(error) => Err(error.into()),
    });
    made.await?;
    // Its name may be that of a ledger whose bucket is deleted.
    call.app.snapshot().ledger(&name).ok_or_else(|| ApiError::validation("the ledger was deleted"))
}

pub(crate) fn stats(call: &Call<'_>) -> Result<Reply, ApiError> {
    let (transactions, accounts) = match view(call)? {
        Some(ledger) => {
            let stats = ledger.stats()?;
            (stats.transactions, stats.accounts)
        }
        None => (0, 0),
    };
    let mut json = call.json();
    json.raw("{\"data\":{\"transactions\":").integer(transactions);
    json.raw(",\"accounts\":").integer(accounts).raw("}}");
    Ok(json.reply(StatusCode::OK))
}

pub(crate) fn info(call: &Call<'_>) -> Result<Reply, ApiError> {
    let (name, ledger, client) = (name(call)?, view(call)?, Client::of(call));
    let mut json = call.json();
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
