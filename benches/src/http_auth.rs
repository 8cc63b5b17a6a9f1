//! The sub-command `auth`: measures the cost of access tokens. It alternates between a server without authorization and
//! one that checks a token with every request, with single writes and then with single reads. After that it measures
//! how fast the server issues tokens.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use ledger_store::{SystemClock, TimeSource};
use lexopt::{Arg, Parser};
use serde_json::Value;

use crate::child::Spawned;
use crate::data_dir::DataDir;
use crate::histogram::Histogram;
use crate::http_client::Connection;
use crate::http_load::{HttpLoad, drive_connections, prepare, refused};
use crate::process::processor_time;
use crate::report::{Report, rate};
use crate::workload::{Profile, Workload};
use crate::{Failure, arguments, calibration, wire};

/// The ledger of the run.
const LEDGER: &str = "main";

/// The options of a run.
#[derive(Clone, Debug)]
pub struct HttpAuth {
    /// Path of the server program to start.
    pub spawn: PathBuf,
    /// Number of connections. Each sends one request at a time.
    pub connections: usize,
    /// The accounts of the transactions.
    pub profile: Profile,
    /// Length of each measurement, that is, of one turn of one server.
    pub time: Duration,
    /// Number of turns of each server, for each kind of request.
    pub turns: u64,
}

impl HttpAuth {
    /// Parses the options of the sub-command.
    ///
    /// # Errors
    ///
    /// Fails if an option is unknown, its value is invalid, or there is no server.
    pub fn parse(parser: &mut Parser) -> Result<Self, Failure> {
        let mut spawn = None;
        let (time, profile) = (Duration::from_secs(2), Profile { accounts: 10_000, ..Profile::default() });
        let mut auth = Self { spawn: PathBuf::new(), connections: 64, profile, time, turns: 5 };
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("spawn") => spawn = Some(PathBuf::from(parser.value()?)),
                Arg::Long("connections") => auth.connections = arguments::count(parser)? as usize,
                Arg::Long("seconds") => auth.time = Duration::from_secs(arguments::count(parser)?),
                Arg::Long("accounts") => auth.profile.accounts = arguments::count(parser)?,
                Arg::Long("turns") => auth.turns = arguments::count(parser)?,
                other => return Err(other.unexpected().into()),
            }
        }
        auth.spawn = spawn.ok_or("--spawn is required: the server program to start")?;
        if auth.profile.accounts < 2 || auth.connections == 0 || auth.turns == 0 {
            return Err("at least two accounts, one connection and one turn are required".into());
        }
        Ok(auth)
    }
}

/// The kind of request that the connections repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestKind {
    /// Create a transaction.
    Write,
    /// Read an account.
    Read,
    /// Issue a token.
    Token,
}

/// One of the two servers to compare, with the authorization header of its requests.
struct ServerUnderTest {
    server: Spawned,
    address: String,
    /// Header lines to add to every request, empty for the server without authorization.
    header: String,
}

/// Measurements of one server over all turns.
#[derive(Default)]
struct Total {
    requests: u64,
    time: Duration,
    /// Processor time of the server.
    used: Duration,
    latency: Histogram,
}

impl Total {
    /// Returns the processor time of the server per request, in microseconds.
    fn cpu_micros_per_request(&self) -> f64 {
        self.used.as_secs_f64() * 1e6 / self.requests.max(1) as f64
    }
}

/// Starts a server on a data directory and returns it with its address.
fn start(auth: &HttpAuth, data: PathBuf, flags: &[&str]) -> Result<(Spawned, String), Failure> {
    let fixed = ["--listen", "127.0.0.1:0", "--data"].map(Into::into);
    let more = flags.iter().map(Into::into);
    Spawned::start_server(&auth.spawn, fixed.into_iter().chain([data.into_os_string()]).chain(more))
}

/// Creates the first OAuth client in a data directory that no server has open. Returns the id and secret of the client.
fn first_client(auth: &HttpAuth, data: &std::path::Path) -> Result<(String, String), Failure> {
    let made = std::process::Command::new(&auth.spawn).args(["auth", "init", "--data"]).arg(data).output()?;
    let text = String::from_utf8(made.stdout)?;
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("export {name}=")));
        line.map(|value| value.trim_matches('\'').to_owned()).ok_or("no client was made")
    };
    Ok((value("STACK_CLIENT_ID")?, value("STACK_CLIENT_SECRET")?))
}

