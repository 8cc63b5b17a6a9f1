//! Stored queries: lists that a schema defines under a name.

use ledger_core::schema::StoredQuery;
use ledger_core::{Filter, Json as JsonValue, Resource, SchemaVersion, Timestamp};
use ledger_store::{Expand, Start, TimeAxis};
use serde_json::value::RawValue;

use crate::api::context::Context;
use crate::api::cursor::{ListQuery, Place};
use crate::api::ledger_v2::list::{Kind, List, kept_by_ledger, order_of};
use crate::api::ledger_v2::{accounts, logs, query, transactions, volumes};
use crate::http::error::{ApiError, Profile};
use crate::http::json;
use crate::http::response::Reply;
use crate::limits::{FILTER_BYTES_MAX, PAGE_SIZE_NUMBER_MAX};

/// The list name in cursors of stored queries.
const PLACE: &str = "queries";

pub(crate) async fn run(context: &Context<'_>) -> Result<Reply, ApiError> {
    let ledger = context.ledger()?;
    let id = context.variable(1);
    let body = json_body(&context.body)?;
    let version = context.query.get("schemaVersion").filter(|version| !version.is_empty());
    let version = version.ok_or_else(|| ApiError::validation("a query needs a schemaVersion"))?;
    let unknown = || ApiError::validation("schema version not found");
    let version = SchemaVersion::parse(version).map_err(|_| unknown())?;
    let schema = context.app.schemas().of(&ledger, &version)?.ok_or_else(unknown)?;
    let stored = schema
        .query(id)
        .ok_or_else(|| ApiError::validation(format!("schema version '{version}' has no such query")))?;
    // Names of ledgers contain no line feeds.
    let place = format!("{}\n{version}\n{id}", ledger.info().name);
    let given = Params::of(body.get("params"))?;
    let list = match text(&body, "cursor")? {
        Some(cursor) if !cursor.is_empty() => resumed(context, stored, cursor, place, &given)?,
        _ => begun(context, stored, &body, place, given)?,
    };
    match stored.resource() {
        Resource::Accounts => accounts::page(context, ledger, &list).await,
        Resource::Logs => logs::page(context, ledger, &list).await,
        Resource::Volumes => volumes::page(context, ledger, &list).await,
        _ => transactions::page(context, ledger, &list).await,
    }
}

/// Checks that a stored query can run: its parameters are valid, and so is its filter for its resource, independently
/// of the values of variables.
///
/// # Errors
///
/// `VALIDATION` with the reason.
pub(crate) fn check(context: &Context<'_>, stored: &StoredQuery) -> Result<(), ApiError> {
    Params::of(stored.params())?.into_query(context, kind(stored.resource()), String::new())?;
    let mut fault = None;
    for sample in stored.samples() {
        let text = sample.map_or(String::new(), |sample| sample.to_string());
        match query::parse(Profile::Ledger, stored.resource(), &text) {
            Ok(_) => return Ok(()),
            Err(error) => fault = fault.or(Some(error)),
        }
    }
    fault.map_or(Ok(()), Err)
}

fn kind(resource: Resource) -> &'static Kind {
    match resource {
        Resource::Accounts => &accounts::LIST,
        Resource::Logs => &logs::LIST,
        Resource::Volumes => &volumes::LIST,
        _ => &transactions::LIST,
    }
}

/// Builds the request for the first page.
fn begun(
    context: &Context<'_>,
    stored: &StoredQuery,
    body: &JsonValue,
    place: String,
    given: Params,
) -> Result<List, ApiError> {
    let values = match body.get("vars") {
        None | Some(JsonValue::Null) => &[],
        Some(JsonValue::Object(members)) => members.as_slice(),
        Some(_) => return Err(ApiError::validation("'vars' is an object")),
    };
    let filter = stored.filter(values).map_err(|error| ApiError::validation(error.to_string()))?;
    let filter = filter.map_or(String::new(), |filter| filter.to_string());
    if filter.len() > FILTER_BYTES_MAX {
        return Err(ApiError::validation(format!("a filter has at most {FILTER_BYTES_MAX} bytes")));
    }
    let kind = kind(stored.resource());
    let query = Params::of(stored.params())?.with(given).into_query(context, kind, filter)?;
    built(stored, query, place)
}

/// Builds the request for a later page. Beside a cursor, only the page size counts.
fn resumed(
    context: &Context<'_>,
    stored: &StoredQuery,
    cursor: &str,
    place: String,
    given: &Params,
) -> Result<List, ApiError> {
    let at = Place { list: PLACE, ledger: &place };
    let query = ListQuery::from_cursor(cursor, context.app.cursor_key(), at)?;
    let page_size = given.page_size(context).unwrap_or(query.page_size);
    built(stored, ListQuery { page_size, ..query }, place)
}

fn built(stored: &StoredQuery, query: ListQuery, place: String) -> Result<List, ApiError> {
    let filter: Filter = query::parse(Profile::Ledger, stored.resource(), &query.filter)?;
    Ok(List::stored(PLACE, stored.resource_name(), place, query, filter))
}

/// The parameters of a stored query. A missing one has the default of the list.
#[derive(Default)]
struct Params {
    page_size: Option<u64>,
    sort: Option<String>,
    expand: Option<Expand>,
    start: Option<Timestamp>,
    end: Option<Timestamp>,
    group_by: Option<u32>,
    clock: Option<TimeAxis>,
}

