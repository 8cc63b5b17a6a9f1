//! Schemas: add a version, read one, list them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hyper::StatusCode;
use ledger_core::schema::{Schema, SchemaError};
use ledger_core::{Command, InsertSchema, Json as JsonValue, Resource, SchemaVersion};
use ledger_store::{Direction, LedgerView, SchemaKey, SchemaOrder, SchemaQuery, SchemaView};
use serde_json::value::RawValue;

use crate::call::Call;
use crate::cursor::Sort;
use crate::error::ApiError;
use crate::json;
use crate::ledger_v2::list::{Kind, List};
use crate::ledger_v2::{queries, write};
use crate::limits::SCHEMA_CACHE_BYTES_MAX;
use crate::response::{Json, Reply};

static LIST: Kind = Kind {
    name: "schemas",
    resource: Resource::Schemas,
    direction: Direction::Descending,
    sortable: &[("created_at", Sort::Natural), ("version", Sort::Version)],
    until: &[],
    since: &[],
};

pub(crate) async fn insert(call: &Call<'_>) -> Result<Reply, ApiError> {
    let command = insert_command(call).map_err(|error| call.unless_no_ledger(error))?;
    write::without_answer(call, command).await
}

fn insert_command(call: &Call<'_>) -> Result<Command, ApiError> {
    let invalid = |error: &dyn std::fmt::Display| ApiError::validation(format!("invalid schema: {error}"));
    let version = SchemaVersion::parse(call.variable(1)).map_err(|error| invalid(&error))?;
    let body = json::first::<&RawValue>(&call.body).map_err(|error| invalid(&error))?;
    let schema = Schema::parse(body.get()).map_err(|error| invalid(&error))?;
    for (name, query) in schema.queries() {
        queries::check(call, query).map_err(|error| {
            let name: String = name.chars().take(100).collect();
            invalid(&format!("queries '{name}': {}", error.message))
        })?;
    }
    Ok(Command::InsertSchema(InsertSchema { version, schema: Box::new(schema) }))
}

pub(crate) fn read(call: &Call<'_>) -> Result<Reply, ApiError> {
    let ledger = call.ledger()?;
    let not_found = || ApiError::not_found("schema not found");
    let version = SchemaVersion::parse(call.variable(1)).map_err(|_| not_found())?;
    let schema = ledger.schema(&version)?.ok_or_else(not_found)?;
    let mut json = call.json();
    json.raw("{\"data\":").raw(&schema.text).raw("}");
    Ok(json.reply(StatusCode::OK))
}

pub(crate) async fn list(call: &Call<'_>) -> Result<Reply, ApiError> {
    let ledger = call.ledger()?;
    let list = List::of(call, &LIST)?;
    let question = SchemaQuery {
        filter: list.filter.clone(),
        order: match list.query.order {
            Sort::Version => SchemaOrder::Version,
            _ => SchemaOrder::Created,
        },
        page: list.page(|text| {
            let (position, version) = text.split_once(' ')?;
            Some(SchemaKey { position: position.parse().ok()?, version: SchemaVersion::parse(version).ok()? })
        })?,
    };
    let page = call.app.long(move || Ok(ledger.schemas(&question)?)).await?;
    let key = |schema: &SchemaView| format!("{} {}", schema.key.position, schema.key.version);
    Ok(list.reply(call, &page, key, |json: &mut Json, schema| {
        json.raw(&schema.text);
    }))
}

/// Schemas that were asked for lately, so that one is not parsed with every request. Versions never change.
#[derive(Default)]
pub(crate) struct KnownSchemas(Mutex<Known>);

#[derive(Default)]
struct Known {
    bytes: usize,
    kept: HashMap<(u32, SchemaVersion), Arc<Schema>>,
}

impl KnownSchemas {
    /// The version of a ledger's schema with this name; `None` if there is none.
    ///
    /// # Errors
    ///
    /// `VALIDATION` if this release cannot read what another recorded; else that of the read.
    pub(crate) fn of(
        &self,
        ledger: &LedgerView,
        version: &SchemaVersion,
    ) -> Result<Option<Arc<Schema>>, ApiError> {
        let key = (ledger.info().id, version.clone());
        // What a thread that panicked left behind is whole: entries are put in one step.
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(schema) = lock().kept.get(&key) {
            return Ok(Some(schema.clone()));
        }
        let Some(stored) = ledger.schema(version)? else { return Ok(None) };
        let unreadable = |error: SchemaError| ApiError::validation(format!("invalid schema: {error}"));
        let schema = Arc::new(Schema::parse(&stored.text).map_err(unreadable)?);
        let bytes = schema.memory();
        let mut known = lock();
        if known.bytes + bytes > SCHEMA_CACHE_BYTES_MAX {
            *known = Known::default();
        }
        known.bytes += bytes;
        known.kept.insert(key, schema.clone());
        Ok(Some(schema))
    }
}

/// The JSON value that a body begins with; an empty one is an empty object.
///
/// # Errors
///
/// What is wrong with it.
pub(crate) fn json_body(body: &[u8]) -> Result<JsonValue, String> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(JsonValue::Object(Vec::new()));
    }
    let first = json::first::<&RawValue>(body).map_err(|error| error.to_string())?;
    match JsonValue::parse(first.get()) {
        Ok(JsonValue::Null) => Ok(JsonValue::Object(Vec::new())),
        Ok(object @ JsonValue::Object(_)) => Ok(object),
        Ok(_) => Err("the body is no object".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
