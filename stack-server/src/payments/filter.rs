//! Filters of lists: a JSON object with one operator, as clients of the payments API send them.

use ledger_core::Balance;
use serde_json::value::RawValue;
use thiserror::Error;

use crate::http::json::{self, Array, Entries, Text};

/// Maximum nesting of a filter. [`NODES_MAX`] is the maximum number of its operators.
const DEPTH_MAX: usize = 16;
const NODES_MAX: usize = 200;

/// The type of the values of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KeyKind {
    /// A text with order.
    OrderedText,
    /// An integer.
    Number,
    /// A text that is only compared for equality.
    Text,
    /// The id of a record. The function returns its usual form, or `None` if no record can have this id.
    Id(fn(&str) -> Option<String>),
    /// A word of a closed set. The function tells whether a text is one.
    Word(fn(&str) -> bool),
}

/// The filter keys of a list, and whether its items have metadata.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys {
    pub(crate) keys: &'static [(&'static str, KeyKind)],
    pub(crate) has_metadata: bool,
}

/// A value of a row or of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Text(String),
    Number(Balance),
}

/// Access of a filter to the values of a row.
pub(crate) trait Row {
    /// Returns the value of this key.
    fn value(&self, key: &str) -> Option<Value>;
    /// Returns the metadata value of this key.
    fn metadata(&self, key: &str) -> Option<&str>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A filter that is valid for its list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Filter {
    And(Vec<Filter>),
    Or(Vec<Filter>),
    Not(Box<Filter>),
    Compare(CompareKey),
    Metadata(String, String),
}

/// A comparison of a key's value with a constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CompareKey {
    key: &'static str,
    comparison: Comparison,
    value: Value,
}

impl Filter {
    /// Parses the JSON text of a filter.
    ///
    /// # Errors
    ///
    /// Fails if the text is not a valid filter of a list with these keys.
    pub(crate) fn parse(text: &[u8], keys: Keys) -> Result<Self, FilterError> {
        let value: &RawValue = serde_json::from_slice(text)?;
        let mut nodes = NODES_MAX;
        parse(value, keys, DEPTH_MAX, &mut nodes)
    }

    /// Returns whether a row matches the filter.
    pub(crate) fn accepts(&self, row: &impl Row) -> bool {
        match self {
            Self::And(all) => all.iter().all(|filter| filter.accepts(row)),
            Self::Or(any) => any.iter().any(|filter| filter.accepts(row)),
            Self::Not(not) => !not.accepts(row),
            Self::Metadata(key, value) => row.metadata(key) == Some(value),
            Self::Compare(CompareKey { key, comparison, value }) => {
                let ordering = match (row.value(key), value) {
                    (Some(Value::Text(have)), Value::Text(want)) => have.cmp(want),
                    (Some(Value::Number(have)), Value::Number(want)) => have.cmp(want),
                    _ => return false,
                };
                match comparison {
                    Comparison::Equal => ordering.is_eq(),
                    Comparison::Less => ordering.is_lt(),
                    Comparison::LessOrEqual => ordering.is_le(),
                    Comparison::Greater => ordering.is_gt(),
                    Comparison::GreaterOrEqual => ordering.is_ge(),
                }
            }
        }
    }

    /// Returns whether the filter matches no row, whatever the rows contain. May return `false` for such a filter.
    pub(crate) fn matches_nothing(&self) -> bool {
        match self {
            Self::And(all) => all.iter().any(Self::matches_nothing),
            Self::Or(any) => any.iter().all(Self::matches_nothing),
            Self::Not(_) | Self::Compare(_) | Self::Metadata(..) => false,
        }
    }

    /// Returns the text that this key has in every matching row, if the filter requires one.
    pub(crate) fn required_text(&self, wanted: &str) -> Option<&str> {
        match self {
            Self::And(all) => all.iter().find_map(|filter| filter.required_text(wanted)),
            Self::Compare(CompareKey { key, comparison: Comparison::Equal, value: Value::Text(text) })
                if *key == wanted =>
            {
                Some(text)
            }
            _ => None,
        }
    }
}

