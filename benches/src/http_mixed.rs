//! The sub-command `mixed --spawn`: measures how much readers slow writers down, over HTTP. Writers run at full speed.
//! They alternate between running alone and running with readers that send requests at a steady rate.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lexopt::{Arg, Parser};

use crate::data_dir::DataDir;
use crate::embedded::Load;
use crate::histogram::Histogram;
use crate::http_client::Connection;
use crate::http_load::{HttpLoad, drive_run};
use crate::http_questions::{FIRST_PAGES, POINTS, ReadRequest, ReadTarget, SUM_OF_GROUP};
use crate::http_reads::{ask, fill, preload, serve};
use crate::process::Memory;
use crate::report::{Report, rate};
use crate::workload::{Random, ledger_name};
use crate::{Failure, arguments, calibration};

/// The options of a run.
#[derive(Clone, Debug)]
pub struct HttpMixed {
    /// The content of the store before the measurement.
    pub preload: Load,
    /// Path of the server program to start.
    pub spawn: PathBuf,
    /// Number of connections that write.
    pub connections: usize,
    /// Number of transactions in each write request.
    pub bulk: usize,
    /// Number of connections that read.
    pub readers: usize,
    /// Requests per second that all readers send together.
    pub read_rate: u64,
    /// Number of turns. Each turn measures the writers twice: alone, then with readers.
    pub turns: u64,
    /// Length of each of the two measurements of a turn.
    pub time: Duration,
}

impl HttpMixed {
    /// Parses the options of the sub-command.
    ///
    /// # Errors
    ///
    /// Fails if an option is unknown, its value is invalid, or there is no server.
    pub fn parse(parser: &mut Parser) -> Result<Self, Failure> {
        let mut mixed = Self {
            preload: preload(1_000_000, 0),
            spawn: PathBuf::new(),
            connections: 64,
            bulk: 1,
            readers: 16,
            read_rate: 2_000,
            turns: 3,
            time: Duration::from_secs(5),
        };
        let load = &mut mixed.preload;
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("spawn") => mixed.spawn = parser.value()?.into(),
                Arg::Long("transactions") => load.transactions = arguments::count(parser)?,
                Arg::Long("accounts") => load.profile.accounts = arguments::count(parser)?,
                Arg::Long("backdated") => load.profile.backdated_percent = arguments::percent(parser)?,
                Arg::Long("memory-budget") => load.memory_budget = arguments::bytes(parser)?,
                Arg::Long("data") => load.data = Some(parser.value()?.into()),
                Arg::Long("connections") => mixed.connections = arguments::count(parser)? as usize,
                Arg::Long("bulk") => mixed.bulk = arguments::count(parser)? as usize,
                Arg::Long("readers") => mixed.readers = arguments::count(parser)? as usize,
                Arg::Long("read-rate") => mixed.read_rate = arguments::count(parser)?,
                Arg::Long("turns") => mixed.turns = arguments::count(parser)?,
                Arg::Long("seconds") => mixed.time = Duration::from_secs(arguments::count(parser)?),
                other => return Err(other.unexpected().into()),
            }
        }
        let load = &mixed.preload;
        if mixed.spawn.as_os_str().is_empty() || load.profile.accounts < 2 || load.transactions == 0 {
            return Err("--spawn, at least two accounts and one transaction are required".into());
        }
        if [mixed.connections, mixed.bulk, mixed.readers].contains(&0)
            || mixed.read_rate == 0
            || mixed.turns == 0
        {
            return Err("connections, readers, turns, bulk size and read rate must be at least 1".into());
        }
        Ok(mixed)
    }
}

/// One in this many read requests is a sum over 1,000 accounts. The others are quick.
const SUM_ONE_IN: u64 = 20;

