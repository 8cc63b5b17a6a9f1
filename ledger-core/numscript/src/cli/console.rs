//! The input, the outputs and the results that all verbs share.

use std::io::{Read, Write};
use std::path::Path;

/// Result of a verb that ran to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommandStatus {
    /// Every script and case is in order.
    Success,
    /// At least one script or case has a fault.
    Failure,
}

/// The outputs of the verbs.
pub(super) struct Console<'a> {
    /// Stream for results.
    pub(super) out: &'a mut dyn Write,
    /// Stream for messages about files that cannot be used.
    pub(super) errors: &'a mut dyn Write,
    /// True if `out` shows colours.
    pub(super) colored: bool,
}

/// Reason why a verb cannot go on.
pub(super) enum CommandError {
    /// The command line is invalid, or names a file that does not exist.
    Usage(String),
    /// The output cannot be written. Its reader may have closed it, so the error cannot be reported.
    Output,
}

impl From<std::io::Error> for CommandError {
    fn from(_: std::io::Error) -> Self {
        Self::Output
    }
}

/// Reads a file, or the standard input for `-`.
pub(super) fn load(path: &Path) -> Result<String, CommandError> {
    let read = if path.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(path)
    };
    read.map_err(|error| CommandError::Usage(format!("{}: {error}", path.display())))
}
