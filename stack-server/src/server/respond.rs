//! Handles a request: checks it, finds its route, reads its body, calls the API and logs the response.

use std::borrow::Cow;
use std::fmt::Display;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Mutex;
use std::time::Instant;

use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::{ACCESS_CONTROL_REQUEST_METHOD, HeaderMap, HeaderValue, ORIGIN};
use hyper::http::request::Parts as Head;
use hyper::{Method, Request, StatusCode};

use crate::api::app::App;
use crate::api::context::Context;
use crate::api::operations::{Operation, V2};
use crate::api::routes::{Mount, Route, STREAM};
use crate::api::routing::{self, EnabledParts, Match};
use crate::api::{auth, generic, ledger_v1, ledger_v2, openapi, payments, service};
use crate::auth::authority;
use crate::auth::guard::{Admission, LastToken, VerifiedToken};
use crate::http::error::{ApiError, Code, Profile};
use crate::http::memory::Reservation;
use crate::http::request::{self, Query, ReadBody};
use crate::http::response::{self, Reply};
use crate::limits::{INLINE_BODY_BYTES_MAX, UNCOUNTED_BYTES_MAX};
use crate::log::refusals::RefusalCode;
use crate::log::request_id::{self, RequestId};
use crate::log::{self, Level};
use crate::server::placement::Placement;

/// The connection of a request.
#[derive(Clone, Copy)]
pub(crate) struct Connection<'a> {
    /// The address of the client or proxy.
    pub(crate) peer: IpAddr,
    /// The last valid token on this connection.
    pub(crate) last_token: &'a LastToken,
    /// Chooses the thread that serves this connection.
    pub(crate) placement: &'a Placement,
}

/// Handles a request. The response and each log line about the request contain the request id.
pub(crate) async fn answer(app: &App, request: Request<Incoming>, from: Connection<'_>) -> Reply {
    let id = RequestId::of(request.headers());
    let answering = pin!(logged_answer(app, request, from));
    let mut reply = id.clone().scope(answering).await;
    reply.headers_mut().insert(request_id::HEADER, id.header());
    reply
}

/// Handles a request. Logs it if the server failed, or if the log level is `debug`.
async fn logged_answer(app: &App, request: Request<Incoming>, from: Connection<'_>) -> Reply {
    let began = Instant::now();
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let reply = unlogged_answer(app, request, from).await;
    let code = reply.extensions().get::<RefusalCode>().copied();
    app.refusals().count(reply.status().as_u16(), code);
    let level = if reply.status().is_server_error() { Level::Warning } else { Level::Debug };
    if !log::is_written(level) {
        return reply;
    }
    // Queries to the authorization server contain secrets, so log only the path.
    let is_private = uri.path().starts_with(authority::MOUNT);
    let target = if is_private { uri.path().to_owned() } else { request::loggable_target(&uri) };
    let fields: [(&str, &dyn Display); 5] = [
        ("method", &method),
        ("target", &target),
        ("status", &reply.status().as_u16()),
        ("microseconds", &began.elapsed().as_micros()),
        ("code", &code.map_or("", |code| code.0)),
    ];
    log::event(level, "request", &fields);
    reply
}

