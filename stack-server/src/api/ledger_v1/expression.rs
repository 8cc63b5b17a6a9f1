//! Parses the expressions of contracts: JSON conditions over the balance and the metadata of an account.

use ledger_core::{Balance, Comparison, Operand, Rule};
use serde_json::value::RawValue;

use crate::http::error::ApiError;
use crate::http::json::{self, Array, Entries, Text, canonical, is_integer};

/// Maximum nesting depth of an expression. Bounds the recursion of the parser.
const DEPTH_MAX: usize = 32;

/// Parses an expression. `{}` means no expression, because some clients cannot leave the field out.
///
/// # Errors
///
/// Returns `VALIDATION` if the expression is malformed.
pub(crate) fn parse(expression: Option<&RawValue>) -> Result<Option<Rule>, ApiError> {
    let Some(expression) = expression else { return Err(malformed()) };
    match single(expression)? {
        SingleMember::None => Ok(None),
        SingleMember::Member(operator, argument) => rule(&operator, argument, 1).map(Some),
    }
}

fn malformed() -> ApiError {
    ApiError::validation("malformed expression")
}

/// The content of a JSON object that may have at most one member.
enum SingleMember<'a> {
    None,
    Member(String, &'a RawValue),
}

fn single(object: &RawValue) -> Result<SingleMember<'_>, ApiError> {
    if !object.get().starts_with('{') {
        return Err(malformed());
    }
    let Entries(entries) =
        json::first::<Entries<'_, &RawValue>>(object.get().as_bytes()).map_err(|_| malformed())?;
    let mut entries = entries.into_iter();
    match (entries.next(), entries.next()) {
        (None, _) => Ok(SingleMember::None),
        (Some((Text(name), value)), None) => Ok(SingleMember::Member(name.into_owned(), value)),
        _ => Err(malformed()),
    }
}

fn items(value: &RawValue) -> Option<Vec<&RawValue>> {
    let is_array = value.get().starts_with('[');
    json::first::<Array<&RawValue>>(value.get().as_bytes())
        .ok()
        .filter(|_| is_array)
        .map(|Array(items)| items)
}

/// Parses one `{ operator : argument }`.
fn rule(operator: &str, argument: &RawValue, depth: usize) -> Result<Rule, ApiError> {
    if depth > DEPTH_MAX {
        return Err(ApiError::validation(format!("an expression is at most {DEPTH_MAX} deep")));
    }
    let comparison = match operator {
        "$and" | "$or" => {
            let expected = || ApiError::validation(format!("Expected slice for operator {operator}"));
            let unexpected = || ApiError::validation(format!("unexpected value when parsing {operator}"));
            let children = items(argument).ok_or_else(expected)?.into_iter().map(|item| {
                if !item.get().starts_with('{') {
                    return Err(unexpected());
                }
                match single(item)? {
                    SingleMember::Member(name, _) if name == "$meta" => Err(unexpected()),
                    SingleMember::Member(name, argument) => rule(&name, argument, depth + 1),
                    SingleMember::None => Err(malformed()),
                }
            });
            let children = children.collect::<Result<Vec<_>, _>>()?;
            return Ok(if operator == "$and" { Rule::And(children) } else { Rule::Or(children) });
        }
        "$eq" => Comparison::Equal,
        "$gt" => Comparison::Greater,
        "$gte" => Comparison::GreaterOrEqual,
        "$lt" => Comparison::Less,
        "$lte" => Comparison::LessOrEqual,
        // `$meta` is a value, but this position takes an expression.
        "$meta" => return Err(malformed()),
        other => {
            let other: String = other.chars().take(100).collect();
            return Err(ApiError::validation(format!("unknown operator '{other}'")));
        }
    };
    // Clients expect these texts to name `$eq` for every operator.
    let operands = items(argument).ok_or_else(|| ApiError::validation("expected array when using $eq"))?;
    let [left, right] = operands.as_slice() else {
        return Err(ApiError::validation("expected 2 items when using $eq"));
    };
    Ok(Rule::Compare(comparison, operand(left, "op1")?, operand(right, "op2")?))
}

