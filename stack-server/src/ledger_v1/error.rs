//! What this generation refuses with: its words, its texts, and the form of the body.
//!
//! The set of words is closed, and smaller than that of the second generation: what is not in it is `VALIDATION`.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ledger_core::Rejection;
use ledger_core::script::{ErrorClass, ErrorKind, ScriptError};

use crate::error::{ApiError, Code, Profile};
use crate::response::{self, Json, Numbers, Reply};

/// The word of an error.
pub(crate) fn word(error: &ApiError) -> &'static str {
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

/// A refused command, in the words of this generation.
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

/// What is wrong with a script, or with what came with it.
fn script_fault(error: &ScriptError) -> String {
    match &error.kind {
        ErrorKind::MetadataNotFound { .. } => format!("could not resolve program resources: {}", error.kind),
        ErrorKind::MissingVariable { name } => format!("could not set variables: missing variable ${name}"),
        kind if kind.class() == ErrorClass::Variables => format!("could not set variables: {kind}"),
        _ => error.to_string(),
    }
}

/// A refused script: the word goes before the text, and a link shows the text to a person.
pub(crate) fn script_refused(code: Code, text: &str) -> ApiError {
    let mut error = ApiError::new(code, "");
    error.message = Cow::Owned(format!("[{}] {text}", word(&error)));
    error
}

/// The text of a script's error without the word before it, if this is one.
pub(crate) fn script_text(error: &ApiError) -> Option<&str> {
    error.message.strip_prefix('[')?.strip_prefix(word(error))?.strip_prefix("] ")
}

/// Where a person can look at the text of a script's error.
pub(crate) fn details(text: &str) -> String {
    let mut json = Json::new(Numbers::Plain);
    json.raw("{\"error\":").string(&text.replace('\n', "\r\n")).raw("}");
    format!("https://play.numscript.org/?payload={}", STANDARD.encode(json.into_bytes()))
}

/// The members of an error, without braces.
pub(crate) fn write_error(json: &mut Json, error: &ApiError, message: &str, details: Option<&str>) {
    json.raw("\"errorCode\":").plain_string(word(error)).raw(",\"errorMessage\":").string(message);
    if let Some(details) = details {
        json.raw(",\"details\":").string(details);
    }
    // The names of before 1.7, which some clients still read.
    json.raw(",\"error_code\":").plain_string(word(error)).raw(",\"error_message\":").string(message);
}

/// The answer to a request that is refused.
pub(crate) fn refusal(error: &ApiError) -> Reply {
    let details = script_text(error).map(details);
    let mut json = Json::new(Numbers::Plain);
    json.raw("{");
    write_error(&mut json, error, &error.message, details.as_deref());
    json.raw("}");
    // By this profile a conflict is 409.
    let mut reply = json.reply(error.status(Profile::Ledger));
    if error.transient {
        response::ask_to_retry(&mut reply);
    }
    reply
}

/// A length of time as `1h2m3.5s`.
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
        let payload = &link[link.find(payload).expect("it is there")..];
        let json = String::from_utf8(STANDARD.decode(payload).expect("base64")).expect("text");
        assert_eq!(json, r#"{"error":"line one\r\nline \u003ctwo\u003e"}"#);
    }
}
