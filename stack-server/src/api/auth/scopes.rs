//! Scopes: create, list, read, change and delete them, and the scopes that they include.

use hyper::StatusCode;
use ledger_core::Metadata;
use serde::de::MapAccess;

use crate::api::call::Call;
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

fn read_body(call: &Call<'_>) -> Result<(String, Metadata), ApiError> {
    let Object(body) = json::first::<Object<Body<'_>>>(&call.body)
        .map_err(|error| ApiError::validation(format!("invalid format: {error}")))?;
    Ok((body.label.0.into_owned(), body.metadata))
}

pub(super) async fn list(call: &Call<'_>) -> Result<Reply, ApiError> {
    let all = call.app.blocking(|store| Ok(Scopes::of(&store.snapshot())?)).await?;
    let mut json = call.json();
    json.raw("{\"data\":[").list(all.iter(), write).raw("]}");
    Ok(json.reply(StatusCode::OK))
}

pub(super) async fn create(call: &Call<'_>) -> Result<Reply, ApiError> {
    let (label, metadata) = read_body(call)?;
    let made = call.app.blocking(move |store| scopes::create(store, &label, metadata)).await?;
    Ok(data(call, &made, StatusCode::CREATED))
}

pub(super) async fn read(call: &Call<'_>) -> Result<Reply, ApiError> {
    let id = call.variable(0).to_owned();
    let all = call.app.blocking(|store| Ok(Scopes::of(&store.snapshot())?)).await?;
    Ok(data(call, all.get(&id).ok_or_else(scopes::no_scope)?, StatusCode::OK))
}

pub(super) async fn update(call: &Call<'_>) -> Result<Reply, ApiError> {
    let id = call.variable(0).to_owned();
    let (label, metadata) = read_body(call)?;
    let changed = call.app.blocking(move |store| scopes::update(store, &id, &label, &metadata)).await?;
    Ok(data(call, &changed, StatusCode::OK))
}

pub(super) async fn delete(call: &Call<'_>) -> Result<Reply, ApiError> {
    let id = call.variable(0).to_owned();
    call.app.blocking(move |store| scopes::delete(store, &id)).await?;
    Ok(response::no_content())
}

pub(super) async fn set_transient(call: &Call<'_>, brings: bool) -> Result<Reply, ApiError> {
    let [id, transient] = [0, 1].map(|at| call.variable(at).to_owned());
    let change = if brings { scopes::add_transient } else { scopes::remove_transient };
    call.app.blocking(move |store| change(store, &id, &transient)).await?;
    Ok(response::no_content())
}

fn data(call: &Call<'_>, scope: &ScopeRecord, status: StatusCode) -> Reply {
    let mut json = call.json();
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
