//! `stack-server serve` and `stack-server worker`: starts a server from a configuration, and stops it at a signal.

use std::fmt::{self, Display};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use ledger_store::{IndexEvent, OpenError, Options, ProgressWatcher, Store, WriteError};
use tokio::runtime::Runtime;

use crate::cli::config::Config;
use crate::cli::directory::{self, SharedDirectory};
use crate::cli::exit::Exit;
use crate::cli::progress::{Interval, LINE_INTERVAL, SharedMeter};
use crate::descriptors;
use crate::integrations::events::{Publishers, PublishersError};
use crate::log::{self, Level};
use crate::server::Server;

/// The reason why a server did not start, or did not stop in order.
#[derive(Debug)]
enum ServeError {
    /// The operating system refused a resource, such as timers or signals.
    System(std::io::Error),
    /// The server cannot listen on the address.
    Listen(SocketAddr, std::io::Error),
    /// Other users can write into the data directory.
    Shared(SharedDirectory),
    /// The store cannot be opened.
    Open(PathBuf, OpenError),
    /// Events cannot be published.
    Publishing(PublishersError),
    /// The HTTP server cannot start.
    Start(std::io::Error),
    /// The store accepts no more writes. Only the next start can find out which bytes are on disk, so a supervisor
    /// should restart the server.
    WritingStopped(String),
    /// Closing the store failed.
    Close(WriteError),
}

impl Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(error) => write!(f, "starting: {error}"),
            Self::Listen(address, error) => write!(f, "listening on {address}: {error}"),
            Self::Shared(error) => error.fmt(f),
            Self::Open(data, error) => write!(f, "opening {}: {error}", data.display()),
            Self::Publishing(reason) => write!(f, "publishing events: {reason}"),
            Self::Start(error) => write!(f, "starting to serve: {error}"),
            Self::WritingStopped(reason) => write!(f, "writing has stopped: {reason}"),
            Self::Close(error) => write!(f, "closing the store: {error}"),
        }
    }
}

/// Serves until a signal.
pub fn serve(config: &Config) -> Exit {
    log::configure(config.log_format, config.log_level);
    match run(config) {
        Ok(()) => Exit::Done,
        Err(error) => {
            log::event(Level::Error, "fault", &[("reason", &error)]);
            Exit::Failed
        }
    }
}

/// The logged reason why a separate worker has nothing to do.
const WORKER_REASON: &str =
    "pipelines run and deleted buckets are removed in the server itself; no worker is needed";

/// Logs that a worker has nothing to do, and waits for a signal, because a supervisor would restart a process that
/// ends. `ignored` contains the given options that have no effect.
pub fn stand_by(ignored: &[String]) -> Exit {
    log::event(Level::Info, "worker", &[("reason", &WORKER_REASON)]);
    log_ignored(ignored);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let waited = runtime.and_then(|runtime| {
        runtime.block_on(async {
            let name = Signals::new()?.received().await;
            log::event(Level::Info, "stop", &[("signal", &name)]);
            Ok(())
        })
    });
    match waited {
        Ok(()) => Exit::Done,
        Err(error) => {
            log::event(Level::Error, "fault", &[("reason", &error)]);
            Exit::Failed
        }
    }
}

/// Serves until a signal, then lets requests in flight finish and closes the store.
fn run(config: &Config) -> Result<(), ServeError> {
    descriptors::raise_limit();
    // Handle signals before anything is opened, so that even an early signal leads to an orderly stop.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ServeError::System)?;
    let signals = runtime.block_on(async { Signals::new() }).map_err(ServeError::System)?;
    // Bind the address before opening the store, so that a second server fails at once instead of waiting for the
    // store.
    let listener =
        TcpListener::bind(config.listen).map_err(|error| ServeError::Listen(config.listen, error))?;
    let store = open_store(config)?;
    log_settings(config);
    // Start the publishers before anything can be written, so that a new publisher misses no event.
    let publishers = Publishers::start(&store, &config.publishing).map_err(ServeError::Publishing)?;
    let server = start(config, &store, listener)?;
    let ended = stop_on_signal(&store, server, runtime, signals);
    publishers.stop();
    let signal = ended?;
    store.close().map_err(ServeError::Close)?;
    log::event(Level::Info, "stop", &[("signal", &signal), ("head", &head_of(&store))]);
    Ok(())
}

/// Returns a watcher that shows progress as a bar while the store opens on a terminal, and else logs it every ten seconds.
/// A bar would spoil the lines of a running server.
fn watched_progress(bar: Arc<Mutex<Option<SharedMeter>>>) -> ProgressWatcher {
    let interval = Mutex::new(Interval::new(LINE_INTERVAL));
    ProgressWatcher::new(move |progress| {
        if let Some(bar) = bar.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            bar.show_store(&progress);
        } else if interval.lock().unwrap_or_else(PoisonError::into_inner).restart_if_passed(Instant::now()) {
            let fields: [(&str, &dyn Display); 3] =
                [("work", &progress.work.text()), ("done", &progress.done), ("total", &progress.total)];
            log::event(Level::Info, "progress", &fields);
        }
    })
}

