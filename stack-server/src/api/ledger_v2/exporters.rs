//! The exporter routes: create, list, read, change and delete.

use hyper::StatusCode;
use serde::de::MapAccess;
use serde_json::value::RawValue;

use crate::api::context::Context;
use crate::http::error::ApiError;
use crate::http::json::{self, Fields, Object, Text};
use crate::http::response::{self, Json, Reply};
use crate::integrations::pipelines::exporter::Setup;
use crate::integrations::pipelines::password;
use crate::integrations::pipelines::stored::{self, Exporter};
use crate::log;
use crate::uuid;

#[derive(Default)]
struct Body<'a> {
    driver: Text<'a>,
    config: Option<&'a RawValue>,
}

impl<'de> Fields<'de> for Body<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match json::field(name, &["driver", "config"]) {
            Some("driver") => self.driver = map.next_value()?,
            Some("config") => self.config = Some(map.next_value()?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Reads the name of the driver, its configuration as compact JSON, and the setup that both describe.
fn read_body(context: &Context<'_>) -> Result<(String, Box<str>, Setup), ApiError> {
    let Object(body) = json::first::<Object<Body<'_>>>(&context.body)
        .map_err(|error| ApiError::validation(format!("invalid format: {error}")))?;
    let setup = Setup::read(&body.driver.0, body.config, context.app.exporter_policy())
        .map_err(|error| ApiError::validation(error.to_string()))?;
    let config = match body.config {
        None => "{}".to_owned(),
        Some(config) if config.get() == "null" => "{}".to_owned(),
        Some(config) => json::canonical(config).map_err(|error| ApiError::validation(error.to_string()))?,
    };
    Ok((body.driver.0.into_owned(), config.into(), setup))
}

/// Returns an id of the path in the form in which it is stored.
pub(super) fn id(context: &Context<'_>, at: usize) -> Result<String, ApiError> {
    uuid::parse(context.variable(at)).ok_or_else(|| ApiError::validation("invalid id: it is no UUID"))
}

/// Returns a random id.
pub(super) fn new_id() -> Result<String, ApiError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| ApiError::fault(&error.to_string()))?;
    Ok(uuid::text(bytes, 4))
}

pub(crate) async fn list(context: &Context<'_>) -> Result<Reply, ApiError> {
    let exporters = context.app.blocking(|store| Ok(stored::exporters(&store.snapshot())?)).await?;
    let mut json = context.json();
    json.raw("{\"cursor\":{\"hasMore\":false,\"data\":[").list(&exporters, write).raw("]}}");
    Ok(json.reply(StatusCode::OK))
}

pub(crate) async fn create(context: &Context<'_>) -> Result<Reply, ApiError> {
    let (driver, config, setup) = read_body(context)?;
    let exporter = Exporter { id: new_id()?, created_at: log::now(), driver, config };
    let created = exporter.clone();
    context.app.blocking(move |store| stored::create_exporter(store, &exporter, &setup)).await?;
    Ok(data(context, &created, StatusCode::CREATED))
}

pub(crate) async fn read(context: &Context<'_>) -> Result<Reply, ApiError> {
    let id = id(context, 0)?;
    let found = context.app.blocking(move |store| Ok(stored::exporter(&store.snapshot(), &id)?)).await?;
    let found = found.ok_or_else(|| ApiError::not_found("exporter not found"))?;
    Ok(data(context, &found.value, StatusCode::OK))
}

pub(crate) async fn update(context: &Context<'_>) -> Result<Reply, ApiError> {
    let id = id(context, 0)?;
    // A missing exporter has status 404, even if the body is invalid.
    let wanted = id.clone();
    let found = context.app.blocking(move |store| Ok(stored::exporter(&store.snapshot(), &wanted)?)).await?;
    found.ok_or_else(|| ApiError::not_found("exporter not found"))?;
    let (driver, config, setup) = read_body(context)?;
    let update = move |store: &_| stored::update_exporter(store, &id, &driver, &config, &setup);
    context.app.blocking(update).await?;
    context.app.pipelines().wake();
    Ok(response::no_content())
}

pub(crate) async fn delete(context: &Context<'_>) -> Result<Reply, ApiError> {
    let id = id(context, 0)?;
    context.app.blocking(move |store| stored::delete_exporter(store, &id)).await?;
    context.app.pipelines().wake();
    Ok(response::no_content())
}

fn data(context: &Context<'_>, exporter: &Exporter, status: StatusCode) -> Reply {
    let mut json = context.json();
    json.raw("{\"data\":");
    write(&mut json, exporter);
    json.raw("}");
    json.reply(status)
}

fn write(json: &mut Json, exporter: &Exporter) {
    json.raw("{\"id\":").plain_string(&exporter.id).raw(",\"createdAt\":").time(exporter.created_at);
    json.raw(",\"driver\":").string(&exporter.driver).raw(",\"config\":");
    json.raw(&password::redacted(&exporter.config)).raw("}");
}
