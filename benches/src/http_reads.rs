//! The sub-command `reads`: reads over one HTTP connection, without writers, of a ledger filled through
//! the library. It also exports the first part of the log (`--export` bytes) and imports it into another ledger. With
//! `--only` it does neither.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ledger_core::Timestamp;
use ledger_store::{SystemClock, TimeSource};
use lexopt::{Arg, Parser, ValueExt};
use serde_json::Value;

use crate::child::Spawned;
use crate::data_dir::DataDir;
use crate::embedded::{Load, drive};
use crate::histogram::Histogram;
use crate::http_client::Connection;
use crate::http_load::fresh_ledger_name;
use crate::http_questions::{FIRST_PAGES, POINTS, ReadRequest, ReadTarget, SUMS, check, filter, request};
use crate::process::Memory;
use crate::report::{Report, millis, rate};
use crate::workload::{Content, Profile, Random, Workload, ledger_name};
use crate::{Failure, arguments, calibration, wire};

/// The options of a run.
#[derive(Clone, Debug)]
pub struct HttpReads {
    /// The content of the store before the measurement.
    pub preload: Load,
    /// The server program.
    pub spawn: PathBuf,
    /// Number of reads of each kind of request. Slow kinds get a tenth of it: those whose required median is above 10
    /// ms, and those without a required latency.
    pub reads: u64,
    /// Number of bytes of the log to export and import. The export continues to the end of a line.
    pub export_bytes: u64,
    /// The only kind of request to measure, so that a profile shows nothing else. `None` measures all, and exports and
    /// imports the log.
    pub only: Option<String>,
}

/// Returns the load that fills a ledger for reads over HTTP.
pub(crate) fn preload(transactions: u64, backdated_percent: u64) -> Load {
    let profile = Profile { content: Content::Rich, backdated_percent, grouped: true, ..Profile::default() };
    Load { profile, transactions, ..Load::default() }
}

impl HttpReads {
    /// Parses the options of the sub-command.
    ///
    /// # Errors
    ///
    /// Fails if an option is unknown, its value is invalid, or there is no server.
    pub fn parse(parser: &mut Parser) -> Result<Self, Failure> {
        let mut reads = Self {
            preload: preload(10_000_000, 10),
            spawn: PathBuf::new(),
            reads: 2_000,
            export_bytes: 2 << 30,
            only: None,
        };
        let load = &mut reads.preload;
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("spawn") => reads.spawn = parser.value()?.into(),
                Arg::Long("transactions") => load.transactions = arguments::count(parser)?,
                Arg::Long("accounts") => load.profile.accounts = arguments::count(parser)?,
                Arg::Long("backdated") => load.profile.backdated_percent = arguments::percent(parser)?,
                Arg::Long("memory-budget") => load.memory_budget = arguments::bytes(parser)?,
                Arg::Long("data") => load.data = Some(parser.value()?.into()),
                Arg::Long("reads") => reads.reads = arguments::count(parser)?.max(10),
                Arg::Long("only") => reads.only = Some(parser.value()?.string()?),
                Arg::Long("export") => reads.export_bytes = arguments::bytes(parser)? as u64,
                other => return Err(other.unexpected().into()),
            }
        }
        if reads.spawn.as_os_str().is_empty() {
            return Err("--spawn is required: the server program to start".into());
        }
        if load.profile.accounts < 2 || load.transactions == 0 {
            return Err("at least two accounts and one transaction are required".into());
        }
        Ok(reads)
    }
}

/// Fills a store, unless an earlier run did so in the same directory. Returns the dates of the first and the
/// last transaction.
pub(crate) fn fill(load: &Load, data_dir: &Path) -> Result<(Timestamp, Timestamp), Failure> {
    let marker = data_dir.join("filled");
    let profile = &load.profile;
    let what = format!("{} {} {} ", profile.accounts, load.transactions, profile.backdated_percent);
    if let Ok(filled) = std::fs::read_to_string(&marker)
        && let Some(dates) = filled.strip_prefix(&what)
    {
        let mut dates = dates.split_whitespace().map(str::parse::<i64>);
        if let (Some(Ok(from)), Some(Ok(to))) = (dates.next(), dates.next()) {
            return Ok((Timestamp::from_micros(from), Timestamp::from_micros(to)));
        }
    }
    let mut workload = Workload::new(load.profile.clone(), 1);
    let store = load.funded_store(&data_dir.join("store"), &workload)?;
    let (from, begin) = (SystemClock.now(), Instant::now());
    drive(load, &store, &mut workload)?;
    let to = SystemClock.now();
    store.close()?;
    let time = begin.elapsed();
    println!("filled: {:.1} s, {:.0} tx/s", time.as_secs_f64(), rate(load.transactions, time));
    std::fs::write(marker, format!("{what}{} {}", from.as_micros(), to.as_micros()))?;
    Ok((from, to))
}

