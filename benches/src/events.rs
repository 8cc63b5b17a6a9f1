//! The sub-command `events`: measures how much consumers of events slow down writers.
//!
//! It runs the same load with no consumer, with a dead one and with a live one, in turn, on the same machine. The dead
//! consumer is an HTTP receiver that accepts connections and never answers. The live consumer reads the stream of
//! events of the ledger.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lexopt::{Arg, Parser};

use crate::child::Spawned;
use crate::data_dir::DataDir;
use crate::http_load::{HttpLoad, drive, prepare};
use crate::report::{Report, rate};
use crate::{Failure, arguments, calibration};

/// The options of a run.
#[derive(Clone, Debug)]
pub struct Events {
    /// The server program.
    pub spawn: PathBuf,
    /// The load of the writers. Its time is the length of one turn.
    pub load: HttpLoad,
    /// Number of turns of each variant: no consumer, dead consumer, live consumer.
    pub turns: u64,
}

impl Events {
    /// Parses the options of the sub-command.
    ///
    /// # Errors
    ///
    /// Fails if an option is unknown, its value is invalid, or there is no server.
    pub fn parse(parser: &mut Parser) -> Result<Self, Failure> {
        let mut spawn = None;
        let mut load = HttpLoad { time: Duration::from_secs(3), ..HttpLoad::default() };
        let mut turns = 3;
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("spawn") => spawn = Some(PathBuf::from(parser.value()?)),
                Arg::Long("connections") => load.connections = arguments::count(parser)? as usize,
                Arg::Long("bulk") => load.bulk = arguments::count(parser)? as usize,
                Arg::Long("seconds") => load.time = Duration::from_secs(arguments::count(parser)?),
                Arg::Long("accounts") => load.profile.accounts = arguments::count(parser)?,
                Arg::Long("turns") => turns = arguments::count(parser)?,
                other => return Err(other.unexpected().into()),
            }
        }
        let spawn = spawn.ok_or("--spawn is required: the server program to start")?;
        if load.profile.accounts < 2 || load.bulk == 0 || load.connections == 0 || turns == 0 {
            return Err(
                "at least two accounts, one connection, one turn and a bulk size of 1 are required".into()
            );
        }
        Ok(Self { spawn, load, turns })
    }
}

/// Measures the variants in turn. Reports the rate of each, and its ratio to the rate without consumers.
///
/// # Errors
///
/// Fails if a server does not start, or gives an unexpected answer.
pub fn run(events: &Events) -> Result<Report, Failure> {
    let data_dir = DataDir::new(None)?;
    let mut report = Report::default();
    calibration::note_machine(data_dir.path(), &mut report)?;
    // The dead consumer: the operating system accepts its connections, and this program never answers them.
    let dead = TcpListener::bind("127.0.0.1:0")?;
    let mapping = format!("*:http://{}/", dead.local_addr()?);
    let start = |name: &str, flags: &[&str]| {
        let data = data_dir.path().join(name).into_os_string();
        let fixed = ["--listen", "127.0.0.1:0", "--data"].map(Into::into);
        let more = flags.iter().map(Into::into);
        Spawned::start_server(&events.spawn, fixed.into_iter().chain([data]).chain(more))
    };
    // A server ends when its handle, the first of the pair, is dropped.
    let (_plain_server, plain) = start("plain", &[])?;
    let (_publishing_server, publishing) =
        start("publishing", &["--publisher-http-enabled", "--publisher-topic-mapping", mapping.as_str()])?;
    for (address, ledger) in [(&plain, "quiet"), (&plain, "followed"), (&publishing, "quiet")] {
        prepare(&events.load, address, ledger)?;
    }
    let counter = follow(&plain, "followed")?;
    // Requests and time of each variant.
    let mut totals = [(0, Duration::ZERO); 3];
    for turn in 1..=events.turns {
        let turns = [
            ("no consumer", &plain, "quiet"),
            ("dead consumer", &publishing, "quiet"),
            ("live consumer", &plain, "followed"),
        ];
        for ((name, address, ledger), total) in turns.into_iter().zip(&mut totals) {
            let measured = drive(&events.load, address, ledger)?;
            println!("{turn}: {name}: {:.0} requests/s", rate(measured.requests, measured.time));
            total.0 += measured.requests;
            total.1 += measured.time;
        }
    }
    let received = counter.load(Ordering::Relaxed);
    let [quiet_rate, dead_rate, live_rate] = totals.map(|(requests, time)| rate(requests, time));
    let written = totals[2].0 * events.load.bulk as u64;
    report.text("what", "events");
    report.count("bulk", events.load.bulk as u64);
    report.number("requests_per_s", quiet_rate);
    report.number("requests_per_s_dead_consumer", dead_rate);
    report.number("requests_per_s_live_consumer", live_rate);
    report.number("ratio_dead_consumer", dead_rate / quiet_rate);
    report.number("ratio_live_consumer", live_rate / quiet_rate);
    report.count("events_written", written);
    report.count("events_received", received);
    println!(
        "dead consumer: {:.2} of the rate; live consumer: {:.2}",
        dead_rate / quiet_rate,
        live_rate / quiet_rate
    );
    println!("{received} of {written} events received when the last write was answered");
    Ok(report)
}

/// Starts the live consumer: a thread that reads the events of a ledger. Returns its count of events, which grows.
fn follow(address: &str, ledger: &str) -> Result<Arc<AtomicU64>, Failure> {
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET /v2/{ledger}/_events HTTP/1.1\r\nhost: localhost\r\n\r\n")?;
    let mut reader = BufReader::with_capacity(256 << 10, stream);
    let mut line = String::new();
    // The first line shows that the stream is open.
    while !line.starts_with("retry: ") {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Err("the stream of events does not begin".into());
        }
    }
    let count = Arc::new(AtomicU64::new(0));
    let counted = count.clone();
    // The thread ends with the server.
    std::thread::spawn(move || {
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
            if line.starts_with(b"event: ") {
                counted.fetch_add(1, Ordering::Relaxed);
            }
            line.clear();
        }
    });
    Ok(count)
}
