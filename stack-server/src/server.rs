//! The HTTP server: its listener, its connections, and the path of a request to its response.

use std::convert::Infallible;
use std::fmt::Display;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use hyper::body::Incoming;
use hyper::header::{ACCESS_CONTROL_REQUEST_METHOD, HeaderMap, HeaderValue, ORIGIN};
use hyper::http::request::Parts as Head;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use ledger_store::Store;
use tokio::sync::watch;

use crate::api::app::App;
use crate::api::call::Call;
use crate::api::routes::{Mount, Operation, STREAM, V2};
use crate::api::routing::{self, Match, Parts};
use crate::api::{auth, generic, ledger_v1, ledger_v2, openapi, payments, service};
use crate::auth::authority::{self, Authority};
use crate::auth::guard::{Admission, AuthSettings, Guard, LastToken};
use crate::auth::housekeeping::Housekeeping;
use crate::connectors::engine::Worker as ConnectorWorker;
use crate::descriptors;
use crate::http::connection::{Patience, Patient, Progress};
use crate::http::error::{ApiError, Code, Profile};
use crate::http::request::{self, Query, ReadBody};
use crate::http::response::{self, Reply};
use crate::http::slots::Slots;
use crate::http::strict_lines::StrictLines;
use crate::http::tls::Tls;
use crate::integrations::cleanup::Cleanup;
use crate::integrations::pipelines::Worker;
use crate::integrations::pipelines::exporter::Allowed;
use crate::limits::{
    ACCEPT_PAUSE, DRAIN_TIMEOUT, HEAD_BUFFER_BYTES, HEADER_READ_TIMEOUT, HTTP_THREADS_MAX, IDLE_TIMEOUT,
    UNCOUNTED_BYTES_MAX, WRITE_BYTES_MIN, WRITE_STALL_TIMEOUT,
};
use crate::log::refusals::RefusalCode;
use crate::log::request_id::{self, RequestId};
use crate::log::{self, Level};
use crate::outbound::Outbound;
use crate::settings::Settings;

/// A running server.
///
/// It serves until [`Server::stop`]; one that is dropped serves until the process ends.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    hurry: Hurry,
    threads: Vec<JoinHandle<()>>,
    connections: usize,
    worker: Option<Worker>,
    cleanup: Option<Cleanup>,
    housekeeping: Option<Housekeeping>,
    connectors: Option<ConnectorWorker>,
}

/// A handle that makes [`Server::stop`] wait for requests no longer.
#[derive(Clone, Debug)]
pub struct Hurry(watch::Sender<bool>);

impl Hurry {
    /// From now on [`Server::stop`] does not wait for requests. The store still records the writes that it has.
    pub fn up(&self) {
        self.0.send_replace(true);
    }
}

impl Server {
    /// Starts to serve connections of `listener` from `store`, without asking for tokens.
    ///
    /// # Errors
    ///
    /// If the system refuses threads, timers or the listener; of kind `InvalidInput` if a setting or TLS file is wrong.
    pub fn start(store: &Store, settings: Settings, listener: TcpListener) -> io::Result<Self> {
        Self::run(store, settings, None, listener)
    }

    /// Starts as [`Server::start`] does, but serves only requests with a token that allows them.
    ///
    /// # Errors
    ///
    /// As [`Server::start`]; of kind `InvalidInput` if an issuer is not a URL.
    pub fn start_guarded(
        store: &Store,
        settings: Settings,
        auth: &AuthSettings,
        listener: TcpListener,
    ) -> io::Result<Self> {
        Self::run(store, settings, Some(auth), listener)
    }

