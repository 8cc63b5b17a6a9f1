//! Attacks on the memory and the time of a server. Each attack runs against a fresh server, while an honest client also
//! uses it. The result is a table: attack, memory before and at its peak, latency of the honest client, and how the
//! connections ended.

mod attacker;
mod bystander;
mod cases;
mod server;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use lexopt::{Arg, Parser, ValueExt};

pub use self::cases::CASES;
pub use self::server::serve;
use crate::process::Memory;
use crate::report::millis;
use crate::{Failure, arguments};

/// Memory that a server needs in addition to its budget: buffers of the allocator, stacks, and running reads and
/// requests with the largest transactions. See docs/operating.md.
const CONSTANT_BYTES: u64 = 128 << 20;

/// Memory of a connection that the server does not charge to its budget, including a head and a body that are too small
/// to be charged.
const CONNECTION_BYTES: u64 = 40 << 10;

/// Maximum latency of the honest client, for 99 % of its requests. Operators monitor a server with timeouts of a second
/// or more. A tenth of a second leaves room even for a slow machine.
const P99_MAX: Duration = Duration::from_millis(100);

/// Returns the maximum latency of this build, or `None` for a debug build, which is slow even without an attack.
const fn p99_max() -> Option<Duration> {
    if cfg!(debug_assertions) { None } else { Some(P99_MAX) }
}

/// The options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The server program. Without one, a child process of this program is the server.
    pub spawn: Option<PathBuf>,
    /// The memory budget of the server in bytes.
    pub memory_budget: usize,
    /// The part of the connections to use, in percent.
    pub scale: u64,
    /// The time for which each attack holds its connections.
    pub hold: Duration,
    /// The only attack to run.
    pub only: Option<String>,
}

impl Options {
    /// Parses the command line.
    ///
    /// # Errors
    ///
    /// Fails if an option is unknown or its value is invalid.
    pub fn parse(parser: &mut Parser) -> Result<Self, Failure> {
        let mut options = Self {
            spawn: None,
            memory_budget: 512 << 20,
            scale: 100,
            hold: Duration::from_secs(40),
            only: None,
        };
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("spawn") => options.spawn = Some(PathBuf::from(parser.value()?)),
                Arg::Long("memory-budget") => options.memory_budget = arguments::bytes(parser)?,
                Arg::Long("scale") => options.scale = arguments::percent(parser)?.max(1),
                Arg::Long("hold") => options.hold = Duration::from_secs(arguments::count(parser)?),
                Arg::Long("only") => options.only = Some(parser.value()?.string()?),
                other => return Err(other.unexpected().into()),
            }
        }
        if options.only.as_ref().is_some_and(|only| CASES.iter().all(|case| case.name != only)) {
            return Err("no such attack".into());
        }
        Ok(options)
    }
}

/// The result of an attack.
#[derive(Clone, Debug)]
struct Row {
    name: &'static str,
    connections: u64,
    /// Resident memory before the attack, and the maximum until its end.
    before: u64,
    peak: u64,
    /// Maximum allowed memory.
    allowed: u64,
    /// Latency of the honest client that 99 % of its requests do not exceed, and the number of its failed requests.
    p99: Duration,
    failures: u64,
    outcome: String,
}

impl Row {
    /// Returns whether the server stayed within its memory, and answered every request of the honest client in time.
    fn passed(&self, p99_max: Option<Duration>) -> bool {
        let is_in_time = p99_max.is_none_or(|max| self.p99 <= max);
        self.peak <= self.allowed && self.failures == 0 && is_in_time
    }
}

/// Runs the attacks one after the other and returns the table.
///
/// # Errors
///
/// Fails if a server does not start, or if the preparation of an attack fails. Fails with the table if an attack used
/// too much memory, or made an honest request fail or (in a release build) wait for too long.
pub fn run(options: &Options) -> Result<String, Failure> {
    let cases = CASES.iter().filter(|case| options.only.as_ref().is_none_or(|only| case.name == only));
    let rows = cases.map(|case| attack(options, case)).collect::<Result<Vec<_>, _>>()?;
    let table = table(&rows);
    if rows.iter().all(|row| row.passed(p99_max())) {
        Ok(table)
    } else {
        Err(format!("the server did not withstand at least one attack\n{table}").into())
    }
}

fn attack(options: &Options, case: &'static cases::Case) -> Result<Row, Failure> {
    let connections = (case.connections * options.scale).div_ceil(100);
    let server = server::RunningServer::start(options.spawn.as_deref(), options.memory_budget)?;
    (case.prepare)(&server.address, connections)?;
    let before = Memory::of_process(server.process.id()).resident;
    let bystander = bystander::Bystander::start(&server.address)?;
    let outcome = attacker::run(&server.address, case, connections, options.hold)?;
    let (latency, failures) = bystander.stop();
    let peak = Memory::of_process(server.process.id()).peak;
    let share =
        if case.writes { options.memory_budget as u64 } else { server::http_memory(options.memory_budget)? };
    Ok(Row {
        name: case.name,
        connections,
        before,
        peak,
        allowed: before + share + CONSTANT_BYTES + connections * CONNECTION_BYTES,
        p99: latency.quantile(0.99),
        failures,
        outcome,
    })
}

fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| attack | connections | MiB before | MiB peak | MiB allowed | bystander p99 ms | failed | outcome |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    let mib = |bytes: u64| bytes >> 20;
    for row in rows {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {:.1} | {} | {} |",
            row.name,
            row.connections,
            mib(row.before),
            mib(row.peak),
            mib(row.allowed),
            millis(row.p99),
            row.failures,
            row.outcome
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(peak: u64, failures: u64) -> Row {
        Row {
            name: "bodies",
            connections: 7,
            before: 10 << 20,
            peak,
            allowed: 90 << 20,
            p99: Duration::from_millis(2),
            failures,
            outcome: "7 × 503".to_owned(),
        }
    }

    #[test]
    fn too_much_memory_or_a_failure_does_not_pass() {
        assert!(row(90 << 20, 0).passed(None));
        assert!(!row((90 << 20) + 1, 0).passed(None));
        assert!(!row(1, 1).passed(None));
        assert!(table(&[row(80 << 20, 1)]).ends_with("| bodies | 7 | 10 | 80 | 90 | 2.0 | 1 | 7 × 503 |\n"));
    }

    #[test]
    fn slow_bystander_does_not_pass_in_release() {
        let waits = |p99| Row { p99, ..row(1, 0) };
        assert!(waits(P99_MAX).passed(Some(P99_MAX)));
        assert!(!waits(P99_MAX + Duration::from_micros(1)).passed(Some(P99_MAX)));
        assert!(waits(P99_MAX * 2).passed(None));
        assert_eq!(p99_max().is_none(), cfg!(debug_assertions));
    }

    #[test]
    fn parses_options() {
        let parse = |text: &str| Options::parse(&mut Parser::from_args(text.split_whitespace()));
        let options = parse("--memory-budget 64MiB --scale 5 --hold 3 --only bodies").expect("options");
        assert_eq!((options.memory_budget, options.scale, options.hold.as_secs()), (64 << 20, 5, 3));
        assert_eq!(options.only.as_deref(), Some("bodies"));
        assert!(parse("--only nothing").is_err());
    }
}
