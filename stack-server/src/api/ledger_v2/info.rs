//! `GET /v2/{ledger}/_info`: the storage of a ledger.

use hyper::StatusCode;

use crate::api::context::Context;
use crate::http::error::ApiError;
use crate::http::response::Reply;

/// Answers with the ledger's name and an empty list of database migrations, because this store has none.
pub(crate) fn ledger(context: &Context<'_>) -> Result<Reply, ApiError> {
    let ledger = context.ledger()?;
    let mut json = context.json();
    // Clients of v1 and v2 disagree about the type of a migration's version, but both accept an empty list.
    json.raw("{\"data\":{\"name\":").plain_string(ledger.info().name.as_str());
    json.raw(",\"storage\":{\"migrations\":[]}}}");
    Ok(json.reply(StatusCode::OK))
}
