//! Logs of another store, and the reasons why one is refused.

use std::fmt;

use ledger_core::{LogEntry, LogId, Timestamp, WireHash};

/// A log with the hash that its export stated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedLog {
    /// The log. Its volumes are ignored: the import computes them again.
    pub entry: LogEntry,
    /// The stated hash. Compared in ledgers that compute hashes when they write.
    pub hash: Option<WireHash>,
    /// For a revert: the date that the log states for the last change of the original. Shown with the log. `None`
    /// means the date of the revert.
    pub original_updated_at: Option<Timestamp>,
    /// True if the log stated the volumes after its transaction. Some releases do not state them, and then the store
    /// does not show them either.
    pub tells_volumes: bool,
}

/// The reason why a log is not imported.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImportRefusal {
    /// The ledger was written to by other means, and accepts no more imported logs.
    InUse,
    /// The id is not greater than that of the last log, and the ledger's log with this id differs.
    LogExists,
    /// The stated hash does not match the content.
    WrongHash {
        /// The hash of the content.
        computed: WireHash,
        /// The stated hash.
        given: Option<WireHash>,
    },
    /// The log contradicts the logs before it.
    Inconsistent {
        /// The contradiction.
        reason: String,
    },
}

impl fmt::Display for ImportRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse => f.write_str("ledger is not in initializing state"),
            Self::LogExists => f.write_str("log already exists"),
            Self::WrongHash { computed, given } => {
                let given = given.map(|given| given.to_base64()).unwrap_or_default();
                write!(f, "invalid hash, expected {computed} got {given}")
            }
            Self::Inconsistent { reason } => f.write_str(reason),
        }
    }
}

impl std::error::Error for ImportRefusal {}

/// How many of the given logs the writer imported.
pub(crate) enum Imported {
    /// The writer imported all logs.
    All,
    /// Another import came first; nothing was done.
    Overtaken,
    /// The writer refused this log and imported those before it.
    Refused(LogId, ImportRefusal),
}