impl Params {
    /// Parses the parameters.
    ///
    /// # Errors
    ///
    /// `VALIDATION` for a parameter of the wrong type.
    fn of(json: Option<&JsonValue>) -> Result<Self, ApiError> {
        let json = match json {
            None | Some(JsonValue::Null) => return Ok(Self::default()),
            Some(object @ JsonValue::Object(_)) => object,
            Some(_) => return Err(ApiError::validation("'params' is an object")),
        };
        Ok(Self {
            page_size: match integer(json, "pageSize")? {
                None => None,
                Some(size) => match u64::try_from(size) {
                    Ok(size) if size <= PAGE_SIZE_NUMBER_MAX => Some(size),
                    _ => return Err(ApiError::validation("invalid 'pageSize'")),
                },
            },
            sort: text(json, "sort")?.map(str::to_owned),
            expand: expand(json)?,
            start: date(json, "startTime")?,
            end: date(json, "endTime")?,
            group_by: integer(json, "groupBy")?.map(|segments| segments.clamp(0, u32::MAX.into()) as u32),
            clock: match json.get("insertionDate") {
                None | Some(JsonValue::Null) => None,
                Some(JsonValue::Boolean(true)) => Some(TimeAxis::Inserted),
                Some(JsonValue::Boolean(false)) => Some(TimeAxis::Effective),
                Some(_) => return Err(ApiError::validation("'insertionDate' is a boolean")),
            },
        })
    }

    /// Returns these parameters, overridden by those in `over`.
    fn with(self, over: Self) -> Self {
        Self {
            page_size: over.page_size.or(self.page_size),
            sort: over.sort.or(self.sort),
            expand: over.expand.or(self.expand),
            start: over.start.or(self.start),
            end: over.end.or(self.end),
            group_by: over.group_by.or(self.group_by),
            clock: over.clock.or(self.clock),
        }
    }

    /// Returns the requested page size, if there is one.
    fn page_size(&self, context: &Context<'_>) -> Option<u32> {
        let max = context.app.settings().max_page_size;
        self.page_size.filter(|size| *size > 0).map(|size| size.min(max.into()) as u32)
    }

    fn into_query(self, context: &Context<'_>, kind: &Kind, filter: String) -> Result<ListQuery, ApiError> {
        let settings = context.app.settings();
        let page_size = self.page_size(context);
        let (order, direction) = order_of(kind, self.sort.as_deref().unwrap_or_default())?;
        Ok(ListQuery {
            page_size: page_size.unwrap_or(settings.default_page_size.min(settings.max_page_size)),
            filter,
            at: self.end,
            from: self.start,
            expand: kept_by_ledger(context, self.expand.unwrap_or_default()),
            clock: self.clock.unwrap_or_default(),
            order,
            direction,
            group_by: self.group_by.unwrap_or_default(),
            include_deleted: false,
            start: Start::First,
        })
    }
}

fn text<'a>(json: &'a JsonValue, name: &str) -> Result<Option<&'a str>, ApiError> {
    match json.get(name) {
        None | Some(JsonValue::Null) => Ok(None),
        Some(JsonValue::Text(text)) => Ok(Some(text)),
        Some(_) => Err(ApiError::validation(format!("'{name}' is a string"))),
    }
}

fn date(json: &JsonValue, name: &str) -> Result<Option<Timestamp>, ApiError> {
    let Some(text) = text(json, name)?.filter(|text| !text.is_empty()) else { return Ok(None) };
    let invalid = |error| ApiError::validation(format!("parsing time \"{text}\": {error}"));
    Timestamp::parse(text).map(Some).map_err(invalid)
}

fn integer(json: &JsonValue, name: &str) -> Result<Option<i64>, ApiError> {
    match json.get(name) {
        None | Some(JsonValue::Null) => Ok(None),
        Some(JsonValue::Number(digits)) => match digits.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(ApiError::validation(format!("invalid '{name}'"))),
        },
        Some(_) => Err(ApiError::validation(format!("'{name}' is an integer"))),
    }
}

/// Reads the list of expansions. Ignores unknown words.
fn expand(json: &JsonValue) -> Result<Option<Expand>, ApiError> {
    let words = match json.get("expand") {
        None | Some(JsonValue::Null) => return Ok(None),
        Some(JsonValue::Array(words)) => words.as_slice(),
        Some(_) => return Err(ApiError::validation("'expand' is an array")),
    };
    let mut expand = Expand::default();
    for word in words {
        match word.as_text() {
            Some("volumes") => expand.volumes = true,
            Some("effectiveVolumes") => expand.effective_volumes = true,
            Some(_) => {}
            None => return Err(ApiError::validation("'expand' is an array of strings")),
        }
    }
    Ok(Some(expand))
}

/// Parses the JSON value at the beginning of a body. An empty body counts as an empty object.
///
/// # Errors
///
/// `VALIDATION` with the error of the JSON text.
fn json_body(body: &[u8]) -> Result<JsonValue, ApiError> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(JsonValue::Object(Vec::new()));
    }
    let first = json::first::<&RawValue>(body).map_err(|error| ApiError::validation(error.to_string()))?;
    match JsonValue::parse(first.get()) {
        Ok(JsonValue::Null) => Ok(JsonValue::Object(Vec::new())),
        Ok(object @ JsonValue::Object(_)) => Ok(object),
        Ok(_) => Err(ApiError::validation("the body is no object")),
        Err(error) => Err(ApiError::validation(error.to_string())),
    }
}
