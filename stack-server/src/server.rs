//! The listener, its connections and how they end.

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

pub(crate) use self::respond::answer;
use crate::api::app::App;
use crate::auth::authority::Authority;
use crate::auth::guard::{AuthSettings, Guard, LastToken};
use crate::auth::housekeeping::Housekeeping;
use crate::connectors::engine::Worker as ConnectorWorker;
use crate::descriptors;
use crate::http::connection::{Patience, Patient, Progress};
use crate::http::slots::Slots;
use crate::http::strict_lines::StrictLines;
use crate::http::tls::Tls;
use crate::integrations::cleanup::Cleanup;
use crate::integrations::pipelines::Worker;
use crate::integrations::pipelines::exporter::Allowed;
use crate::limits::{
    ACCEPT_PAUSE, DRAIN_TIMEOUT, HEAD_BUFFER_BYTES, HEADER_READ_TIMEOUT, HTTP_THREADS_MAX, IDLE_TIMEOUT,
    WRITE_BYTES_MIN, WRITE_STALL_TIMEOUT,
};
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

/// Ends the patience of a server that stops.
#[derive(Clone, Debug)]
pub struct Hurry(watch::Sender<bool>);

impl Hurry {
    /// From now on [`Server::stop`] waits for no request. What was handed to the store is still recorded.
    pub fn up(&self) {
        self.0.send_replace(true);
    }
}

impl Server {
    /// Begins to answer the connections of `listener` from `store`, whoever asks.
    ///
    /// # Errors
    ///
    /// If the operating system refuses threads, timers or the listener; of kind `InvalidInput` if a file for TLS is
    /// not what it should be.
    pub fn start(store: &Store, settings: Settings, listener: TcpListener) -> io::Result<Self> {
        Self::run(store, settings, None, listener)
    }

    /// As [`Server::start`], but only for those whose tokens allow what they ask for.
    ///
    /// # Errors
    ///
    /// As [`Server::start`]; of kind `InvalidInput` if an issuer is no address.
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
        let allowed = allowed(&settings, address, guard.is_some());
        let app =
            App::new(store.clone(), settings, guard, address, authority, stopped.clone(), allowed.clone());
        let runs_pipelines = app.settings().experimental_exporters && app.settings().worker;
        let worker =
            runs_pipelines.then(|| Worker::start(store, app.settings(), allowed, app.pipelines().clone()));
        let worker = worker.transpose()?;
        // Whoever asks for a server that only reads does not want its data removed.
        let cleans_up = app.settings().worker && !app.settings().read_only;
        let cleanup = cleans_up.then(|| Cleanup::start(store, app.settings(), app.pipelines().clone()));
        let cleanup = cleanup.transpose()?;
        let keeps_house = app.authority().filter(|_| !app.settings().read_only).cloned();
        let housekeeping = keeps_house.map(Housekeeping::start).transpose()?;
        let tls = app.settings().tls.clone().map(Tls::new).transpose();
        let tls = tls.map_err(invalid)?.map(Arc::new);
        app.connectors().check_key().map_err(invalid)?;
        let connectors = cleans_up.then(|| ConnectorWorker::start(app.connectors().clone())).transpose()?;
        let slots = Slots::new(descriptors::limit(), app.settings().behind_proxy);
        let connections = slots.max();
        let mut threads = Vec::new();
        for number in 0..app.settings().http_threads.clamp(1, HTTP_THREADS_MAX) {
            // One current-thread runtime each: a connection stays on its thread, and nothing is stolen.
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

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Maximum number of connections that it has open at once.
    pub fn connections_max(&self) -> usize {
        self.connections
    }

    /// The handle that ends the waiting of [`Server::stop`].
    pub fn hurry(&self) -> Hurry {
        self.hurry.clone()
    }

    /// Accepts no more connections, lets requests in flight finish for at most ten seconds, and returns. The
    /// store is left open.
    pub fn stop(self) {
        // Without receivers every thread has ended already.
        let _ = self.stop.send(true);
        for thread in self.threads {
            // A thread that panicked has told so itself.
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

/// The addresses and folders that callers may have the server reach. Whoever can reach more than those that it serves
/// must not be led there by them.
fn allowed(settings: &Settings, address: SocketAddr, is_guarded: bool) -> Allowed {
    let is_for_its_machine = address.ip().is_loopback() && !is_guarded && !settings.behind_proxy;
    let own_machine = if is_for_its_machine { Outbound::Any } else { Outbound::Public };
    Allowed {
        outbound: settings.outbound.unwrap_or(own_machine),
        folder: settings.exporters_directory.clone(),
    }
}

/// The authorization server that the settings ask for.
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

/// Lets requests in flight finish, within bounds.
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

/// How long connections wait for their clients.
const PATIENCE: Patience =
    Patience { head: HEADER_READ_TIMEOUT, write: WRITE_STALL_TIMEOUT, write_bytes: WRITE_BYTES_MIN };

/// Accepts connections until the server stops; what is returned knows those that are left.
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
    // At most 100 header lines, which is the default; to say so would cost an allocation per request.
    let mut builder = http1::Builder::new();
    // This one runs from the end of the last answer; a head that has begun has less time, see `connection.rs`.
    builder.timer(TokioTimer::new()).header_read_timeout(IDLE_TIMEOUT).max_buf_size(HEAD_BUFFER_BYTES);
    let heads = app.memory().heads.clone();
    loop {
        let next = async {
            let slot = slots.free().await;
            (slot, listener.accept().await)
        };
        let (slot, accepted) = tokio::select! {
            biased;
            // An error means that the server was dropped: it goes on.
            Ok(()) = stopped.changed() => break,
            next = next => next,
        };
        let Ok((stream, peer)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let Some(slot) = slots.give(slot, peer.ip()) else { continue };
        // Answers are written whole, so waiting for more only adds delay. A peer that is gone is noticed later.
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
                // One that does not speak it has only its slot, and that not for long.
                if let Some(stream) = tls.accept(stream).await {
                    let stream =
                        Patient::new(StrictLines::new(TokioIo::new(stream), heads), PATIENCE, progress);
                    let _ = watcher.watch(builder.serve_connection(stream, service)).await;
                }
                drop(slot);
            });
            continue;
        }
        let stream = Patient::new(StrictLines::new(TokioIo::new(stream), heads.clone()), PATIENCE, progress);
        let connection = graceful.watch(builder.serve_connection(stream, service));
        tokio::spawn(async move {
            // What a client did to its own connection is nobody else's concern.
            let _ = connection.await;
            drop(slot);
        });
    }
    graceful
}
