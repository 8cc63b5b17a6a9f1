//! The sub-command `embedded`: measures writes to a store in the same process, without a server.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ledger_store::{Options, Store, SystemClock, TimeSource};
use lexopt::{Arg, Parser, ValueExt};

use crate::Failure;
use crate::data_dir::{DataDir, disk_bytes};
use crate::in_flight::{InFlight, SubmissionStats};
use crate::process::{Memory, Usage};
use crate::report::{Report, rate};
use crate::workload::{Content, Profile, Workload, ledger_name, submission};
use crate::{arguments, calibration};

/// The options of a run.
#[derive(Clone, Debug)]
pub struct Load {
    /// The accounts and the kind of transactions.
    pub profile: Profile,
    /// Number of transactions to measure.
    pub transactions: u64,
    /// Number of transactions in each submission.
    pub batch: usize,
    /// Maximum number of concurrent submissions. If this and `batch` are 1, the load calls `Store::apply`, which blocks
    /// until the answer. Otherwise it calls `Store::submit`.
    pub in_flight: usize,
    /// Transactions per second, submitted on a fixed schedule from which their latencies count. `None` submits as fast
    /// as possible.
    pub paced: Option<u64>,
    /// See [`Options::memory_budget`], in bytes.
    pub memory_budget: usize,
    /// Directory of the data, or `None` for a temporary one.
    pub data: Option<PathBuf>,
    /// True if the program prints its progress each second.
    pub verbose: bool,
    /// Compares the store with a naive engine that keeps everything in one B-tree. `compare::run` reads this field;
    /// [`run`] ignores it.
    pub compare: bool,
}

impl Default for Load {
    fn default() -> Self {
        Self {
            profile: Profile::default(),
            transactions: 10_000_000,
            batch: 8192,
            in_flight: 4,
            paced: None,
            memory_budget: Options::default().memory_budget,
            data: None,
            verbose: false,
            compare: false,
        }
    }
}

impl Load {
    /// Parses the options of the sub-command.
    ///
    /// # Errors
    ///
    /// Fails if an option is unknown or its value is invalid.
    pub fn parse(parser: &mut Parser) -> Result<Self, Failure> {
        let mut load = Self::default();
        let (mut single, mut clients) = (false, 1);
        let (mut in_flight, mut transactions) = (None, None);
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("transactions") => transactions = Some(arguments::count(parser)?),
                Arg::Long("accounts") => load.profile.accounts = arguments::count(parser)?,
                Arg::Long("batch") => load.batch = arguments::count(parser)? as usize,
                Arg::Long("in-flight") => in_flight = Some(arguments::count(parser)? as usize),
                Arg::Long("plain") => load.profile.content = Content::Plain,
                Arg::Long("rich") => load.profile.content = Content::Rich,
                Arg::Long("backdated") => load.profile.backdated_percent = arguments::percent(parser)?,
                Arg::Long("hot") => load.profile.hot_percent = arguments::percent(parser)?,
                Arg::Long("memory-budget") => load.memory_budget = arguments::bytes(parser)?,
                Arg::Long("data") => load.data = Some(parser.value()?.into()),
                Arg::Long("paced") => load.paced = Some(arguments::count(parser)?),
                Arg::Long("single") => single = true,
                Arg::Long("clients") => clients = arguments::count(parser)? as usize,
                Arg::Long("verbose") => load.verbose = true,
                Arg::Long("compare") => {
                    let with = parser.value()?.string()?;
                    if with != "naive" {
                        return Err(format!("nothing is known of {with:?} to compare with").into());
                    }
                    load.compare = true;
                }
                other => return Err(other.unexpected().into()),
            }
        }
        if single {
            load.batch = 1;
            load.in_flight = clients;
        } else if load.paced.is_some() {
            // On a fixed schedule, submissions pile up when the store is slow. The limit of this program must not delay
            // them, only the store may.
            load.in_flight = 32;
        }
        if load.compare {
            load.transactions = 2_000_000;
        }
        load.in_flight = in_flight.unwrap_or(load.in_flight);
        load.transactions = transactions.unwrap_or(load.transactions);
        if load.profile.accounts < 2 || load.batch == 0 || load.transactions == 0 {
            return Err("at least two accounts, one transaction and a batch size of 1 are required".into());
        }
        Ok(load)
    }

    /// Returns the options of the store.
    pub fn options(&self) -> Options {
        let mut options = Options::default();
        options.memory_budget = self.memory_budget;
        options
    }

    /// Opens a new store in a directory, funds the accounts and flushes the index.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be opened or refuses a write.
    pub fn funded_store(&self, directory: &Path, workload: &Workload) -> Result<Store, Failure> {
        let store = Store::open_with(directory, &self.options())?;
        store.create_ledger(ledger_name(), self.profile.ledger_options())?;
        let begin = Instant::now();
        let submissions = InFlight::new(4);
        for requests in workload.funding(8192) {
            submissions.wait()?;
            submissions.submit(&store, submission(requests), Instant::now());
        }
        let funded = submissions.finish()?.recorded;
        store.flush();
        let time = begin.elapsed();
        println!("funding: {funded} accounts in {:.2} s, {:.0} tx/s", time.as_secs_f64(), rate(funded, time));
        Ok(store)
    }
}

