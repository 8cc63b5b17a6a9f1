//! Parses JSON filters into the filter tree of the core.

use std::fmt;

use ledger_core::limits::FILTER_DEPTH_MAX;
use ledger_core::{
    Balance, Condition, Field, Filter, FilterNode, FilterOf, FilterValue, Operator, Resource, Selects,
    SmolStr,
};
use serde::de::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::api::context::Context;
use crate::http::error::{ApiError, Profile};
use crate::http::json::{self, Array, Entries, Text, is_integer};
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
    if text.is_empty() {
        return Ok(Filter::all(resource));
    }
    let object = json::first::<&RawValue>(text.as_bytes()).map_err(|error| malformed(&error))?;
    match node((profile, resource), object, 1)? {
        None => Ok(Filter::all(resource)),
        Some(root) => Filter::new(resource, root).map_err(|error| ApiError::validation(error.to_string())),
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

/// Parses one `{ op : arg }`. Returns `None` for `{}` and `null`.
fn node(
    (profile, resource): (Profile, Resource),
    object: &RawValue,
    depth: usize,
) -> Result<Option<FilterNode>, ApiError> {
    // The core checks the depth of a finished tree. This recursion must stop before that.
    if depth > FILTER_DEPTH_MAX {
        return Err(ApiError::validation(format!("a filter is at most {FILTER_DEPTH_MAX} deep")));
    }
    let Entries(entries) =
        json::first::<Entries<'_, &RawValue>>(object.get().as_bytes()).map_err(|error| malformed(&error))?;
    let (operator, argument) = match entries.as_slice() {
        [] => return Ok(None),
        [(Text(operator), argument)] => (operator.as_ref(), *argument),
        _ => return Err(ApiError::validation("expected single key, found more then one")),
    };
    let parsing = |error: &dyn fmt::Display| ApiError::validation(format!("parsing {operator}: {error}"));
    match operator {
        "$and" | "$or" => {
            let Array(children) = json::first::<Array<&RawValue>>(argument.get().as_bytes())
                .map_err(|error| parsing(&error))?;
            let children = children
                .into_iter()
                .map(|child| {
                    Ok(node((profile, resource), child, depth + 1)?.unwrap_or(FilterNode::And(Vec::new())))
                })
                .collect::<Result<Vec<_>, ApiError>>()?;
            Ok(Some(if operator == "$and" { FilterNode::And(children) } else { FilterNode::Or(children) }))
        }
        "$not" => match node((profile, resource), argument, depth + 1)? {
            Some(child) => Ok(Some(FilterNode::Not(Box::new(child)))),
            None => Err(parsing(&"expected a filter")),
        },
        name => {
            let Some(operator) = Operator::parse(name) else {
                return Err(ApiError::validation(format!("unexpected operator {name}")));
            };
            // The only field is the key of the condition, which clients know.
            let Entries(entries) = json::first::<Entries<'_, Value>>(argument.get().as_bytes())
                .map_err(|error| parsing(error.without_field()))?;
            let mut entries = entries.into_iter();
            match (entries.next(), entries.next()) {
                (Some((Text(key), Value(value))), None) => {
                    let condition = Field::parse(resource, &key)
                        .and_then(|field| match profile {
                            Profile::Stack => Condition::of_first_release(&field, operator, value),
                            Profile::Ledger => Condition::new(&field, operator, value),
                        })
                        .map_err(|error| ApiError::validation(error.to_string()))?;
                    Ok(Some(FilterNode::Is(condition)))
                }
                (None, _) => Err(ApiError::validation("expected single key, found none")),
                _ => Err(ApiError::validation("expected single key, found more then one")),
            }
        }
    }
}

/// The right-hand value of a comparison.
struct Value(FilterValue);

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        let text = raw.get();
        Ok(Self(match text.as_bytes() {
            b"true" => FilterValue::Boolean(true),
            b"false" => FilterValue::Boolean(false),
            [b'"', ..] => FilterValue::Text(owned(text).map_err(serde::de::Error::custom)?),
            [b'[', ..] => match json::first::<Array<Text<'_>>>(text.as_bytes()) {
                Ok(Array(texts)) => {
                    FilterValue::Texts(texts.iter().map(|Text(t)| t.as_ref().into()).collect())
                }
                // A list with anything but texts. No property takes it, and the error names the property.
                Err(_) => FilterValue::Other,
            },
            [b'-' | b'0'..=b'9', ..] if !is_integer(text) => {
                return Err(serde::de::Error::custom("provided json number was not an integer"));
            }
            [b'-' | b'0'..=b'9', ..] => {
                FilterValue::Integer(Balance::parse(text).map_err(serde::de::Error::custom)?)
            }
            _ => FilterValue::Other,
        }))
    }
}

fn owned(text: &str) -> Result<SmolStr, json::JsonError> {
    json::first::<Text<'_>>(text.as_bytes()).map(|Text(text)| text.as_ref().into())
}

