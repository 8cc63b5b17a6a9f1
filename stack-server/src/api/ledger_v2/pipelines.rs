//! The pipeline routes: create, list, read, delete, start, stop and reset.

use hyper::StatusCode;
use ledger_core::{LedgerName, LogId};
use ledger_store::{ReadError, Snapshot};
use serde::de::MapAccess;

use crate::api::app::App;
use crate::api::call::Call;
use crate::api::ledger_v2::exporters::{id, new_id};
use crate::http::error::ApiError;
use crate::http::json::{self, Fields, Object, Text};
use crate::http::response::{self, Json, Reply};
use crate::integrations::pipelines::stored::{self, Order, Pipeline};
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
struct Shown {
    pipeline: Pipeline,
    last: Option<LogId>,
    error: Option<String>,
}

impl Shown {
    fn of(app: &App, snapshot: &Snapshot, pipeline: Pipeline) -> Result<Self, ReadError> {
        if let Some(progress) = app.pipelines().progress(&pipeline) {
            return Ok(Self { pipeline, last: progress.last, error: progress.error });
        }
        let last = stored::position(snapshot, &pipeline.id)?.and_then(|kept| kept.last);
        Ok(Self { pipeline, last, error: None })
    }
}

/// Returns the name of the ledger, if the ledger exists.
fn ledger(call: &Call<'_>) -> Result<LedgerName, ApiError> {
    Ok(call.ledger()?.info().name.clone())
}

pub(crate) async fn list(call: &Call<'_>) -> Result<Reply, ApiError> {
    let (app, ledger) = (call.app.clone(), ledger(call)?);
    let list = move |store: &ledger_store::Store| {
        let snapshot = store.snapshot();
        let all = stored::pipelines(&snapshot, Some(&ledger))?.into_iter();
        Ok(all.map(|pipeline| Shown::of(&app, &snapshot, pipeline)).collect::<Result<Vec<_>, _>>()?)
    };
    let pipelines = call.app.blocking(list).await?;
    let mut json = call.json();
    json.raw("{\"cursor\":{\"hasMore\":false,\"data\":[").list(&pipelines, write).raw("]}}");
    Ok(json.reply(StatusCode::OK))
}

pub(crate) async fn create(call: &Call<'_>) -> Result<Reply, ApiError> {
    let (ledger, number) = {
        let ledger = call.ledger()?;
        (ledger.info().name.clone(), Some(ledger.info().id))
    };
    let Object(body) = json::first::<Object<Body<'_>>>(&call.body)
        .map_err(|error| ApiError::validation(format!("invalid format: {error}")))?;
    let exporter = uuid::parse(&body.exporter.0)
        .ok_or_else(|| ApiError::validation("exporterID: it is no id of an exporter"))?;
    let pipeline =
        Pipeline { id: new_id()?, ledger, number, exporter, created_at: log::now(), enabled: true, run: 0 };
    let created = pipeline.clone();
    call.app.blocking(move |store| stored::create_pipeline(store, &pipeline)).await?;
    call.app.pipelines().call();
    Ok(data(call, &Shown { pipeline: created, last: None, error: None }, StatusCode::CREATED))
}

pub(crate) async fn read(call: &Call<'_>) -> Result<Reply, ApiError> {
    let (app, ledger, id) = (call.app.clone(), ledger(call)?, id(call, 1)?);
    let read = move |store: &ledger_store::Store| {
        let snapshot = store.snapshot();
        let found = stored::pipeline(&snapshot, &id)?.filter(|found| found.value.ledger == ledger);
        let found = found.ok_or_else(stored::no_pipeline)?;
        Ok(Shown::of(&app, &snapshot, found.value)?)
    };
    let shown = call.app.blocking(read).await?;
    Ok(data(call, &shown, StatusCode::OK))
}

pub(crate) async fn delete(call: &Call<'_>) -> Result<Reply, ApiError> {
    order(call, Order::Delete).await?;
    Ok(response::no_content())
}

pub(crate) async fn start(call: &Call<'_>) -> Result<Reply, ApiError> {
    order(call, Order::Start).await?;
    Ok(response::empty(StatusCode::ACCEPTED))
}

pub(crate) async fn stop(call: &Call<'_>) -> Result<Reply, ApiError> {
    order(call, Order::Stop).await?;
    Ok(response::empty(StatusCode::ACCEPTED))
}

pub(crate) async fn reset(call: &Call<'_>) -> Result<Reply, ApiError> {
    order(call, Order::Reset).await?;
    Ok(response::empty(StatusCode::ACCEPTED))
}

async fn order(call: &Call<'_>, order: Order) -> Result<(), ApiError> {
    let (ledger, id) = (ledger(call)?, id(call, 1)?);
    call.app.blocking(move |store| stored::order(store, &ledger, &id, order)).await?;
    call.app.pipelines().call();
    Ok(())
}

fn data(call: &Call<'_>, shown: &Shown, status: StatusCode) -> Reply {
    let mut json = call.json();
    json.raw("{\"data\":");
    write(&mut json, shown);
    json.raw("}");
    json.reply(status)
}

fn write(json: &mut Json, shown: &Shown) {
    let Shown { pipeline, last, error } = shown;
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
