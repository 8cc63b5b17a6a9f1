//! The sub-command `hot-account`: measures reads of an account that takes part in every transaction.

use ledger_store::{SystemClock, TimeSource};
use lexopt::{Arg, Parser};

use crate::data_dir::{DataDir, disk_bytes};
use crate::embedded::{Load, drive};
use crate::reads::{ReadKind, Reader, note};
use crate::report::{Report, rate};
use crate::workload::{Content, Workload, address};
use crate::{Failure, arguments, calibration};

/// The options of a run.
#[derive(Clone, Debug)]
pub struct HotAccount {
    /// The load to write. Account 0 is the destination of every transaction.
    pub load: Load,
    /// Number of measurements of each kind of read.
    pub reads: u64,
}

impl Default for HotAccount {
    fn default() -> Self {
        let mut load = Load::default();
        load.profile.hot_percent = 100;
        load.profile.backdated_percent = 10;
        Self { load, reads: 2_000 }
    }
}

impl HotAccount {
    /// Parses the options of the sub-command.
    ///
    /// # Errors
    ///
    /// Fails if an option is unknown or its value is invalid.
    pub fn parse(parser: &mut Parser) -> Result<Self, Failure> {
        let mut hot = Self::default();
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("transactions") => hot.load.transactions = arguments::count(parser)?,
                Arg::Long("accounts") => hot.load.profile.accounts = arguments::count(parser)?,
                Arg::Long("rich") => hot.load.profile.content = Content::Rich,
                Arg::Long("plain") => hot.load.profile.content = Content::Plain,
                Arg::Long("backdated") => hot.load.profile.backdated_percent = arguments::percent(parser)?,
                Arg::Long("memory-budget") => hot.load.memory_budget = arguments::bytes(parser)?,
                Arg::Long("data") => hot.load.data = Some(parser.value()?.into()),
                Arg::Long("reads") => hot.reads = arguments::count(parser)?,
                other => return Err(other.unexpected().into()),
            }
        }
        if hot.load.profile.accounts < 2 || hot.load.transactions == 0 {
            return Err("at least two accounts and one transaction are required".into());
        }
        Ok(hot)
    }
}

/// Writes the load, then measures each kind of read of the hot account.
///
/// # Errors
///
/// Fails if the store fails or refuses a transaction.
pub fn run(hot: &HotAccount) -> Result<Report, Failure> {
    let load = &hot.load;
    let data_dir = DataDir::new(load.data.clone())?;
    let mut report = Report::default();
    calibration::note_machine(data_dir.path(), &mut report)?;
    let mut workload = Workload::new(load.profile.clone(), 1);
    let directory = data_dir.path().join("store");
    let store = load.funded_store(&directory, &workload)?;
    let from = SystemClock.now();
    let begin = std::time::Instant::now();
    let stats = drive(load, &store, &mut workload)?;
    store.flush();
    let took = begin.elapsed();
    let to = SystemClock.now();
    report.text("what", "hot-account");
    report.text("content", load.profile.content.name());
    // Every transaction has a posting to the hot account, and so has the one that funded it.
    report.count("hot_transactions", stats.recorded + 1);
    // The rate until the index holds all transactions.
    report.number("tx_per_s_indexed", rate(stats.recorded, took));
    println!("rate: {:.0} tx/s to the end of the flush", rate(stats.recorded, took));
    let mut reader = Reader::new(&[address(0)], from, to, 1);
    for kind in ReadKind::ALL {
        let measured = reader.run(&store, &[kind], 0, |asked| asked >= hot.reads)?;
        note(&mut report, "", &measured);
    }
    store.close()?;
    let bytes = disk_bytes(&directory)? as f64 / (stats.recorded + load.profile.accounts) as f64;
    report.number("bytes_per_tx", bytes);
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_transfer_uses_the_hot_account() {
        let mut hot = HotAccount { reads: 20, ..HotAccount::default() };
        hot.load.transactions = 300;
        hot.load.profile.accounts = 10;
        let report = run(&hot).expect("figures");
        assert_eq!(report.get("hot_transactions").and_then(serde_json::Value::as_u64), Some(301));
        let figure = report.get("volumes_by_effect_p99_ms").and_then(serde_json::Value::as_f64);
        assert!(figure.is_some_and(|figure| figure > 0.0));
    }
}
