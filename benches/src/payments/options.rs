//! The options of the sub-command `payments`.

use std::path::PathBuf;
use std::time::Duration;

use lexopt::{Arg, Parser, ValueExt};

use crate::{Failure, arguments};

/// The options of a run.
#[derive(Clone, Debug)]
pub struct HttpPayments {
    /// The server program.
    pub spawn: PathBuf,
    /// Number of payments to ingest.
    pub payments: u64,
    /// Number of reads of each kind of page.
    pub reads: u64,
    /// Number of idle connectors.
    pub connectors: u64,
    /// Polling period of the idle connectors. The server is measured for one period after all of them are installed.
    pub period: Duration,
    /// Time for which requests are sent, without and then with hanging providers, in each turn.
    pub time: Duration,
    /// Number of turns of the part `hanging`. Each turn measures without and then with hanging providers.
    pub turns: u64,
    /// The only part to measure, or empty to measure all parts.
    pub only: String,
}

/// The parts of a run.
const PARTS: [&str; 5] = ["ingestion", "postings", "lists", "idle", "hanging"];

impl HttpPayments {
    /// Parses the options of the sub-command.
    ///
    /// # Errors
    ///
    /// Fails if an option is unknown, its value is invalid, or there is no server.
    pub fn parse(parser: &mut Parser) -> Result<Self, Failure> {
        let mut run = Self {
            spawn: PathBuf::new(),
            payments: 1_000_000,
            reads: 500,
            connectors: 1_000,
            period: Duration::from_mins(2),
            time: Duration::from_secs(5),
            turns: 3,
            only: String::new(),
        };
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("spawn") => run.spawn = parser.value()?.into(),
                Arg::Long("payments") => run.payments = arguments::count(parser)?,
                Arg::Long("reads") => run.reads = arguments::count(parser)?,
                Arg::Long("connectors") => run.connectors = arguments::count(parser)?,
                Arg::Long("period") => run.period = Duration::from_secs(arguments::count(parser)?),
                Arg::Long("seconds") => run.time = Duration::from_secs(arguments::count(parser)?),
                Arg::Long("turns") => run.turns = arguments::count(parser)?,
                Arg::Long("only") => run.only = parser.value()?.string()?,
                other => return Err(other.unexpected().into()),
            }
        }
        if run.spawn.as_os_str().is_empty() || run.payments < 2 || run.reads == 0 {
            return Err("--spawn, at least two payments and one read are required".into());
        }
        if run.connectors == 0 || run.turns == 0 || run.period.is_zero() || run.time.is_zero() {
            return Err(
                "at least one connector and one turn, a polling period and a time are required".into()
            );
        }
        if !run.only.is_empty() && !PARTS.contains(&&*run.only) {
            return Err(format!("the parts are {}", PARTS.join(", ")).into());
        }
        Ok(run)
    }

    /// Returns whether a part is measured.
    pub(super) fn wants(&self, part: &str) -> bool {
        self.only.is_empty() || self.only == part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_options() {
        let parse = |arguments: &[&str]| HttpPayments::parse(&mut Parser::from_args(arguments));
        let run = parse(&["--spawn", "server", "--payments", "20k", "--only", "lists"]).expect("options");
        assert_eq!((run.payments, run.turns), (20_000, 3));
        assert!(run.wants("lists") && !run.wants("idle"));
        assert!(parse(&["--payments", "20k"]).is_err());
        assert!(parse(&["--spawn", "server", "--only", "else"]).is_err());
        assert!(parse(&["--spawn", "server", "--period", "0"]).is_err());
    }
}
