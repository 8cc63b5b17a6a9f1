//! Scripts as requests of both generations write them, and how they become what a ledger runs.

use ledger_core::{Runtime, Script, VariableValue};
use serde::de::MapAccess;
use serde_json::value::RawValue;

use crate::json::{self, Entries, Fields, Object, Text, field};

/// A script as it was sent.
#[derive(Default)]
pub(crate) struct ScriptBody<'a> {
    plain: Text<'a>,
    variables: Entries<'a, &'a RawValue>,
}

impl<'de> Fields<'de> for ScriptBody<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match field(name, &["plain", "vars"]) {
            Some("plain") => self.plain = map.next_value()?,
            Some("vars") => self.variables = map.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl ScriptBody<'_> {
    /// Whether it has no text: then it is as if there were no script.
    pub(crate) fn is_empty(&self) -> bool {
        self.plain.0.is_empty()
    }

    /// The script. A variable whose value is of no type is no fault of the body: the ledger refuses it, in its turn.
    pub(crate) fn into_script(self, runtime: Runtime, forms: Forms) -> Script {
        let variables = self.variables.0.into_iter().map(|(Text(name), value)| {
            let value = match (variable(value), forms) {
                (VariableValue::Number(text) | VariableValue::Monetary(text), Forms::Texts) => {
                    VariableValue::Text(text)
                }
                (value, _) => value,
            };
            (name.into_owned(), value)
        });
        Script { variables: variables.collect(), plain: self.plain.0.into_owned(), runtime }
    }
}

/// What the JSON form of a variable's value says about its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forms {
    /// Nothing: all become text, for any type that can be read from it.
    Texts,
    /// An integer is a number, and an object a monetary.
    Types,
}

/// `{"asset":…,"amount":…}` as the value of a variable.
#[derive(Default)]
struct MonetaryBody<'a> {
    asset: Text<'a>,
    /// As it is written.
    amount: Option<&'a str>,
}

impl<'de> Fields<'de> for MonetaryBody<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match field(name, &["asset", "amount"]) {
            Some("asset") => self.asset = map.next_value()?,
            Some("amount") => self.amount = Some(map.next_value::<&RawValue>()?.get()),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// The value of a variable: a string without its quotes, an integer as written, a monetary as asset and amount.
/// Anything else is of no type.
fn variable(value: &RawValue) -> VariableValue {
    let text = value.get();
    let known = match text.as_bytes().first() {
        Some(b'"') => string(text).map(VariableValue::Text),
        Some(b'{') => monetary(text).map(VariableValue::Monetary),
        _ => json::is_integer(text).then(|| VariableValue::Number(text.to_owned())),
    };
    known.unwrap_or(VariableValue::Unfit)
}

fn string(text: &str) -> Option<String> {
    Some(json::first::<Text<'_>>(text.as_bytes()).ok()?.0.into_owned())
}

fn monetary(text: &str) -> Option<String> {
    let Object(monetary) = json::first::<Object<MonetaryBody<'_>>>(text.as_bytes()).ok()?;
    let amount = monetary.amount?;
    // Exact at any size, so that some clients write it as a string.
    let digits = amount.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(amount);
    json::is_integer(digits).then(|| format!("{} {digits}", monetary.asset.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(variables: &str, forms: Forms) -> Vec<VariableValue> {
        let body = format!(r#"{{"plain":"x","vars":{{{variables}}}}}"#);
        let Object(body) = json::first::<Object<ScriptBody<'_>>>(body.as_bytes()).expect("well-formed");
        body.into_script(Runtime::Machine, forms).variables.into_values().collect()
    }

    #[test]
    fn values_are_exact_texts() {
        let variables = r#""n":100000000000000000001,"m":{"asset":"USD/2","amount":9007199254740993},
            "o":{"asset":"USD/2","amount":"1"},"s":"a\"b","p":"1/3""#;
        let texts =
            ["USD/2 9007199254740993", "100000000000000000001", "USD/2 1", "1/3", "a\"b"].map(str::to_owned);
        assert_eq!(values(variables, Forms::Texts), texts.clone().map(VariableValue::Text));
        let forms: [fn(String) -> VariableValue; 5] = [
            VariableValue::Monetary,
            VariableValue::Number,
            VariableValue::Monetary,
            VariableValue::Text,
            VariableValue::Text,
        ];
        let typed: Vec<VariableValue> = forms.into_iter().zip(texts).map(|(form, text)| form(text)).collect();
        assert_eq!(values(variables, Forms::Types), typed);
    }

    #[test]
    fn what_has_no_type_fits_nothing() {
        for value in
            ["true", "null", "1.5", "1e3", "[]", "{}", r#"{"asset":"USD"}"#, r#"{"asset":1,"amount":1}"#]
        {
            for forms in [Forms::Texts, Forms::Types] {
                assert_eq!(values(&format!(r#""a":{value}"#), forms), [VariableValue::Unfit], "{value}");
            }
        }
    }
}
