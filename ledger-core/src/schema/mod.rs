//! Schemas: rules for the content of a ledger, in versions that never change.
//!
//! A version has a [`Chart`] of accounts, templates of transactions, and stored queries. A request may name a
//! version that checks it, by the functions of [`crate::enforcement`].

mod chart;
mod stored_query;

use std::collections::BTreeMap;
use std::fmt;

use smol_str::SmolStr;

pub use self::chart::{Chart, ChartAccount};
pub use self::stored_query::StoredQuery;
use crate::error_wording::ErrorWording;
use crate::json::Json;
use crate::limits::{CHART_PATTERN_PROGRAM_BYTES_MAX, SCHEMA_BYTES_MAX};
use ledger_numscript::Language;
use ledger_values::json_text::write_json_text;
use ledger_values::{SchemaVersion, Timestamp};

/// Refusal of a schema, or of a use of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError(String);

impl SchemaError {
    /// Creates a refusal with this reason.
    pub fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SchemaError {}

/// A valid schema.
///
/// ```
/// use ledger_core::schema::Schema;
/// use ledger_core::{AccountAddress, Json, Resource};
/// let schema = Schema::parse(
///     r#"{
///         "chart": {"users": {"$user": {".metadata": {"tier": {"default": "silver"}}}}},
///         "transactions": {"pay": {"script": "send [USD 1] (source = @world destination = @users:1)"}},
///         "queries": {"rich": {"resource": "accounts", "vars": {"least": {"type": "int", "default": 100}},
///             "body": {"$gte": {"balance[USD]": "${least}"}}}}
///     }"#,
/// )?;
/// let account = schema.chart().find(&AccountAddress::parse("users:7")?).expect("the chart has users");
/// assert!(schema.chart().has_defaults() && account.defaults().get("tier").is_some());
/// assert!(schema.has_templates() && schema.template("pay").is_some() && schema.template("refund").is_none());
///
/// let rich = schema.query("rich").expect("the query is stored");
/// assert_eq!((rich.resource(), rich.resource_name()), (Resource::Accounts, "accounts"));
/// let filter = rich.filter(&[("least".into(), Json::parse("500")?)])?.expect("the query has a filter");
/// assert_eq!(filter, Json::parse(r#"{"$gte": {"balance[USD]": 500}}"#)?);
///
/// // Another form of the same schema has the same content.
/// let again = Schema::read(&Json::parse(&schema.content())?)?;
/// assert_eq!(again.content(), schema.content());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    chart: Chart,
    templates: BTreeMap<SmolStr, Template>,
    queries: BTreeMap<SmolStr, StoredQuery>,
}

/// A named script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// Purpose of the template.
    pub description: SmolStr,
    /// Text of the script.
    pub script: SmolStr,
    /// Wording of its errors, if the template chooses one.
    pub wording: Option<ErrorWording>,
}

impl Schema {
    /// Reads a new schema: its chart, its templates, its queries. Ignores other members.
    ///
    /// # Errors
    ///
    /// [`SchemaError`] with the first fault. Faults of scripts come after all others.
    pub fn read(json: &Json) -> Result<Self, SchemaError> {
        let schema = Self::read_members(json)?;
        for (name, template) in &schema.templates {
            if let Err(error) = Language::NUMSCRIPT.compile(&template.script) {
                let what = format!("transactions '{}': invalid 'script': {error}", chart::short(name));
                return Err(SchemaError::new(what));
            }
        }
        Ok(schema)
    }

    fn read_members(json: &Json) -> Result<Self, SchemaError> {
        if json.members().is_none() {
            return Err(SchemaError::new("a schema must be an object"));
        }
        let chart = Chart::read(json.get("chart").ok_or_else(|| SchemaError::new("'chart' is missing"))?)?;
        let schema = Self {
            chart,
            templates: named(json, "transactions", Template::read)?,
            queries: named(json, "queries", StoredQuery::read)?,
        };
        if schema.text_bytes() > SCHEMA_BYTES_MAX {
            return Err(SchemaError::new(format!("a schema has at most {SCHEMA_BYTES_MAX} bytes")));
        }
        Ok(schema)
    }