/// Reads all files into the page cache, so that a store of an earlier run gives the same figures as a new one.
fn warm(directory: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry.metadata()?.is_dir() {
            warm(&entry.path())?;
        } else {
            std::io::copy(&mut File::open(entry.path())?, &mut std::io::sink())?;
        }
    }
    Ok(())
}

/// Starts a server on the filled store.
pub(crate) fn serve(program: &Path, load: &Load, data_dir: &Path) -> Result<(Spawned, String), Failure> {
    let budget = load.memory_budget.to_string();
    let fixed = ["--listen", "127.0.0.1:0", "--memory-budget", &budget, "--data"].map(Into::into);
    Spawned::start_server(program, fixed.into_iter().chain([data_dir.join("store").into_os_string()]))
}

/// Fills a store, starts a server on it, and measures reads.
///
/// # Errors
///
/// Fails if the store or the server fails, or an answer is wrong.
pub fn run(reads: &HttpReads) -> Result<Report, Failure> {
    let load = &reads.preload;
    let data_dir = DataDir::new(load.data.clone())?;
    let mut report = Report::default();
    calibration::note_machine(data_dir.path(), &mut report)?;
    let dates = fill(load, data_dir.path())?;
    warm(&data_dir.path().join("store"))?;
    let (server, address) = serve(&reads.spawn, load, data_dir.path())?;
    report.text("what", "reads");
    report.count("transactions", load.transactions);
    report.count("accounts", load.profile.accounts);
    let target = ReadTarget {
        ledger: ledger_name().to_string(),
        profile: load.profile.clone(),
        transactions: load.transactions,
        dates,
        random: Random::new(1),
    };
    let only = reads.only.as_deref();
    let mut client = ReadClient { reads: reads.reads, only, target, report: &mut report, missed: Vec::new() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let mut connection = Connection::connect(&address).await?;
        client.ask_all(&mut connection).await
    })?;
    let mut missed = std::mem::take(&mut client.missed);
    note_memory(&server, load.memory_budget, "", &mut report);
    if reads.only.is_none() {
        let file = data_dir.path().join("export");
        let (bytes, time) = export(&address, ledger_name().as_str(), reads.export_bytes, &file)?;
        note_stream("export", bytes, time, 120.0, &mut missed, &mut report);
        let (bytes, time) = import(&address, &file)?;
        note_stream("import", bytes, time, 60.0, &mut missed, &mut report);
        std::fs::remove_file(file)?;
        note_memory(&server, load.memory_budget, "streams_", &mut report);
    }
    report.text("missed", &missed.join(" "));
    println!("missed: {}", if missed.is_empty() { "nothing".to_owned() } else { missed.join(", ") });
    Ok(report)
}

fn note_memory(server: &Spawned, budget: usize, prefix: &str, report: &mut Report) {
    let memory = Memory::of_process(server.id());
    report.count(&format!("{prefix}rss_bytes"), memory.resident);
    report.count(&format!("{prefix}rss_peak_bytes"), memory.peak);
    println!(
        "memory of the server: {} MiB, at most {} MiB; budget {} MiB",
        memory.resident >> 20,
        memory.peak >> 20,
        budget >> 20
    );
}

fn note_stream(
    name: &str,
    bytes: u64,
    time: Duration,
    required: f64,
    missed: &mut Vec<String>,
    report: &mut Report,
) {
    let figure = rate(bytes, time) / 1e6;
    report.number(&format!("{name}_mb_per_s"), figure);
    println!("{name}: {figure:.0} MB/s of {} MB; required: {required}", bytes / 1_000_000);
    if figure < required {
        missed.push(name.to_owned());
    }
}

/// Sends questions and measures the answers.
struct ReadClient<'a> {
    reads: u64,
    only: Option<&'a str>,
    target: ReadTarget,
    report: &'a mut Report,
    missed: Vec<String>,
}