/// Returns the kind of the read request that a connection sends in a round. Reads of one account (`POINTS`) and of first
/// pages (`FIRST_PAGES`) take turns, with a sum (`SUM_OF_GROUP`) now and then. Every connection sends every kind,
/// whatever the number of connections: a slow kind on few of them would delay only the requests of those.
fn question(connection: u64, round: u64) -> &'static ReadRequest {
    const POINTS_AND_PAGES: u64 = (POINTS.len() + FIRST_PAGES.len()) as u64;
    let number = connection + round;
    if number % SUM_ONE_IN == SUM_ONE_IN - 1 {
        return &SUM_OF_GROUP;
    }
    let at = (number % POINTS_AND_PAGES) as usize;
    POINTS.get(at).unwrap_or_else(|| &FIRST_PAGES[at - POINTS.len()])
}

/// Fills a store, starts a server on it, and measures the writers alone and with readers.
///
/// # Errors
///
/// Fails if the store or the server fails, or an answer is wrong.
pub fn run(mixed: &HttpMixed) -> Result<Report, Failure> {
    let load = &mixed.preload;
    let data_dir = DataDir::new(load.data.clone())?;
    let mut report = Report::default();
    calibration::note_machine(data_dir.path(), &mut report)?;
    let dates = fill(load, data_dir.path())?;
    let (server, address) = serve(&mixed.spawn, load, data_dir.path())?;
    let ledger = ledger_name().to_string();
    let writers = HttpLoad {
        profile: load.profile.clone(),
        connections: mixed.connections,
        bulk: mixed.bulk,
        time: mixed.time,
        ..HttpLoad::default()
    };
    let target = ReadTarget {
        ledger: ledger.clone(),
        profile: load.profile.clone(),
        transactions: load.transactions,
        dates,
        random: Random::new(1),
    };
    // Requests of the writers and the time that they took, summed over the turns.
    let (mut alone, mut beside) = ((0, Duration::ZERO), (0, Duration::ZERO));
    let (mut reading, mut read_time) = (ReadLatencies::default(), Duration::ZERO);
    for turn in 0..mixed.turns {
        // Each run of the writers has its own number, because references must be unique. The transactions that filled
        // the store have the references of run 0.
        let measured = drive_run(&writers, &address, &ledger, 1 + 2 * turn)?;
        alone = (alone.0 + measured.requests, alone.1 + measured.time);
        let over = Arc::new(AtomicBool::new(false));
        let begin = Instant::now();
        let (measured, read) = std::thread::scope(|scope| {
            let reader = scope.spawn(|| read(mixed, &address, &target, turn, &over));
            let measured = drive_run(&writers, &address, &ledger, 2 + 2 * turn);
            over.store(true, Ordering::Relaxed);
            (measured, reader.join())
        });
        read_time += begin.elapsed();
        let (measured, read) = (measured?, read.map_err(|_| "a reader panicked")??);
        beside = (beside.0 + measured.requests, beside.1 + measured.time);
        reading.merge(&read);
    }
    report.text("what", "mixed over http");
    report.count("transactions", load.transactions);
    report.count("accounts", load.profile.accounts);
    report.count("connections", mixed.connections as u64);
    report.count("bulk", mixed.bulk as u64);
    let bulk = mixed.bulk as u64;
    let [alone, beside] = [alone, beside].map(|(requests, time)| rate(requests * bulk, time));
    report.number("tx_per_s", alone);
    report.number("tx_per_s_with_readers", beside);
    report.number("ratio", beside / alone);
    let asked = reading.quick.count() + reading.sums().count();
    report.number("reads_per_s", rate(asked, read_time));
    println!("writers alone: {alone:.0} tx/s; beside readers: {beside:.0} tx/s; ratio {:.3}", beside / alone);
    println!("readers: {:.0} requests/s of {} asked for", rate(asked, read_time), mixed.read_rate);
    report.latency("read_", "points and first pages, from when they were due", &reading.quick);
    report.latency("sum_", "sums of 1 k accounts, from when they were due", &reading.sums());
    for (name, latencies) in &reading.kinds {
        if *name != SUM_OF_GROUP.name {
            report.latency(&format!("{name}_"), name, latencies);
        }
    }
    let memory = Memory::of_process(server.id());
    report.count("rss_peak_bytes", memory.peak);
    println!("memory of the server: at most {} MiB", memory.peak >> 20);
    Ok(report)
}

