//! Stored queries: list requests whose filters contain variables.

use std::collections::BTreeMap;

use smol_str::{SmolStr, SmolStrBuilder, ToSmolStr};

use super::chart::short;
use super::{SchemaError, begin_described, text, write_named};
use crate::condition::NodeWord;
use crate::json::Json;
use crate::property::Resource;
use ledger_values::Timestamp;
use ledger_values::json_text::write_json_text;

/// A named list request for a resource.
///
/// ```
/// use ledger_core::schema::Schema;
/// use ledger_core::Resource;
/// let schema = Schema::parse(
///     r#"{"chart": {}, "queries": {"since": {"resource": "transactions", "vars": {"start": "date"},
///         "body": {"$gte": {"timestamp": "${start}"}}}}}"#,
/// )?;
/// let since = schema.query("since").expect("the query is stored");
/// assert_eq!(since.resource(), Resource::Transactions);
/// assert_eq!(since.filter(&[]).unwrap_err().to_string(), "'vars': 'start' has no value");
/// let sample = since.samples().flatten().next().map(|filter| filter.to_string());
/// assert_eq!(sample.as_deref(), Some(r#"{"$gte":{"timestamp":"2000-01-01T00:00:00Z"}}"#));
/// # Ok::<(), ledger_core::schema::SchemaError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredQuery {
    description: SmolStr,
    resource: Resource,
    params: Option<Json>,
    variables: BTreeMap<SmolStr, QueryVariable>,
    body: Option<Json>,
}

/// A variable of a stored query.
#[derive(Clone, Debug, PartialEq, Eq)]
struct QueryVariable {
    /// The type of its values.
    kind: VariableType,
    /// The value for requests that give none.
    default: Option<Json>,
    /// True if the schema declares the variable by its type alone.
    bare: bool,
}

/// The types of variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VariableType {
    /// `true` or `false`.
    Boolean,
    /// A date as text.
    Date,
    /// An integer of any size.
    Integer,
    /// Any text.
    Text,
}

impl VariableType {
    const ALL: [Self; 4] = [Self::Boolean, Self::Date, Self::Integer, Self::Text];

    fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the name of the type.
    const fn name(self) -> &'static str {
        match self {
            Self::Boolean => "boolean",
            Self::Date => "date",
            Self::Integer => "int",
            Self::Text => "string",
        }
    }

    /// Tells whether a value has this type.
    fn holds(self, value: &Json) -> bool {
        match (self, value) {
            (Self::Boolean, Json::Boolean(_)) | (Self::Text, Json::Text(_)) => true,
            (Self::Date, Json::Text(text)) => text.parse::<Timestamp>().is_ok(),
            (Self::Integer, Json::Number(text)) => !text.contains(['.', 'e', 'E']),
            _ => false,
        }
    }

    /// Returns an example value of this type.
    fn sample(self) -> Json {
        match self {
            Self::Boolean => Json::Boolean(true),
            Self::Date => Json::Text("2000-01-01T00:00:00Z".into()),
            Self::Integer => Json::Number("1".into()),
            Self::Text => Json::Text("a".into()),
        }
    }
}

/// The resources that a query can list, by name.
const RESOURCES: [(&str, Resource); 4] = [
    ("transactions", Resource::Transactions),
    ("accounts", Resource::Accounts),
    ("logs", Resource::Logs),
    ("volumes", Resource::Volumes),
];

impl StoredQuery {
    pub(super) fn read(json: &Json) -> Result<Self, SchemaError> {
        let resource = text(json, "resource")?.unwrap_or_default();
        let found = RESOURCES.iter().find(|(name, _)| *name == resource);
        let (_, resource) =
            found.ok_or_else(|| SchemaError::new(format!("unknown 'resource' '{}'", short(&resource))))?;
        let object = |name: &str| match json.get(name) {
            None | Some(Json::Null) => Ok(None),
            Some(value @ Json::Object(_)) => Ok(Some(value.clone())),
            Some(_) => Err(SchemaError::new(format!("'{name}' must be an object"))),
        };
        let mut variables = BTreeMap::new();
        for (name, declared) in object("vars")?.iter().flat_map(|vars| vars.members().unwrap_or_default()) {
            if !is_variable_name(name) {
                return Err(SchemaError::new(format!("'vars': invalid name '{}'", short(name))));
            }
            variables.insert(name.clone(), QueryVariable::read(name, declared)?);
        }
        let query = Self {
            description: text(json, "description")?.unwrap_or_default(),
            resource: *resource,
            params: object("params")?,
            variables,
            body: object("body")?,
        };
        query.fill(&|name| query.variables.get(name).map(|variable| variable.kind.sample()))?;
        Ok(query)
    }

