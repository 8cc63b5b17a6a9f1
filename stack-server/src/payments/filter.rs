//! Filters of lists, as clients of the payments API send them: a JSON object with one operator, which may contain
//! further filters.

use ledger_core::{
    Balance, Comparison, FilterNode, FilterSyntaxError, FilterValue, Json, JsonCondition, Operator,
};
use thiserror::Error;

/// Maximum nesting of a filter. [`NODES_MAX`] is the maximum number of its operators.
const DEPTH_MAX: usize = 16;
const NODES_MAX: usize = 200;

/// The type of the values of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KeyKind {
    /// A text that can be compared by order, too.
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

/// A row of a list, whose values a filter compares.
pub(crate) trait Row {
    /// Returns the value of this key.
    fn value(&self, key: &str) -> Option<Value>;
    /// Returns the metadata value of this key.
    fn metadata(&self, key: &str) -> Option<&str>;
}

/// A filter that is valid for its list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Filter(FilterNode<Test>);

/// A condition that a row fulfils or not.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Compare {
        key: &'static str,
        comparison: Comparison,
        value: Value,
    },
    Metadata(String, String),
    /// A condition on an id that no record can have. No row fulfils it.
    Nothing,
}

impl Test {
    fn accepts(&self, row: &impl Row) -> bool {
        match self {
            Self::Compare { key, comparison, value } => match (row.value(key), value) {
                (Some(Value::Text(have)), Value::Text(want)) => comparison.holds(&have, want),
                (Some(Value::Number(have)), Value::Number(want)) => comparison.holds(&have, want),
                _ => false,
            },
            Self::Metadata(key, value) => row.metadata(key) == Some(value),
            Self::Nothing => false,
        }
    }
}

impl Filter {
    /// Parses the JSON text of a filter.
    ///
    /// # Errors
    ///
    /// Fails if the text is not a valid filter of a list with these keys.
    pub(crate) fn parse(text: &str, keys: Keys) -> Result<Self, FilterError> {
        let json = Json::parse(text).map_err(FilterSyntaxError::NotJson)?;
        let root = FilterNode::from_json(&json, &mut |condition| test(&condition, keys))?;
        root.check_size(NODES_MAX, DEPTH_MAX).map_err(|_| FilterError::TooLarge)?;
        Ok(Self(root))
    }

    /// Returns whether a row matches the filter.
    pub(crate) fn accepts(&self, row: &impl Row) -> bool {
        accepts(&self.0, row)
    }

    /// Returns `true` only if the filter can match no row. May miss this, and return `false`.
    pub(crate) fn matches_nothing(&self) -> bool {
        matches_nothing(&self.0)
    }

    /// Returns the text that the filter requires of this key in every row, if it finds one. A list can then find the
    /// rows by an index.
    pub(crate) fn required_text(&self, wanted: &str) -> Option<&str> {
        required_text(&self.0, wanted)
    }
}

fn accepts(node: &FilterNode<Test>, row: &impl Row) -> bool {
    match node {
        FilterNode::And(all) => all.iter().all(|node| accepts(node, row)),
        FilterNode::Or(any) => any.iter().any(|node| accepts(node, row)),
        FilterNode::Not(not) => !accepts(not, row),
        FilterNode::Is(test) => test.accepts(row),
    }
}

fn matches_nothing(node: &FilterNode<Test>) -> bool {
    match node {
        FilterNode::And(all) => all.iter().any(matches_nothing),
        FilterNode::Or(any) => any.iter().all(matches_nothing),
        FilterNode::Not(_) => false,
        FilterNode::Is(test) => *test == Test::Nothing,
    }
}

fn required_text<'a>(node: &'a FilterNode<Test>, wanted: &str) -> Option<&'a str> {
    match node {
        FilterNode::And(all) => all.iter().find_map(|node| required_text(node, wanted)),
        FilterNode::Is(Test::Compare { key, comparison: Comparison::Equal, value: Value::Text(text) })
            if *key == wanted =>
        {
            Some(text)
        }
        _ => None,
    }
}

