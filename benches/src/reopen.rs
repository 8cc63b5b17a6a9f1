//! The sub-command `reopen`: measures the time to open a store after its process was killed.

use std::convert::Infallible;
use std::path::Path;
use std::time::Instant;

use ledger_store::Store;
use lexopt::Parser;

use crate::child::Spawned;
use crate::data_dir::{DataDir, disk_bytes};
use crate::embedded::{Load, drive};
use crate::process::Memory;
use crate::report::{Report, millis};
use crate::workload::{Workload, ledger_name};
use crate::{Failure, calibration};

/// Starts this program again to write, and kills it right after its last acknowledgement. Measures the time
/// to open the store, and the time to open it again after an orderly close.
///
/// # Errors
///
/// Fails if the store fails, or does not hold exactly the acknowledged transactions.
pub fn run(arguments: Vec<std::ffi::OsString>) -> Result<Report, Failure> {
    let load = Load::parse(&mut Parser::from_args(&arguments))?;
    let data_dir = DataDir::new(load.data.clone())?;
    let mut report = Report::default();
    calibration::note_machine(data_dir.path(), &mut report)?;
    let directory = data_dir.path().join("store");
    // The last `--data` counts, so this one replaces the caller's.
    let child_arguments =
        [["reopen-writer".into()].to_vec(), arguments, ["--data".into(), data_dir.path().into()].to_vec()];
    let mut writer = Spawned::start(std::env::current_exe()?, child_arguments.concat())?;
    loop {
        match writer.line()? {
            Some(line) if line == ACKNOWLEDGED => break,
            Some(line) => println!("writer: {line}"),
            None => return Err("the writer ended before everything was acknowledged".into()),
        }
    }
    writer.kill()?;
    report.text("what", "reopen");
    report.text("content", load.profile.content.name());
    report.count("transactions", load.transactions);
    report.count("accounts", load.profile.accounts);
    report.count("disk_bytes", disk_bytes(&directory)?);
    // One more transaction funds each account.
    let expected = load.transactions + load.profile.accounts;
    open(&load, &directory, expected, "killed", &mut report)?;
    open(&load, &directory, expected, "closed", &mut report)?;
    report.count("rss_peak_bytes", Memory::now().peak);
    Ok(report)
}

/// The line that the writer prints when all its transactions are acknowledged.
const ACKNOWLEDGED: &str = "acknowledged";

/// Writes, prints `ACKNOWLEDGED`, and waits to be killed. The child process calls this function.
///
/// # Errors
///
/// Fails if the store fails or refuses a transaction.
pub fn write(parser: &mut Parser) -> Result<Infallible, Failure> {
    let load = Load::parse(parser)?;
    let data_dir = DataDir::new(load.data.clone())?;
    let mut workload = Workload::new(load.profile.clone(), 1);
    let store = load.funded_store(&data_dir.path().join("store"), &workload)?;
    drive(&load, &store, &mut workload)?;
    println!("{ACKNOWLEDGED}");
    loop {
        std::thread::park();
    }
}

/// Opens a store, reports the time, checks the number of its transactions, and closes it. `after` says how the store
/// ended before: "killed" or "closed". It becomes part of the names of the figures.
fn open(
    load: &Load,
    directory: &Path,
    expected: u64,
    after: &str,
    report: &mut Report,
) -> Result<(), Failure> {
    let begin = Instant::now();
    let store = Store::open_with(directory, &load.options())?;
    let took = begin.elapsed();
    let opening = store.opening().clone();
    let view = store.snapshot().ledger(&ledger_name()).ok_or("the ledger is lost")?;
    let found = view.stats()?.transactions;
    if found != expected {
        return Err(format!("{expected} transactions were acknowledged, {found} are there").into());
    }
    report.number(&format!("open_{after}_ms"), millis(took));
    report.count(&format!("replayed_{after}"), opening.replayed);
    println!(
        "open after it was {after}: {:.1} ms, {} entries replayed, {found} transactions",
        millis(took),
        opening.replayed
    );
    if let Some(why) = &opening.rebuilt {
        report.text(&format!("rebuilt_{after}"), why);
        println!("the index was built from nothing: {why}");
    }
    store.close()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Content, Profile};

    #[test]
    fn refuses_a_wrong_number_of_transactions() {
        let data_dir = tempfile::tempdir().expect("a directory");
        let profile = Profile { accounts: 10, content: Content::Rich, ..Profile::default() };
        let load = Load { profile, transactions: 50, ..Load::default() };
        let mut workload = Workload::new(load.profile.clone(), 1);
        let store = load.funded_store(data_dir.path(), &workload).expect("a store");
        drive(&load, &store, &mut workload).expect("no refusal");
        store.close().expect("the store closes");
        drop(store);
        let mut report = Report::default();
        open(&load, data_dir.path(), 60, "closed", &mut report).expect("all are there");
        assert!(report.get("open_closed_ms").is_some());
        assert!(open(&load, data_dir.path(), 61, "closed", &mut report).is_err());
    }
}
