//! Reads filters from JSON, in the form of API v2: `{"$operator": {"property": value}}`.

use crate::condition::{Condition, Field, FilterError, FilterSyntaxError, FilterValue, NodeWord, Operator};
use crate::filter::{Filter, FilterNode};
use crate::json::Json;
use crate::property::Resource;
use ledger_values::Balance;

/// A condition in JSON, before its property is known.
#[derive(Clone, Copy, Debug)]
pub struct JsonCondition<'a> {
    /// The operator between property and value.
    pub operator: Operator,
    /// The name of the property.
    pub property: &'a str,
    /// The value that the property is compared with.
    pub value: &'a Json,
}

impl JsonCondition<'_> {
    /// Returns the value without its JSON form.
    ///
    /// # Errors
    ///
    /// [`FilterSyntaxError::NotAnInteger`] or [`FilterSyntaxError::Number`].
    pub fn filter_value(&self) -> Result<FilterValue, FilterSyntaxError> {
        let operator = self.operator.name();
        Ok(match self.value {
            Json::Boolean(value) => FilterValue::Boolean(*value),
            Json::Text(text) => FilterValue::Text(text.clone()),
            Json::Number(digits) if digits.contains(['.', 'e', 'E']) => {
                return Err(FilterSyntaxError::NotAnInteger { operator });
            }
            Json::Number(digits) => {
                let integer = Balance::parse(digits);
                FilterValue::Integer(integer.map_err(|error| FilterSyntaxError::Number { operator, error })?)
            }
            Json::Array(items) => {
                let texts = items.iter().map(|item| item.as_text().map(Into::into));
                texts.collect::<Option<Vec<_>>>().map_or(FilterValue::Other, FilterValue::Texts)
            }
            Json::Null | Json::Object(_) => FilterValue::Other,
        })
    }
}