impl ReadClient<'_> {
    async fn ask_all(&mut self, connection: &mut Connection) -> Result<(), Failure> {
        let only = self.only;
        let is_wanted = |question: &&ReadRequest| only.is_none_or(|only| only == question.name);
        for question in POINTS.iter().chain(&FIRST_PAGES).chain(&SUMS).filter(is_wanted) {
            let is_slow = question.required_ms.0 > 10.0;
            let reads = if is_slow { self.reads.div_ceil(10) } else { self.reads };
            let mut latency = Histogram::default();
            // The first reads warm up the server, and do not count.
            for read in 0..reads + reads.div_ceil(10) {
                let request = question.request(&mut self.target);
                let took = ask(connection, question, &request).await?;
                if read >= reads.div_ceil(10) {
                    latency.record(took);
                }
            }
            self.note(question.name, question.required_ms, &latency);
        }
        if self.only.is_some() {
            return Ok(());
        }
        self.deep("deep_transactions", "transactions", connection).await?;
        self.deep("deep_logs", "logs", connection).await?;
        self.deep_accounts(connection).await
    }

    /// Measures pages far from the start of a list by id. Gets their cursors from lists that begin at random ids.
    async fn deep(&mut self, name: &str, list: &str, connection: &mut Connection) -> Result<(), Failure> {
        let mut cursors = Vec::new();
        for _ in 0..self.reads.div_ceil(4) {
            let below = filter("$lt", "id", &self.target.id().max(100).to_string());
            let path = format!("{list}?pageSize=15&{below}");
            let answer = connection.exchange(&request("GET", &self.target.ledger, &path)).await?;
            check(name, answer.status, answer.body)?;
            cursors.extend(next_of(answer.body)?.map(|cursor| format!("{list}?cursor={cursor}")));
        }
        self.measure_random_pages(name, &cursors, connection).await
    }

    /// Measures random pages of the list of all accounts. Gets their cursors by reading the whole list.
    async fn deep_accounts(&mut self, connection: &mut Connection) -> Result<(), Failure> {
        let mut paths = vec!["accounts?pageSize=15".to_owned()];
        loop {
            let path = paths.last().expect("there is a first");
            let answer = connection.exchange(&request("GET", &self.target.ledger, path)).await?;
            check("accounts", answer.status, answer.body)?;
            match next_of(answer.body)? {
                Some(cursor) => paths.push(format!("accounts?cursor={cursor}")),
                None => break,
            }
        }
        self.measure_random_pages("deep_accounts", &paths, connection).await
    }

    /// Requests pages at random and measures the answers. Each of `paths` is the path of a page.
    async fn measure_random_pages(
        &mut self,
        name: &str,
        paths: &[String],
        connection: &mut Connection,
    ) -> Result<(), Failure> {
        let mut latency = Histogram::default();
        for _ in 0..self.reads {
            let path = &paths[self.target.random.below(paths.len() as u64) as usize];
            let request = request("GET", &self.target.ledger, path);
            let begin = Instant::now();
            let answer = connection.exchange(&request).await?;
            latency.record(begin.elapsed());
            check(name, answer.status, answer.body)?;
        }
        self.note(name, (0.5, 3.0), &latency);
        Ok(())
    }

    fn note(&mut self, name: &str, required_ms: (f64, f64), latency: &Histogram) {
        self.report.latency(&format!("{name}_"), name, latency);
        let (p50, p99) = (millis(latency.quantile(0.5)), millis(latency.quantile(0.99)));
        if p50 > required_ms.0 || p99 > required_ms.1 {
            println!("  required: p50 {} ms, p99 {} ms", required_ms.0, required_ms.1);
            self.missed.push(name.to_owned());
        }
    }
}

/// Sends one request and returns the time until the complete answer.
pub(crate) async fn ask(
    connection: &mut Connection,
    question: &ReadRequest,
    request: &[u8],
) -> Result<Duration, Failure> {
    let begin = Instant::now();
    if question.is_head {
        let status = connection.head(request).await?;
        let took = begin.elapsed();
        // A count is answered without a body.
        return if status == 204 { Ok(took) } else { Err(format!("{}: {status}", question.name).into()) };
    }
    let answer = connection.exchange(request).await?;
    let took = begin.elapsed();
    check(question.name, answer.status, answer.body)?;
    Ok(took)
}

/// Returns the cursor of the next page.
fn next_of(body: &[u8]) -> Result<Option<String>, Failure> {
    let body: Value = serde_json::from_slice(body)?;
    Ok(body["cursor"]["next"].as_str().filter(|next| !next.is_empty()).map(str::to_owned))
}

/// Exports the log of a ledger into a file: its first lines, until they have at least `bytes` bytes. Returns their
/// bytes and the time.
fn export(address: &str, ledger: &str, bytes: u64, file: &Path) -> Result<(u64, Duration), Failure> {
    let mut stream = TcpStream::connect(address)?;
    let begin = Instant::now();
    write!(stream, "POST /v2/{ledger}/logs/export HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n")?;
    let mut reader = BufReader::with_capacity(1 << 20, stream);
    let head = read_head(&mut reader)?;
    if !head.starts_with("HTTP/1.1 200") || !head.to_ascii_lowercase().contains("chunked") {
        return Err(format!("no export: {head}").into());
    }
    let exported = copy_lines(&mut reader, &mut File::create(file)?, bytes)?;
    Ok((exported, begin.elapsed()))
}

