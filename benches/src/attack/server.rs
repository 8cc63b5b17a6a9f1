//! The attacked server, which runs in its own process.

use std::convert::Infallible;
use std::ffi::OsString;
use std::net::TcpListener;
use std::path::Path;

use ledger_store::{Options, Store};
use stack_server::cli::config::{self, Config, Invocation};
use stack_server::{Server, descriptors};

use crate::Failure;
use crate::child::Spawned;
use crate::data_dir::DataDir;

/// A server with a fresh data directory. Dropping this kills it.
pub(super) struct RunningServer {
    pub(super) process: Spawned,
    pub(super) address: String,
    _data: DataDir,
}

impl RunningServer {
    /// Starts a server program, or this program as a server.
    pub(super) fn start(program: Option<&Path>, memory_budget: usize) -> Result<Self, Failure> {
        let data = DataDir::new(None)?;
        let this = std::env::current_exe()?;
        let budget = memory_budget.to_string();
        let fixed = ["serve", "--listen", "127.0.0.1:0", "--memory-budget", &budget, "--data"];
        let arguments = fixed.map(OsString::from).into_iter().chain([data.path().join("store").into()]);
        let (process, address) = Spawned::start_server(program.unwrap_or(&this), arguments)?;
        Ok(Self { process, address, _data: data })
    }
}

fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Config, Failure> {
    match config::parse(arguments, |_| None)? {
        Invocation::Serve(config) => Ok(*config),
        _ => Err("not the command line of a server".into()),
    }
}

/// Returns the part of a memory budget that a server uses for requests and answers.
pub(super) fn http_memory(memory_budget: usize) -> Result<u64, Failure> {
    let arguments = ["serve".into(), "--memory-budget".into(), memory_budget.to_string().into()];
    Ok(parse(arguments)?.settings.http_memory as u64)
}

/// Serves until the process is killed.
///
/// # Errors
///
/// Fails if the server does not start.
pub fn serve(arguments: Vec<OsString>) -> Result<Infallible, Failure> {
    let config = parse(arguments)?;
    descriptors::raise_limit();
    let mut options = Options::default();
    options.memory_budget = config.store_memory();
    let store = Store::open_with(&config.data, &options)?;
    let server = Server::start(&store, config.settings, TcpListener::bind(config.listen)?)?;
    println!("listening on http://{}", server.address());
    loop {
        std::thread::park();
    }
}