    /// Parses the JSON text of a new schema.
    ///
    /// # Errors
    ///
    /// The same errors as [`Schema::read`], and an error for texts that are not JSON.
    pub fn parse(text: &str) -> Result<Self, SchemaError> {
        Self::read(&parse_json(text)?)
    }

    /// Parses the JSON text of a recorded schema. Does not compile the scripts of its templates, which were compiled
    /// before the schema was recorded.
    ///
    /// # Errors
    ///
    /// The same errors as [`Schema::parse`], except those of scripts.
    pub fn parse_recorded(text: &str) -> Result<Self, SchemaError> {
        Self::read_members(&parse_json(text)?)
    }

    /// Returns the chart of accounts.
    pub fn chart(&self) -> &Chart {
        &self.chart
    }

    /// Returns the template with a name.
    pub fn template(&self, name: &str) -> Option<&Template> {
        self.templates.get(name)
    }

    /// Tells whether there are templates. If so, every transaction must use one.
    pub fn has_templates(&self) -> bool {
        !self.templates.is_empty()
    }

    /// Returns the stored query with a name.
    pub fn query(&self, name: &str) -> Option<&StoredQuery> {
        self.queries.get(name)
    }

    /// Iterates over all stored queries with their names.
    pub fn queries(&self) -> impl Iterator<Item = (&str, &StoredQuery)> {
        self.queries.iter().map(|(name, query)| (name.as_str(), query))
    }

    /// Returns the canonical text of this schema as the version added at `created_at`: compact JSON with
    /// sorted maps. The log contains this text, and its hash covers it.
    pub fn text(&self, version: &SchemaVersion, created_at: Timestamp) -> SmolStr {
        let mut out = self.body();
        out.extend_from_slice(b",\"version\":");
        write_json_text(version.as_str(), &mut out);
        out.extend_from_slice(b",\"createdAt\":\"");
        created_at.write_to(&mut out);
        out.extend_from_slice(b"\"}");
        text_of(&out)
    }

    /// Returns the canonical text without version and date. Two requests that add the same schema have it in
    /// common.
    pub fn content(&self) -> SmolStr {
        let mut out = self.body();
        out.push(b'}');
        text_of(&out)
    }

    /// Estimates the memory of the schema in bytes.
    ///
    /// ```
    /// use ledger_core::limits::CHART_PATTERN_PROGRAM_BYTES_MAX;
    /// use ledger_core::schema::Schema;
    /// let schema = Schema::parse(r#"{"chart": {"users": {"$id": {".pattern": "^[0-9]+$"}}}}"#)?;
    /// assert!(schema.content().len() < 100);
    /// assert!(schema.memory() > CHART_PATTERN_PROGRAM_BYTES_MAX);
    /// # Ok::<(), ledger_core::schema::SchemaError>(())
    /// ```
    pub fn memory(&self) -> usize {
        4 * self.text_bytes() + self.chart.patterns() * CHART_PATTERN_PROGRAM_BYTES_MAX
    }

    fn text_bytes(&self) -> usize {
        self.body().len()
    }

    /// Returns the canonical text without its end.
    fn body(&self) -> Vec<u8> {
        let mut out = b"{\"chart\":".to_vec();
        self.chart.json().write_to(&mut out);
        write_named(&mut out, ",\"transactions\":", &self.templates, Template::write_to);
        write_named(&mut out, ",\"queries\":", &self.queries, StoredQuery::write_to);
        out
    }
}

fn parse_json(text: &str) -> Result<Json, SchemaError> {
    Json::parse(text).map_err(|error| SchemaError::new(error.to_string()))
}

