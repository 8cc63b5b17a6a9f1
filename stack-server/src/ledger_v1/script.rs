//! Scripts in requests of this generation.
//!
//! This release runs none. A script is answered as one that does not compile, in the forms that this generation
//! has for that; execution has to take the place of [`unsupported`] and nothing else.

use hyper::StatusCode;

use crate::call::Call;
use crate::error::{ApiError, Code};
use crate::json::{self, Object};
use crate::ledger_v1::wire::ScriptBody;
use crate::ledger_v1::{error, ledger};
use crate::response::Reply;

/// What a script is refused with.
pub(crate) fn unsupported() -> ApiError {
    error::script_refused(Code::CompilationFailed, "scripts are not supported by this release: pass postings")
}

/// `POST /script`: every outcome of a script is answered with 200, a refusal with a transaction of zeros.
pub(crate) fn run(call: &Call<'_>) -> Result<Reply, ApiError> {
    ledger::name(call)?;
    let Object(body) = json::first::<Object<ScriptBody<'_>>>(&call.body)
        .map_err(|_| ApiError::validation("invalid transaction format"))?;
    let error = if body.plain.0.is_empty() {
        error::script_refused(Code::NoScript, "no script to execute")
    } else {
        unsupported()
    };
    Ok(refusal(call, &error))
}

/// The answer to a script that was refused: its text has no word before it here.
fn refusal(call: &Call<'_>, refused: &ApiError) -> Reply {
    let text = error::script_text(refused).unwrap_or(&refused.message);
    let mut json = call.json();
    json.raw("{");
    error::write_error(&mut json, refused, text, Some(&error::details(text)));
    json.raw(",\"transaction\":{\"postings\":[],\"reference\":\"\",\"metadata\":{},\"txid\":0,");
    json.raw("\"timestamp\":\"0001-01-01T00:00:00Z\"}}");
    json.reply(StatusCode::OK)
}