#[cfg(test)]
mod tests {
    use ledger_core::Accounts;

    use super::*;

    #[test]
    fn empty_filter_selects_everything() {
        for text in ["", "null", "{}", " {} "] {
            let filter = parse(Profile::Ledger, Resource::Accounts, text.trim()).expect(text);
            assert!(filter.is_all(), "{text}");
        }
    }

    #[test]
    fn a_filter_keeps_its_shape() {
        let text = r#"{"$and":[{"$match":{"address":"users:"}},{"$not":{"$lt":{"balance[USD/2]":-5}}},
            {"$or":[]},{"$exists":{"metadata":"k"}},{"$in":{"metadata[k]":["a","b"]}}]}"#;
        let filter = parse(Profile::Ledger, Resource::Accounts, text).expect("a filter");
        let FilterNode::And(children) = filter.root() else { panic!("{filter:?}") };
        assert_eq!(children.len(), 5);
        assert!(matches!(&children[1], FilterNode::Not(child)
            if matches!(&**child, FilterNode::Is(Condition::Balance { value, .. }) if *value == -5)));
        assert!(matches!(&children[2], FilterNode::Or(none) if none.is_empty()));
    }

    #[test]
    fn reports_each_fault() {
        for (text, message) in [
            ("[]", "invalid filter: "),
            ("7", "invalid filter: "),
            ("\"x\"", "invalid filter: "),
            (r#"{"$match":{}}"#, "expected single key, found none"),
            (r#"{"$match":{"address":"a","metadata[k]":"b"}}"#, "expected single key, found more then one"),
            (r#"{"$match":{"address":"a"},"$not":{}}"#, "expected single key, found more then one"),
            (r#"{"$foo":{"address":"a"}}"#, "unexpected operator $foo"),
            (r#"{"address":"a"}"#, "unexpected operator address"),
            (r#"{"$match":"a"}"#, "parsing $match: "),
            (r#"{"$and":{"$match":{"address":"a"}}}"#, "parsing $and: "),
            (r#"{"$not":[{"$match":{"address":"a"}}]}"#, "invalid filter: "),
            (r#"{"$not":{}}"#, "parsing $not: "),
            (r#"{"$match":{"nosuch":"a"}}"#, "unknown key 'nosuch' when building query"),
            (r#"{"$gt":{"balance[USD]":1.5}}"#, "parsing $gt: provided json number was not an integer"),
            (r#"{"$match":{"address":{"x":1}}}"#, "invalid value for property 'address'"),
        ] {
            let error = parse(Profile::Ledger, Resource::Accounts, text).expect_err(text);
            assert!(error.message.starts_with(message), "{text}: {}", error.message);
        }
    }

    #[test]
    fn parses_filters_like_the_library() {
        for text in [
            "",
            "{}",
            r#"{"$match":{"address":"users:"}}"#,
            r#"{"$and":[{"$not":{"$lt":{"balance[USD/2]":-5}}},{"$or":[]},{}]}"#,
            r#"{"$in":{"metadata[k]":["a","b"]}}"#,
            r#"{"$exists":{"metadata":"k"}}"#,
            r#"{"$like":{"address":"a\u003a"}}"#,
            r#"{"$gt":{"balance":123456789012345678901234567890}}"#,
        ] {
            let filter = parse(Profile::Ledger, Resource::Accounts, text).expect(text);
            assert_eq!(*FilterOf::<Accounts>::parse(text).expect(text), filter, "{text}");
        }
        for text in [
            "[]",
            "7",
            r#"{"$match":{}}"#,
            r#"{"$match":{"address":"a","metadata[k]":"b"}}"#,
            r#"{"$match":{"address":"a"},"$not":{}}"#,
            r#"{"$foo":{"address":"a"}}"#,
            r#"{"$match":"a"}"#,
            r#"{"$not":{}}"#,
            r#"{"$match":{"nosuch":"a"}}"#,
            r#"{"$gt":{"balance[USD]":1.5}}"#,
            r#"{"$in":{"address":["a",1]}}"#,
            r#"{"$match":{"address":{"x":1}}}"#,
        ] {
            assert!(parse(Profile::Ledger, Resource::Accounts, text).is_err(), "{text}");
            assert!(FilterOf::<Accounts>::parse(text).is_err(), "{text}");
        }
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

    #[test]
    fn depth_and_size_are_limited() {
        let deep = format!("{}{{}}{}", r#"{"$not":"#.repeat(5_000), "}".repeat(5_000));
        assert!(parse(Profile::Ledger, Resource::Accounts, &deep).is_err());
        let wide = format!(r#"{{"$or":[{}]}}"#, vec![r#"{"$match":{"address":"a"}}"#; 200].join(","));
        assert!(parse(Profile::Ledger, Resource::Accounts, &wide).is_err());
    }
}