/// Opens the store and logs its state.
fn open_store(config: &Config) -> Result<Store, ServeError> {
    directory::check(&config.data, config.allow_shared_directory).map_err(ServeError::Shared)?;
    let opening = Instant::now();
    let mut options = Options::default();
    options.memory_budget = config.store_memory();
    options.schema_enforcement = config.settings.schema_enforcement;
    options.free_space_floor = config.free_space_floor;
    let bar = Arc::new(Mutex::new(SharedMeter::on_terminal()));
    options.progress = watched_progress(bar.clone());
    let opened = Store::open_with(&config.data, &options);
    if let Some(bar) = bar.lock().unwrap_or_else(PoisonError::into_inner).take() {
        bar.clear();
    }
    let store = opened.map_err(|error| ServeError::Open(config.data.clone(), error))?;
    let entries = store.status().entries;
    log::event(
        Level::Info,
        "recovery",
        &[
            ("data", &config.data.display()),
            ("entries", &entries),
            ("indexed", &entries.saturating_sub(store.opening().replayed)),
            ("milliseconds", &opening.elapsed().as_millis()),
            ("replayed", &store.opening().replayed),
            ("rebuilt", &store.opening().rebuilt.as_deref().unwrap_or("no")),
        ],
    );
    store.watch_index(log_index_event);
    if let Some(dropped) = store.opening().dropped_tail {
        let reason = if dropped.may_have_been_acknowledged {
            "the machine went down while the end of the journal was written"
        } else {
            "the process ended while the end of the journal was written; nobody was told that it is"
        };
        let (entry, bytes) = (dropped.position, dropped.bytes);
        log::event(
            Level::Warning,
            "torn_tail",
            &[("entry", &entry), ("dropped_bytes", &bytes), ("reason", &reason)],
        );
    }
    Ok(store)
}

/// Logs the settings that the operator may want to change.
fn log_settings(config: &Config) {
    if let Some(reason) = config.token_warning() {
        log::event(Level::Warning, "tokens", &[("reason", &reason)]);
    }
    if config.names_worker {
        log::event(Level::Info, "worker", &[("reason", &WORKER_REASON)]);
    }
    log_ignored(&config.ignored);
}

/// Logs the names of given options that have no effect. Leaves out their values, because some contain passwords.
fn log_ignored(ignored: &[String]) {
    if !ignored.is_empty() {
        log::event(Level::Warning, "ignored", &[("settings", &ignored.join(", "))]);
    }
}

/// Starts the HTTP server, and prints and logs its address.
fn start(config: &Config, store: &Store, listener: TcpListener) -> Result<Server, ServeError> {
    let mut settings = config.settings.clone();
    settings.payment_publishers = config.publishing.publishers();
    let server = if config.auth_enabled {
        Server::start_guarded(store, settings, &config.auth, listener)
    } else {
        Server::start(store, settings, listener)
    };
    let server = server.map_err(ServeError::Start)?;
    let scheme = if config.settings.tls.is_some() { "https" } else { "http" };
    println!("listening on {scheme}://{}", server.address());
    let head = head_of(store);
    log::event(
        Level::Info,
        "start",
        &[
            ("version", &env!("CARGO_PKG_VERSION")),
            ("address", &server.address()),
            ("head", &head),
            ("connections_max", &server.connections_max()),
        ],
    );
    Ok(server)
}

/// Waits for a signal or until the store accepts no more writes, then stops the server. A second signal ends the
/// waiting for requests in flight. Returns the name of the signal.
fn stop_on_signal(
    store: &Store,
    server: Server,
    runtime: Runtime,
    mut signals: Signals,
) -> Result<&'static str, ServeError> {
    let ended = runtime.block_on(async {
        tokio::select! {
            name = signals.received() => Ok(name),
            reason = stopped_writing(store) => Err(ServeError::WritingStopped(reason)),
        }
    });
    let shutdown = server.shutdown_handle();
    // Unless a second signal arrives, this thread waits until the process ends.
    std::thread::spawn(move || {
        runtime.block_on(signals.received());
        shutdown.stop_waiting();
    });
    server.stop();
    ended
}

/// Logs an event of the store's index.
fn log_index_event(event: &IndexEvent) {
    let (level, state, reason) = match event {
        IndexEvent::Rebuilding { reason } => (Level::Error, "rebuilding", reason.as_str()),
        IndexEvent::Rebuilt { reason, took } => {
            let (state, milliseconds) = ("rebuilt", took.as_millis());
            let fields: [(&str, &dyn Display); 3] =
                [("state", &state), ("milliseconds", &milliseconds), ("reason", reason)];
            return log::event(Level::Warning, "index", &fields);
        }
        IndexEvent::RebuildFailed { reason } => (Level::Error, "rebuild_failed", reason.as_str()),
        IndexEvent::Unavailable { reason } => (Level::Error, "unavailable", reason.as_str()),
        _ => (Level::Info, "available", ""),
    };
    log::event(level, "index", &[("state", &state), ("reason", &reason)]);
}

/// Waits until the store accepts no more writes, and returns the reason.
async fn stopped_writing(store: &Store) -> String {
    let (tell, told) = tokio::sync::oneshot::channel();
    let store = store.clone();
    std::thread::spawn(move || {
        if let Some(reason) = store.wait_until_stopped() {
            // An error means that a signal arrived first.
            let _ = tell.send(reason);
        }
    });
    match told.await {
        Ok(reason) => reason,
        Err(_) => std::future::pending().await,
    }
}

/// Returns the end of a journal. An operator can keep it and later check that history was not rewritten.
fn head_of(store: &Store) -> String {
    let status = store.status();
    format!("{}:{}", status.entries, status.chain)
}

/// The signals that end the server.
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
}

/// The signal of a write beyond the limit for file sizes. The number is the same on all platforms of Rust except MIPS.
const SIGXFSZ: i32 = 25;

impl Signals {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        // With a handler, the signal does not end the process, and the write fails like a write to a full disk.
        let _ = signal(SignalKind::from_raw(SIGXFSZ))?;
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn received(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.hangup.recv() => "SIGHUP",
        }
    }
}