async fn unlogged_answer(app: &App, request: Request<Incoming>, from: Connection<'_>) -> Reply {
    let Connection { peer, last_token, placement } = from;
    let (parts, incoming) = request.into_parts();
    // `None` once the body is being read.
    let mut incoming = Some(incoming);
    if parts.method == Method::OPTIONS && parts.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
        return preflight(app, &parts);
    }
    let mut profile = app.settings().profile.unwrap_or(Profile::Ledger);
    let (mut found_route, mut changes_nothing, mut is_unread) = (None, false, false);
    let mut routed = async || -> Result<Reply, ApiError> {
        request::check_head(&parts)?;
        let segments = segments(app, &parts)?;
        let found = routing::find(parts.method.as_str(), &segments, enabled_parts(app));
        if let Match::Found { route, profile: of_mount, .. } = &found {
            (profile, found_route) = (app.settings().profile.unwrap_or(*of_mount), Some(*route));
        }
        request::check_host(&parts)?;
        if let Some(policy) = app.browser_policy() {
            policy.check(&parts)?;
        }
        let (route, variables) = match found {
            Match::Found { route, variables, .. } => (route, variables),
            Match::WrongMethod(allow) => return Ok(response::method_not_allowed(&allow)),
            Match::NoSuchPath(text) => return Ok(response::no_such_path(text)),
        };
        let token = match admission(app, &parts, last_token, route).await {
            Admission::Open => None,
            Admission::By(token) => Some(token),
            Admission::Refused => return Ok(unauthorized(route)),
        };
        if app.settings().read_only && route.may_write() {
            return Err(ApiError::new(Code::ReadOnly, "Read only mode"));
        }
        changes_nothing = !route.may_write() || route.operation == Operation::V2(V2::RunQuery);
        let (body, stream) = match incoming.take() {
            Some(incoming) if route.body_limit != STREAM => {
                placement.ask_for(incoming.size_hint().exact());
                let read = request::body(incoming, &parts.headers, route.body_limit, app.memory()).await;
                is_unread = read.is_err();
                (read?, None)
            }
            stream => (ReadBody::default(), stream),
        };
        let is_large = body.bytes.len() > UNCOUNTED_BYTES_MAX;
        let work = if is_large { Some(app.memory().request(body.bytes.len()).await?) } else { None };
        let admitted = Admitted { app, profile, peer, token, body: body.bytes.clone(), stream };
        if body.bytes.len() > INLINE_BODY_BYTES_MAX {
            // Box this future: inline, it would enlarge the future of every request.
            let head = parts.clone();
            let handling = run_on_thread_for_large_requests(placement, route, admitted, body, work, head);
            return Box::pin(handling).await;
        }
        operate(route.operation, &admitted.context(&parts, variables)).await
    };
    let answered = routed().await;
    let refuse = |error: ApiError| refusal(found_route, profile, &error);
    let mut reply = answered.unwrap_or_else(refuse);
    if let Err(error) = reserve_reply_memory(app, &mut reply, changes_nothing).await {
        reply = refuse(error);
    }
    if let Some(unread) = incoming {
        request::leave_body(unread, &parts.headers).await;
    }
    if is_unread || breaks_framing(reply.status()) {
        response::close_after(&mut reply);
    }
    allow_origin(app, &parts.headers, &mut reply);
    reply
}

/// Splits the request's path into segments, in the form that the routing table uses.
fn segments<'a>(app: &App, head: &'a Head) -> Result<Vec<Cow<'a, str>>, ApiError> {
    let segments = request::segments(head.uri.path())?;
    Ok(routing::canonical_segments(segments, &app.settings().generic_mount))
}

/// Decides whether a caller may use a route. Routes of the generic connector API also accept its fixed keys.
async fn admission(app: &App, head: &Head, last_token: &LastToken, route: &Route) -> Admission {
    let keys = app.settings().generic_keys.as_ref().filter(|_| route.mount == Mount::Generic);
    if keys.is_some_and(|keys| keys.allow(&head.headers)) {
        return Admission::Open;
    }
    match app.guard() {
        None if keys.is_some() => Admission::Refused,
        None => Admission::Open,
        Some(guard) => guard.admit(&head.headers, last_token, route.mount.service(), route.scope).await,
    }
}

/// Returns the response to a caller whose key or token does not allow the request, in the form of the route.
fn unauthorized(route: &Route) -> Reply {
    if route.mount == Mount::Generic { generic::unauthorized() } else { response::unauthorized() }
}

/// Logs the cause of an error, and creates its response in the form of the route.
fn refusal(route: Option<&Route>, profile: Profile, error: &ApiError) -> Reply {
    error.log_cause();
    match route.map(|route| (route.mount, route.operation)) {
        Some((Mount::LedgerV1, _)) => ledger_v1::refusal(error),
        Some((Mount::Generic, _)) => generic::refusal(error),
        Some((_, operation)) if operation.is_protocol() => auth::refusal(error),
        _ => response::refusal(error, profile),
    }
}

/// Returns the optional parts of the API that are enabled.
fn enabled_parts(app: &App) -> EnabledParts {
    EnabledParts {
        exporters: app.settings().experimental_exporters,
        authorization: app.authority().is_some(),
    }
}

/// A request that the server has checked and may handle.
struct Admitted<'a> {
    app: &'a App,
    profile: Profile,
    peer: IpAddr,
    token: Option<VerifiedToken>,
    body: Bytes,
    /// The unread body, for routes that read it as a stream.
    stream: Option<Incoming>,
}

impl<'a> Admitted<'a> {
    fn context(self, head: &'a Head, variables: Vec<Cow<'a, str>>) -> Context<'a> {
        Context {
            app: self.app,
            profile: self.profile,
            variables,
            query: Query::of(&head.uri),
            target: head.uri.path_and_query().map_or("", |target| target.as_str()),
            peer: self.peer,
            token: self.token,
            headers: &head.headers,
            body: self.body,
            stream: Mutex::new(self.stream),
        }
    }
}

