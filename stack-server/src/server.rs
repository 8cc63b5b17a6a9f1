//! The HTTP server: its listener, its connections, and the path of a request to its response.

pub(crate) mod large;
pub(crate) mod placement;
mod respond;

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use ledger_store::Store;
use tokio::sync::watch;

use self::large::LargeRequests;
use self::placement::Threads;
pub(crate) use self::respond::{Connection, answer};
use crate::api::app::App;
use crate::auth::authority::{Authority, AuthorityError};
use crate::auth::guard::{AuthSettings, Guard, LastToken};
use crate::auth::housekeeping;
use crate::background::BackgroundThread;
use crate::connectors::engine::Worker as ConnectorWorker;
use crate::descriptors;
use crate::http::connection::{ClientTimeouts, Progress, TimedStream, limit_unsent};
use crate::http::memory::Pool;
use crate::http::slots::Slots;
use crate::http::strict_lines::StrictLines;
use crate::http::tls::Tls;
use crate::integrations::cleanup;
use crate::integrations::pipelines::Worker;
use crate::integrations::pipelines::exporter::ExporterPolicy;
use crate::limits::{
    ACCEPT_PAUSE, DRAIN_TIMEOUT, HEAD_BUFFER_BYTES, HEADER_READ_TIMEOUT, HTTP_THREADS_MAX, IDLE_TIMEOUT,
    WRITE_BYTES_MIN, WRITE_STALL_TIMEOUT,
};
use crate::outbound::OutboundPolicy;
use crate::settings::Settings;

/// A running server.
///
/// The server runs until [`Server::stop`]. If it is dropped, it runs until the process ends.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    shutdown: ShutdownHandle,
    threads: Vec<JoinHandle<()>>,
    connections: usize,
    worker: Option<Worker>,
    cleanup: Option<BackgroundThread>,
    housekeeping: Option<BackgroundThread>,
    connectors: Option<ConnectorWorker>,
}

/// A handle that ends the waiting of [`Server::stop`] for requests in flight.
#[derive(Clone, Debug)]
pub struct ShutdownHandle(watch::Sender<bool>);

impl ShutdownHandle {
    /// Ends the waiting of [`Server::stop`] for requests in flight. The store still records the writes that it has
    /// received.
    pub fn stop_waiting(&self) {
        self.0.send_replace(true);
    }
}

/// The parts that all HTTP threads share.
#[derive(Clone)]
struct HttpThread {
    app: App,
    tls: Option<Arc<Tls>>,
    slots: Slots,
    stopped: watch::Receiver<bool>,
    waiting_ended: watch::Receiver<bool>,
}

impl HttpThread {
    /// Starts an HTTP thread with its own runtime, and a thread for its large requests. A connection stays on these two
    /// threads, and no thread steals work. The first thread also logs the counts of refusals.
    fn start(self, number: usize, listener: TcpListener) -> io::Result<JoinHandle<()>> {
        let Self { app, tls, slots, stopped, waiting_ended } = self;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (large, large_thread) = LargeRequests::start(number)?;
        let thread = std::thread::Builder::new().name(format!("http-{number}"));
        thread.spawn(move || {
            runtime.block_on(async {
                let reporter = (number == 0).then(|| app.clone());
                if let Some(app) = reporter.clone() {
                    tokio::spawn(async move { app.refusals().report().await });
                }
                let threads = Threads::of_this(large);
                let graceful = accept(app, tls, slots, threads, listener, stopped).await;
                drain(graceful, waiting_ended).await;
                if let Some(app) = reporter {
                    app.refusals().log_counts();
                }
            });
            large_thread.end();
        })
    }
}

impl Server {
    /// Starts a server that requires no tokens. It accepts connections from `listener`, and uses the data in `store`.
    ///
    /// # Errors
    ///
    /// Fails if the operating system refuses threads, timers or the listener. Fails with the kind `InvalidInput` if a
    /// setting or a TLS file is not valid.
    pub fn start(store: &Store, settings: Settings, listener: TcpListener) -> io::Result<Self> {
        Self::run(store, settings, None, listener)
    }