/// Returns the HTTP request with which a client asks for a token.
fn token_request(client: &(String, String)) -> Vec<u8> {
    let body = format!(
        "grant_type=client_credentials&scope=ledger:read+ledger:write&client_id={}&client_secret={}",
        client.0, client.1
    );
    let length = body.len();
    let head = "POST /api/auth/oauth/token HTTP/1.1\r\nhost: localhost\r\n\
        content-type: application/x-www-form-urlencoded\r\n";
    format!("{head}content-length: {length}\r\n\r\n{body}").into_bytes()
}

/// Asks a server for a token.
fn token(address: &str, client: &(String, String)) -> Result<String, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let mut connection = Connection::connect(address).await?;
        let answer = connection.exchange(&token_request(client)).await?;
        if answer.status != 200 {
            return Err(refused(answer.status, answer.body));
        }
        let answer: Value = serde_json::from_slice(answer.body)?;
        Ok(answer["access_token"].as_str().ok_or("no token")?.to_owned())
    })
}

/// Measures both servers in turn. Reports the rate and the processor time of each, by how many percent a token lowers
/// the rate, and by how many it raises the processor time.
///
/// # Errors
///
/// Fails if a server does not start, or gives an unexpected answer.
pub fn run(auth: &HttpAuth) -> Result<Report, Failure> {
    let data_dir = DataDir::new(None)?;
    let mut report = Report::default();
    calibration::note_machine(data_dir.path(), &mut report)?;
    let guarded = data_dir.path().join("guarded");
    let client = first_client(auth, &guarded)?;
    let (server, address) = start(auth, data_dir.path().join("open"), &[])?;
    let open = ServerUnderTest { server, address, header: String::new() };
    // `prepare_ledger` sends no token, so it runs against servers that require none.
    prepare_ledger(auth, &open.address)?;
    let (server, address) = start(auth, guarded.clone(), &[])?;
    prepare_ledger(auth, &address)?;
    drop(server);
    let (server, address) = start(auth, guarded, &["--auth-enabled", "--auth-check-scopes"])?;
    let header = format!("authorization: Bearer {}\r\n", token(&address, &client)?);
    let sides = [open, ServerUnderTest { server, address, header }];
    report.text("what", "auth");
    report.count("connections", auth.connections as u64);
    for (kind, name) in [(RequestKind::Write, "write"), (RequestKind::Read, "read")] {
        compare(auth, &sides, kind, name, &client, &mut report)?;
    }
    let mut tokens = Total::default();
    for turn in 0..auth.turns {
        measure_turn(auth, &sides[1], RequestKind::Token, &client, turn, &mut tokens)?;
    }
    let figure = rate(tokens.requests, tokens.time);
    report.number("tokens_per_s", figure);
    report.number("tokens_cpu_us", tokens.cpu_micros_per_request());
    report.text("tokens_algorithm", "RS256");
    println!(
        "client_credentials: {figure:.0} tokens/s (RS256), {:.1} us of CPU time each",
        tokens.cpu_micros_per_request()
    );
    report.latency("tokens_", "latency of a token", &tokens.latency);
    Ok(report)
}

fn prepare_ledger(auth: &HttpAuth, address: &str) -> Result<(), Failure> {
    prepare(&HttpLoad { profile: auth.profile.clone(), ..HttpLoad::default() }, address, LEDGER)
}