/// Copies lines from a chunked body until they have at least `bytes` bytes, or to the end of the body. Returns the
/// number of copied bytes.
fn copy_lines(mut reader: impl BufRead, out: &mut impl Write, bytes: u64) -> Result<u64, Failure> {
    let mut copied = 0;
    // The beginning of a line whose end has not arrived yet.
    let mut partial = Vec::new();
    let mut chunk = Vec::new();
    loop {
        let mut size = String::new();
        reader.read_line(&mut size)?;
        let size = u64::from_str_radix(size.trim(), 16)?;
        chunk.clear();
        (&mut reader).take(size + 2).read_to_end(&mut chunk)?;
        let chunk = chunk.strip_suffix(b"\r\n").ok_or("the export breaks off")?;
        if size == 0 {
            out.write_all(&partial)?;
            return Ok(copied + partial.len() as u64);
        }
        if let Some(end) = chunk.iter().rposition(|byte| *byte == b'\n') {
            let (lines, rest) = chunk.split_at(end + 1);
            out.write_all(&partial)?;
            out.write_all(lines)?;
            copied += (partial.len() + lines.len()) as u64;
            partial.clear();
            partial.extend_from_slice(rest);
        } else {
            partial.extend_from_slice(chunk);
        }
        if copied >= bytes {
            return Ok(copied);
        }
    }
}

/// Imports a file of logs into a new ledger.
fn import(address: &str, file: &Path) -> Result<(u64, Duration), Failure> {
    let mut stream = TcpStream::connect(address)?;
    // A store that is kept has the ledgers of earlier runs.
    let ledger = fresh_ledger_name(wire::Api::V2);
    stream.write_all(&wire::create_ledger(&ledger))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let created = read_head(&mut reader)?;
    if !created.starts_with("HTTP/1.1 204") {
        return Err(format!("no ledger to import into: {created}").into());
    }
    let mut logs = File::open(file)?;
    let bytes = logs.metadata()?.len();
    let begin = Instant::now();
    write!(
        stream,
        "POST /v2/{ledger}/logs/import HTTP/1.1\r\nhost: localhost\r\ncontent-length: {bytes}\r\n\r\n"
    )?;
    let mut part = vec![0; 256 << 10];
    loop {
        let length = logs.read(&mut part)?;
        if length == 0 {
            break;
        }
        // A server that refuses sends the reason before it closes.
        if stream.write_all(&part[..length]).is_err() {
            break;
        }
    }
    let head = read_head(&mut reader)?;
    let time = begin.elapsed();
    if !head.starts_with("HTTP/1.1 204") {
        let mut body = vec![0; 500];
        let length = reader.read(&mut body)?;
        return Err(format!("no import: {head}{}", String::from_utf8_lossy(&body[..length])).into());
    }
    Ok((bytes, time))
}

fn read_head(reader: &mut impl BufRead) -> Result<String, Failure> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Err(format!("the server closed the connection: {head}").into());
        }
    }
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_options() {
        let parse = |arguments: &[&str]| HttpReads::parse(&mut Parser::from_args(arguments));
        let reads =
            parse(&["--spawn", "server", "--transactions", "2k", "--export", "1MiB"]).expect("options");
        assert_eq!((reads.preload.transactions, reads.export_bytes), (2_000, 1 << 20));
        assert!(reads.preload.profile.grouped);
        assert!(parse(&[]).is_err());
        assert!(parse(&["--spawn", "server", "--accounts", "1"]).is_err());
    }

    #[test]
    fn exports_whole_lines_and_counts_them() {
        // The chunks end inside lines, and the second one contains no line end.
        let body = b"3\r\na\nb\r\n2\r\ncd\r\n4\r\ne\nfg\r\n0\r\n\r\n";
        for (bytes, expected) in
            [(1, "a\n"), (2, "a\n"), (3, "a\nbcde\n"), (8, "a\nbcde\nfg"), (9, "a\nbcde\nfg")]
        {
            let mut out = Vec::new();
            let copied = copy_lines(&body[..], &mut out, bytes).expect("a whole body");
            assert_eq!(
                (String::from_utf8_lossy(&out).as_ref(), copied),
                (expected, expected.len() as u64),
                "{bytes}"
            );
        }
        assert!(copy_lines(&body[..8], &mut Vec::new(), 9).is_err(), "the body breaks off");
    }

    #[test]
    fn finds_cursors() {
        let body = br#"{"cursor":{"hasMore":true,"next":"abc","data":[1]}}"#;
        assert_eq!(next_of(body).expect("JSON").as_deref(), Some("abc"));
        assert_eq!(next_of(br#"{"cursor":{"data":[1]}}"#).expect("JSON"), None);
    }
}