    /// Starts a server like [`Server::start`], but one that requires a token that allows the request.
    ///
    /// # Errors
    ///
    /// Fails like [`Server::start`], and with the kind `InvalidInput` if an issuer is not a URL.
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
        let authority = new_authority(store, &settings, address).map_err(invalid_input)?;
        let guard = auth.map(|auth| Guard::new(auth, store, authority.as_ref())).transpose();
        let guard = guard.map_err(invalid_input)?;
        listener.set_nonblocking(true)?;
        limit_unsent(&listener);
        let (stop, stopped) = watch::channel(false);
        let (end_waiting, waiting_ended) = watch::channel(false);
        let policy = exporter_policy(&settings, address, guard.is_some());
        let app =
            App::new(store.clone(), settings, guard, address, authority, stopped.clone(), policy.clone());
        let runs_pipelines = app.settings().experimental_exporters && app.settings().worker;
        let worker =
            runs_pipelines.then(|| Worker::start(store, app.settings(), policy, app.pipelines().clone()));
        let worker = worker.transpose()?;
        // A read-only server removes no buckets and runs no connectors.
        let may_write = app.settings().worker && !app.settings().read_only;
        let cleanup = may_write.then(|| cleanup::start(store, app.settings(), app.pipelines().clone()));
        let cleanup = cleanup.transpose()?;
        let authority_to_sweep = app.authority().filter(|_| !app.settings().read_only).cloned();
        let housekeeping = authority_to_sweep.map(housekeeping::start).transpose()?;
        let tls = app.settings().tls.clone().map(Tls::new).transpose();
        let tls = tls.map_err(invalid_input)?.map(Arc::new);
        app.connectors().check_key().map_err(invalid_input)?;
        if may_write {
            app.connectors().reseal().map_err(|error| invalid_input(error.reason()))?;
        }
        let connectors = may_write.then(|| ConnectorWorker::start(app.connectors().clone())).transpose()?;
        let slots = Slots::new(descriptors::limit(), app.settings().behind_proxy);
        let connections = slots.max();
        let shared = HttpThread { app, tls, slots, stopped, waiting_ended };
        let threads = 0..shared.app.settings().http_threads.clamp(1, HTTP_THREADS_MAX);
        let threads = threads.map(|number| shared.clone().start(number, listener.try_clone()?));
        let threads = threads.collect::<io::Result<_>>()?;
        // Each thread listens on its own handle. The port becomes free when the last thread ends.
        drop(listener);
        Ok(Self {
            address,
            stop,
            shutdown: ShutdownHandle(end_waiting),
            threads,
            connections,
            worker,
            cleanup,
            housekeeping,
            connectors,
        })
    }

    /// Returns the address on which the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the maximum number of open connections.
    pub fn connections_max(&self) -> usize {
        self.connections
    }

    /// Returns a handle that ends the waiting of [`Server::stop`].
    pub fn shutdown_handle(&self) -> ShutdownHandle {
        self.shutdown.clone()
    }

    /// Stops accepting connections, and waits at most ten seconds for requests in flight. Leaves the store open.
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

/// Returns the addresses and folders that callers can make the server reach. Clients on other machines must not make
/// the server send requests into its own network.
fn exporter_policy(settings: &Settings, address: SocketAddr, is_guarded: bool) -> ExporterPolicy {
    let is_local_only = address.ip().is_loopback() && !is_guarded && !settings.behind_proxy;
    let default_outbound = if is_local_only { OutboundPolicy::Any } else { OutboundPolicy::Public };
    ExporterPolicy {
        outbound: settings.outbound.unwrap_or(default_outbound),
        folder: settings.exporters_directory.clone(),
    }
}

/// Returns the error of a server that does not start because of a setting.
fn invalid_input(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}