    fn run(
        store: &Store,
        settings: Settings,
        auth: Option<&AuthSettings>,
        listener: TcpListener,
    ) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let invalid = |reason: String| io::Error::new(io::ErrorKind::InvalidInput, reason);
        let authority = new_authority(store, &settings, address).map_err(invalid)?;
        let guard = auth.map(|auth| Guard::new(auth, authority.as_ref())).transpose().map_err(invalid)?;
        listener.set_nonblocking(true)?;
        let (stop, stopped) = watch::channel(false);
        let (hurry, hurried) = watch::channel(false);
        // Clients on other machines must not make the server send requests into its own network.
        let is_local_only = address.ip().is_loopback() && guard.is_none() && !settings.behind_proxy;
        let default_outbound = if is_local_only { Outbound::Any } else { Outbound::Public };
        let allowed = Allowed {
            outbound: settings.outbound.unwrap_or(default_outbound),
            folder: settings.exporters_directory.clone(),
        };
        let app =
            App::new(store.clone(), settings, guard, address, authority, stopped.clone(), allowed.clone());
        let runs_pipelines = app.settings().experimental_exporters && app.settings().worker;
        let worker =
            runs_pipelines.then(|| Worker::start(store, app.settings(), allowed, app.pipelines().clone()));
        let worker = worker.transpose()?;
        // A read-only server removes no buckets and runs no connectors.
        let may_write = app.settings().worker && !app.settings().read_only;
        let cleanup = may_write.then(|| Cleanup::start(store, app.settings(), app.pipelines().clone()));
        let cleanup = cleanup.transpose()?;
        let authority_to_sweep = app.authority().filter(|_| !app.settings().read_only).cloned();
        let housekeeping = authority_to_sweep.map(Housekeeping::start).transpose()?;
        let tls = app.settings().tls.clone().map(Tls::new).transpose();
        let tls = tls.map_err(|reason| io::Error::new(io::ErrorKind::InvalidInput, reason))?.map(Arc::new);
        let refused = |reason| io::Error::new(io::ErrorKind::InvalidInput, reason);
        app.connectors().check_key().map_err(refused)?;
        let connectors = may_write.then(|| ConnectorWorker::start(app.connectors().clone())).transpose()?;
        let slots = Slots::new(descriptors::limit(), app.settings().behind_proxy);
        let connections = slots.max();
        let mut threads = Vec::new();
        for number in 0..app.settings().http_threads.clamp(1, HTTP_THREADS_MAX) {
            // One current-thread runtime each: a connection stays on its thread, and no thread steals work.
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let listener = listener.try_clone()?;
            let (app, tls, slots) = (app.clone(), tls.clone(), slots.clone());
            let (stopped, hurried) = (stopped.clone(), hurried.clone());
            let thread = std::thread::Builder::new().name(format!("http-{number}"));
            threads.push(thread.spawn(move || {
                runtime.block_on(async {
                    let reporter = (number == 0).then(|| app.clone());
                    if let Some(app) = reporter.clone() {
                        tokio::spawn(async move { app.refusals().report().await });
                    }
                    let graceful = accept(app, tls, slots, listener, stopped).await;
                    drain(graceful, hurried).await;
                    if let Some(app) = reporter {
                        app.refusals().tell();
                    }
                });
            })?);
        }
        // Each thread listens on a handle of its own; the last of them to end frees the port.
        drop(listener);
        Ok(Self {
            address,
            stop,
            hurry: Hurry(hurry),
            threads,
            connections,
            worker,
            cleanup,
            housekeeping,
            connectors,
        })
    }

    /// Returns the address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the maximum number of open connections.
    pub fn connections_max(&self) -> usize {
        self.connections
    }

    /// Returns a handle that ends the waiting of [`Server::stop`].
    pub fn hurry(&self) -> Hurry {
        self.hurry.clone()
    }

    /// Accepts no more connections, lets requests in flight finish for at most ten seconds, and returns. The
    /// store is left open.
    pub fn stop(self) {
        // An error means that every thread has ended already.
        let _ = self.stop.send(true);
        for thread in self.threads {
            // A thread that panicked has already reported the panic.
            let _ = thread.join();
        }
        if let Some(worker) = self.worker {
            worker.stop();
        }
        if let Some(cleanup) = self.cleanup {
            cleanup.stop();
        }
        if let Some(housekeeping) = self.housekeeping {
            housekeeping.stop();
        }
        if let Some(connectors) = self.connectors {
            connectors.stop();
        }
    }
}

/// Creates the authorization server, if the settings ask for one.
fn new_authority(
    store: &Store,
    settings: &Settings,
    address: SocketAddr,
) -> Result<Option<Arc<Authority>>, String> {
    let Some(wanted) = settings.authorization.clone() else { return Ok(None) };
    let scheme = if settings.tls.is_some() { "https" } else { "http" };
    let authority = Authority::new(store, wanted, &format!("{scheme}://{address}"))?;
    Ok(Some(Arc::new(authority)))
}

/// Waits until the requests in flight finish, [`DRAIN_TIMEOUT`] has passed, or [`Hurry::up`] was called.
async fn drain(graceful: GracefulShutdown, mut hurried: watch::Receiver<bool>) {
    let hurry = async {
        // An error means that nobody can hurry it any more.
        if hurried.wait_for(|hurried| *hurried).await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = graceful.shutdown() => {}
        () = tokio::time::sleep(DRAIN_TIMEOUT) => {}
        () = hurry => {}
    }
}

