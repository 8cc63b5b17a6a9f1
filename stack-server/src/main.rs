//! The server binary.

use std::ffi::OsString;
use std::fmt::Display;
use std::net::TcpListener;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use ledger_store::{IndexEvent, Options, ReadError, Store, VerifyReport, Violation, ViolationCode};
use stack_server::cli::auth::{self, Failure};
use stack_server::cli::config::{self, Config, Invocation, KeptHead};
use stack_server::cli::copies::{self, Verb};
use stack_server::descriptors;
use stack_server::log::{self, Level};
use stack_server::{Publishers, Server};

// Requests allocate on HTTP threads and free on the writer's, which the system's allocator does slowly.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match config::parse(std::env::args_os().skip(1), |name| std::env::var(name).ok()) {
        Ok(Invocation::Serve(config)) => serve(&config),
        Ok(Invocation::Worker) => stand_by(),
        Ok(Invocation::Verify(directory, kept)) => verify(&directory, kept.as_ref()),
        Ok(Invocation::Script(arguments)) => ledger_numscript::cli::main("stack-server script", arguments),
        Ok(Invocation::Auth(arguments)) => auth(arguments),
        Ok(Invocation::Copy(verb, arguments)) => copy(verb, arguments),
        Ok(Invocation::Version) => {
            println!("stack-server {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        Ok(Invocation::Help) => {
            print!("{}", config::help());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("stack-server: {error}");
            ExitCode::from(2)
        }
    }
}

fn serve(config: &Config) -> ExitCode {
    log::configure(config.log_format, config.log_level);
    match run(config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            log::event(Level::Error, "fault", &[("reason", &reason)]);
            ExitCode::FAILURE
        }
    }
}

/// Why nothing listens for a worker, and a worker has nothing to do.
const WORKER_REASON: &str =
    "pipelines run and deleted buckets are removed in the server itself; no worker is needed";

/// Says that there is nothing to do, and stays until a signal: a process that ended would be started again.
fn stand_by() -> ExitCode {
    log::event(Level::Info, "worker", &[("reason", &WORKER_REASON)]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let waited = runtime.and_then(|runtime| {
        runtime.block_on(async {
            let name = Signals::new()?.received().await;
            log::event(Level::Info, "stop", &[("signal", &name)]);
            Ok(())
        })
    });
    match waited {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log::event(Level::Error, "fault", &[("reason", &error)]);
            ExitCode::FAILURE
        }
    }
}

/// Serves until a signal, then lets requests in flight finish and closes the store.
fn run(config: &Config) -> Result<(), String> {
    descriptors::raise_limit();
    // Signals are taken before anything is opened: one that comes early still ends in an orderly stop.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("starting: {error}"))?;
    let mut signals =
        runtime.block_on(async { Signals::new() }).map_err(|error| format!("signals: {error}"))?;
    // The address is taken before the store is opened, so that a second server fails before it waits.
    let listener = TcpListener::bind(config.listen)
        .map_err(|error| format!("listening on {}: {error}", config.listen))?;
    if let Some(refusal) = refusal_of_directory(config) {
        return Err(refusal);
    }
    let opening = Instant::now();
    let mut options = Options::default();
    options.memory_budget = config.store_memory();
    options.schema_enforcement = config.settings.schema_enforcement;
    options.free_space_floor = config.free_space_floor;
    let store = Store::open_with(&config.data, &options)
        .map_err(|error| format!("opening {}: {error}", config.data.display()))?;
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
    if let Some(reason) = config.token_warning() {
        log::event(Level::Warning, "tokens", &[("reason", &reason)]);
    }
    if config.names_worker {
        log::event(Level::Info, "worker", &[("reason", &WORKER_REASON)]);
    }
    if !config.ignored.is_empty() {
        log::event(Level::Warning, "ignored", &[("settings", &config.ignored.join(", "))]);
    }
    // Before anything can be written: a new publisher misses nothing.
    let publishers = Publishers::start(&store, &config.publishing)
        .map_err(|error| format!("publishing events: {error}"))?;
    let mut settings = config.settings.clone();
    settings.payment_publishers = config.publishing.publishers();
    let server = if config.auth_enabled {
        Server::start_guarded(&store, settings, &config.auth, listener)
    } else {
        Server::start(&store, settings, listener)
    };
    let server = server.map_err(|error| format!("starting to serve: {error}"))?;
    let scheme = if config.settings.tls.is_some() { "https" } else { "http" };
    println!("listening on {scheme}://{}", server.address());
    let head = head_of(&store);
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
    let ended = runtime.block_on(async {
        tokio::select! {
            name = signals.received() => Ok(name),
            reason = stopped_writing(&store) => Err(reason),
        }
    });
    let hurry = server.hurry();
    // Ends with the process, if nobody is in a hurry.
    std::thread::spawn(move || {
        runtime.block_on(signals.received());
        hurry.up();
    });
    server.stop();
    publishers.stop();
    // Only the next start tells what is on disk: a supervisor is to start the server again.
    let name = ended.map_err(|reason| format!("writing has stopped: {reason}"))?;
    store.close().map_err(|error| format!("closing the store: {error}"))?;
    log::event(Level::Info, "stop", &[("signal", &name), ("head", &head_of(&store))]);
    Ok(())
}