    /// Returns the resource of the list.
    pub fn resource(&self) -> Resource {
        self.resource
    }

    /// Returns the name of the resource.
    pub fn resource_name(&self) -> &'static str {
        let found = RESOURCES.iter().find(|(_, resource)| *resource == self.resource);
        found.expect("every parsed query lists one of these resources").0
    }

    /// Returns the parameters: an object, if there are any.
    pub fn params(&self) -> Option<&Json> {
        self.params.as_ref()
    }

    /// Returns the filter with these values in place of its variables, or `None` if the query has no filter.
    ///
    /// # Errors
    ///
    /// [`SchemaError`] for an unknown variable, a value of another type, or a variable without a value.
    pub fn filter(&self, values: &[(SmolStr, Json)]) -> Result<Option<Json>, SchemaError> {
        for (name, value) in values {
            let Some(variable) = self.variables.get(name) else {
                return Err(SchemaError::new(format!("'vars': unknown variable '{}'", short(name))));
            };
            if !variable.kind.holds(value) {
                let kind = variable.kind.name();
                return Err(SchemaError::new(format!(
                    "'vars': the value of '{name}' must be of the type {kind}"
                )));
            }
        }
        for (name, variable) in &self.variables {
            if variable.default.is_none() && !values.iter().any(|(given, _)| given == name) {
                return Err(SchemaError::new(format!("'vars': '{name}' has no value")));
            }
        }
        self.fill(&|name| {
            let given = values.iter().find(|(given, _)| given == name).map(|(_, value)| value.clone());
            given.or_else(|| self.variables.get(name)?.default.clone())
        })
    }

    /// Iterates over filters with example values in place of the variables. If the query is valid, at least
    /// one of them is a valid filter: a text variable may stand for a date.
    pub fn samples(&self) -> impl Iterator<Item = Option<Json>> {
        let texts = ["a", "2000-01-01T00:00:00Z", "NEW_TRANSACTION"];
        texts.into_iter().filter_map(|text| {
            let sample = |name: &str| {
                let kind = self.variables.get(name)?.kind;
                Some(if kind == VariableType::Text { Json::Text(text.into()) } else { kind.sample() })
            };
            self.fill(&sample).ok()
        })
    }

    fn fill(&self, value_of: &dyn Fn(&str) -> Option<Json>) -> Result<Option<Json>, SchemaError> {
        self.body.as_ref().map(|body| fill(body, value_of)).transpose()
    }

    pub(super) fn write_to(&self, out: &mut Vec<u8>) {
        begin_described(&self.description, out);
        out.extend_from_slice(b"\"resource\":");
        write_json_text(self.resource_name(), out);
        if let Some(params) = &self.params {
            out.extend_from_slice(b",\"params\":");
            params.write_to(out);
        }
        write_named(out, ",\"vars\":", &self.variables, QueryVariable::write_to);
        if let Some(body) = &self.body {
            out.extend_from_slice(b",\"body\":");
            body.write_to(out);
        }
        out.push(b'}');
    }
}

impl QueryVariable {
    fn read(name: &str, json: &Json) -> Result<Self, SchemaError> {
        let wrong = |what: &str| SchemaError::new(format!("'vars' '{}': {what}", short(name)));
        let kind = json.as_text().or_else(|| json.get("type")?.as_text()).unwrap_or_default();
        let kind = VariableType::parse(kind).ok_or_else(|| wrong("unknown 'type'"))?;
        let default = json.get("default").filter(|default| **default != Json::Null).cloned();
        if default.as_ref().is_some_and(|default| !kind.holds(default)) {
            return Err(wrong("'default' has another type than 'type' says"));
        }
        Ok(Self { kind, default, bare: json.as_text().is_some() })
    }

    fn write_to(&self, out: &mut Vec<u8>) {
        if self.bare {
            return write_json_text(self.kind.name(), out);
        }
        out.extend_from_slice(b"{\"type\":");
        write_json_text(self.kind.name(), out);
        if let Some(default) = &self.default {
            out.extend_from_slice(b",\"default\":");
            default.write_to(out);
        }
        out.push(b'}');
    }
}

