//! The sub-command `http`: measures how many transactions a server records over HTTP.
//!
//! It first measures a bare HTTP server with the same client, for comparison.

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use ledger_store::{Request, SystemClock, TimeSource};
use lexopt::{Arg, Parser, ValueExt};

use crate::child::Spawned;
use crate::data_dir::{DataDir, disk_bytes};
use crate::histogram::Histogram;
use crate::http_client::Connection;
use crate::process::{Memory, processor_time};
use crate::report::{Report, rate};
use crate::workload::{Content, Profile, Workload};
use crate::{Failure, arguments, calibration, wire};

/// The options of a run.
#[derive(Clone, Debug)]
pub struct HttpLoad {
    /// Number of accounts, content of the transactions, and percentage of backdated ones.
    pub profile: Profile,
    /// Address of a running server, or `None` to start [`spawn`](Self::spawn).
    pub address: Option<String>,
    /// Server program to start for the run, or `None` to use [`address`](Self::address).
    pub spawn: Option<PathBuf>,
    /// Number of connections. Each sends one request at a time.
    pub connections: usize,
    /// Number of transactions in each request. One goes to the endpoint for single transactions, more go to the bulk
    /// endpoint.
    pub bulk: usize,
    /// Length of the run.
    pub time: Duration,
    /// Number of client threads.
    pub threads: usize,
    /// The form of the transactions: postings or scripts.
    pub form: wire::Form,
    /// The version of the API.
    pub api: wire::Api,
    /// True if the run measures both versions of the API in turn, each on a separate ledger.
    pub compare_apis: bool,
}

impl Default for HttpLoad {
    fn default() -> Self {
        Self {
            profile: Profile::default(),
            address: None,
            spawn: None,
            connections: 64,
            bulk: 1,
            time: Duration::from_secs(10),
            threads: 1,
            form: wire::Form::default(),
            api: wire::Api::default(),
            compare_apis: false,
        }
    }
}

impl HttpLoad {
    /// Parses the options of the sub-command.
    ///
    /// # Errors
    ///
    /// Fails if an option is unknown, its value is invalid, or there is no server.
    pub fn parse(parser: &mut Parser) -> Result<Self, Failure> {
        let mut load = Self::default();
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("url") => {
                    let url = parser.value()?.string()?;
                    let address = url.strip_prefix("http://").ok_or("the URL must begin with http://")?;
                    load.address = Some(address.trim_end_matches('/').to_owned());
                }
                Arg::Long("spawn") => load.spawn = Some(parser.value()?.into()),
                Arg::Long("connections") => load.connections = arguments::count(parser)? as usize,
                Arg::Long("bulk") => load.bulk = arguments::count(parser)? as usize,
                Arg::Long("seconds") => load.time = Duration::from_secs(arguments::count(parser)?),
                Arg::Long("threads") => load.threads = arguments::count(parser)? as usize,
                Arg::Long("accounts") => load.profile.accounts = arguments::count(parser)?,
                Arg::Long("api") => match parser.value()?.string()?.as_str() {
                    "v1" => load.api = wire::Api::V1,
                    "v2" => load.api = wire::Api::V2,
                    "both" => load.compare_apis = true,
                    other => return Err(format!("no API is called {other}: v1, v2 or both").into()),
                },
                Arg::Long("script") => load.form = wire::Form::Script,
                Arg::Long("plain") => load.profile.content = Content::Plain,
                Arg::Long("rich") => load.profile.content = Content::Rich,
                Arg::Long("backdated") => load.profile.backdated_percent = arguments::percent(parser)?,
                other => return Err(other.unexpected().into()),
            }
        }
        if load.address.is_some() == load.spawn.is_some() {
            return Err("give either the URL of a server or the program of one to spawn".into());
        }
        if load.profile.accounts < 2 || load.bulk == 0 || load.threads == 0 || load.connections < load.threads
        {
            return Err(
                "need at least two accounts, a bulk size of at least 1, one thread, and one connection per thread"
                    .into()
            );
        }
        Ok(load)
    }
}

