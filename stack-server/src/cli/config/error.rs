//! The error of a command line or of an environment variable that sets a flag.

use std::fmt;

/// The reason why the server refuses its flags or environment variables. Its text is for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(pub(super) String);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}
