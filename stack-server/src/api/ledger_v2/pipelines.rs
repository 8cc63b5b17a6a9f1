//! The pipeline routes: create, list, read, delete, start, stop and reset.

use hyper::StatusCode;
use ledger_core::{LedgerName, LogId};
use ledger_store::{ReadError, Snapshot};
use serde::de::MapAccess;

use crate::api::app::App;
use crate::api::context::Context;
use crate::api::ledger_v2::exporters::{id, new_id};
use crate::http::error::ApiError;
use crate::http::json::{self, Fields, Object, Text};
use crate::http::response::{self, Json, Reply};
use crate::integrations::pipelines::stored::{self, Pipeline, StateChange};
use crate::log;
use crate::uuid;

#[derive(Default)]
struct Body<'a> {
    exporter: Text<'a>,
}

impl<'de> Fields<'de> for Body<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match json::field(name, &["exporterID"]) {
            Some("exporterID") => self.exporter = map.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// A pipeline with its progress, as a response shows it.
struct PipelineResponse {
    pipeline: Pipeline,
    last: Option<LogId>,
    error: Option<String>,
}

impl PipelineResponse {
    fn of(app: &App, snapshot: &Snapshot, pipeline: Pipeline) -> Result<Self, ReadError> {
        if let Some(progress) = app.pipelines().progress(&pipeline) {
            return Ok(Self { pipeline, last: progress.last, error: progress.error });
        }
        let last = stored::position(snapshot, &pipeline.id)?.and_then(|kept| kept.last);
        Ok(Self { pipeline, last, error: None })
    }
}

/// Returns the name of the ledger, if the ledger exists.
fn ledger(context: &Context<'_>) -> Result<LedgerName, ApiError> {
    Ok(context.ledger()?.info().name.clone())
}

pub(crate) async fn list(context: &Context<'_>) -> Result<Reply, ApiError> {
    let (app, ledger) = (context.app.clone(), ledger(context)?);
    let list = move |store: &ledger_store::Store| {
        let snapshot = store.snapshot();
        let all = stored::pipelines(&snapshot, Some(&ledger))?.into_iter();
        Ok(all
            .map(|pipeline| PipelineResponse::of(&app, &snapshot, pipeline))
            .collect::<Result<Vec<_>, _>>()?)
    };
    let pipelines = context.app.blocking(list).await?;
    let mut json = context.json();
    json.raw("{\"cursor\":{\"hasMore\":false,\"data\":[").list(&pipelines, write).raw("]}}");
    Ok(json.reply(StatusCode::OK))
}

pub(crate) async fn create(context: &Context<'_>) -> Result<Reply, ApiError> {
    let (ledger, number) = {
        let ledger = context.ledger()?;
        (ledger.info().name.clone(), Some(ledger.info().id))
    };
    let Object(body) = json::first::<Object<Body<'_>>>(&context.body)
        .map_err(|error| ApiError::validation(format!("invalid format: {error}")))?;
    let exporter = uuid::parse(&body.exporter.0)
        .ok_or_else(|| ApiError::validation("exporterID: it is no id of an exporter"))?;
    let pipeline =
        Pipeline { id: new_id()?, ledger, number, exporter, created_at: log::now(), enabled: true, run: 0 };
    let created = pipeline.clone();
    context.app.blocking(move |store| stored::create_pipeline(store, &pipeline)).await?;
    context.app.pipelines().wake();
    Ok(data(context, &PipelineResponse { pipeline: created, last: None, error: None }, StatusCode::CREATED))
}

pub(crate) async fn read(context: &Context<'_>) -> Result<Reply, ApiError> {
    let (app, ledger, id) = (context.app.clone(), ledger(context)?, id(context, 1)?);
    let read = move |store: &ledger_store::Store| {
        let snapshot = store.snapshot();
        let found = stored::pipeline(&snapshot, &id)?.filter(|found| found.value.ledger == ledger);
        let found = found.ok_or_else(stored::no_pipeline)?;
        Ok(PipelineResponse::of(&app, &snapshot, found.value)?)
    };
    let response = context.app.blocking(read).await?;
    Ok(data(context, &response, StatusCode::OK))
}

pub(crate) async fn delete(context: &Context<'_>) -> Result<Reply, ApiError> {
    change_state(context, StateChange::Delete).await?;
    Ok(response::no_content())
}

pub(crate) async fn start(context: &Context<'_>) -> Result<Reply, ApiError> {
    change_state(context, StateChange::Start).await?;
    Ok(response::empty(StatusCode::ACCEPTED))
}

pub(crate) async fn stop(context: &Context<'_>) -> Result<Reply, ApiError> {
    change_state(context, StateChange::Stop).await?;
    Ok(response::empty(StatusCode::ACCEPTED))
}

pub(crate) async fn reset(context: &Context<'_>) -> Result<Reply, ApiError> {
    change_state(context, StateChange::Reset).await?;
    Ok(response::empty(StatusCode::ACCEPTED))
}

async fn change_state(context: &Context<'_>, change: StateChange) -> Result<(), ApiError> {
    let (ledger, id) = (ledger(context)?, id(context, 1)?);
    context.app.blocking(move |store| stored::change_state(store, &ledger, &id, change)).await?;
    context.app.pipelines().wake();
    Ok(())
}

fn data(context: &Context<'_>, response: &PipelineResponse, status: StatusCode) -> Reply {
    let mut json = context.json();
    json.raw("{\"data\":");
    write(&mut json, response);
    json.raw("}");
    json.reply(status)
}

fn write(json: &mut Json, response: &PipelineResponse) {
    let PipelineResponse { pipeline, last, error } = response;
    json.raw("{\"ledger\":").plain_string(pipeline.ledger.as_str());
    json.raw(",\"exporterID\":").plain_string(&pipeline.exporter);
    json.raw(",\"createdAt\":").time(pipeline.created_at);
    json.raw(",\"id\":").plain_string(&pipeline.id);
    json.raw(",\"enabled\":").boolean(pipeline.enabled);
    if let Some(last) = last {
        json.raw(",\"lastLogID\":").integer(last.get());
    }
    if let Some(error) = error {
        json.raw(",\"error\":").string(error);
    }
    json.raw("}");
}