/// The reason why a filter is refused.
#[derive(Debug, Error)]
pub(crate) enum FilterError {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Part(#[from] json::JsonError),
    #[error("a filter has at most {NODES_MAX} operators, {DEPTH_MAX} deep")]
    TooLarge,
    #[error("a filter is an object")]
    NoObject,
    #[error("a filter has one operator")]
    SeveralOperators,
    #[error("unknown operator {0:?}")]
    UnknownOperator(String),
    #[error("{operator} takes {wanted}")]
    WrongOperand { operator: String, wanted: &'static str },
    #[error("unknown key {0:?}")]
    UnknownKey(String),
    #[error("{key:?} takes $match, not {operator}")]
    MatchOnly { key: String, operator: String },
    #[error("{operator} of {key:?} does not take {value}")]
    WrongValue { operator: String, key: String, value: String },
    #[error("{word:?} is no value of {key:?}")]
    UnknownWord { word: String, key: String },
}

fn wrong_operand(operator: &str, wanted: &'static str) -> FilterError {
    FilterError::WrongOperand { operator: operator.to_owned(), wanted }
}

fn match_only(key: &str, operator: &str) -> FilterError {
    FilterError::MatchOnly { key: key.to_owned(), operator: operator.to_owned() }
}

fn parse(value: &RawValue, keys: Keys, depth: usize, nodes: &mut usize) -> Result<Filter, FilterError> {
    if depth == 0 || *nodes == 0 {
        return Err(FilterError::TooLarge);
    }
    *nodes -= 1;
    let object = |value: &RawValue| value.get().starts_with('{');
    if !object(value) {
        return Err(FilterError::NoObject);
    }
    let Entries(mut entries) = json::first::<Entries<'_, &RawValue>>(value.get().as_bytes())?;
    let Some((Text(operator), operand)) = entries.pop() else { return Ok(Filter::And(Vec::new())) };
    if !entries.is_empty() {
        return Err(FilterError::SeveralOperators);
    }
    let comparison = match &*operator {
        "$and" | "$or" => {
            if !operand.get().starts_with('[') {
                return Err(wrong_operand(&operator, "an array"));
            }
            let Array(parts) = json::first::<Array<&RawValue>>(operand.get().as_bytes())?;
            let parts: Result<Vec<_>, _> =
                parts.into_iter().map(|part| parse(part, keys, depth - 1, nodes)).collect();
            return Ok(match &*operator {
                "$and" => Filter::And(parts?),
                _ => Filter::Or(parts?),
            });
        }
        "$not" => return Ok(Filter::Not(Box::new(parse(operand, keys, depth - 1, nodes)?))),
        "$match" => Comparison::Equal,
        "$lt" => Comparison::Less,
        "$lte" => Comparison::LessOrEqual,
        "$gt" => Comparison::Greater,
        "$gte" => Comparison::GreaterOrEqual,
        other => return Err(FilterError::UnknownOperator(other.to_owned())),
    };
    if !object(operand) {
        return Err(wrong_operand(&operator, "an object"));
    }
    compared(&operator, comparison, operand, keys)
}

/// Parses the operand of a comparison: one key with its value.
fn compared(
    operator: &str,
    comparison: Comparison,
    operand: &RawValue,
    keys: Keys,
) -> Result<Filter, FilterError> {
    let Entries(entries) = json::first::<Entries<'_, &RawValue>>(operand.get().as_bytes())?;
    let [(Text(name), value)] = &entries[..] else { return Err(wrong_operand(operator, "one key")) };
    let wrong = || FilterError::WrongValue {
        operator: operator.to_owned(),
        key: name.to_string(),
        value: value.get().to_owned(),
    };
    let text = || {
        if !value.get().starts_with('"') {
            return Err(wrong());
        }
        json::first::<Text<'_>>(value.get().as_bytes()).map_err(|_| wrong())
    };
    let metadata = name.strip_prefix("metadata[").and_then(|rest| rest.strip_suffix(']'));
    if let Some(key) = metadata.filter(|_| keys.has_metadata) {
        if comparison != Comparison::Equal {
            return Err(match_only("metadata", operator));
        }
        return Ok(Filter::Metadata(key.to_owned(), text()?.0.into_owned()));
    }
    let known = keys.keys.iter().find(|(known, _)| *known == &**name);
    let Some((key, kind)) = known else { return Err(FilterError::UnknownKey(name.to_string())) };
    let is_ordered = matches!(kind, KeyKind::OrderedText | KeyKind::Number);
    if !is_ordered && comparison != Comparison::Equal {
        return Err(match_only(name, operator));
    }
    let value = match kind {
        KeyKind::Number => {
            let number = json::is_integer(value.get()).then(|| Balance::parse(value.get()).ok()).flatten();
            Value::Number(number.ok_or_else(wrong)?)
        }
        KeyKind::OrderedText | KeyKind::Text => Value::Text(text()?.0.into_owned()),
        KeyKind::Id(usual_form) => match usual_form(&text()?.0) {
            Some(id) => Value::Text(id),
            None => return Ok(Filter::Or(vec![])),
        },
        KeyKind::Word(is_word) => {
            let word = text()?.0;
            if !is_word(&word) {
                return Err(FilterError::UnknownWord { word: word.into_owned(), key: name.to_string() });
            }
            Value::Text(word.into_owned())
        }
    };
    Ok(Filter::Compare(CompareKey { key, comparison, value }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: Keys = Keys {
        keys: &[
            ("reference", KeyKind::OrderedText),
            ("amount", KeyKind::Number),
            ("status", KeyKind::Word(|word| word == "A" || word == "B")),
            ("id", KeyKind::Id(|text| text.strip_prefix("id-").map(str::to_owned))),
        ],
        has_metadata: true,
    };

    struct Sample(&'static str, i64);

    impl Row for Sample {
        fn value(&self, key: &str) -> Option<Value> {
            match key {
                "reference" => Some(Value::Text(self.0.to_owned())),
                "amount" => Some(Value::Number(Balance::from(self.1))),
                "status" => Some(Value::Text("A".to_owned())),
                "id" => Some(Value::Text("7".to_owned())),
                _ => None,
            }
        }

        fn metadata(&self, key: &str) -> Option<&str> {
            (key == "k").then_some(self.0)
        }
    }

    #[test]
    fn a_filter_accepts_what_it_describes() {
        for (text, accepted) in [
            ("{}", true),
            (r#"{"$and":[]}"#, true),
            (r#"{"$or":[]}"#, false),
            (r#"{"$match":{"reference":"r"}}"#, true),
            (r#"{"$gt":{"reference":"a"}}"#, true),
            (r#"{"$match":{"amount":5}}"#, true),
            (r#"{"$gte":{"amount":99999999999999999999999}}"#, false),
            (r#"{"$lt":{"amount":-5}}"#, false),
            (r#"{"$not":{"$match":{"status":"B"}}}"#, true),
            (r#"{"$match":{"metadata[k]":"r"}}"#, true),
            (r#"{"$match":{"metadata[x]":"r"}}"#, false),
            (r#"{"$and":[{"$lte":{"amount":5}},{"$or":[{"$match":{"status":"A"}}]}]}"#, true),
        ] {
            let filter = Filter::parse(text.as_bytes(), KEYS).expect(text);
            assert_eq!(filter.accepts(&Sample("r", 5)), accepted, "{text}");
        }
    }

    #[test]
    fn refuses_invalid_filters() {
        let deep = format!("{}{{}}{}", r#"{"$not":"#.repeat(40), "}".repeat(40));
        let many = format!(r#"{{"$and":[{}{{}}]}}"#, "{},".repeat(300));
        for text in [
            "",
            "{",
            "[]",
            "null",
            r#""x""#,
            r#"{"$like":{"reference":"r"}}"#,
            r#"{"$match":{"color":"red"}}"#,
            r#"{"$match":{"amount":"5"}}"#,
            r#"{"$match":{"amount":1.5}}"#,
            r#"{"$match":{"reference":5}}"#,
            r#"{"$match":{"status":"C"}}"#,
            r#"{"$gt":{"status":"A"}}"#,
            r#"{"$match":{"metadata[k]":7}}"#,
            r#"{"$gt":{"metadata[k]":"7"}}"#,
            r#"{"$exists":{"reference":true}}"#,
            r#"{"$match":{"reference":"r"},"$not":{}}"#,
            r#"{"$match":{"reference":"r","amount":5}}"#,
            r#"{"$match":[]}"#,
            r#"{"$and":{}}"#,
            &deep,
            &many,
        ] {
            assert!(Filter::parse(text.as_bytes(), KEYS).is_err(), "{text}");
        }
    }

    #[test]
    fn id_that_does_not_parse_matches_nothing() {
        for (text, matches_nothing, accepted) in [
            (r#"{"$match":{"id":"id-7"}}"#, false, true),
            (r#"{"$match":{"id":"7"}}"#, true, false),
            (r#"{"$and":[{},{"$match":{"id":"7"}}]}"#, true, false),
            (r#"{"$or":[{"$match":{"id":"7"}},{"$match":{"id":"id-7"}}]}"#, false, true),
            (r#"{"$or":[{"$match":{"id":"7"}},{"$match":{"id":"8"}}]}"#, true, false),
            (r#"{"$not":{"$match":{"id":"7"}}}"#, false, true),
        ] {
            let filter = Filter::parse(text.as_bytes(), KEYS).expect(text);
            let seen = (filter.matches_nothing(), filter.accepts(&Sample("r", 5)));
            assert_eq!(seen, (matches_nothing, accepted), "{text}");
        }
        assert!(Filter::parse(br#"{"$gt":{"id":"id-7"}}"#, KEYS).is_err());
        assert!(Filter::parse(br#"{"$match":{"id":7}}"#, KEYS).is_err());
    }

    #[test]
    fn a_filter_tells_which_text_it_wants() {
        let required = |text: &str| {
            let filter = Filter::parse(text.as_bytes(), KEYS).expect(text);
            filter.required_text("reference").map(str::to_owned)
        };
        assert_eq!(required(r#"{"$and":[{},{"$match":{"reference":"r"}}]}"#), Some("r".to_owned()));
        assert_eq!(required(r#"{"$or":[{"$match":{"reference":"r"}}]}"#), None);
        assert_eq!(required(r#"{"$gt":{"reference":"r"}}"#), None);
    }
}