/// Creates the authorization server if the settings contain one.
fn new_authority(
    store: &Store,
    settings: &Settings,
    address: SocketAddr,
) -> Result<Option<Arc<Authority>>, AuthorityError> {
    let Some(wanted) = settings.authorization.clone() else { return Ok(None) };
    let scheme = if settings.tls.is_some() { "https" } else { "http" };
    let authority = Authority::new(store, wanted, &format!("{scheme}://{address}"))?;
    Ok(Some(Arc::new(authority)))
}

/// Waits until the requests in flight finish, until [`DRAIN_TIMEOUT`] has passed, or for
/// [`ShutdownHandle::stop_waiting`].
async fn drain(graceful: GracefulShutdown, mut waiting_ended: watch::Receiver<bool>) {
    let waiting_ended = async {
        // An error means that no handle is left.
        if waiting_ended.wait_for(|has_ended| *has_ended).await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = graceful.shutdown() => {}
        () = tokio::time::sleep(DRAIN_TIMEOUT) => {}
        () = waiting_ended => {}
    }
}

/// Maximum times that connections wait for their clients.
const CLIENT_TIMEOUTS: ClientTimeouts =
    ClientTimeouts { head: HEADER_READ_TIMEOUT, write: WRITE_STALL_TIMEOUT, write_bytes: WRITE_BYTES_MIN };

/// Wraps the stream of a connection. The wrapped stream ends if its client is too slow or sends a malformed head.
fn guarded<S>(stream: S, heads: Pool, progress: Progress) -> TimedStream<StrictLines<TokioIo<S>>> {
    TimedStream::new(StrictLines::new(TokioIo::new(stream), heads), CLIENT_TIMEOUTS, progress)
}

/// Returns the settings of connections.
fn connection_builder() -> http1::Builder {
    // hyper's default allows 100 header lines. Setting this limit would cost an allocation per request.
    let mut builder = http1::Builder::new();
    // hyper counts this timeout from the end of the last response. `TimedStream` limits the time of a begun head.
    builder.timer(TokioTimer::new()).header_read_timeout(IDLE_TIMEOUT).max_buf_size(HEAD_BUFFER_BYTES);
    builder
}

/// Accepts connections until the server stops. Returns the handle that waits for the connections that are still open.
async fn accept(
    app: App,
    tls: Option<Arc<Tls>>,
    slots: Slots,
    threads: Threads,
    listener: TcpListener,
    mut stopped: watch::Receiver<bool>,
) -> GracefulShutdown {
    let listener = tokio::net::TcpListener::from_std(listener)
        .expect("the listener is non-blocking and the runtime has its I/O driver");
    let graceful = GracefulShutdown::new();
    let builder = connection_builder();
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
        // Each response is written as a whole. Waiting for more data only adds delay. Later reads report any error.
        let _ = stream.set_nodelay(true);
        let (app, placement) = (app.clone(), threads.placement());
        let (progress, last_token) = (Progress::default(), Arc::new(LastToken::default()));
        let (steps, asked) = (progress.clone(), placement.clone());
        let service = service_fn(move |request| {
            let (app, placement) = (app.clone(), asked.clone());
            let (steps, last_token) = (steps.clone(), last_token.clone());
            steps.step();
            async move {
                let from = Connection { peer: peer.ip(), last_token: &last_token, placement: &placement };
                let reply = answer(&app, request, from).await;
                steps.step();
                Ok::<_, Infallible>(reply)
            }
        });
        let (tls, watcher, builder, heads) =
            (tls.clone(), graceful.watcher(), builder.clone(), heads.clone());
        let serving = async move {
            // An error concerns only the client of this connection.
            let _ = match tls {
                None => {
                    let stream = guarded(stream, heads, progress);
                    watcher.watch(builder.serve_connection(stream, service)).await
                }
                // A client that fails the handshake only occupies its slot, and only until a timeout.
                Some(tls) => match tls.accept(stream).await {
                    Some(stream) => {
                        let stream = guarded(stream, heads, progress);
                        watcher.watch(builder.serve_connection(stream, service)).await
                    }
                    None => Ok(()),
                },
            };
            drop(slot);
        };
        threads.serve(serving, placement);
    }
    graceful
}