/// Measures a server without a ledger, then the ledger's server, and reports the figures of both.
///
/// # Errors
///
/// Fails if a server gives an unexpected answer.
pub fn run(load: &HttpLoad) -> Result<Report, Failure> {
    let data_dir = DataDir::new(None)?;
    let mut report = Report::default();
    calibration::note_machine(data_dir.path(), &mut report)?;
    let (bare, address) = Spawned::start_server(std::env::current_exe()?, ["bare"])?;
    let seconds = load.time.min(Duration::from_secs(3));
    let measured = drive(&HttpLoad { bulk: 1, time: seconds, ..load.clone() }, &address, "bare")?;
    drop(bare);
    let bare_rate = rate(measured.requests, measured.time);
    report.number("bare_requests_per_s", bare_rate);
    println!("bare hyper: {bare_rate:.0} requests/s, the same client");

    let data = data_dir.path().join("store");
    let (server, address) = start_or_use_server(load.spawn.as_deref(), load.address.as_deref(), &data)?;
    if load.compare_apis {
        let server_time = || server.as_ref().and_then(|server| processor_time(server.id()));
        compare_apis(load, &address, server_time, &mut report)?;
        return Ok(report);
    }
    let ledger = fresh_ledger_name(load.api);
    prepare(load, &address, &ledger)?;
    let server_time = || server.as_ref().and_then(|server| processor_time(server.id()));
    let (before, client_before) = (server_time(), processor_time(std::process::id()));
    let measured = drive(load, &address, &ledger)?;
    let (after, client_after) = (server_time(), processor_time(std::process::id()));

    let transactions = measured.requests * load.bulk as u64;
    report.text("what", "http");
    report.text("api", load.api.name());
    report.text("content", load.profile.content.name());
    report.count("connections", load.connections as u64);
    report.count("bulk", load.bulk as u64);
    report.count("transactions", transactions);
    report.number("requests_per_s", rate(measured.requests, measured.time));
    report.number("tx_per_s", rate(transactions, measured.time));
    println!(
        "rate: {:.0} requests/s, {:.0} tx/s",
        rate(measured.requests, measured.time),
        rate(transactions, measured.time)
    );
    report.latency("", "latency of a request", &measured.latency);
    let micros_per_transaction = |from: Option<Duration>, to: Option<Duration>| {
        Some(to?.saturating_sub(from?).as_secs_f64() * 1e6 / transactions.max(1) as f64)
    };
    if let Some(micros) = micros_per_transaction(before, after) {
        report.number("cpu_us_per_tx", micros);
        println!("server CPU: {micros:.2} us/tx");
    }
    if let Some(micros) = micros_per_transaction(client_before, client_after) {
        report.number("client_cpu_us_per_tx", micros);
        println!("client CPU: {micros:.2} us/tx");
    }
    if let Some(server) = &server {
        let memory = Memory::of_process(server.id());
        report.count("rss_bytes", memory.resident);
        report.count("rss_peak_bytes", memory.peak);
        let bytes = disk_bytes(&data)?;
        // Funding recorded one transaction for each account.
        let all = transactions + load.profile.accounts;
        report.number("bytes_per_tx", bytes as f64 / all as f64);
        println!(
            "memory of the server: {} MiB; disk {:.0} B/tx",
            memory.resident >> 20,
            bytes as f64 / all as f64
        );
    }
    Ok(report)
}

/// Returns the server to measure and its address. Starts `program` with the data directory `data`. Without a program,
/// returns `None` and `address`, at which a server is already running.
pub(crate) fn start_or_use_server(
    program: Option<&Path>,
    address: Option<&str>,
    data: &Path,
) -> Result<(Option<Spawned>, String), Failure> {
    match (program, address) {
        (Some(program), _) => {
            let listen = ["--listen", "127.0.0.1:0", "--data"].map(OsString::from);
            let arguments = listen.into_iter().chain([data.as_os_str().to_owned()]);
            let (server, address) = Spawned::start_server(program, arguments)?;
            Ok((Some(server), address))
        }
        (None, Some(address)) => Ok((None, address.to_owned())),
        (None, None) => Err("there is no server to measure".into()),
    }
}

/// Returns a name for a new ledger. A running server may have ledgers of earlier runs.
pub(crate) fn fresh_ledger_name(api: wire::Api) -> String {
    format!("load-{}-{:x}", api.name(), SystemClock.now().as_micros())
}

/// Number of measurements of each API version. The versions take turns, so that a slow spell on the machine
/// affects both.
const TURNS: u32 = 8;