impl<C> FilterNode<C> {
    /// Reads a tree. `condition` makes its leaves. `{}` becomes a conjunction without children.
    ///
    /// ```
    /// use ledger_core::{FilterNode, FilterSyntaxError, FilterValue, Json, JsonCondition};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let json = Json::parse(r#"{"$not": {"$match": {"colour": "red"}}}"#)?;
    /// let mut leaf = |found: JsonCondition<'_>| {
    ///     Ok::<_, FilterSyntaxError>((found.property.to_owned(), found.filter_value()?))
    /// };
    /// let tree = FilterNode::from_json(&json, &mut leaf)?;
    /// tree.check_size(2, 2)?;
    /// let red = ("colour".to_owned(), FilterValue::Text("red".into()));
    /// assert_eq!(tree, FilterNode::Not(Box::new(FilterNode::Is(red))));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`FilterSyntaxError`] for JSON of another form, and the errors of `condition`.
    pub fn from_json<E: From<FilterSyntaxError>>(
        json: &Json,
        condition: &mut impl FnMut(JsonCondition<'_>) -> Result<C, E>,
    ) -> Result<Self, E> {
        let (name, argument) = match json.members() {
            None => return Err(FilterSyntaxError::NotAnObject.into()),
            Some([]) => return Ok(Self::And(Vec::new())),
            Some([(name, argument)]) => (name, argument),
            Some(_) => return Err(FilterSyntaxError::SeveralOperators.into()),
        };
        let word = NodeWord::parse(name);
        let word =
            word.ok_or_else(|| FilterSyntaxError::UnknownOperator { name: name.as_str().to_owned() })?;
        match word {
            NodeWord::And => children(word, argument, condition).map(Self::And),
            NodeWord::Or => children(word, argument, condition).map(Self::Or),
            NodeWord::Not => Ok(Self::Not(Box::new(Self::from_json(argument, condition)?))),
            NodeWord::Compare(operator) => condition(compared(operator, argument)?).map(Self::Is),
        }
    }
}

fn children<C, E: From<FilterSyntaxError>>(
    word: NodeWord,
    argument: &Json,
    condition: &mut impl FnMut(JsonCondition<'_>) -> Result<C, E>,
) -> Result<Vec<FilterNode<C>>, E> {
    let Json::Array(items) = argument else {
        return Err(FilterSyntaxError::ArrayExpected { operator: word.text() }.into());
    };
    items.iter().map(|item| FilterNode::from_json(item, condition)).collect()
}

fn compared(operator: Operator, argument: &Json) -> Result<JsonCondition<'_>, FilterSyntaxError> {
    let name = operator.name();
    match argument.members() {
        None => Err(FilterSyntaxError::ObjectExpected { operator: name }),
        Some([]) => Err(FilterSyntaxError::NoProperty { operator: name }),
        Some([(property, value)]) => Ok(JsonCondition { operator, property, value }),
        Some(_) => Err(FilterSyntaxError::SeveralProperties { operator: name }),
    }
}

impl Filter {
    /// Parses the JSON text of a filter, in the form of API v2. An empty text, `null` and `{}` select everything.
    /// `condition` decides which operators and values a property takes: [`Condition::new`], or
    /// [`Condition::of_first_release`].
    ///
    /// # Errors
    ///
    /// [`FilterError`] with the defect of the text.
    pub fn parse(
        resource: Resource,
        text: &str,
        condition: fn(&Field, Operator, FilterValue) -> Result<Condition, FilterError>,
    ) -> Result<Self, FilterError> {
        if text.trim_ascii().is_empty() {
            return Ok(Self::all(resource));
        }
        let json = Json::parse(text).map_err(FilterSyntaxError::NotJson)?;
        if json == Json::Null {
            return Ok(Self::all(resource));
        }
        let root = FilterNode::from_json(&json, &mut |found| {
            condition(&Field::parse(resource, found.property)?, found.operator, found.filter_value()?)
        })?;
        Self::new(resource, root)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Filter, FilterError> {
        Filter::parse(Resource::Accounts, text, Condition::new)
    }

    #[test]
    fn empty_texts_select_everything() {
        for text in ["", " \n", "null", "{}", " {} "] {
            assert_eq!(parse(text), Ok(Filter::all(Resource::Accounts)), "{text}");
        }
    }

    #[test]
    fn an_empty_object_is_a_filter_everywhere() {
        let all = || FilterNode::And(Vec::new());
        for (text, root) in [
            (r#"{"$and":[{}]}"#, FilterNode::And(vec![all()])),
            (r#"{"$or":[{},{}]}"#, FilterNode::Or(vec![all(), all()])),
            (r#"{"$not":{}}"#, FilterNode::Not(Box::new(all()))),
        ] {
            assert_eq!(parse(text).expect(text).root(), &root, "{text}");
        }
    }

    #[test]
    fn a_filter_keeps_its_shape() {
        let text = r#"{"$and":[{"$match":{"address":"users:"}},{"$not":{"$lt":{"balance[USD/2]":-5}}},
            {"$or":[]},{"$exists":{"metadata":"k"}},{"$in":{"metadata[k]":["a","b"]}}]}"#;
        let filter = parse(text).expect("a filter");
        let FilterNode::And(children) = filter.root() else { panic!("{filter:?}") };
        assert_eq!(children.len(), 5);
        assert!(matches!(&children[1], FilterNode::Not(child)
            if matches!(&**child, FilterNode::Is(Condition::Balance { value, .. }) if *value == -5)));
        assert!(matches!(&children[2], FilterNode::Or(none) if none.is_empty()));
    }

    #[test]
    fn reports_each_fault() {
        use FilterSyntaxError::*;
        for (text, error) in [
            ("[]", NotAnObject),
            ("7", NotAnObject),
            (r#"{"$and":[null]}"#, NotAnObject),
            (r#"{"$not":null}"#, NotAnObject),
            (r#"{"$not":[{"$match":{"address":"a"}}]}"#, NotAnObject),
            (r#"{"$match":{"address":"a"},"$not":{}}"#, SeveralOperators),
            (r#"{"$foo":{"address":"a"}}"#, UnknownOperator { name: "$foo".to_owned() }),
            (r#"{"address":"a"}"#, UnknownOperator { name: "address".to_owned() }),
            (r#"{"$and":{"$match":{"address":"a"}}}"#, ArrayExpected { operator: "$and" }),
            (r#"{"$and":null}"#, ArrayExpected { operator: "$and" }),
            (r#"{"$or":null}"#, ArrayExpected { operator: "$or" }),
            (r#"{"$match":"a"}"#, ObjectExpected { operator: "$match" }),
            (r#"{"$match":null}"#, ObjectExpected { operator: "$match" }),
            (r#"{"$match":{}}"#, NoProperty { operator: "$match" }),
            (r#"{"$in":{"address":"a","metadata[k]":"b"}}"#, SeveralProperties { operator: "$in" }),
            (r#"{"$gt":{"balance[USD]":1.5}}"#, NotAnInteger { operator: "$gt" }),
        ] {
            assert_eq!(parse(text), Err(FilterError::Malformed(error)), "{text}");
        }
        for text in ["{", r#"{"$not":{}} {}"#] {
            assert!(matches!(parse(text), Err(FilterError::Malformed(NotJson(_)))), "{text}");
        }
        let many_digits = format!(r#"{{"$gt":{{"balance[USD]":{}}}}}"#, "1".repeat(1_001));
        assert!(matches!(parse(&many_digits), Err(FilterError::Malformed(Number { operator: "$gt", .. }))));
        let unknown = FilterError::UnknownField { name: "nosuch".to_owned() };
        assert_eq!(parse(r#"{"$match":{"nosuch":"a"}}"#), Err(unknown));
        for value in [r#"{"x":1}"#, "null", r#"["a"]"#] {
            let text = format!(r#"{{"$match":{{"address":{value}}}}}"#);
            assert!(matches!(parse(&text), Err(FilterError::WrongValue { .. })), "{text}");
        }
    }

    #[test]
    fn deep_and_wide_filters_are_refused() {
        let nested = |levels: usize| format!("{}{{}}{}", r#"{"$not":"#.repeat(levels), "}".repeat(levels));
        assert_eq!(parse(&nested(20)), Err(FilterError::TooDeep));
        assert!(parse(&nested(5_000)).is_err());
        let wide = format!(r#"{{"$or":[{}]}}"#, vec![r#"{"$match":{"address":"a"}}"#; 200].join(","));
        assert_eq!(parse(&wide), Err(FilterError::TooManyNodes));
    }
}
