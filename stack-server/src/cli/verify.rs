//! The command `stack-server verify`: checks the journal and the index of a closed data directory, and prints the
//! findings.

use std::io::{self, Write as _};
use std::path::Path;

use ledger_store::{OpenError, ReadError, Store, VerifyError, VerifyReport, Violation, ViolationCode};
use thiserror::Error;

use crate::cli::config::ExpectedHead;
use crate::cli::directory::no_store;
use crate::cli::exit::Exit;
use crate::cli::progress::SharedMeter;

/// Adds a finding to the report unless the journal begins with the entries of the head that the operator has kept from
/// an earlier run (`--expect-head`).
fn check_head(store: &Store, expected: &ExpectedHead, report: &mut VerifyReport) {
    let (code, detail) = match store.chain_at(expected.entries) {
        Ok(Some(hash)) if hash == expected.hash => return,
        Ok(Some(hash)) => {
            let detail = format!("history was rewritten: the hash was {}, now it is {hash}", expected.hash);
            (ViolationCode::HeadMismatch, detail)
        }
        Ok(None) => {
            let detail =
                format!("the hash was {}, now the store is shorter or no commit ends here", expected.hash);
            (ViolationCode::HeadMismatch, detail)
        }
        Err(ReadError::Io(cause)) => {
            report.complete = false;
            (ViolationCode::StorageError, cause.to_string())
        }
        // The entries are damaged, so they are not those of the expected head.
        Err(error) => (ViolationCode::HeadMismatch, error.to_string()),
    };
    report.violations.push(Violation { code, ledger: None, position: Some(expected.entries), detail });
}

/// The reason why nothing was verified.
#[derive(Debug, Error)]
enum VerifyFailure {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Verify(#[from] VerifyError),
}

fn open_and_verify(
    directory: &Path,
    expected: Option<&ExpectedHead>,
    meter: &SharedMeter,
) -> Result<VerifyReport, VerifyFailure> {
    let store = Store::open_with(directory, &meter.options())?;
    let mut report = store.verify()?;
    if let Some(expected) = expected {
        check_head(&store, expected, &mut report);
    }
    Ok(report)
}

/// Prints a JSON line for each finding, and one with a summary. Ends with [`Exit::Incomplete`] if it found no damage but
/// could not check everything, for example because of a disk error.
pub fn verify(directory: &Path, expected: Option<&ExpectedHead>) -> Exit {
    if !Store::exists(directory) {
        // Opening the directory would create a store in it.
        eprintln!("stack-server: {}", no_store(directory));
        return Exit::CannotOpen;
    }
    // Shows the progress of the opening and of the verification.
    let meter = SharedMeter::on_stderr();
    let verified = open_and_verify(directory, expected, &meter);
    meter.clear();
    match verified {
        Ok(report) => {
            // The process that reads the output may end before the output does.
            let _ = io::stdout().write_all(report.to_json_lines().as_bytes());
            match (report.is_damaged(), report.complete) {
                (false, true) => Exit::Done,
                (true, _) => Exit::Damaged,
                (false, false) => Exit::Incomplete,
            }
        }
        Err(reason) => {
            eprintln!("stack-server: {}: {reason}", directory.display());
            Exit::CannotOpen
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::progress::Screen;

    #[test]
    fn draws_each_part_of_a_verification() {
        let home = tempfile::tempdir().expect("a directory");
        let store = Store::open(home.path().join("data")).expect("it opens");
        let ledger = store.ledger("main").expect("a name");
        ledger.transaction().posting("world", "users:1", 1, "USD").commit().expect("recorded");
        store.close().expect("it closes");
        drop((ledger, store));
        let screen = Screen::default();
        let report = open_and_verify(&home.path().join("data"), None, &screen.meter()).expect("it verifies");
        assert!(report.is_clean());
        assert_eq!(screen.labels(), ["recovering", "reading the journal", "replaying the journal"]);
    }
}
