//! Why a command line is refused.

use std::fmt;

/// Why a command line is refused; its text is for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(pub(super) String);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}
