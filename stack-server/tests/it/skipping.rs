//! Tests that need a program or data that this machine may not have.

use std::fmt::Display;
use std::io::Write as _;

/// Says that the running test is skipped. The harness does not capture this line, so it also appears when the test passes.
pub(crate) fn skipped(reason: impl Display) {
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    // Without standard error nobody reads it.
    let _ = writeln!(std::io::stderr(), "skipped: {name}: {reason}");
}