fn operand(value: &RawValue, place: &str) -> Result<Operand, ApiError> {
    let text = value.get();
    let invalid = |message: String| ApiError::validation(message);
    match text.as_bytes().first() {
        Some(b'{') => match single(value)? {
            SingleMember::None => Err(malformed()),
            SingleMember::Member(name, key) if name == "$meta" => {
                if !key.get().starts_with('"') {
                    return Err(ApiError::validation("$meta operator invalid"));
                }
                let Text(key) = json::first::<Text<'_>>(key.get().as_bytes()).map_err(|_| malformed())?;
                Ok(Operand::Metadata(key.into()))
            }
            SingleMember::Member(name, _)
                if matches!(name.as_str(), "$and" | "$or" | "$eq" | "$gt" | "$gte" | "$lt" | "$lte") =>
            {
                Err(invalid(format!("{place} must be valuable")))
            }
            SingleMember::Member(name, _) => {
                let name: String = name.chars().take(100).collect();
                Err(invalid(format!("unknown operator '{name}'")))
            }
        },
        Some(b'"') => {
            let Text(string) = json::first::<Text<'_>>(text.as_bytes()).map_err(|_| malformed())?;
            match string.strip_prefix('$') {
                Some("balance") => Ok(Operand::Balance),
                Some(_) => Ok(Operand::Undefined),
                None => json_operand(value),
            }
        }
        Some(b'-' | b'0'..=b'9') => {
            let integer = Balance::parse(text).ok().filter(|_| is_integer(text));
            integer.map(Operand::Integer).ok_or_else(|| ApiError::validation("only integer supported"))
        }
        _ => json_operand(value),
    }
}

fn json_operand(value: &RawValue) -> Result<Operand, ApiError> {
    let text = canonical(value).map_err(|error| ApiError::validation(error.to_string()))?;
    Ok(Operand::Json(text.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Option<Rule>, ApiError> {
        let value: &RawValue = serde_json::from_str(text).expect("valid JSON");
        parse(Some(value))
    }

    #[test]
    fn an_expression_is_a_tree_of_comparisons() {
        let rule =
            parsed(r#"{"$or":[{"$and":[]},{"$lt":[{"$meta":"low"},"$balance"]},{"$eq":[[1,"a"],"$x"]}]}"#);
        let expected = Rule::Or(vec![
            Rule::And(vec![]),
            Rule::Compare(Comparison::Less, Operand::Metadata("low".into()), Operand::Balance),
            Rule::Compare(Comparison::Equal, Operand::Json("[1,\"a\"]".into()), Operand::Undefined),
        ]);
        assert_eq!(rule, Ok(Some(expected)));
        assert_eq!(parsed("{}"), Ok(None));
    }

    #[test]
    fn reports_each_fault() {
        for (text, message) in [
            ("[]", "malformed expression"),
            ("null", "malformed expression"),
            ("7", "malformed expression"),
            (r#"{"$eq":[1,1],"$lt":[1,2]}"#, "malformed expression"),
            (r#"{"$xor":[]}"#, "unknown operator '$xor'"),
            (r#"{"$and":{"$eq":[1,1]}}"#, "Expected slice for operator $and"),
            (r#"{"$or":[1]}"#, "unexpected value when parsing $or"),
            (r#"{"$lte":1}"#, "expected array when using $eq"),
            (r#"{"$gt":[1]}"#, "expected 2 items when using $eq"),
            (r#"{"$eq":[{"$or":[]},1]}"#, "op1 must be valuable"),
            (r#"{"$eq":[1,{"$lt":[1,2]}]}"#, "op2 must be valuable"),
            (r#"{"$eq":[{"$meta":1},1]}"#, "$meta operator invalid"),
            (r#"{"$eq":[1.5,1]}"#, "only integer supported"),
            (r#"{"$eq":[1,{"$foo":1}]}"#, "unknown operator '$foo'"),
        ] {
            let error = parsed(text).expect_err(text);
            assert_eq!(error.message, message, "{text}");
        }
        assert!(parse(None).is_err());
        let deep = format!("{}{}{}", r#"{"$and":["#.repeat(50), r#"{"$eq":[1,1]}"#, "]}".repeat(50));
        assert!(parsed(&deep).is_err());
    }
}