/// Accepts connections until the server stops. Returns the handle that waits for those that are still open.
async fn accept(
    app: App,
    tls: Option<Arc<Tls>>,
    slots: Slots,
    listener: TcpListener,
    mut stopped: watch::Receiver<bool>,
) -> GracefulShutdown {
    let listener = tokio::net::TcpListener::from_std(listener)
        .expect("the listener is non-blocking and the runtime has its I/O driver");
    let graceful = GracefulShutdown::new();
    // hyper's default allows 100 header lines. Setting this limit would cost an allocation per request.
    let mut builder = http1::Builder::new();
    // hyper counts this timeout from the end of the last response. `Patient` limits the time of a head that has begun.
    builder.timer(TokioTimer::new()).header_read_timeout(IDLE_TIMEOUT).max_buf_size(HEAD_BUFFER_BYTES);
    let patience =
        Patience { head: HEADER_READ_TIMEOUT, write: WRITE_STALL_TIMEOUT, write_bytes: WRITE_BYTES_MIN };
    let heads = app.memory().heads.clone();
    loop {
        let next = async {
            let slot = slots.free().await;
            (slot, listener.accept().await)
        };
        let (slot, accepted) = tokio::select! {
            biased;
            // An error means that the `Server` was dropped, which does not stop it.
            Ok(()) = stopped.changed() => break,
            next = next => next,
        };
        let Ok((stream, peer)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let Some(slot) = slots.give(slot, peer.ip()) else { continue };
        // Responses are written whole, so waiting for more only adds delay. A later read or write reports any error.
        let _ = stream.set_nodelay(true);
        let app = app.clone();
        let progress = Progress::default();
        let steps = progress.clone();
        let last_token = Arc::new(LastToken::default());
        let service = service_fn(move |request| {
            let (app, steps, last_token) = (app.clone(), steps.clone(), last_token.clone());
            steps.step();
            async move {
                let reply = answer(&app, request, peer.ip(), &last_token).await;
                steps.step();
                Ok::<_, Infallible>(reply)
            }
        });
        if let Some(tls) = tls.clone() {
            let (watcher, builder, heads) = (graceful.watcher(), builder.clone(), heads.clone());
            tokio::spawn(async move {
                // A client that fails the handshake holds only its slot, and only until a timeout.
                if let Some(stream) = tls.accept(stream).await {
                    let stream =
                        Patient::new(StrictLines::new(TokioIo::new(stream), heads), patience, progress);
                    let _ = watcher.watch(builder.serve_connection(stream, service)).await;
                }
                drop(slot);
            });
            continue;
        }
        let stream = Patient::new(StrictLines::new(TokioIo::new(stream), heads.clone()), patience, progress);
        let connection = graceful.watch(builder.serve_connection(stream, service));
        tokio::spawn(async move {
            // An error concerns only the client of this connection.
            let _ = connection.await;
            drop(slot);
        });
    }
    graceful
}

/// Answers one request. The response and the log lines written meanwhile carry the id of the request.
pub(crate) async fn answer(
    app: &App,
    request: Request<Incoming>,
    peer: IpAddr,
    last_token: &LastToken,
) -> Reply {
    let id = RequestId::of(request.headers());
    let header = id.header();
    let answering = pin!(logged_answer(app, request, peer, last_token));
    let mut reply = id.scope(answering).await;
    reply.headers_mut().insert(request_id::HEADER, header);
    reply
}

/// Answers one request and logs it: a failure of the server as a warning, everything else at debug level.
async fn logged_answer(app: &App, request: Request<Incoming>, peer: IpAddr, last_token: &LastToken) -> Reply {
    let began = Instant::now();
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let reply = unlogged_answer(app, request, peer, last_token).await;
    let code = reply.extensions().get::<RefusalCode>().copied();
    app.refusals().count(reply.status().as_u16(), code);
    let level = if reply.status().is_server_error() { Level::Warning } else { Level::Debug };
    if !log::is_written(level) {
        return reply;
    }
    // Queries to the authorization server often contain secrets, so only their path is logged.
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

/// Finds the route of a request, checks the request against it, runs the operation and makes the response.
async fn unlogged_answer(
    app: &App,
    request: Request<Incoming>,
    peer: IpAddr,
    last_token: &LastToken,
) -> Reply {
    let (parts, incoming) = request.into_parts();
    // `None` once the body was read, or handed to an operation that reads it as a stream.
    let mut incoming = Some(incoming);
    if parts.method == Method::OPTIONS && parts.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
        return preflight(app, &parts);
    }
    let mut profile = app.settings().profile.unwrap_or(Profile::Ledger);
    let (mut mount, mut changes_nothing, mut body_failed) = (None, false, false);
    let mut routed = async || -> Result<Reply, ApiError> {
        request::check_head(&parts)?;
        let segments = request::segments(parts.uri.path())?;
        let enabled = Parts {
            exporters: app.settings().experimental_exporters,
            authorization: app.authority().is_some(),
        };
        let found = routing::find(parts.method.as_str(), &segments, enabled);
        if let Match::Found { route, profile: of_mount, .. } = &found {
            (profile, mount) = (app.settings().profile.unwrap_or(*of_mount), Some(route.mount));
        }
        request::check_host(&parts)?;
        if let Some(gate) = app.gate() {
            gate.check(&parts)?;
        }
        let (route, variables) = match found {
            Match::Found { route, variables, .. } => (route, variables),
            Match::WrongMethod(allow) => return Ok(response::method_not_allowed(&allow)),
            Match::NoSuchPath(text) => return Ok(response::no_such_path(text)),
        };
        let pass = match app.guard() {
            None => None,
            Some(guard) => {
                match guard.admit(&parts.headers, last_token, route.mount.service(), route.scope).await {
                    Admission::Open => None,
                    Admission::By(pass) => Some(pass),
                    Admission::Refused => return Ok(response::unauthorized()),
                }
            }
        };
        if app.settings().read_only && route.may_write() {
            return Err(ApiError::new(Code::ReadOnly, "Read only mode"));
        }
        changes_nothing = !route.may_write() || route.operation == Operation::V2(V2::RunQuery);
        let (body, stream) = match incoming.take() {
            Some(incoming) if route.body_limit != STREAM => {
                let read = request::body(incoming, &parts.headers, route.body_limit, app.memory()).await;
                body_failed = read.is_err();
                (read?, None)
            }
            stream => (ReadBody::default(), stream),
        };
        let is_large = body.bytes.len() > UNCOUNTED_BYTES_MAX;
        let _work = if is_large { Some(app.memory().request(body.bytes.len()).await?) } else { None };
        let query = Query::of(&parts.uri);
        let target = parts.uri.path_and_query().map_or("", |target| target.as_str());
        let call = Call {
            app,
            profile,
            variables,
            query,
            target,
            peer,
            pass,
            headers: &parts.headers,
            body: body.bytes.clone(),
            stream: Mutex::new(stream),
        };
        operate(route.operation, &call).await
    };
    let answered = routed().await;
    let refuse = |error: ApiError| match mount {
        Some(Mount::LedgerV1) => ledger_v1::refusal(&error),
        Some(Mount::Generic) => generic::refusal(&error),
        _ => response::refusal(&error, profile),
    };
    let mut reply = answered.unwrap_or_else(refuse);
    match hold_answer(app, &mut reply, changes_nothing).await {
        Ok(()) => {}
        Err(error) => reply = refuse(error),
    }
    if let Some(unread) = incoming {
        request::leave_body(unread, &parts.headers).await;
    }
    if body_failed || breaks_framing(reply.status()) {
        response::close_after(&mut reply);
    }
    allow_origin(app, &parts.headers, &mut reply);
    reply
}

/// Reserves memory for a large response until the client has read it. After a change, which is already recorded, the
/// response is sent even without memory.
///
/// # Errors
///
/// 503 if there is no memory.
async fn hold_answer(app: &App, reply: &mut Reply, changes_nothing: bool) -> Result<(), ApiError> {
    let bytes = reply.body().len();
    if bytes > UNCOUNTED_BYTES_MAX {
        let memory = app.memory();
        let held =
            if changes_nothing { memory.answer(bytes).await? } else { memory.answers.take_anyway(bytes) };
        reply.body_mut().hold(held);
    }
    Ok(())
}

/// Answers a CORS preflight request.
fn preflight(app: &App, parts: &Head) -> Reply {
    let host = request::check_host(parts);
    let refused = host.and_then(|()| app.gate().map_or(Ok(()), |gate| gate.check(parts))).err();
    if let Some(error) = refused {
        return response::refusal(&error, app.settings().profile.unwrap_or(Profile::Ledger));
    }
    let mut reply = response::preflight(&parts.headers);
    allow_origin(app, &parts.headers, &mut reply);
    reply
}

/// Lets a web page of another origin read the response. With tokens any page may: only those with a token get data.
fn allow_origin(app: &App, request: &HeaderMap, reply: &mut Reply) {
    let allowed = match app.gate() {
        None => request.get(ORIGIN).map(|_| HeaderValue::from_static("*")),
        Some(gate) => gate.listed_origin(request).cloned(),
    };
    if let Some(origin) = allowed {
        response::allow_origin(origin, reply);
    }
}

/// Runs the operation of a route.
async fn operate(operation: Operation, call: &Call<'_>) -> Result<Reply, ApiError> {
    match operation {
        Operation::V1(operation) => Ok(ledger_v1::answer(operation, call).await),
        Operation::V2(operation) => ledger_v2::answer(operation, call).await,
        Operation::Auth(operation) => auth::answer(operation, call).await,
        Operation::Payments(operation) => payments::answer(operation, call).await,
        Operation::Generic(operation) => generic::answer(operation, call).await,
        Operation::Info(form) => service::info(call, form).await,
        Operation::Health(form) => Ok(service::health(call, form).await),
        Operation::Versions => Ok(service::versions(call)),
        Operation::Document(form) => Ok(openapi::answer(call, form)),
    }
}

/// Whether a response with this status may leave a part of the request unread, so that the connection must end.
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
