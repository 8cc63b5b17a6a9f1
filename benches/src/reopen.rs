//! What it takes to open a store whose process was killed.

use std::convert::Infallible;
use std::path::Path;
use std::time::Instant;

use ledger_store::Store;
use lexopt::Parser;

use crate::child::Spawned;
use crate::embedded::{Load, drive};
use crate::place::{Place, disk_bytes};
use crate::process::Memory;
use crate::report::{Report, millis};
use crate::workload::{Workload, ledger_name};
use crate::{Failure, calibration};

/// Starts this program again to write, kills it right after its last acknowledgement, and measures how long it
/// takes to open what it left, and to open it again after an orderly end.
///
/// # Errors
///
/// If the store fails, or it does not hold exactly what was acknowledged.
pub fn run(arguments: Vec<std::ffi::OsString>) -> Result<Report, Failure> {
    let load = Load::parse(&mut Parser::from_args(&arguments))?;
    let place = Place::new(load.data.clone())?;
    let mut report = Report::default();
    calibration::note_machine(place.path(), &mut report)?;
    let directory = place.path().join("store");
    // The last of two options of the same name counts.
    let child_arguments =
        [["reopen-writer".into()].to_vec(), arguments, ["--data".into(), place.path().into()].to_vec()];
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
    report.text("shape", load.profile.shape.name());
    report.count("transactions", load.transactions);
    report.count("accounts", load.profile.accounts);
    report.count("disk_bytes", disk_bytes(&directory)?);
    let expected = load.transactions + load.profile.accounts;
    open(&load, &directory, expected, "killed", &mut report)?;
    open(&load, &directory, expected, "closed", &mut report)?;
    report.count("rss_peak_bytes", Memory::now().peak);
    Ok(report)
}

/// The writer's last line.
const ACKNOWLEDGED: &str = "acknowledged";

/// What the child process does: it writes, says so, and waits to be killed.
///
/// # Errors
///
/// If the store fails or refuses anything.
pub fn write(parser: &mut Parser) -> Result<Infallible, Failure> {
    let load = Load::parse(parser)?;
    let place = Place::new(load.data.clone())?;
    let mut workload = Workload::new(load.profile.clone(), 1);
    let store = load.funded_store(&place.path().join("store"), &workload)?;
    drive(&load, &store, &mut workload)?;
    println!("{ACKNOWLEDGED}");
    loop {
        std::thread::park();
    }
}

/// Opens a store, notes how long it took, checks that it holds so many transactions, and closes it.
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
    use crate::workload::{Profile, Shape};

    #[test]
    fn a_store_that_holds_another_number_is_a_failure() {
        let place = tempfile::tempdir().expect("a directory");
        let profile = Profile { accounts: 10, shape: Shape::Rich, ..Profile::default() };
        let load = Load { profile, transactions: 50, ..Load::default() };
        let mut workload = Workload::new(load.profile.clone(), 1);
        let store = load.funded_store(place.path(), &workload).expect("a store");
        drive(&load, &store, &mut workload).expect("no refusal");
        store.close().expect("it is closed");
        drop(store);
        let mut report = Report::default();
        open(&load, place.path(), 60, "closed", &mut report).expect("all are there");
        assert!(report.get("open_closed_ms").is_some());
        assert!(open(&load, place.path(), 61, "closed", &mut report).is_err());
    }
}