/// Says in the log what happens to the index of a store.
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

/// Why a store takes no more writes, once that is so.
async fn stopped_writing(store: &Store) -> String {
    let (tell, told) = tokio::sync::oneshot::channel();
    let store = store.clone();
    std::thread::spawn(move || {
        if let Some(reason) = store.wait_until_stopped() {
            // Nobody is told once a signal has come first.
            let _ = tell.send(reason);
        }
    });
    match told.await {
        Ok(reason) => reason,
        Err(_) => std::future::pending().await,
    }
}

/// Where the journal of a store ends, for whoever keeps it to compare history with later.
fn head_of(store: &Store) -> String {
    let status = store.status();
    format!("{}:{}", status.entries, status.chain)
}

/// Refuses a data directory whose mode lets its group or everybody change it, unless the operator allows that: they can
/// replace the files in it, although these are for their owner alone. A directory that is absent is made for its owner.
fn refusal_of_directory(config: &Config) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let is_shared = std::fs::metadata(&config.data).is_ok_and(|found| found.mode() & 0o022 != 0);
    let data = config.data.display();
    if !is_shared {
        return None;
    }
    if !config.allow_shared_directory {
        return Some(format!(
            "others may write into {data} and replace what is in it: make it the owner's alone (chmod go-w), or pass \
             --allow-shared-directory"
        ));
    }
    let reason = "others may write into the data directory: they can replace what is in it";
    log::event(Level::Warning, "exposed", &[("data", &data), ("reason", &reason)]);
    None
}

/// The signals that end the server.
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
}

/// The signal of a write beyond the limit for files, with this number on every system of Rust but MIPS.
const SIGXFSZ: i32 = 25;

impl Signals {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        // Once it is taken it kills nobody, and the write fails as one does on a full disk.
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

/// Exit status: 0 it is done, 1 it is not, 2 the command line makes no sense.
fn auth(arguments: Vec<OsString>) -> ExitCode {
    match auth::main(arguments, |name| std::env::var(name).ok(), &mut std::io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Misused(reason)) => {
            eprintln!("stack-server auth: {reason}");
            ExitCode::from(2)
        }
        Err(Failure::Failed(reason)) => {
            eprintln!("stack-server auth: {reason}");
            ExitCode::FAILURE
        }
    }
}

/// Exit status: 0 it is done, 1 it is not, 2 the command line makes no sense.
fn copy(verb: Verb, arguments: Vec<OsString>) -> ExitCode {
    match copies::main(verb, arguments, std::io::stdin().lock(), std::io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("stack-server: {error}");
            if error.is_usage() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

/// Reports whether the first entries of a store have the hash that was kept.
fn compare(store: &Store, kept: &KeptHead, report: &mut VerifyReport) {
    let (code, detail) = match store.chain_at(kept.entries) {
        Ok(Some(hash)) if hash == kept.hash => return,
        Ok(Some(hash)) => {
            let detail = format!("history was rewritten: the hash was {}, now it is {hash}", kept.hash);
            (ViolationCode::HeadMismatch, detail)
        }
        Ok(None) => {
            (ViolationCode::HeadMismatch, format!("the hash was {}, now no commit ends here", kept.hash))
        }
        Err(ReadError::Io { reason }) => {
            report.complete = false;
            (ViolationCode::StorageError, reason)
        }
        Err(error) => (ViolationCode::HeadMismatch, error.to_string()),
    };
    report.violations.push(Violation { code, ledger: None, position: Some(kept.entries), detail });
}

/// Prints a JSON line for each finding and one that sums up. Exit status: 0 all is well, 1 something that is stored is
/// not, 2 not everything could be looked at, for example since the disk refused, 3 the store cannot be opened.
fn verify(directory: &Path, kept: Option<&KeptHead>) -> ExitCode {
    if !directory.join("MANIFEST").exists() {
        // Opening would make a store of it.
        eprintln!("stack-server: {} is not a store", directory.display());
        return ExitCode::from(3);
    }
    let verified = Store::open(directory).map_err(|error| error.to_string()).and_then(|store| {
        let mut report = store.verify().map_err(|error| error.to_string())?;
        if let Some(kept) = kept {
            compare(&store, kept, &mut report);
        }
        Ok(report)
    });
    match verified {
        Ok(report) => {
            print!("{}", report.to_json_lines());
            match (report.is_damaged(), report.complete) {
                (false, true) => ExitCode::SUCCESS,
                (true, _) => ExitCode::from(1),
                (false, false) => ExitCode::from(2),
            }
        }
        Err(reason) => {
            eprintln!("stack-server: {}: {reason}", directory.display());
            ExitCode::from(3)
        }
    }
}
