//! The command `stack-server verify`: checks the journal and the index of a closed data directory, and prints the
//! findings.

use std::io::{self, Write as _};
use std::path::Path;

use ledger_store::{ReadError, Store, VerifyReport, Violation, ViolationCode};

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
    let verified =
        Store::open_with(directory, &meter.options()).map_err(|error| error.to_string()).and_then(|store| {
            let mut report = store.verify().map_err(|error| error.to_string())?;
            if let Some(expected) = expected {
                check_head(&store, expected, &mut report);
            }
            Ok(report)
        });
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
