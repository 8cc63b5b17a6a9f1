//! Parses JSON filters into the filter tree of the core.

use std::fmt;

use ledger_core::{Condition, Filter, FilterError, FilterOf, FilterSyntaxError, Resource, Selects};
use serde_json::value::RawValue;

use crate::api::context::Context;
use crate::http::error::{ApiError, Profile};
use crate::http::json;
use crate::limits::FILTER_BYTES_MAX;

/// Returns the JSON text of a request's filter: the parameter `query`, or else the body. The text is empty if there
/// is neither.
///
/// # Errors
///
/// Returns `VALIDATION` if the text is not JSON or is longer than a cursor can carry.
pub(crate) fn filter_text<'a>(context: &'a Context<'_>) -> Result<&'a str, ApiError> {
    let bytes = match context.query.get("query") {
        Some(text) if !text.is_empty() => text.as_bytes(),
        _ => &context.body[..],
    };
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok("");
    }
    let text = json::first::<&RawValue>(bytes).map_err(|error| malformed(&error))?.get();
    if text.len() > FILTER_BYTES_MAX {
        return Err(ApiError::validation(format!("a filter has at most {FILTER_BYTES_MAX} bytes")));
    }
    Ok(text)
}

/// Parses a filter. An empty text, `null` and `{}` select everything. The profile decides which operators a
/// property takes.
///
/// # Errors
///
/// Returns `VALIDATION` if the filter is malformed.
pub(crate) fn parse(profile: Profile, resource: Resource, text: &str) -> Result<Filter, ApiError> {
    let condition = match profile {
        Profile::Stack => Condition::of_first_release,
        Profile::Ledger => Condition::new,
    };
    Filter::parse(resource, text, condition).map_err(|error| {
        ApiError::validation(match error {
            FilterError::Malformed(error) => message(&error),
            other => other.to_string(),
        })
    })
}

/// Returns the message that clients of this API expect.
fn message(error: &FilterSyntaxError) -> String {
    match error {
        FilterSyntaxError::NotJson(error) => format!("invalid filter: {error}"),
        FilterSyntaxError::NotAnObject => "invalid filter: expected an object".to_owned(),
        FilterSyntaxError::NoProperty { .. } => "expected single key, found none".to_owned(),
        FilterSyntaxError::SeveralOperators | FilterSyntaxError::SeveralProperties { .. } => {
            "expected single key, found more then one".to_owned()
        }
        FilterSyntaxError::UnknownOperator { name } => format!("unexpected operator {name}"),
        FilterSyntaxError::ArrayExpected { operator } => format!("parsing {operator}: expected an array"),
        FilterSyntaxError::ObjectExpected { operator } => format!("parsing {operator}: expected an object"),
        FilterSyntaxError::NotAnInteger { operator } => {
            format!("parsing {operator}: provided json number was not an integer")
        }
        FilterSyntaxError::Number { operator, error } => format!("parsing {operator}: {error}"),
        other => other.to_string(),
    }
}

/// Parses the filter of a request that is not a list.
///
/// # Errors
///
/// Fails like [`parse`].
pub(crate) fn filter<R: Selects>(context: &Context<'_>) -> Result<FilterOf<R>, ApiError> {
    let filter = parse(context.profile, R::RESOURCE, filter_text(context)?)?;
    FilterOf::try_from(filter).map_err(|error| ApiError::fault(&error.to_string()))
}

fn malformed(error: &dyn fmt::Display) -> ApiError {
    ApiError::validation(format!("invalid filter: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_those_that_clients_expect() {
        for (text, message) in [
            ("[]", "invalid filter: "),
            ("7", "invalid filter: "),
            ("{", "invalid filter: "),
            (r#"{"$match":{}}"#, "expected single key, found none"),
            (r#"{"$match":{"address":"a","metadata[k]":"b"}}"#, "expected single key, found more then one"),
            (r#"{"$match":{"address":"a"},"$not":{}}"#, "expected single key, found more then one"),
            (r#"{"$foo":{"address":"a"}}"#, "unexpected operator $foo"),
            (r#"{"address":"a"}"#, "unexpected operator address"),
            (r#"{"$match":"a"}"#, "parsing $match: "),
            (r#"{"$and":{"$match":{"address":"a"}}}"#, "parsing $and: "),
            (r#"{"$not":[{"$match":{"address":"a"}}]}"#, "invalid filter: "),
            (r#"{"$match":{"nosuch":"a"}}"#, "unknown key 'nosuch' when building query"),
            (r#"{"$gt":{"balance[USD]":1.5}}"#, "parsing $gt: provided json number was not an integer"),
            (r#"{"$match":{"address":{"x":1}}}"#, "invalid value for property 'address'"),
        ] {
            let error = parse(Profile::Ledger, Resource::Accounts, text).expect_err(text);
            assert!(error.message.starts_with(message), "{text}: {}", error.message);
        }
        let digits = format!(r#"{{"$gt":{{"balance[USD]":{}}}}}"#, "1".repeat(1_001));
        let error = parse(Profile::Ledger, Resource::Accounts, &digits).expect_err("a long number");
        assert!(error.message.starts_with("parsing $gt: "), "{}", error.message);
    }

    #[test]
    fn orders_references_in_first_release_only() {
        for operator in ["$lt", "$lte", "$gt", "$gte"] {
            let text = format!(r#"{{"{operator}":{{"reference":"b"}}}}"#);
            parse(Profile::Stack, Resource::Transactions, &text).expect("a filter");
            let error =
                parse(Profile::Ledger, Resource::Transactions, &text).expect_err("no operator of texts");
            assert!(error.message.contains(operator), "{}", error.message);
            for other in [r#"{"reference":7}"#, r#"{"source":"b"}"#, r#"{"metadata[k]":"b"}"#] {
                let text = format!(r#"{{"{operator}":{other}}}"#);
                assert!(parse(Profile::Stack, Resource::Transactions, &text).is_err(), "{text}");
            }
        }
    }
}
