//! Scopes: create, list, read, change and delete them, and the scopes that they include.

use hyper::StatusCode;
use ledger_core::Metadata;
use serde::de::MapAccess;

use crate::api::context::Context;
use crate::auth::resources::scopes::{self, ScopeRecord, Scopes};
use crate::http::error::ApiError;
use crate::http::json::{self, AnyMap, Fields, Object, Text};
use crate::http::response::{self, Json, Reply};

#[derive(Default)]
struct Body<'a> {
    label: Text<'a>,
    metadata: Metadata,
}

impl<'de> Fields<'de> for Body<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match json::field(name, &["label", "metadata"]) {
            Some("label") => self.label = map.next_value()?,
            Some("metadata") => self.metadata = map.next_value::<AnyMap>()?.0,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn read_body(context: &Context<'_>) -> Result<(String, Metadata), ApiError> {
    let Object(body) = json::first::<Object<Body<'_>>>(&context.body)
        .map_err(|error| ApiError::validation(format!("invalid format: {error}")))?;
    Ok((body.label.0.into_owned(), body.metadata))
}

pub(super) async fn list(context: &Context<'_>) -> Result<Reply, ApiError> {
    let all = context.app.blocking(|store| Ok(Scopes::of(&store.snapshot())?)).await?;
    let mut json = context.json();
    json.raw("{\"data\":[").list(all.iter(), write).raw("]}");
    Ok(json.reply(StatusCode::OK))
}

pub(super) async fn create(context: &Context<'_>) -> Result<Reply, ApiError> {
    let (label, metadata) = read_body(context)?;
    let made = context.app.blocking(move |store| scopes::create(store, &label, metadata)).await?;
    Ok(data(context, &made, StatusCode::CREATED))
}

pub(super) async fn read(context: &Context<'_>) -> Result<Reply, ApiError> {
    let id = context.variable(0).to_owned();
    let all = context.app.blocking(|store| Ok(Scopes::of(&store.snapshot())?)).await?;
    Ok(data(context, all.get(&id).ok_or_else(scopes::no_scope)?, StatusCode::OK))
}

pub(super) async fn update(context: &Context<'_>) -> Result<Reply, ApiError> {
    let id = context.variable(0).to_owned();
    let (label, metadata) = read_body(context)?;
    let changed = context.app.blocking(move |store| scopes::update(store, &id, &label, &metadata)).await?;
    Ok(data(context, &changed, StatusCode::OK))
}

pub(super) async fn delete(context: &Context<'_>) -> Result<Reply, ApiError> {
    let id = context.variable(0).to_owned();
    context.app.blocking(move |store| scopes::delete(store, &id)).await?;
    Ok(response::no_content())
}

pub(super) async fn set_transient(context: &Context<'_>, brings: bool) -> Result<Reply, ApiError> {
    let [id, transient] = [0, 1].map(|at| context.variable(at).to_owned());
    let change = if brings { scopes::add_transient } else { scopes::remove_transient };
    context.app.blocking(move |store| change(store, &id, &transient)).await?;
    Ok(response::no_content())
}

fn data(context: &Context<'_>, scope: &ScopeRecord, status: StatusCode) -> Reply {
    let mut json = context.json();
    json.raw("{\"data\":");
    write(&mut json, scope);
    json.raw("}");
    json.reply(status)
}

fn write(json: &mut Json, scope: &ScopeRecord) {
    json.raw("{\"id\":").string(&scope.id).raw(",\"label\":").string(&scope.label);
    json.raw(",\"metadata\":").any_metadata(&scope.metadata).raw(",\"transient\":");
    json.strings(&scope.transient);
    json.raw("}");
}
