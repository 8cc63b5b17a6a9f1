//! Tests that need a program or data that this machine may not have.

use std::fmt::Display;
use std::io::Write as _;

/// Prints that the running test is skipped. The harness does not capture this line, so it also appears if the test
/// passes.
pub(crate) fn skipped(reason: impl Display) {
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    // Ignore the error: without standard error, there is no reader.
    let _ = writeln!(std::io::stderr(), "skipped: {name}: {reason}");
}