/// Reads the version from the text of a recorded schema. Returns `None` for any other text.
///
/// ```
/// use ledger_core::schema::{Schema, created_at_of, version_of};
/// use ledger_core::{SchemaVersion, Timestamp};
/// let version = SchemaVersion::parse("v1")?;
/// let text = Schema::parse(r#"{"chart": {}}"#)?.text(&version, Timestamp::MAX);
/// assert_eq!((version_of(&text), created_at_of(&text)), (Some(version), Some(Timestamp::MAX)));
/// assert_eq!(version_of(r#"{"chart": {}}"#), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn version_of(text: &str) -> Option<SchemaVersion> {
    SchemaVersion::parse(Json::parse(text).ok()?.get("version")?.as_text()?).ok()
}

/// Reads the date from the text of a recorded schema. Returns `None` for any other text.
pub fn created_at_of(text: &str) -> Option<Timestamp> {
    Json::parse(text).ok()?.get("createdAt")?.as_text()?.parse().ok()
}

impl Template {
    fn read(json: &Json) -> Result<Self, SchemaError> {
        Ok(Self {
            description: text(json, "description")?.unwrap_or_default(),
            script: text(json, "script")?.unwrap_or_default(),
            wording: match text(json, "runtime")?.as_deref() {
                None | Some("") => None,
                Some(word) => Some(ErrorWording::parse(word).ok_or_else(|| {
                    SchemaError::new(format!("unknown 'runtime' '{}'", chart::short(word)))
                })?),
            },
        })
    }

    fn write_to(&self, out: &mut Vec<u8>) {
        begin_described(&self.description, out);
        out.extend_from_slice(b"\"script\":");
        write_json_text(&self.script, out);
        if let Some(wording) = self.wording {
            out.extend_from_slice(b",\"runtime\":");
            write_json_text(wording.name(), out);
        }
        out.push(b'}');
    }
}

/// Returns a member that is a string, or `None` if it is absent or null.
fn text(json: &Json, name: &str) -> Result<Option<SmolStr>, SchemaError> {
    match json.get(name) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::Text(text)) => Ok(Some(text.clone())),
        Some(_) => Err(SchemaError::new(format!("'{name}' must be a string"))),
    }
}

/// Reads a member that maps names to values. An absent or null member is an empty map.
fn named<T>(
    json: &Json,
    member: &str,
    read: impl Fn(&Json) -> Result<T, SchemaError>,
) -> Result<BTreeMap<SmolStr, T>, SchemaError> {
    let mut map = BTreeMap::new();
    let members = match json.get(member) {
        None | Some(Json::Null) => return Ok(map),
        Some(Json::Object(members)) => members,
        Some(_) => return Err(SchemaError::new(format!("'{member}' must be an object"))),
    };
    for (name, value) in members {
        let wrong =
            |what: &dyn fmt::Display| SchemaError::new(format!("{member} '{}': {what}", chart::short(name)));
        if name.is_empty() {
            return Err(wrong(&"a name is not empty"));
        }
        if value.members().is_none() {
            return Err(wrong(&"it must be an object"));
        }
        map.insert(name.clone(), read(value).map_err(|error| wrong(&error))?);
    }
    Ok(map)
}

/// Begins an object with its description, unless that is empty. Another member must follow.
fn begin_described(description: &str, out: &mut Vec<u8>) {
    out.push(b'{');
    if !description.is_empty() {
        out.extend_from_slice(b"\"description\":");
        write_json_text(description, out);
        out.push(b',');
    }
}

/// Writes a map, unless it is empty.
fn write_named<T>(
    out: &mut Vec<u8>,
    head: &str,
    map: &BTreeMap<SmolStr, T>,
    write: impl Fn(&T, &mut Vec<u8>),
) {
    if map.is_empty() {
        return;
    }
    out.extend_from_slice(head.as_bytes());
    for (at, (name, value)) in map.iter().enumerate() {
        out.push(if at == 0 { b'{' } else { b',' });
        write_json_text(name, out);
        out.push(b':');
        write(value, out);
    }
    out.push(b'}');
}

