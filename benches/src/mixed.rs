//! The sub-command `mixed`: measures reads alone, and then while a writer submits transactions at a steady rate.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ledger_core::Timestamp;
use ledger_store::{SystemClock, TimeSource};
use lexopt::{Arg, Parser};

use crate::data_dir::DataDir;
use crate::embedded::{Load, drive};
use crate::process::Usage;
use crate::reads::{ReadKind, Reader, note};
use crate::report::{Report, rate};
use crate::workload::{Content, Workload};
use crate::{Failure, arguments, calibration};

/// The options of a run.
#[derive(Clone, Debug)]
pub struct Mixed {
    /// The content of the store before the measurement.
    pub preload: Load,
    /// Transactions per second.
    pub write_rate: u64,
    /// Number of transactions in each submission.
    pub write_batch: usize,
    /// Number of threads that read.
    pub readers: usize,
    /// Reads per second of each reader. 0 means as many as possible.
    pub read_rate: u64,
    /// Length of each phase.
    pub time: Duration,
}

impl Default for Mixed {
    fn default() -> Self {
        Self {
            preload: Load { transactions: 1_000_000, ..Load::default() },
            write_rate: 100_000,
            write_batch: 1024,
            readers: 1,
            read_rate: 1_000,
            time: Duration::from_secs(10),
        }
    }
}

impl Mixed {
    /// Parses the options of the sub-command.
    ///
    /// # Errors
    ///
    /// Fails if an option is unknown or its value is invalid.
    pub fn parse(parser: &mut Parser) -> Result<Self, Failure> {
        let mut mixed = Self::default();
        let load = &mut mixed.preload;
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("transactions") => load.transactions = arguments::count(parser)?,
                Arg::Long("accounts") => load.profile.accounts = arguments::count(parser)?,
                Arg::Long("plain") => load.profile.content = Content::Plain,
                Arg::Long("rich") => load.profile.content = Content::Rich,
                Arg::Long("backdated") => load.profile.backdated_percent = arguments::percent(parser)?,
                Arg::Long("memory-budget") => load.memory_budget = arguments::bytes(parser)?,
                Arg::Long("data") => load.data = Some(parser.value()?.into()),
                Arg::Long("paced") => mixed.write_rate = arguments::count(parser)?,
                Arg::Long("batch") => mixed.write_batch = arguments::count(parser)? as usize,
                Arg::Long("readers") => mixed.readers = arguments::count(parser)? as usize,
                Arg::Long("read-rate") => mixed.read_rate = arguments::count(parser)?,
                Arg::Long("seconds") => mixed.time = Duration::from_secs(arguments::count(parser)?),
                other => return Err(other.unexpected().into()),
            }
        }
        let load = &mixed.preload;
        if load.profile.accounts < 2
            || load.transactions == 0
            || mixed.write_rate == 0
            || mixed.write_batch == 0
        {
            return Err(
                "at least two accounts, one transaction, a rate of 1 and a batch size of 1 are required"
                    .into(),
            );
        }
        Ok(mixed)
    }
}

/// Fills a store, measures reads alone, then reads and writes together.
///
/// # Errors
///
/// Fails if the store fails or refuses a transaction.
pub fn run(mixed: &Mixed) -> Result<Report, Failure> {
    let load = &mixed.preload;
    let data_dir = DataDir::new(load.data.clone())?;
    let mut report = Report::default();
    calibration::note_machine(data_dir.path(), &mut report)?;
    let mut workload = Workload::new(load.profile.clone(), 1);
    let first = SystemClock.now();
    let store = load.funded_store(&data_dir.path().join("store"), &workload)?;
    drive(load, &store, &mut workload)?;
    store.flush();
    let span = (first, SystemClock.now());
    report.text("what", "mixed");
    report.text("content", load.profile.content.name());
    report.count("transactions", load.transactions);
    report.count("accounts", load.profile.accounts);

    let mut reader = reader_of(&workload, span, 0);
    let end = Instant::now() + mixed.time;
    let idle = reader.run(&store, &ReadKind::ALL, mixed.read_rate, |_| Instant::now() >= end)?;
    note(&mut report, "idle_", &idle);

    let paced = Load {
        transactions: (mixed.write_rate as f64 * mixed.time.as_secs_f64()).ceil() as u64,
        batch: mixed.write_batch,
        in_flight: 32,
        paced: Some(mixed.write_rate),
        ..load.clone()
    };
    let over = AtomicBool::new(false);
    let before = Usage::now();
    let begin = Instant::now();
    let (written, read) = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..mixed.readers)
            .map(|number| {
                let mut reader = reader_of(&workload, span, number as u64 + 1);
                let (store, over) = (&store, &over);
                scope.spawn(move || {
                    reader.run(store, &ReadKind::ALL, mixed.read_rate, |_| over.load(Ordering::Relaxed))
                })
            })
            .collect();
        let written = drive(&paced, &store, &mut workload.clone());
        let took = begin.elapsed();
        over.store(true, Ordering::Relaxed);
        let read: Vec<_> = readers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        (written.map(|stats| (stats, took)), read)
    });
    let (stats, took) = written?;
    let mut during = Vec::new();
    for measured in read {
        let measured = measured.map_err(|_| "a reader panicked")??;
        if during.is_empty() {
            during = measured;
        } else {
            for ((_, all), (_, its)) in during.iter_mut().zip(&measured) {
                all.merge(its);
            }
        }
    }
    note(&mut report, "loaded_", &during);
    report.count("paced_tx_per_s", mixed.write_rate);
    report.number("tx_per_s", rate(stats.recorded, took));
    report.latency("", "latency of a submission", &stats.latency);
    report.usage(&Usage::now().since(&before), stats.recorded);
    store.close()?;
    Ok(report)
}

/// Makes a reader of the accounts of a workload, and of dates in this span.
fn reader_of(workload: &Workload, span: (Timestamp, Timestamp), seed: u64) -> Reader {
    Reader::new(workload.addresses(), span.0, span.1, seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Profile;

    #[test]
    fn measures_idle_and_loaded_reads() {
        let mixed = Mixed {
            preload: Load {
                profile: Profile { accounts: 20, backdated_percent: 10, ..Profile::default() },
                transactions: 200,
                ..Load::default()
            },
            write_rate: 10_000,
            write_batch: 10,
            readers: 2,
            read_rate: 0,
            time: Duration::from_millis(50),
        };
        let report = run(&mixed).expect("figures");
        for name in
            ["idle_balance_p99_ms", "loaded_last_15_p99_ms", "loaded_volumes_by_effect_max_ms", "p99_ms"]
        {
            let figure = report.get(name).and_then(serde_json::Value::as_f64);
            assert!(figure.is_some_and(|figure| figure > 0.0), "{name}: {figure:?}");
        }
    }
}
