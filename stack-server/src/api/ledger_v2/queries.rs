//! Stored queries: lists that a schema defines under a name.

use ledger_core::schema::StoredQuery;
use ledger_core::{Filter, Json as JsonValue, Resource, SchemaVersion};
use ledger_store::{QueryParams, Start};
use serde_json::value::RawValue;

use crate::api::context::Context;
use crate::api::cursor::{ListId, ListQuery};
use crate::api::ledger_v2::list::{List, ListSpec, order_of, supported_expansions};
use crate::api::ledger_v2::{accounts, logs, query, transactions, volumes};
use crate::http::error::{ApiError, Profile};
use crate::http::json;
use crate::http::response::Reply;
use crate::limits::FILTER_BYTES_MAX;

/// The list name in cursors of stored queries.
const LIST_NAME: &str = "queries";

pub(crate) async fn run(context: &Context<'_>) -> Result<Reply, ApiError> {
    let ledger = context.ledger()?;
    let id = context.variable(1);
    let body = json_body(&context.body)?;
    let version = context.query.get("schemaVersion").filter(|version| !version.is_empty());
    let version = version.ok_or_else(|| {
        ApiError::validation("'schemaVersion' is missing: a query needs the version of its schema")
    })?;
    let unknown = || ApiError::validation("schema version not found");
    let version = SchemaVersion::parse(version).map_err(|_| unknown())?;
    let schema = context.app.schemas().of(&ledger, &version)?.ok_or_else(unknown)?;
    let stored = schema
        .query(id)
        .ok_or_else(|| ApiError::validation(format!("schema version '{version}' has no such query")))?;
    // A cursor is only valid for the same ledger, schema version and query. Line feeds can separate them, because names
    // of ledgers contain none.
    let scope = format!("{}\n{version}\n{id}", ledger.info().name);
    let given = params_of(body.get("params"))?;
    let list = match text(&body, "cursor")? {
        Some(cursor) if !cursor.is_empty() => next_page(context, stored, cursor, scope, &given)?,
        _ => first_page(context, stored, &body, scope, given)?,
    };
    match stored.resource() {
        Resource::Accounts => accounts::page(context, ledger, &list).await,
        Resource::Logs => logs::page(context, ledger, &list).await,
        Resource::Volumes => volumes::page(context, ledger, &list).await,
        _ => transactions::page(context, ledger, &list).await,
    }
}

fn spec(resource: Resource) -> &'static ListSpec {
    match resource {
        Resource::Accounts => &accounts::LIST,
        Resource::Logs => &logs::LIST,
        Resource::Volumes => &volumes::LIST,
        _ => &transactions::LIST,
    }
}

/// Builds the request for the first page.
fn first_page(
    context: &Context<'_>,
    stored: &StoredQuery,
    body: &JsonValue,
    scope: String,
    given: QueryParams,
) -> Result<List, ApiError> {
    let values = match body.get("vars") {
        None | Some(JsonValue::Null) => &[],
        Some(JsonValue::Object(members)) => members.as_slice(),
        Some(_) => return Err(ApiError::validation("'vars' must be an object")),
    };
    let filter = stored.filter(values).map_err(|error| ApiError::validation(error.to_string()))?;
    let filter = filter.map_or(String::new(), |filter| filter.to_string());
    if filter.len() > FILTER_BYTES_MAX {
        return Err(ApiError::validation(format!("a filter has at most {FILTER_BYTES_MAX} bytes")));
    }
    let spec = spec(stored.resource());
    let query = list_query(context, &params_of(stored.params())?.with(given), spec, filter)?;
    build_list(stored, query, scope)
}

/// Builds the request for a later page. Beside a cursor, only the page size counts.
fn next_page(
    context: &Context<'_>,
    stored: &StoredQuery,
    cursor: &str,
    scope: String,
    given: &QueryParams,
) -> Result<List, ApiError> {
    let at = ListId { list: LIST_NAME, ledger: &scope };
    let query = ListQuery::from_cursor(cursor, context.app.cursor_key(), at)?;
    let page_size = page_size(context, given).unwrap_or(query.page_size);
    build_list(stored, ListQuery { page_size, ..query }, scope)
}

fn build_list(stored: &StoredQuery, query: ListQuery, scope: String) -> Result<List, ApiError> {
    let filter: Filter = query::parse(Profile::Ledger, stored.resource(), &query.filter)?;
    Ok(List::stored(LIST_NAME, stored.resource_name(), scope, query, filter))
}

/// Returns the requested page size, if there is one.
fn page_size(context: &Context<'_>, params: &QueryParams) -> Option<u32> {
    params.page_size.filter(|size| *size > 0).map(|size| size.min(context.app.settings().max_page_size))
}

fn list_query(
    context: &Context<'_>,
    params: &QueryParams,
    spec: &ListSpec,
    filter: String,
) -> Result<ListQuery, ApiError> {
    let settings = context.app.settings();
    let page_size = page_size(context, params);
    let (order, direction) = order_of(spec, params.sort.as_deref().unwrap_or_default())
        .map_err(|error| ApiError::validation(format!("'sort': {}", error.message)))?;
    Ok(ListQuery {
        page_size: page_size.unwrap_or(settings.default_page_size.min(settings.max_page_size)),
        filter,
        at: params.end,
        from: params.start,
        expand: supported_expansions(context, params.expand.unwrap_or_default()),
        axis: params.axis.unwrap_or_default(),
        order,
        direction,
        group_by: params.group_by.unwrap_or_default(),
        include_deleted: false,
        start: Start::First,
    })
}

fn params_of(json: Option<&JsonValue>) -> Result<QueryParams, ApiError> {
    QueryParams::of(json).map_err(|error| ApiError::validation(error.to_string()))
}

fn text<'a>(json: &'a JsonValue, name: &str) -> Result<Option<&'a str>, ApiError> {
    match json.get(name) {
        None | Some(JsonValue::Null) => Ok(None),
        Some(JsonValue::Text(text)) => Ok(Some(text)),
        Some(_) => Err(ApiError::validation(format!("'{name}' must be a string"))),
    }
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
        Ok(_) => Err(ApiError::validation("the body must be an object")),
        Err(error) => Err(ApiError::validation(error.to_string())),
    }
}