/// Handles a request with a large body on the thread for large requests. If the client disconnects, the request
/// continues and keeps its memory.
async fn run_on_thread_for_large_requests(
    placement: &Placement,
    route: &'static Route,
    admitted: Admitted<'_>,
    read: ReadBody,
    work: Option<Reservation>,
    head: Head,
) -> Result<Reply, ApiError> {
    let Admitted { app, profile, peer, token, body, stream } = admitted;
    placement.ask_for(Some(body.len() as u64));
    let (app, id) = (app.clone(), RequestId::current());
    let handling = async move {
        let _memory = (read, work);
        let segments = segments(&app, &head)?;
        let found = routing::find(head.method.as_str(), &segments, enabled_parts(&app));
        let Match::Found { variables, .. } = found else {
            return Err(ApiError::fault("the route matched earlier no longer matches"));
        };
        let admitted = Admitted { app: &app, profile, peer, token, body, stream };
        let context = admitted.context(&head, variables);
        let operating = pin!(operate(route.operation, &context));
        RequestId::scope_if(id, operating).await
    };
    placement.large().run(handling).await
}

/// Reserves memory for a large response until the client has read it. The response to a request that changed something
/// gets memory in any case.
///
/// # Errors
///
/// 503 if there is not enough memory.
async fn reserve_reply_memory(app: &App, reply: &mut Reply, changes_nothing: bool) -> Result<(), ApiError> {
    let bytes = reply.body().len();
    if bytes > UNCOUNTED_BYTES_MAX {
        let memory = app.memory();
        let held = if changes_nothing {
            memory.answer(bytes).await?
        } else {
            memory.answers.reserve_beyond_limit(bytes)
        };
        reply.body_mut().hold(held);
    }
    Ok(())
}

/// Answers a preflight request: a browser asks whether a page may send a request.
fn preflight(app: &App, parts: &Head) -> Reply {
    let host = request::check_host(parts);
    let refused = host.and_then(|()| app.browser_policy().map_or(Ok(()), |policy| policy.check(parts))).err();
    if let Some(error) = refused {
        return response::refusal(&error, app.settings().profile.unwrap_or(Profile::Ledger));
    }
    let mut reply = response::preflight(&parts.headers);
    allow_origin(app, &parts.headers, &mut reply);
    reply
}

/// Allows pages of other origins to read the response. A server with tokens allows all pages, because a page without a
/// token gets no data.
fn allow_origin(app: &App, request: &HeaderMap, reply: &mut Reply) {
    let allowed = match app.browser_policy() {
        None => request.get(ORIGIN).map(|_| HeaderValue::from_static("*")),
        Some(policy) => policy.listed_origin(request).cloned(),
    };
    if let Some(origin) = allowed {
        response::allow_origin(origin, reply);
    }
}

/// Boxes a future and erases its type, so that the code that drops it is compiled once.
fn boxed<'a>(
    answering: impl Future<Output = Result<Reply, ApiError>> + Send + 'a,
) -> Pin<Box<dyn Future<Output = Result<Reply, ApiError>> + Send + 'a>> {
    Box::pin(answering)
}

/// Calls the handler of an operation.
async fn operate(operation: Operation, context: &Context<'_>) -> Result<Reply, ApiError> {
    match operation {
        Operation::V1(operation) => Ok(ledger_v1::handle(operation, context).await),
        Operation::V2(operation) => ledger_v2::handle(operation, context).await,
        // Box these futures. They are several times larger than the ledger ones. Inline, they would enlarge the future
        // of every request, and each request copies its future several times.
        Operation::Auth(operation) => boxed(auth::handle(operation, context)).await,
        Operation::Payments(operation) => boxed(payments::handle(operation, context)).await,
        Operation::Generic(operation) => generic::handle(operation, context).await,
        Operation::Info(form) => service::info(context, form).await,
        Operation::Health(form) => Ok(service::health(context, form).await),
        Operation::Versions => Ok(service::versions(context)),
        Operation::Document(form) => Ok(openapi::answer(context, form)),
    }
}

/// Returns whether a response with this status may leave a part of the request unread. The connection then cannot be
/// used for another request.
fn breaks_framing(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::REQUEST_TIMEOUT
            | StatusCode::URI_TOO_LONG
            | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
            | StatusCode::UNSUPPORTED_MEDIA_TYPE
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Maximum size of the future that answers a request. Each request copies it several times.
    const FUTURE_BYTES_MAX: usize = 5 * 1_024;

    #[test]
    fn future_of_a_request_is_small() {
        fn size_of_answer<'a, F: Future>(
            _answer: impl Fn(&'a App, Request<Incoming>, Connection<'a>) -> F,
        ) -> usize {
            size_of::<F>()
        }
        let size = size_of_answer(answer);
        assert!(size <= FUTURE_BYTES_MAX, "{size} bytes: box the large parts that few requests need");
    }
}
