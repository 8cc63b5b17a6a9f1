//! Handlers of connectors: the catalogue, installations, configurations and tasks.

use std::sync::Arc;

use hyper::StatusCode;
use ledger_store::Snapshot;

use crate::api::context::Context;
use crate::api::payments::forms::{self, Reader, data};
use crate::api::payments::list::{self, List, UNFILTERED};
use crate::collections::TASKS;
use crate::connectors::config::Visibility;
use crate::connectors::definition::Definition;
use crate::http::error::ApiError;
use crate::http::response::{self, Reply};
use crate::payments::ids::ConnectorId;
use crate::payments::installation::{self, Installation};
use crate::payments::record;
use crate::payments::service::require_installation;
use crate::payments::task::{self, BY_DATE, Task};
use crate::uuid::Uuid;

pub(super) async fn list(context: &Context<'_>) -> Result<Reply, ApiError> {
    let mut all =
        context.app.blocking(|store| Ok(installation::all_even_removing(&store.snapshot())?)).await?;
    all.retain(|installation| !installation.is_being_removed);
    let mut json = context.json();
    json.raw("{\"data\":[").list(&all, |json, installation| {
        json.raw("{\"provider\":").plain_string(&installation.id.provider);
        json.raw(",\"connectorID\":").plain_string(&installation.id.text());
        json.raw(",\"name\":").string(&installation.name).raw(",\"enabled\":true,\"disabled\":false}");
    });
    json.raw("]}");
    Ok(json.reply(StatusCode::OK))
}

pub(super) fn configs(context: &Context<'_>) -> Reply {
    data(context, StatusCode::OK, |json| {
        json.raw("{").list(context.app.connectors().definitions(), |json, definition: &Definition| {
            json.plain_string(definition.provider).raw(":{");
            let shown =
                definition.parameters.iter().filter(|parameter| parameter.visibility != Visibility::Nowhere);
            json.list(shown, |json, parameter| {
                json.plain_string(parameter.name).raw(":{\"dataType\":").plain_string(parameter.kind.name());
                json.raw(",\"required\":").boolean(parameter.is_required);
                json.raw(",\"defaultValue\":").plain_string(parameter.default).raw("}");
            });
            json.raw("}");
        });
        json.raw("}");
    })
}

pub(super) async fn install(context: &Context<'_>) -> Result<Reply, ApiError> {
    let definition = context.app.connectors().definition(context.variable(0))?;
    let id = context.app.connectors().install(definition, &context.body).await?;
    if Reader::of(context).is_1_10 {
        return Ok(response::no_content());
    }
    Ok(data(context, StatusCode::CREATED, |json| {
        json.raw("{\"connectorID\":").plain_string(&id.text()).raw("}");
    }))
}

/// Returns the installation that the path names. A path with `count` variable segments contains the id of the
/// installation. A shorter path names only the connector, which must then have exactly one installation.
///
/// # Errors
///
/// `NOT_FOUND` if the connector is unknown, `VALIDATION` if there is no such installation, or if a path without an id
/// has several.
pub(super) async fn installation(
    context: &Context<'_>,
    count: usize,
) -> Result<(&'static Definition, Installation), ApiError> {
    let definition = context.app.connectors().definition(context.variable(0))?;
    if context.variables.len() == count {
        let text = context.variable(1);
        let id = ConnectorId::parse(text)
            .ok_or_else(|| ApiError::validation(format!("{text:?} is no id of a connector")))?;
        if *id.provider != *definition.provider {
            let message = format!("the id is one of {}, not of {}", id.provider, definition.provider);
            return Err(ApiError::validation(message));
        }
        let found = context.app.blocking(move |store| require_installation(&store.snapshot(), &id)).await?;
        return Ok((definition, found.value));
    }
    let find =
        |store: &ledger_store::Store| Ok(installation::of_provider(&store.snapshot(), definition.provider)?);
    let mut found = context.app.blocking(find).await?;
    match (found.pop(), found.is_empty()) {
        (Some(only), true) => Ok((definition, only)),
        (None, _) => Err(ApiError::validation("no connectors installed")),
        (Some(_), false) => Err(ApiError::validation("more than one connectors installed")),
    }
}

pub(super) async fn uninstall(context: &Context<'_>) -> Result<Reply, ApiError> {
    let (_, found) = installation(context, 2).await?;
    context.app.connectors().uninstall(&found.id).await?;
    Ok(response::no_content())
}

pub(super) async fn read_config(context: &Context<'_>) -> Result<Reply, ApiError> {
    let (definition, found) = installation(context, 2).await?;
    let values = context.app.connectors().values(&found)?;
    let values = if context.app.settings().redact_config {
        values.1.redacted(definition.parameters)
    } else {
        values.1.json(definition.parameters)
    };
    Ok(data(context, StatusCode::OK, |json| {
        json.raw(&values);
    }))
}

pub(super) async fn update_config(context: &Context<'_>) -> Result<Reply, ApiError> {
    let (definition, found) = installation(context, 2).await?;
    context.app.connectors().configure(definition, &found.id, &context.body).await?;
    Ok(response::no_content())
}

pub(super) async fn reset(context: &Context<'_>) -> Result<Reply, ApiError> {
    let (_, found) = installation(context, 2).await?;
    context.app.connectors().reset(&found.id).await?;
    Ok(response::no_content())
}

const TASK_LIST: List = List {
    name: "tasks",
    collection: TASKS,
    sorts: &[("createdAt", BY_DATE), ("created_at", BY_DATE), ("date", BY_DATE)],
    filter: UNFILTERED,
    by_reference: None,
    by_value: list::no_values,
};

pub(super) async fn tasks(context: &Context<'_>) -> Result<Reply, ApiError> {
    let (_, found) = installation(context, 2).await?;
    let prefix = Task::prefix(&found.id.installation);
    let request = TASK_LIST.parse(context, &found.id.text(), prefix)?;
    let connector = Arc::new(found.id);
    let accept = move |_: &list::ListRequest, _: &Snapshot, document: &_| {
        let task = record::of::<Task>(document)?.value;
        Ok((task.connector == *connector).then_some(task))
    };
    list::answer(context, request, accept, forms::task).await
}

pub(super) async fn task(context: &Context<'_>) -> Result<Reply, ApiError> {
    let (_, found) = installation(context, 3).await?;
    let text = context.variable(context.variables.len() - 1);
    let id = Uuid::parse(text).ok_or_else(|| ApiError::validation(format!("{text:?} is no id of a task")))?;
    let find = move |store: &ledger_store::Store| {
        let found = task::find(&store.snapshot(), &found.id.installation, &id)?;
        found.ok_or_else(|| ApiError::not_found("task not found"))
    };
    let found = context.app.blocking(find).await?;
    Ok(data(context, StatusCode::OK, |json| forms::task(json, &found.value)))
}
