//! Reads filters from JSON, in the form of API v2: `{"$operator": {"property": value}}`.

use std::fmt::Display;

use smol_str::SmolStr;

use crate::condition::{Condition, Field, FilterError, FilterValue, Operator};
use crate::filter::FilterNode;
use crate::json::Json;
use crate::limits::FILTER_DEPTH_MAX;
use crate::property::Resource;
use ledger_values::Balance;

/// Parses the tree of a filter. Returns `None` for an empty text, `null` and `{}`.
///
/// # Errors
///
/// [`FilterError`] with the first fault.
pub(crate) fn parse_node(resource: Resource, text: &str) -> Result<Option<FilterNode>, FilterError> {
    if text.trim_ascii().is_empty() {
        return Ok(None);
    }
    let json = Json::parse(text).map_err(|error| malformed(format!("invalid filter: {error}")))?;
    node(resource, &json, 1)
}

fn malformed(reason: impl Into<String>) -> FilterError {
    FilterError::Malformed { reason: reason.into() }
}

/// Returns the one member of an object, or `None` if it has no members.
fn single(json: &Json) -> Result<Option<(&str, &Json)>, FilterError> {
    match json.members() {
        Some([]) => Ok(None),
        Some([(name, value)]) => Ok(Some((name, value))),
        Some(_) => Err(malformed("expected single key, found more then one")),
        None => Err(malformed("invalid filter: expected an object")),
    }
}

fn node(resource: Resource, json: &Json, depth: usize) -> Result<Option<FilterNode>, FilterError> {
    // A finished tree is measured again. This recursion must stop before that.
    if depth > FILTER_DEPTH_MAX {
        return Err(FilterError::TooDeep);
    }
    if *json == Json::Null {
        return Ok(None);
    }
    let Some((operator, argument)) = single(json)? else { return Ok(None) };
    let parsing = |reason: &dyn Display| malformed(format!("parsing {operator}: {reason}"));
    match operator {
        "$and" | "$or" => {
            let Json::Array(children) = argument else { return Err(parsing(&"expected an array")) };
            let child = |child| Ok(node(resource, child, depth + 1)?.unwrap_or(FilterNode::And(Vec::new())));
            let children = children.iter().map(child).collect::<Result<Vec<_>, FilterError>>()?;
            Ok(Some(if operator == "$and" { FilterNode::And(children) } else { FilterNode::Or(children) }))
        }
        "$not" => match node(resource, argument, depth + 1)? {
            Some(child) => Ok(Some(FilterNode::Not(Box::new(child)))),
            None => Err(parsing(&"expected a filter")),
        },
        name => {
            let Some(operator) = Operator::parse(name) else {
                return Err(malformed(format!("unexpected operator {name}")));
            };
            if argument.members().is_none() {
                return Err(parsing(&"expected an object"));
            }
            let Some((key, json)) = single(argument)? else {
                return Err(malformed("expected single key, found none"));
            };
            let field = Field::parse(resource, key)?;
            let value = value(json).map_err(|reason| parsing(&reason))?;
            Ok(Some(FilterNode::Is(Condition::new(&field, operator, value)?)))
        }
    }
}

/// Reads the right side of a comparison; fails with the reason.
fn value(json: &Json) -> Result<FilterValue, SmolStr> {
    Ok(match json {
        Json::Boolean(value) => FilterValue::Boolean(*value),
        Json::Text(text) => FilterValue::Text(text.clone()),
        Json::Number(digits) => {
            if digits.contains(['.', 'e', 'E']) {
                return Err("provided json number was not an integer".into());
            }
            let integer = Balance::parse(digits).map_err(|error| SmolStr::from(error.to_string()))?;
            FilterValue::Integer(integer)
        }
        Json::Array(items) => {
            let texts = items.iter().map(|item| item.as_text().map(SmolStr::from));
            texts.collect::<Option<Vec<_>>>().map_or(FilterValue::Other, FilterValue::Texts)
        }
        Json::Null | Json::Object(_) => FilterValue::Other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_texts_select_everything() {
        for text in ["", " \n", "null", "{}", " {} "] {
            assert_eq!(parse_node(Resource::Accounts, text), Ok(None), "{text}");
        }
    }

    #[test]
    fn reports_each_fault() {
        for (text, message) in [
            ("[]", "invalid filter: "),
            ("{", "invalid filter: a member has no name"),
            (r#"{"$match":{}}"#, "expected single key, found none"),
            (r#"{"$match":{"address":"a","metadata[k]":"b"}}"#, "expected single key, found more then one"),
            (r#"{"$foo":{"address":"a"}}"#, "unexpected operator $foo"),
            (r#"{"$match":"a"}"#, "parsing $match: "),
            (r#"{"$and":{"$match":{"address":"a"}}}"#, "parsing $and: "),
            (r#"{"$not":{}}"#, "parsing $not: "),
            (r#"{"$match":{"nosuch":"a"}}"#, "unknown key 'nosuch' when building query"),
            (r#"{"$gt":{"balance[USD]":1.5}}"#, "parsing $gt: provided json number was not an integer"),
            (r#"{"$match":{"address":{"x":1}}}"#, "invalid value for property 'address'"),
        ] {
            let error = parse_node(Resource::Accounts, text).expect_err(text).to_string();
            assert!(error.starts_with(message), "{text}: {error}");
        }
        let deep = format!("{}{{}}{}", r#"{"$not":"#.repeat(20), "}".repeat(20));
        assert_eq!(parse_node(Resource::Accounts, &deep), Err(FilterError::TooDeep));
    }
}
