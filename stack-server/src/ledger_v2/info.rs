//! What a ledger tells about its storage.

use hyper::StatusCode;

use crate::call::Call;
use crate::error::ApiError;
use crate::response::Reply;

pub(crate) fn ledger(call: &Call<'_>) -> Result<Reply, ApiError> {
    let ledger = call.ledger()?;
    let mut json = call.json();
    // Generations disagree on the type of a migration's version; an empty list is read by all.
    json.raw("{\"data\":{\"name\":").plain_string(ledger.info().name.as_str());
    json.raw(",\"storage\":{\"migrations\":[]}}}");
    Ok(json.reply(StatusCode::OK))
}