/// Replaces variables by values, also in the names of properties.
fn fill(json: &Json, value_of: &dyn Fn(&str) -> Option<Json>) -> Result<Json, SchemaError> {
    Ok(match json {
        Json::Array(items) => {
            Json::Array(items.iter().map(|item| fill(item, value_of)).collect::<Result<_, _>>()?)
        }
        Json::Object(members) => {
            let filled =
                members.iter().map(|(name, value)| Ok((fill_name(name, value_of), fill(value, value_of)?)));
            Json::Object(filled.collect::<Result<_, SchemaError>>()?)
        }
        Json::Text(text) => fill_text(text, value_of)?,
        other => other.clone(),
    })
}

/// Replaces variables in a text. If the text is a single variable, returns its value; otherwise inserts the texts of
/// the values.
fn fill_text(text: &str, value_of: &dyn Fn(&str) -> Option<Json>) -> Result<Json, SchemaError> {
    let mut filled = SmolStrBuilder::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        filled.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        let (name, after) =
            variable_at(behind).map_err(|fault| SchemaError::new(format!("{fault} in '{}'", short(text))))?;
        let value = value_of(name)
            .ok_or_else(|| SchemaError::new(format!("variable '{}' is not declared", short(name))))?;
        if at == 0 && after.is_empty() && rest.len() == text.len() {
            return Ok(value);
        }
        match &value {
            Json::Text(text) | Json::Number(text) => filled.push_str(text),
            other => filled.push_str(&other.to_string()),
        }
        rest = after;
    }
    filled.push_str(rest);
    Ok(Json::Text(filled.finish()))
}

/// Replaces variables in the name of a member. Operators begin with `$` and are no variables. The keys of metadata may
/// contain `$`, so a name with anything but declared variables stays as it is.
fn fill_name(name: &SmolStr, value_of: &dyn Fn(&str) -> Option<Json>) -> SmolStr {
    if NodeWord::parse(name).is_some() {
        return name.clone();
    }
    match fill_text(name, value_of) {
        Ok(Json::Text(filled) | Json::Number(filled)) => filled,
        Ok(other) => other.to_smolstr(),
        Err(_) => name.clone(),
    }
}

/// Splits a text after `$` into the name of the variable, written `{name}` or `name`, and the rest.
fn variable_at(text: &str) -> Result<(&str, &str), &'static str> {
    if let Some(inside) = text.strip_prefix('{') {
        return inside.split_once('}').ok_or("a variable has no end");
    }
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !text.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Err("a $ begins neither ${name} nor $name");
    }
    Ok(text.split_at(text.find(|c| !is_part(c)).unwrap_or(text.len())))
}