/// Measures both versions in turn, so that changes of the machine's speed affect both. Reports the rates and their
/// ratio.
fn compare_apis(
    load: &HttpLoad,
    address: &str,
    server_time: impl Fn() -> Option<Duration>,
    report: &mut Report,
) -> Result<(), Failure> {
    struct Variant {
        load: HttpLoad,
        ledger: String,
        requests: u64,
        time: Duration,
        /// Processor time of the server.
        used: Duration,
        latency: Histogram,
    }
    let mut sides = Vec::new();
    for api in [wire::Api::V1, wire::Api::V2] {
        let load = HttpLoad { api, time: load.time / TURNS, ..load.clone() };
        let ledger = fresh_ledger_name(api);
        prepare(&load, address, &ledger)?;
        let (time, used) = (Duration::ZERO, Duration::ZERO);
        sides.push(Variant { load, ledger, requests: 0, time, used, latency: Histogram::default() });
    }
    for turn in 0..u64::from(TURNS) {
        for side in &mut sides {
            let before = server_time();
            let measured = drive_run(&side.load, address, &side.ledger, turn)?;
            side.used +=
                server_time().zip(before).map_or(Duration::ZERO, |(to, from)| to.saturating_sub(from));
            side.requests += measured.requests;
            side.time += measured.time;
            side.latency.merge(&measured.latency);
        }
    }
    report.text("what", "http both");
    report.text("content", load.profile.content.name());
    report.count("connections", load.connections as u64);
    report.count("bulk", load.bulk as u64);
    for side in &sides {
        let (name, bulk) = (side.load.api.name(), load.bulk as u64);
        let figure = rate(side.requests * bulk, side.time);
        report.number(&format!("{name}_tx_per_s"), figure);
        println!("{name}: {figure:.0} tx/s");
        if !side.used.is_zero() {
            let micros = side.used.as_secs_f64() * 1e6 / (side.requests * bulk).max(1) as f64;
            report.number(&format!("{name}_cpu_us_per_tx"), micros);
            println!("server CPU, {name}: {micros:.2} us/tx");
        }
        report.latency(&format!("{name}_"), &format!("latency of a request, {name}"), &side.latency);
    }
    let rates: Vec<f64> = sides.iter().map(|side| rate(side.requests, side.time)).collect();
    report.number("ratio", rates[0] / rates[1]);
    println!("ratio v1 to v2: {:.3}", rates[0] / rates[1]);
    Ok(())
}

/// Creates the ledger with the default features of its API version, and funds its accounts.
pub(crate) fn prepare(load: &HttpLoad, address: &str, ledger: &str) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let mut connection = Connection::connect(address).await?;
        if load.api == wire::Api::V2 {
            let created = connection.exchange(&wire::create_ledger(ledger)).await?;
            if created.status != 204 {
                return Err(refused(created.status, created.body));
            }
        }
        let begin = Instant::now();
        let mut request = Vec::new();
        for requests in Workload::new(load.profile.clone(), 0).funding(100) {
            wire::encode_request(load.api, ledger, &requests, wire::Form::Postings, &mut request)?;
            let answer = connection.exchange(&request).await?;
            if answer.status != 200 {
                return Err(refused(answer.status, answer.body));
            }
        }
        let time = begin.elapsed();
        println!("funding: {:.2} s, {:.0} tx/s", time.as_secs_f64(), rate(load.profile.accounts, time));
        Ok(())
    })
}

pub(crate) fn refused(status: u16, body: &[u8]) -> Failure {
    let start: String = String::from_utf8_lossy(body).chars().take(500).collect();
    format!("the server answered {status}: {start}").into()
}

/// The figures of all connections.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Number of requests answered with success. Any other answer ends the run.
    pub requests: u64,
    /// Time from before the first request to after the last answer.
    pub time: Duration,
    /// Time from sending a request to its complete answer.
    pub latency: Histogram,
}

/// Sends transactions on all connections until the time is up.
///
/// # Errors
///
/// Fails if a connection fails, or a status is not 200.
pub fn drive(load: &HttpLoad, address: &str, ledger: &str) -> Result<Measured, Failure> {
    drive_run(load, address, ledger, 0)
}

/// Drives the load like [`drive`]. Runs with different numbers send transactions with different references, so that
/// several runs can use one ledger.
///
/// # Errors
///
/// Returns the same errors as [`drive`].
pub fn drive_run(load: &HttpLoad, address: &str, ledger: &str, run: u64) -> Result<Measured, Failure> {
    let begin = Instant::now();
    let threads: Vec<_> = (0..load.threads as u64)
        .map(|thread| {
            // Each thread of each run has its own sequence range, so that no two of them send the same reference.
            let range = run * load.threads as u64 + thread;
            let (load, address, ledger) = (load.clone(), address.to_owned(), ledger.to_owned());
            let connections = load.connections / load.threads;
            std::thread::spawn(move || drive_thread(&load, connections, range, &address, &ledger))
        })
        .collect();
    let mut latency = Histogram::default();
    for thread in threads {
        latency.merge(&thread.join().map_err(|_| "a thread of the client panicked")??);
    }
    Ok(Measured { requests: latency.count(), time: begin.elapsed(), latency })
}