/// Measures one kind of request on both servers in turn, and reports both and their difference.
fn compare(
    auth: &HttpAuth,
    sides: &[ServerUnderTest; 2],
    kind: RequestKind,
    name: &str,
    client: &(String, String),
    report: &mut Report,
) -> Result<(), Failure> {
    let mut totals = [Total::default(), Total::default()];
    for turn in 0..auth.turns {
        // Alternate which server is first, so that neither gains from the state in which the other leaves the machine.
        let order = if turn % 2 == 0 { [0, 1] } else { [1, 0] };
        for at in order {
            measure_turn(auth, &sides[at], kind, client, turn, &mut totals[at])?;
        }
    }
    let [open, guarded] = &totals;
    let rates = [open, guarded].map(|total| rate(total.requests, total.time));
    report.number(&format!("{name}s_per_s"), rates[0]);
    report.number(&format!("{name}s_per_s_with_token"), rates[1]);
    report.number(&format!("{name}_cpu_us"), open.cpu_micros_per_request());
    report.number(&format!("{name}_cpu_us_with_token"), guarded.cpu_micros_per_request());
    let rate_lost = -percent_change(rates[0], rates[1]);
    let processor_added = percent_change(open.cpu_micros_per_request(), guarded.cpu_micros_per_request());
    report.number(&format!("{name}_rate_lost_percent"), rate_lost);
    report.number(&format!("{name}_cpu_added_percent"), processor_added);
    println!(
        "{name}: {:.0}/s without, {:.0}/s with a token: it costs {rate_lost:.1} % of the rate without it, and adds \
         {processor_added:.1} % to the server's processor time",
        rates[0], rates[1]
    );
    Ok(())
}

/// Returns the change from `before` to `after`, in percent of `before`.
fn percent_change(before: f64, after: f64) -> f64 {
    (after / before - 1.0) * 100.0
}

/// Measures one server for one turn, and adds the result to `total`.
fn measure_turn(
    auth: &HttpAuth,
    side: &ServerUnderTest,
    kind: RequestKind,
    client: &(String, String),
    turn: u64,
    total: &mut Total,
) -> Result<(), Failure> {
    let before = processor_time(side.server.id());
    let begin = Instant::now();
    let latency = drive(auth, side, kind, client, turn)?;
    total.time += begin.elapsed();
    let used = processor_time(side.server.id()).zip(before).map(|(to, from)| to.saturating_sub(from));
    total.used += used.unwrap_or_default();
    total.requests += latency.count();
    total.latency.merge(&latency);
    Ok(())
}

/// Generates the requests of all connections.
struct Source {
    workload: Workload,
    kind: RequestKind,
    header: String,
    token_request: Vec<u8>,
    accounts: u64,
    /// Number of requests so far.
    made: u64,
}

impl Source {
    /// Writes the next request into `request`.
    fn next(&mut self, request: &mut Vec<u8>) -> Result<(), Failure> {
        self.made += 1;
        match self.kind {
            RequestKind::Token => {
                request.clone_from(&self.token_request);
                return Ok(());
            }
            RequestKind::Read => {
                let address = self.workload.profile().address(self.made % self.accounts);
                let line = format!("GET /v2/{LEDGER}/accounts/{address} HTTP/1.1\r\nhost: localhost\r\n\r\n");
                *request = line.into_bytes();
            }
            RequestKind::Write => {
                let batch = self.workload.batch(1, SystemClock.now());
                wire::encode_request(wire::Api::V2, LEDGER, &batch, wire::Form::Postings, request)?;
            }
        }
        let line = request.windows(2).position(|pair| pair == b"\r\n").ok_or("a request has lines")? + 2;
        request.splice(line..line, self.header.bytes());
        Ok(())
    }
}

/// Sends requests on all connections for the time of a measurement, and returns their latencies.
fn drive(
    auth: &HttpAuth,
    side: &ServerUnderTest,
    kind: RequestKind,
    client: &(String, String),
    turn: u64,
) -> Result<Histogram, Failure> {
    // Each turn has its own sequence range, so that no two turns send the same reference.
    let mut source = Source {
        workload: Workload::new(auth.profile.clone(), 1 + turn).with_sequence_range(turn),
        kind,
        header: side.header.clone(),
        token_request: token_request(client),
        accounts: auth.profile.accounts,
        made: 0,
    };
    drive_connections(&side.address, auth.connections, auth.time, move |request| source.next(request))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_refer_to_the_server_without_tokens() {
        assert!((-percent_change(200.0, 100.0) - 50.0).abs() < 1e-9, "half the rate is lost");
        assert!((percent_change(10.0, 12.0) - 20.0).abs() < 1e-9);
    }
}
