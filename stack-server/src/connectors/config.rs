//! Configurations of connectors: parameters by name, read from JSON and written as JSON.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde_json::value::RawValue;

use crate::connectors::error::{ConfigError, ParameterError};
use crate::duration;
use crate::http::json::{self, Entries, Object, Text};
use crate::http::response::{Json, Numbers};

/// A parameter of a connector.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) kind: ParameterType,
    pub(crate) is_required: bool,
    pub(crate) default: &'static str,
    /// The places that show the parameter.
    pub(crate) visibility: Visibility,
    /// True if the value gives access to the provider.
    pub(crate) is_secret: bool,
}

/// The text that replaces a secret.
const MASK: &str = "********";

/// The type of a parameter's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParameterType {
    Text,
    LongText,
    Duration,
    Number,
}

/// The places that show a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visibility {
    Everywhere,
    /// Only in the catalogue: strict clients do not expect the parameter in a configuration.
    CatalogueOnly,
    /// Nowhere: the parameter is only accepted, for clients of stack 1.10.
    Nowhere,
}

impl ParameterType {
    /// Returns the name of the type in the catalogue.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::LongText => "long string",
            Self::Duration => "duration ns",
            Self::Number => "unsigned integer",
        }
    }
}

/// Creates an optional parameter.
pub(crate) const fn optional(name: &'static str, kind: ParameterType, default: &'static str) -> Parameter {
    Parameter {
        name,
        kind,
        is_required: false,
        default,
        visibility: Visibility::Everywhere,
        is_secret: false,
    }
}

/// Creates a required parameter.
pub(crate) const fn required(name: &'static str, kind: ParameterType, default: &'static str) -> Parameter {
    Parameter { name, kind, is_required: true, default, visibility: Visibility::Everywhere, is_secret: false }
}

/// Marks a parameter as secret.
pub(crate) const fn secret(parameter: Parameter) -> Parameter {
    Parameter { is_secret: true, ..parameter }
}

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Text(String),
    Duration(Duration),
    Number(u64),
}

/// The parameter values of an installation. They contain secrets, which `Debug` hides.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Values(BTreeMap<&'static str, Value>);

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[derive(Default)]
struct DurationBody<'a>(Option<&'a RawValue>);

impl<'de> json::Fields<'de> for DurationBody<'de> {
    fn field<A: serde::de::MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        let is_known = name.eq_ignore_ascii_case("duration");
        if is_known {
            self.0 = Some(map.next_value()?);
        }
        Ok(is_known)
    }
}

impl Values {
    /// Reads the JSON of a configuration. A missing parameter has its default.
    ///
    /// # Errors
    ///
    /// Fails if the configuration is not valid.
    pub(crate) fn read(body: &[u8], parameters: &[Parameter]) -> Result<Self, ConfigError> {
        let body = if body.iter().all(u8::is_ascii_whitespace) { b"{}" } else { body };
        let Entries(entries) = serde_json::from_slice::<Entries<'_, &RawValue>>(body)?;
        let mut values = BTreeMap::new();
        for parameter in parameters {
            let given = entries.iter().rev().find(|(Text(name), value)| {
                name.eq_ignore_ascii_case(parameter.name) && value.get() != "null"
            });
            let value = match given {
                Some((_, value)) => {
                    read_value(parameter, value).map_err(|reason| reason.of(parameter.name))?
                }
                None => None,
            };
            let value = match value {
                Some(value) => value,
                None => default_value(parameter),
            };
            if parameter.is_required && value == Value::Text(String::new()) {
                return Err(ConfigError::Missing(parameter.name));
            }
            values.insert(parameter.name, value);
        }
        Ok(Self(values))
    }

    /// Returns the configuration as JSON, in the order of the parameters.
    pub(crate) fn json(&self, parameters: &[Parameter]) -> String {
        self.write(visible(parameters))
    }

    /// Returns the configuration as JSON with a mask for each secret.
    pub(crate) fn redacted(&self, parameters: &[Parameter]) -> String {
        let mut masked = self.clone();
        for parameter in parameters.iter().filter(|parameter| parameter.is_secret) {
            if !self.text(parameter.name).is_empty() {
                masked.0.insert(parameter.name, Value::Text(MASK.to_owned()));
            }
        }
        masked.write(visible(parameters))
    }

    /// Returns the configuration as JSON for storage, including the parameters that are not shown.
    pub(crate) fn stored_json(&self, parameters: &[Parameter]) -> String {
        self.write(parameters.iter())
    }

    fn write<'a>(&self, parameters: impl Iterator<Item = &'a Parameter>) -> String {
        let mut json = Json::new(Numbers::Plain);
        json.raw("{").list(parameters, |json, parameter| {
            json.plain_string(parameter.name).raw(":");
            match &self.0[parameter.name] {
                Value::Text(text) => json.string(text),
                Value::Duration(period) => json.string(&duration::text(*period)),
                Value::Number(number) => json.integer(*number),
            };
        });
        json.raw("}");
        json.into_string()
    }

    /// Returns the value of a text parameter.
    pub(crate) fn text(&self, name: &str) -> &str {
        match self.0.get(name) {
            Some(Value::Text(text)) => text,
            _ => "",
        }
    }

    /// Returns the value of a number parameter.
    pub(crate) fn number(&self, name: &str) -> u64 {
        match self.0.get(name) {
            Some(Value::Number(number)) => *number,
            _ => 0,
        }
    }

    /// Returns the value of a duration parameter.
    pub(crate) fn duration(&self, name: &str) -> Duration {
        match self.0.get(name) {
            Some(Value::Duration(duration)) => *duration,
            _ => Duration::ZERO,
        }
    }
}

