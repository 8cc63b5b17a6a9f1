//! The schema routes: add a version, read a version, list versions.

use hyper::StatusCode;
use ledger_core::schema::Schema;
use ledger_core::{Command, InsertSchema, Resource, SchemaVersion};
use ledger_store::{Direction, SchemaKey, SchemaOrder, SchemaQuery, SchemaView, check_queries};
use serde_json::value::RawValue;

use crate::api::context::Context;
use crate::api::cursor::Sort;
use crate::api::ledger_v2::list::{List, ListSpec};
use crate::api::ledger_v2::write;
use crate::http::error::ApiError;
use crate::http::json;
use crate::http::response::{Json, Reply};

static LIST: ListSpec = ListSpec {
    name: "schemas",
    resource: Resource::Schemas,
    direction: Direction::Descending,
    sortable: &[("created_at", Sort::Natural), ("version", Sort::Version)],
    until: &[],
    since: &[],
};

pub(crate) async fn insert(context: &Context<'_>) -> Result<Reply, ApiError> {
    let command = insert_command(context).map_err(|error| context.or_ledger_not_found(error))?;
    write::submit_without_body(context, command).await
}

fn insert_command(context: &Context<'_>) -> Result<Command, ApiError> {
    let invalid = |error: &dyn std::fmt::Display| ApiError::validation(format!("invalid schema: {error}"));
    let version = SchemaVersion::parse(context.variable(1)).map_err(|error| invalid(&error))?;
    let body = json::first::<&RawValue>(&context.body).map_err(|error| invalid(&error))?;
    let schema = Schema::parse(body.get()).map_err(|error| invalid(&error))?;
    check_queries(&schema).map_err(|error| invalid(&error))?;
    Ok(Command::InsertSchema(InsertSchema { version, schema: Box::new(schema) }))
}

pub(crate) fn read(context: &Context<'_>) -> Result<Reply, ApiError> {
    let ledger = context.ledger()?;
    let not_found = || ApiError::not_found("schema not found");
    let version = SchemaVersion::parse(context.variable(1)).map_err(|_| not_found())?;
    let schema = ledger.schema(&version)?.ok_or_else(not_found)?;
    let mut json = context.json();
    json.raw("{\"data\":").raw(&schema.text).raw("}");
    Ok(json.reply(StatusCode::OK))
}

pub(crate) async fn list(context: &Context<'_>) -> Result<Reply, ApiError> {
    let ledger = context.ledger()?;
    let list = List::of(context, &LIST)?;
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
    let page = context.app.long(move || Ok(ledger.schemas(&question)?)).await?;
    let key = |schema: &SchemaView| format!("{} {}", schema.key.position, schema.key.version);
    Ok(list.reply(context, &page, key, |json: &mut Json, schema| {
        json.raw(&schema.text);
    }))
}