/// Runs the load on a new store and reports the measurements: rates until all answers (`tx_per_s`) and until the index
/// holds everything (`tx_per_s_indexed`), latencies, processor time, memory and disk space.
///
/// # Errors
///
/// Fails if the store fails or refuses a transaction.
pub fn run(load: &Load) -> Result<Report, Failure> {
    let data_dir = DataDir::new(load.data.clone())?;
    let mut report = Report::default();
    calibration::note_machine(data_dir.path(), &mut report)?;
    let mut workload = Workload::new(load.profile.clone(), 1);
    let generator = Memory::now().resident;
    report.count("generator_bytes", generator);
    println!("memory: {} MiB resident before the store is opened", generator >> 20);
    let directory = data_dir.path().join("store");
    let store = load.funded_store(&directory, &workload)?;

    let used = Usage::now();
    let commits = store.status().commits;
    let begin = Instant::now();
    let stats = drive(load, &store, &mut workload)?;
    let accepted = begin.elapsed();
    store.flush();
    let projected = begin.elapsed();
    let used = Usage::now().since(&used);

    let count = stats.recorded;
    report.text("what", "embedded");
    report.text("content", load.profile.content.name());
    report.count("transactions", count);
    report.count("accounts", load.profile.accounts);
    report.count("batch", load.batch as u64);
    report.count("in_flight", load.in_flight as u64);
    report.number("tx_per_s", rate(count, accepted));
    report.number("tx_per_s_indexed", rate(count, projected));
    println!(
        "rate: {:.0} tx/s accepted, {:.0} tx/s to the end of the flush ({:.2} s + {:.2} s)",
        rate(count, accepted),
        rate(count, projected),
        accepted.as_secs_f64(),
        projected.saturating_sub(accepted).as_secs_f64()
    );
    report.latency("", "latency of a submission", &stats.latency);
    let commits = store.status().commits - commits;
    report.count("commits", commits);
    println!("commits: {commits}, {:.1} transactions each", count as f64 / commits.max(1) as f64);
    report.usage(&used, count);
    store.close()?;
    let all = count + load.profile.accounts;
    let [journal, index] = ["journal", "index"].map(|part| disk_bytes(&directory.join(part)));
    let total = disk_bytes(&directory)?;
    report.number("bytes_per_tx", total as f64 / all as f64);
    println!("disk: {:.1} B/tx, {} MiB in all", total as f64 / all as f64, total >> 20);
    if let (Ok(journal), Ok(index)) = (journal, index) {
        report.number("journal_bytes_per_tx", journal as f64 / all as f64);
        report.number("index_bytes_per_tx", index as f64 / all as f64);
        println!("disk: {} MiB journal, {} MiB index", journal >> 20, index >> 20);
    }
    Ok(report)
}