/// Latencies of the readers, from the time when each request was due.
#[derive(Clone, Debug, Default)]
struct ReadLatencies {
    /// Reads of one account and of first pages.
    quick: Histogram,
    /// Every kind by its name.
    kinds: BTreeMap<&'static str, Histogram>,
}

impl ReadLatencies {
    fn record(&mut self, name: &'static str, latency: Duration) {
        if name != SUM_OF_GROUP.name {
            self.quick.record(latency);
        }
        self.kinds.entry(name).or_default().record(latency);
    }

    fn merge(&mut self, other: &Self) {
        self.quick.merge(&other.quick);
        for (name, latencies) in &other.kinds {
            self.kinds.entry(name).or_default().merge(latencies);
        }
    }

    /// Sums over 1,000 accounts.
    fn sums(&self) -> Histogram {
        self.kinds.get(SUM_OF_GROUP.name).cloned().unwrap_or_default()
    }
}

/// Sends requests at fixed times on several connections until `over` is set. A late answer delays only the next request
/// of its own connection, whose latency counts from the time when it was due.
fn read(
    mixed: &HttpMixed,
    address: &str,
    target: &ReadTarget,
    turn: u64,
    over: &Arc<AtomicBool>,
) -> Result<ReadLatencies, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = tokio::task::LocalSet::new();
    let (connections, rate) = (mixed.readers as u64, mixed.read_rate as f64);
    let all = Rc::new(RefCell::new(ReadLatencies::default()));
    local.block_on(&runtime, async {
        let mut opened = Vec::new();
        for _ in 0..connections {
            opened.push(Connection::connect(address).await?);
        }
        let begin = Instant::now();
        let mut tasks = Vec::new();
        for (mut connection, at) in opened.into_iter().zip(0..) {
            let (mut target, all, over) = (target.clone(), all.clone(), over.clone());
            // Each connection of each turn makes its own random choices.
            target.random = Random::new(turn * connections + at + 100);
            tasks.push(tokio::task::spawn_local(async move {
                for round in 0.. {
                    if over.load(Ordering::Relaxed) {
                        break;
                    }
                    let due = begin + Duration::from_secs_f64((round * connections + at) as f64 / rate);
                    tokio::time::sleep_until(due.into()).await;
                    let question = question(at, round);
                    let request = question.request(&mut target);
                    ask(&mut connection, question, &request).await?;
                    all.borrow_mut().record(question.name, due.elapsed());
                }
                Ok::<(), Failure>(())
            }));
        }
        for task in tasks {
            task.await??;
        }
        Ok::<(), Failure>(())
    })?;
    Ok(all.take())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_options() {
        let parse = |arguments: &[&str]| HttpMixed::parse(&mut Parser::from_args(arguments));
        let mixed = parse(&["--spawn", "server", "--bulk", "100", "--read-rate", "1k"]).expect("options");
        assert_eq!((mixed.bulk, mixed.read_rate, mixed.turns), (100, 1_000, 3));
        assert!(parse(&["--bulk", "100"]).is_err());
        assert!(parse(&["--spawn", "server", "--turns", "0"]).is_err());
    }

    #[test]
    fn every_connection_sends_every_kind() {
        for connection in 0..16 {
            let asked: Vec<&str> = (0..1_000).map(|round| question(connection, round).name).collect();
            assert_eq!(asked.iter().filter(|name| **name == SUM_OF_GROUP.name).count(), 50);
            for kind in POINTS.iter().chain(&FIRST_PAGES) {
                assert!(asked.iter().filter(|name| **name == kind.name).count() >= 100, "{}", kind.name);
            }
        }
    }

    #[test]
    fn sums_come_at_different_times() {
        // Sixteen connections that all sum in the same round would measure their own queue.
        for round in 0..100 {
            let sums = (0..16).filter(|connection| question(*connection, round).name == SUM_OF_GROUP.name);
            assert!(sums.count() <= 1, "round {round}");
        }
    }
}