/// Encodes the next request of a thread. All its connections share it.
struct Source {
    workload: Workload,
    ledger: String,
    api: wire::Api,
    bulk: usize,
    form: wire::Form,
}

impl Source {
    fn next(&mut self, request: &mut Vec<u8>) -> Result<(), Failure> {
        let requests: Vec<Request> = self.workload.batch(self.bulk, SystemClock.now());
        wire::encode_request(self.api, &self.ledger, &requests, self.form, request)
    }
}

fn drive_thread(
    load: &HttpLoad,
    connections: usize,
    range: u64,
    address: &str,
    ledger: &str,
) -> Result<Histogram, Failure> {
    let workload = Workload::new(load.profile.clone(), 1 + range).with_sequence_range(range);
    let (api, form, bulk) = (load.api, load.form, load.bulk);
    let mut source = Source { workload, ledger: ledger.to_owned(), api, bulk, form };
    drive_connections(address, connections, load.time, move |request| source.next(request))
}

/// Sends requests on this many new connections for a time, and returns their latencies. `next` writes the next request
/// of any connection.
///
/// # Errors
///
/// Fails if the server cannot be reached or refuses a request, and with the errors of `next`.
pub fn drive_connections(
    address: &str,
    connections: usize,
    time: Duration,
    next: impl FnMut(&mut Vec<u8>) -> Result<(), Failure> + 'static,
) -> Result<Histogram, Failure> {
    let next = Rc::new(RefCell::new(next));
    let latency = Rc::new(RefCell::new(Histogram::default()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let mut tasks = Vec::new();
        let end = Instant::now() + time;
        for _ in 0..connections {
            let mut connection = Connection::connect(address).await?;
            let (next, latency) = (next.clone(), latency.clone());
            tasks.push(tokio::task::spawn_local(async move {
                let mut request = Vec::new();
                while Instant::now() < end {
                    (*next.borrow_mut())(&mut request)?;
                    let begin = Instant::now();
                    let answer = connection.exchange(&request).await?;
                    if answer.status != 200 {
                        return Err(refused(answer.status, answer.body));
                    }
                    latency.borrow_mut().record(begin.elapsed());
                }
                Ok::<(), Failure>(())
            }));
        }
        for task in tasks {
            task.await??;
        }
        Ok::<(), Failure>(())
    })?;
    Ok(latency.take())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::bare;

    #[test]
    fn parses_options() {
        let parse = |arguments: &[&str]| HttpLoad::parse(&mut Parser::from_args(arguments));
        let load =
            parse(&["--url", "http://localhost:80/", "--bulk", "100", "--seconds", "3"]).expect("options");
        assert_eq!(load.address.as_deref(), Some("localhost:80"));
        assert_eq!((load.bulk, load.time), (100, Duration::from_secs(3)));
        assert!(parse(&[]).is_err());
        assert!(parse(&["--url", "localhost:80"]).is_err());
        assert!(parse(&["--spawn", "server", "--threads", "65"]).is_err());
        assert!(parse(&["--spawn", "server", "--api", "v3"]).is_err());
        assert_eq!(parse(&["--spawn", "server", "--api", "v1"]).expect("options").api, wire::Api::V1);
        assert!(parse(&["--spawn", "server", "--api", "both"]).expect("options").compare_apis);
    }

    #[test]
    fn drives_every_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        // The thread ends with the process of the test.
        std::thread::spawn(|| bare::serve(listener));
        for (threads, bulk) in [(1, 1), (2, 10)] {
            let profile =
                Profile { accounts: 10, content: Content::Rich, backdated_percent: 10, ..Profile::default() };
            let time = Duration::from_millis(100);
            let load = HttpLoad { profile, connections: 4, bulk, time, threads, ..HttpLoad::default() };
            let measured = drive(&load, &address, "main").expect("answers");
            assert!(measured.requests >= 4, "{} requests", measured.requests);
            assert_eq!(measured.latency.count(), measured.requests);
            assert!(measured.time >= time);
        }
    }
}