/// Submits the transactions of a load and waits for all answers.
///
/// # Errors
///
/// Fails if the store fails or refuses a transaction.
pub fn drive(load: &Load, store: &Store, workload: &mut Workload) -> Result<SubmissionStats, Failure> {
    let submissions = InFlight::new(load.in_flight);
    let begin = Instant::now();
    let mut progress = Progress { begin, next: Duration::from_secs(1), before: 0, verbose: load.verbose };
    let mut submitted = 0;
    while submitted < load.transactions {
        let size = (load.batch as u64).min(load.transactions - submitted) as usize;
        let requests = workload.batch(size, SystemClock.now());
        let from = match load.paced {
            None => {
                submissions.wait()?;
                Instant::now()
            }
            Some(rate) => {
                let scheduled = begin + Duration::from_secs_f64(submitted as f64 / rate as f64);
                std::thread::sleep(scheduled.saturating_duration_since(Instant::now()));
                submissions.wait()?;
                scheduled
            }
        };
        if load.in_flight == 1 && load.batch == 1 {
            submissions.apply(store, submission(requests));
        } else {
            submissions.submit(store, submission(requests), from);
        }
        submitted += size as u64;
        progress.note(submitted);
    }
    submissions.finish()
}

/// Prints the progress of a run once a second.
struct Progress {
    begin: Instant,
    /// Time since `begin` at which the next line is due.
    next: Duration,
    /// Number of transactions at the last line.
    before: u64,
    verbose: bool,
}

impl Progress {
    fn note(&mut self, submitted: u64) {
        let now = self.begin.elapsed();
        if self.verbose && now >= self.next {
            println!(
                "{:.1} s: {} transactions, {} since",
                now.as_secs_f64(),
                submitted,
                submitted - self.before
            );
            self.before = submitted;
            self.next = now + Duration::from_secs(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Load, Failure> {
        Load::parse(&mut Parser::from_args(arguments))
    }

    #[test]
    fn parses_options() {
        let load =
            parse(&["--transactions", "3M", "--rich", "--backdated", "10%", "--memory-budget", "1GiB"]);
        let load = load.expect("options");
        assert_eq!((load.transactions, load.batch, load.in_flight), (3_000_000, 8192, 4));
        assert_eq!((load.profile.content, load.profile.backdated_percent), (Content::Rich, 10));
        assert_eq!(load.memory_budget, 1 << 30);
        let single = parse(&["--single", "--clients", "64"]).expect("options");
        assert_eq!((single.batch, single.in_flight), (1, 64));
        assert!(parse(&["--compare", "other"]).is_err());
        assert!(parse(&["--accounts", "1"]).is_err());
        assert!(parse(&["--unknown"]).is_err());
    }

    #[test]
    fn run_reports_its_figures() {
        let data = tempfile::tempdir().expect("a directory");
        for (batch, in_flight, paced) in [(64, 2, None), (1, 1, None), (1, 8, None), (64, 4, Some(1_000_000))]
        {
            let data_dir = data.path().join(format!("{batch}-{in_flight}-{}", paced.is_some()));
            let load = Load {
                profile: Profile {
                    accounts: 50,
                    content: Content::Rich,
                    backdated_percent: 10,
                    ..Profile::default()
                },
                transactions: 200,
                batch,
                in_flight,
                paced,
                data: Some(data_dir),
                ..Load::default()
            };
            let report = run(&load).expect("figures");
            let figure = |name: &str| report.get(name).and_then(serde_json::Value::as_f64).expect("a figure");
            assert!((figure("transactions") - 200.0).abs() < 0.5);
            assert!(figure("tx_per_s") >= figure("tx_per_s_indexed"));
            assert!(figure("bytes_per_tx") > 0.0 && figure("max_ms") >= figure("p50_ms"));
        }
    }
}
