//! The schema routes: add a version, read a version, list versions.

use hyper::StatusCode;
use ledger_core::schema::Schema;
use ledger_core::{Command, InsertSchema, Resource, SchemaVersion};
use ledger_store::{Direction, SchemaKey, SchemaOrder, SchemaQuery, SchemaView};
use serde_json::value::RawValue;

use crate::api::call::Call;
use crate::api::cursor::Sort;
use crate::api::ledger_v2::list::{Kind, List};
use crate::api::ledger_v2::{queries, write};
use crate::http::error::ApiError;
use crate::http::json;
use crate::http::response::{Json, Reply};

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
        filter: list.filter()?,
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