/// The reason why a filter is refused.
#[derive(Debug, Error)]
pub(crate) enum FilterError {
    #[error(transparent)]
    Syntax(#[from] FilterSyntaxError),
    #[error("a filter has at most {NODES_MAX} operators, {DEPTH_MAX} deep")]
    TooLarge,
    #[error("unknown key {0:?}")]
    UnknownKey(String),
    #[error("{key:?} takes $match, not {operator}")]
    MatchOnly { key: String, operator: &'static str },
    #[error("{operator} of {key:?} does not take {value}")]
    WrongValue { operator: &'static str, key: String, value: String },
    #[error("{word:?} is no value of {key:?}")]
    UnknownWord { word: String, key: String },
}

/// Makes the test of a condition in JSON.
fn test(condition: &JsonCondition<'_>, keys: Keys) -> Result<Test, FilterError> {
    let JsonCondition { operator, property: name, value } = condition;
    let match_only = |key: &str| FilterError::MatchOnly { key: key.to_owned(), operator: operator.name() };
    let wrong = || FilterError::WrongValue {
        operator: operator.name(),
        key: (*name).to_owned(),
        value: value.to_string(),
    };
    let text = || value.as_text().map(str::to_owned).ok_or_else(wrong);
    let metadata = name.strip_prefix("metadata[").and_then(|rest| rest.strip_suffix(']'));
    if let Some(key) = metadata.filter(|_| keys.has_metadata) {
        if *operator != Operator::Match {
            return Err(match_only("metadata"));
        }
        return Ok(Test::Metadata(key.to_owned(), text()?));
    }
    let known = keys.keys.iter().find(|(known, _)| known == name);
    let Some((key, kind)) = known else { return Err(FilterError::UnknownKey((*name).to_owned())) };
    let is_ordered = matches!(kind, KeyKind::OrderedText | KeyKind::Number);
    let comparison =
        operator.comparison().filter(|comparison| is_ordered || *comparison == Comparison::Equal);
    let comparison = comparison.ok_or_else(|| match_only(name))?;
    let value = match kind {
        KeyKind::Number => match condition.filter_value() {
            Ok(FilterValue::Integer(number)) => Value::Number(number),
            _ => return Err(wrong()),
        },
        KeyKind::OrderedText | KeyKind::Text => Value::Text(text()?),
        KeyKind::Id(usual_form) => match usual_form(&text()?) {
            Some(id) => Value::Text(id),
            None => return Ok(Test::Nothing),
        },
        KeyKind::Word(is_word) => {
            let word = text()?;
            if !is_word(&word) {
                return Err(FilterError::UnknownWord { word, key: (*name).to_owned() });
            }
            Value::Text(word)
        }
    };
    Ok(Test::Compare { key, comparison, value })
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
            let filter = Filter::parse(text, KEYS).expect(text);
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
            assert!(Filter::parse(text, KEYS).is_err(), "{text}");
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
            let filter = Filter::parse(text, KEYS).expect(text);
            let seen = (filter.matches_nothing(), filter.accepts(&Sample("r", 5)));
            assert_eq!(seen, (matches_nothing, accepted), "{text}");
        }
        assert!(Filter::parse(r#"{"$gt":{"id":"id-7"}}"#, KEYS).is_err());
        assert!(Filter::parse(r#"{"$match":{"id":7}}"#, KEYS).is_err());
    }

    #[test]
    fn a_filter_tells_which_text_it_wants() {
        let required = |text: &str| {
            let filter = Filter::parse(text, KEYS).expect(text);
            filter.required_text("reference").map(str::to_owned)
        };
        assert_eq!(required(r#"{"$and":[{},{"$match":{"reference":"r"}}]}"#), Some("r".to_owned()));
        assert_eq!(required(r#"{"$or":[{"$match":{"reference":"r"}}]}"#), None);
        assert_eq!(required(r#"{"$gt":{"reference":"r"}}"#), None);
    }
}
