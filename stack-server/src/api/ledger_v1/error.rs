//! The errors of v1: codes, texts, and the form of the body.
//!
//! v1 has a closed set of codes that is smaller than that of v2. Every error without a code of its own is
//! `VALIDATION`.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ledger_core::Rejection;
use ledger_core::script::{ErrorClass, ErrorKind, ScriptError};

use crate::http::error::{ApiError, Code, Profile};
use crate::http::response::{self, Json, Numbers, Reply};

/// Returns the v1 code of an error.
pub(crate) fn v1_code(error: &ApiError) -> &'static str {
    match error.code {
        Code::Validation
        | Code::AlreadyRevert
        | Code::NoPostings
        | Code::LedgerAlreadyExists
        | Code::BulkSizeExceeded
        | Code::SchemaAlreadyExists
        | Code::SchemaNotSpecified => "VALIDATION",
        Code::LedgerNotFound => "NOT_FOUND",
        code => code.text(Profile::Stack),
    }
}

/// Converts the rejection of a command into an error with the v1 code and text.
pub(crate) fn refused(rejection: Rejection) -> ApiError {
    match rejection {
        Rejection::TransactionNotFound { .. } => ApiError::not_found("transaction not found"),
        Rejection::AlreadyReverted { id } => {
            ApiError::validation(format!("transaction {} already reverted", id.get()))
        }
        Rejection::InsufficientFunds { asset, .. } => {
            ApiError::new(Code::InsufficientFund, format!("balance.insufficient.{asset}"))
        }
        Rejection::ReferenceTaken { .. } => ApiError::new(Code::Conflict, "conflict error on reference"),
        Rejection::NoPostings => ApiError::validation("transaction has no postings"),
        Rejection::PastDate { passed, last } => ApiError::validation(format!(
            "cannot pass a timestamp prior to the last transaction: {passed} (passed) is {} before {last} (last)",
            duration(last.as_micros().saturating_sub(passed.as_micros()))
        )),
        Rejection::Script { error, .. } if error.kind.class() == ErrorClass::Funds => {
            script_refused(Code::InsufficientFund, "account had insufficient funds")
        }
        Rejection::Script { error, .. } => script_refused(Code::CompilationFailed, &script_fault(&error)),
        Rejection::MetadataOverride { .. } => {
            script_refused(Code::MetadataOverride, "cannot override metadata from script")
        }
        other => ApiError::from(other),
    }
}

/// Describes the fault of a script or of its variables.
fn script_fault(error: &ScriptError) -> String {
    match &error.kind {
        ErrorKind::MetadataNotFound { .. } => format!("could not resolve program resources: {}", error.kind),
        ErrorKind::MissingVariable { name } => format!("could not set variables: missing variable ${name}"),
        kind if kind.class() == ErrorClass::Variables => format!("could not set variables: {kind}"),
        _ => error.to_string(),
    }
}

/// Builds the error of a refused script. Its message starts with the code in brackets, which makes [`refusal`] add
/// a link that shows the text to a person.
pub(crate) fn script_refused(code: Code, text: &str) -> ApiError {
    let mut error = ApiError::new(code, "");
    error.message = Cow::Owned(format!("[{}] {text}", v1_code(&error)));
    error
}

/// Returns the text of a script error without its code, or `None` if the error is not one of a script.
pub(crate) fn script_text(error: &ApiError) -> Option<&str> {
    error.message.strip_prefix('[')?.strip_prefix(v1_code(error))?.strip_prefix("] ")
}

/// Returns the address of a web page that shows the text of a script error.
pub(crate) fn details(text: &str) -> String {
    let mut json = Json::new(Numbers::Plain);
    json.raw("{\"error\":").string(&text.replace('\n', "\r\n")).raw("}");
    format!("https://play.numscript.org/?payload={}", STANDARD.encode(json.into_bytes()))
}

/// Writes the members of an error object, without braces.
pub(crate) fn write_error(json: &mut Json, error: &ApiError, message: &str, details: Option<&str>) {
    json.raw("\"errorCode\":").plain_string(v1_code(error)).raw(",\"errorMessage\":").string(message);
    if let Some(details) = details {
        json.raw(",\"details\":").string(details);
    }
    // Some clients still read the names from before release 1.7.
    json.raw(",\"error_code\":").plain_string(v1_code(error)).raw(",\"error_message\":").string(message);
}

/// Builds the response to a refused request.
pub(crate) fn refusal(error: &ApiError) -> Reply {
    let details = script_text(error).map(details);
    let mut json = Json::new(Numbers::Plain);
    json.raw("{");
    write_error(&mut json, error, &error.message, details.as_deref());
    json.raw("}");
    // In this profile a conflict has status 409.
    let mut reply = json.reply(error.status(Profile::Ledger));
    response::mark_refused(&mut reply, v1_code(error));
    if error.transient {
        response::ask_to_retry(&mut reply);
    }
    reply
}

/// Formats a duration as `1h2m3.5s`.
fn duration(micros: i64) -> String {
    let micros = micros.unsigned_abs();
    let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let mut text = String::new();
    if hours > 0 {
        text.push_str(&format!("{hours}h"));
    }
    if hours > 0 || minutes > 0 {
        text.push_str(&format!("{minutes}m"));
    }
    text.push_str(&seconds.to_string());
    if fraction > 0 {
        text.push_str(format!(".{fraction:06}").trim_end_matches('0'));
    }
    text.push('s');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_the_units_that_it_needs() {
        for (micros, text) in [
            (0, "0s"),
            (1_500_000, "1.5s"),
            (61_000_000, "1m1s"),
            (3_600_000_000, "1h0m0s"),
            (1, "0.000001s"),
        ] {
            assert_eq!(duration(micros), text);
        }
    }

    #[test]
    fn the_link_of_a_script_error_holds_its_text() {
        let link = details("line one\nline <two>");
        let payload = link.rsplit('=').find(|part| part.len() > 10).expect("a payload");
        let payload = &link[link.find(payload).expect("the payload")..];
        let json = String::from_utf8(STANDARD.decode(payload).expect("base64")).expect("text");
        assert_eq!(json, r#"{"error":"line one\r\nline \u003ctwo\u003e"}"#);
    }
}
