//! Responses of the OAuth and OIDC endpoints, and the client address for their rate limits.

use std::net::IpAddr;

use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};

use crate::api::context::Context;
use crate::auth::authority::Authority;
use crate::auth::grants::error::{ErrorCode, OAuthError};
use crate::http::error::{ApiError, Code, Profile};
use crate::http::response::{self, Json, Numbers, Reply};

/// Returns the client address of a request.
pub(super) fn address(context: &Context<'_>, authority: &Authority) -> IpAddr {
    let lines = context.headers.get_all("x-forwarded-for").iter().filter_map(|line| line.to_str().ok());
    authority.address(context.peer, &lines.collect::<Vec<_>>())
}

/// Returns an OAuth error response.
pub(super) fn refusal(error: &OAuthError, state: Option<&str>) -> Reply {
    error.log_cause();
    let mut json = Json::new(Numbers::Plain);
    json.raw("{\"error\":").plain_string(error.code.text());
    if let Some(description) = &error.description {
        json.raw(",\"error_description\":").string(description);
    }
    if let Some(state) = state {
        json.raw(",\"state\":").string(state);
    }
    json.raw("}");
    let mut reply = json.reply(error.code.status());
    response::forbid_storing(&mut reply);
    let headers = reply.headers_mut();
    match error.code {
        ErrorCode::InvalidClient => {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"stack\""));
        }
        ErrorCode::TooManyTries | ErrorCode::TemporarilyUnavailable => {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        _ => {}
    }
    reply
}

/// Returns the response to a request whose parameters were not read, because its body is too long or the server accepts
/// no writes.
pub(super) fn refused_early(error: &ApiError) -> Reply {
    let status = error.status(Profile::Stack);
    let code = match error.code {
        Code::ReadOnly => ErrorCode::TemporarilyUnavailable,
        _ if error.transient => ErrorCode::TemporarilyUnavailable,
        _ if status.is_client_error() => ErrorCode::InvalidRequest,
        _ => ErrorCode::ServerError,
    };
    let mut reply = refusal(&OAuthError::new(code, error.message.clone()), None);
    if code != ErrorCode::TemporarilyUnavailable {
        *reply.status_mut() = status;
    }
    reply
}

/// Returns a plain-text response for a human reader.
pub(super) fn text(status: StatusCode, text: impl Into<String>) -> Reply {
    response::text(status, "text/plain; charset=utf-8", Bytes::from(text.into()))
}
