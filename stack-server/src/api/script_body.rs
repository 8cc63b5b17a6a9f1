//! The script in request bodies of v1 and v2, and its conversion into the script that a ledger runs.

use ledger_core::{ErrorWording, Script, VariableValue};
use serde::de::MapAccess;
use serde_json::value::RawValue;

use crate::http::json::{self, Entries, Fields, Object, Text, field};

/// A script in a request body.
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
    /// Returns whether the script has no text, which counts as no script.
    pub(crate) fn is_empty(&self) -> bool {
        self.plain.0.is_empty()
    }

    /// Converts the body. Keeps a variable whose value has no known type: the ledger refuses it when it checks the
    /// variables.
    pub(crate) fn into_script(self, wording: ErrorWording, forms: Forms) -> Script {
        let variables = self.variables.0.into_iter().map(|(Text(name), value)| {
            let value = match (variable(value), forms) {
                (VariableValue::Number(text) | VariableValue::Monetary(text), Forms::Texts) => {
                    VariableValue::Text(text)
                }
                (value, _) => value,
            };
            (name.into_owned(), value)
        });
        let (variables, plain) = (variables.collect(), self.plain.0.into_owned());
        Script { variables, plain, wording, ..Script::default() }
    }
}

/// The rule by which the JSON form of a variable's value determines its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forms {
    /// The JSON form does not matter: every value becomes text, which can be parsed as any type.
    Texts,
    /// An integer becomes a number, and an object becomes a monetary.
    Types,
}

/// The value `{"asset":…,"amount":…}` of a variable.
#[derive(Default)]
struct MonetaryBody<'a> {
    asset: Text<'a>,
    /// The digits of the amount as the client wrote them.
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

/// Converts the value of a variable. A string loses its quotes, an integer stays as written, and a monetary becomes
/// asset and amount. Any other value has no type.
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
    // Some clients write the amount as a string, to keep it exact at any size.
    let digits = amount.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(amount);
    json::is_integer(digits).then(|| format!("{} {digits}", monetary.asset.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(variables: &str, forms: Forms) -> Vec<VariableValue> {
        let body = format!(r#"{{"plain":"x","vars":{{{variables}}}}}"#);
        let Object(body) = json::first::<Object<ScriptBody<'_>>>(body.as_bytes()).expect("well-formed");
        body.into_script(ErrorWording::Machine, forms).variables.into_values().collect()
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
    fn value_without_type_fits_no_variable() {
        for value in
            ["true", "null", "1.5", "1e3", "[]", "{}", r#"{"asset":"USD"}"#, r#"{"asset":1,"amount":1}"#]
        {
            for forms in [Forms::Texts, Forms::Types] {
                assert_eq!(values(&format!(r#""a":{value}"#), forms), [VariableValue::Unfit], "{value}");
            }
        }
    }
}