fn text_of(bytes: &[u8]) -> SmolStr {
    SmolStr::from_utf8(bytes).expect("JSON text is UTF-8")
}

/// Treatment of commands that violate the schemas of a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Enforcement {
    /// The ledger executes the command and reports the violation.
    #[default]
    Audit,
    /// The ledger refuses the command.
    Strict,
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{ "queries": {"late": {"resource":"transactions", "vars":{"from":{"type":"date"}},
            "body":{"$gte":{"timestamp":"${from}"}}}},
        "transactions": {"pay":{"script":"send [EUR/2 5] (source = @world destination = @shops:1)",
            "runtime":"machine","description":"a < b"}},
        "other": 1, "chart": {"shops":{"$id":{}},"bank":{}} }"#;

    #[test]
    fn equal_schemas_have_one_text() {
        let schema = Schema::parse(TEXT).expect("a schema");
        let version = SchemaVersion::parse("v\"1").expect("a version");
        let text = schema.text(&version, Timestamp::from_micros(0));
        assert_eq!(
            text,
            concat!(
                r#"{"chart":{"bank":{},"shops":{"$id":{}}},"transactions":{"pay":{"description":"a \u003c b","#,
                r#""script":"send [EUR/2 5] (source = @world destination = @shops:1)","runtime":"machine"}},"#,
                r#""queries":{"late":{"resource":"transactions","vars":{"from":{"type":"date"}},"#,
                r#""body":{"$gte":{"timestamp":"${from}"}}}},"version":"v\"1","createdAt":"1970-01-01T00:00:00Z"}"#
            )
        );
        assert_eq!(Schema::parse(&text).expect("its own text"), schema);
        assert_eq!(Schema::parse_recorded(&text).expect("its own text"), schema);
        assert_eq!(version_of(&text), Some(version));
        assert_eq!(created_at_of(&text), Some(Timestamp::from_micros(0)));
        let plain = Schema::parse(r#"{"chart":{},"transactions":{},"queries":null}"#).expect("a schema");
        assert_eq!(plain.content(), r#"{"chart":{}}"#);
    }

    #[test]
    fn refuses_bad_schemas() {
        for (text, what) in [
            ("[]", "a schema must be an object"),
            ("{}", "'chart' is missing"),
            (r#"{"chart":{},"transactions":[]}"#, "'transactions' must be an object"),
            (r#"{"chart":{},"transactions":{"t":1}}"#, "transactions 't': it must be an object"),
            (r#"{"chart":{},"transactions":{"":{}}}"#, "transactions '': a name"),
            (
                r#"{"chart":{},"transactions":{"t":{"script":"sned"}}}"#,
                "transactions 't': invalid 'script': ",
            ),
            (
                r#"{"chart":{},"transactions":{"t":{"script":1}}}"#,
                "transactions 't': 'script' must be a string",
            ),
            (
                r#"{"chart":{},"transactions":{"t":{"script":"print 1","runtime":"x"}}}"#,
                "transactions 't': unknown 'runtime' 'x'",
            ),
            (
                r#"{"chart":{},"queries":{"q":{"resource":"schemas"}}}"#,
                "queries 'q': unknown 'resource' 'schemas'",
            ),
        ] {
            let error = Schema::parse(text).expect_err(text).to_string();
            assert!(error.starts_with(what), "{text}: {error}");
        }
        let recorded = r#"{"chart":{},"transactions":{"t":{"script":"of a later release"}}}"#;
        assert!(Schema::parse_recorded(recorded).is_ok());
        let large = format!(r#"{{"chart":{{"a":{{".rules":{{"x":"{}"}}}}}}}}"#, "y".repeat(SCHEMA_BYTES_MAX));
        assert!(Schema::parse(&large).is_err());
    }
}
