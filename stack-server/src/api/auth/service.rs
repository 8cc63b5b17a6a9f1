//! The release and the health of the authorization server.

use hyper::StatusCode;

use crate::api::context::Context;
use crate::api::service::stopped;
use crate::http::response::Reply;
use crate::settings::Compat;

/// Returns the release whose clients this server supports.
pub(super) fn info(context: &Context<'_>) -> Reply {
    let version = match context.app.settings().compat {
        Compat::V1_10 => "v0.4.4",
        Compat::V2_0 | Compat::V2_4 => "v2.0.0",
    };
    let mut json = context.json();
    json.raw("{\"version\":").plain_string(version).raw("}");
    json.reply(StatusCode::OK)
}

/// Returns whether the store works.
pub(super) async fn health(context: &Context<'_>) -> Reply {
    let stopped = stopped(context).await;
    let mut json = context.json();
    json.raw("{\"storage\":").string(stopped.as_deref().unwrap_or("OK")).raw("}");
    json.reply(if stopped.is_some() { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK })
}

/// Returns whether the store works, in the form that load balancers of this kind of server expect.
pub(super) async fn ready(context: &Context<'_>) -> Reply {
    let stopped = stopped(context).await;
    let mut json = context.json();
    json.raw("{\"status\":").string(stopped.as_deref().unwrap_or("ok")).raw("}");
    json.reply(if stopped.is_some() { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK })
}