fn is_variable_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Result<StoredQuery, SchemaError> {
        StoredQuery::read(&Json::parse(text).expect("JSON"))
    }

    fn values(text: &str) -> Vec<(SmolStr, Json)> {
        Json::parse(text).expect("JSON").members().expect("an object").to_vec()
    }

    #[test]
    fn variables_become_typed_values_or_text() {
        let query = query(
            r#"{"resource":"accounts","vars":{"n":{"type":"int","default":7},"who":"string","on":"boolean"},
                "body":{"$and":[{"$gt":{"balance[EUR]":"${n}"}},{"$match":{"address":"a:${who}:x${n}"}},
                    {"$match":{"metadata[${n}]":"${on}"}}]}}"#,
        )
        .expect("a query");
        for (given, filled) in [
            (
                r#"{"who":"b","on":true}"#,
                r#"{"$and":[{"$gt":{"balance[EUR]":7}},{"$match":{"address":"a:b:x7"}},{"$match":{"metadata[7]":true}}]}"#,
            ),
            (
                r#"{"who":"${n}","on":false,"n":-123456789012345678901234567890}"#,
                r#"{"$and":[{"$gt":{"balance[EUR]":-123456789012345678901234567890}},{"$match":{"address":"a:${n}:x-123456789012345678901234567890"}},{"$match":{"metadata[-123456789012345678901234567890]":false}}]}"#,
            ),
        ] {
            let filter = query.filter(&values(given)).expect(given).expect("a filter");
            assert_eq!(filter.to_string(), filled);
        }
        for (given, what) in [
            (r#"{"on":true}"#, "'vars': 'who' has no value"),
            (r#"{"who":"b","on":"true"}"#, "'vars': the value of 'on' must be of the type boolean"),
            (r#"{"who":"b","on":true,"n":1.5}"#, "'vars': the value of 'n' must be of the type int"),
            (r#"{"who":"b","on":true,"n":"1"}"#, "'vars': the value of 'n' must be of the type int"),
            (r#"{"who":"b","on":true,"m":1}"#, "'vars': unknown variable 'm'"),
        ] {
            assert_eq!(query.filter(&values(given)).expect_err(given).to_string(), what);
        }
    }

    #[test]
    fn fills_variables_written_without_braces() {
        let query = query(
            r#"{"resource":"accounts","vars":{"n":"int","who_2":"string"},
                "body":{"$and":[{"$gt":{"balance[EUR]":"$n"}},{"$match":{"address":"$who_2:"}},
                    {"$match":{"address":"x:$who_2:$n-a:${n}"}},{"$match":{"address":"$who_2$n"}}]}}"#,
        )
        .expect("a query");
        let filter = query.filter(&values(r#"{"n":7,"who_2":"b"}"#)).expect("values").expect("a filter");
        let filled = r#"{"$and":[{"$gt":{"balance[EUR]":7}},{"$match":{"address":"b:"}},{"$match":{"address":"x:b:7-a:7"}},{"$match":{"address":"b7"}}]}"#;
        assert_eq!(filter.to_string(), filled);
    }

    #[test]
    fn fills_variables_in_names_of_properties() {
        let query = query(
            r#"{"resource":"accounts","vars":{"key":"string","asset":"string"},
                "body":{"$and":[{"$match":{"metadata[$key]":"${key}"}},{"$gt":{"balance[${asset}/2]":1}},
                    {"$match":{"metadata[$other]":"a"}},{"$match":{"metadata[5$ $key]":"b"}}]}}"#,
        )
        .expect("a query");
        let filter =
            query.filter(&values(r#"{"key":"tier","asset":"USD"}"#)).expect("values").expect("a filter");
        let filled = r#"{"$and":[{"$match":{"metadata[tier]":"tier"}},{"$gt":{"balance[USD/2]":1}},{"$match":{"metadata[$other]":"a"}},{"$match":{"metadata[5$ $key]":"b"}}]}"#;
        assert_eq!(filter.to_string(), filled);
    }

    #[test]
    fn refuses_invalid_queries() {
        for (text, what) in [
            (r#"{"body":{}}"#, "unknown 'resource' ''"),
            (r#"{"resource":"logs","body":[]}"#, "'body' must be an object"),
            (r#"{"resource":"logs","vars":{"a b":"int"}}"#, "'vars': invalid name 'a b'"),
            (r#"{"resource":"logs","vars":{"a":"number"}}"#, "'vars' 'a': unknown 'type'"),
            (r#"{"resource":"logs","vars":{"a":{"type":"int","default":"1"}}}"#, "'vars' 'a': 'default'"),
            (r#"{"resource":"logs","vars":{"a":{"type":"date","default":"soon"}}}"#, "'vars' 'a': 'default'"),
            (
                r#"{"resource":"logs","vars":{"a":"int"},"body":{"$gt":{"id":"$A"}}}"#,
                "a $ begins neither ${name} nor $name in '$A'",
            ),
            (
                r#"{"resource":"accounts","vars":{"a":"int"},"body":{"$match":{"address":"x:$a:5$"}}}"#,
                "a $ begins neither ${name} nor $name in 'x:$a:5$'",
            ),
            (r#"{"resource":"logs","body":{"$gt":{"id":"$a"}}}"#, "variable 'a' is not declared"),
            (
                r#"{"resource":"logs","vars":{"a":"int"},"body":{"$gt":{"id":"$ab"}}}"#,
                "variable 'ab' is not declared",
            ),
            (r#"{"resource":"logs","body":{"$gt":{"id":"${a}"}}}"#, "variable 'a' is not declared"),
            (
                r#"{"resource":"logs","vars":{"a":"int"},"body":{"$gt":{"id":"${a"}}}"#,
                "a variable has no end",
            ),
        ] {
            let error = query(text).expect_err(text).to_string();
            assert!(error.starts_with(what), "{text}: {error}");
        }
    }
}