fn visible(parameters: &[Parameter]) -> impl Iterator<Item = &Parameter> {
    parameters.iter().filter(|parameter| parameter.visibility == Visibility::Everywhere)
}

/// Reads the value of a parameter. Returns `None` if the default applies, for example for an empty text or zero.
fn read_value(parameter: &Parameter, value: &RawValue) -> Result<Option<Value>, ParameterError> {
    let wrong = |kind| ParameterError::OtherKind { value: value.get().to_owned(), kind };
    let is_text = value.get().starts_with('"');
    let text = || json::first::<Text<'_>>(value.get().as_bytes()).map(|Text(text)| text.into_owned());
    match parameter.kind {
        ParameterType::Text | ParameterType::LongText if is_text => {
            let text = text().map_err(|_| wrong("text"))?;
            if parameter.is_secret && text == MASK {
                return Err(ParameterError::Mask);
            }
            // A key becomes part of a header. Certificates are long texts, and have several lines.
            if parameter.is_secret
                && parameter.kind == ParameterType::Text
                && text.chars().any(char::is_control)
            {
                return Err(ParameterError::ControlCharacter);
            }
            Ok((!text.is_empty()).then_some(Value::Text(text)))
        }
        ParameterType::Text | ParameterType::LongText => Err(ParameterError::NoText),
        ParameterType::Number => {
            let number = value.get().parse().map_err(|_| wrong("number of at least 0"))?;
            Ok((number > 0).then_some(Value::Number(number)))
        }
        ParameterType::Duration => {
            let period = if is_text {
                let text = text().map_err(|_| wrong("duration"))?;
                if text.is_empty() {
                    return Ok(None);
                }
                duration::parse(&text)?
            } else {
                let Object(DurationBody(nanoseconds)) =
                    json::first(value.get().as_bytes()).map_err(|_| wrong("duration"))?;
                let nanoseconds = nanoseconds.and_then(|digits| digits.get().parse().ok());
                Duration::from_nanos(nanoseconds.ok_or_else(|| wrong("duration"))?)
            };
            Ok((!period.is_zero()).then_some(Value::Duration(period)))
        }
    }
}

fn default_value(parameter: &Parameter) -> Value {
    match parameter.kind {
        ParameterType::Text | ParameterType::LongText => Value::Text(parameter.default.to_owned()),
        ParameterType::Duration => Value::Duration(duration::parse(parameter.default).unwrap_or_default()),
        ParameterType::Number => Value::Number(parameter.default.parse().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMETERS: &[Parameter] = &[
        optional("name", ParameterType::Text, "X"),
        secret(required("apiKey", ParameterType::Text, "")),
        optional("pollingPeriod", ParameterType::Duration, "2m0s"),
        Parameter {
            visibility: Visibility::CatalogueOnly,
            ..optional("pageSize", ParameterType::Number, "10")
        },
    ];

    #[test]
    fn a_configuration_has_its_defaults_and_its_form() {
        for (body, json) in [
            (r#"{"apiKey":"k"}"#, r#"{"name":"X","apiKey":"k","pollingPeriod":"2m0s"}"#),
            (
                r#"{"APIKEY":"k","name":"n","pollingPeriod":"90s","other":[1]}"#,
                r#"{"name":"n","apiKey":"k","pollingPeriod":"1m30s"}"#,
            ),
            (
                r#"{"apiKey":"k","name":null,"pollingPeriod":{"duration":1000000000}}"#,
                r#"{"name":"X","apiKey":"k","pollingPeriod":"1s"}"#,
            ),
        ] {
            let values = Values::read(body.as_bytes(), PARAMETERS).expect(body);
            assert_eq!(values.json(PARAMETERS), json);
            let again = Values::read(values.stored_json(PARAMETERS).as_bytes(), PARAMETERS);
            assert_eq!(again.expect("stored values"), values);
        }
    }

    #[test]
    fn a_redacted_configuration_cannot_be_sent_back() {
        let values = Values::read(br#"{"apiKey":"s3cret"}"#, PARAMETERS).expect("valid values");
        let redacted = values.redacted(PARAMETERS);
        assert_eq!(redacted, r#"{"name":"X","apiKey":"********","pollingPeriod":"2m0s"}"#);
        Values::read(redacted.as_bytes(), PARAMETERS).expect_err("the mask is no secret");
    }

    #[test]
    fn refuses_bad_configurations_without_secrets() {
        for body in [
            "",
            "{",
            "[]",
            "{}",
            r#"{"apiKey":""}"#,
            r#"{"apiKey":7}"#,
            r#"{"apiKey":"s3cret","pollingPeriod":"soon"}"#,
            r#"{"apiKey":"s3cret","pollingPeriod":"-1s"}"#,
            r#"{"apiKey":"s3cret","pollingPeriod":5}"#,
            r#"{"apiKey":"s3cret","pageSize":-1}"#,
            r#"{"apiKey":"s3cret","pageSize":"5"}"#,
            r#"{"apiKey":["s3cret"]}"#,
            r#"{"apiKey":"s3cret\nX: 1"}"#,
        ] {
            let error = Values::read(body.as_bytes(), PARAMETERS).expect_err(body).to_string();
            assert!(!error.contains("s3cret"), "{error}");
        }
        let values = Values::read(br#"{"apiKey":"s3cret"}"#, PARAMETERS).expect("valid values");
        assert!(!format!("{values:?}").contains("s3cret"));
    }
}
