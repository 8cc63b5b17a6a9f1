//! Logs of another store, and why one is not taken over.

use std::fmt;

use ledger_core::{LogEntry, LogId, Timestamp, WireHash};

/// A log and the hash that it came with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedLog {
    /// The log. Volumes in it are not looked at: they are computed again.
    pub entry: LogEntry,
    /// Its hash. Looked at in ledgers that hash as they write.
    pub hash: Option<WireHash>,
    /// Of a revert, when the original had last changed by what the log says; it is shown with the log. `None`
    /// is when it was reverted.
    pub original_updated_at: Option<Timestamp>,
    /// Whether the log told the volumes after its transaction. Those of a release that did not are shown without.
    pub tells_volumes: bool,
}

/// The reason why a log is not imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportRefusal {
    /// Something was written to the ledger: it takes no new logs any more.
    InUse,
    /// Its id is not greater than that of the last log, and it is not the log that has this id.
    LogExists,
    /// It is not what was hashed.
    WrongHash {
        /// Its hash.
        computed: WireHash,
        /// The hash that it came with.
        given: Option<WireHash>,
    },
    /// It does not follow from the logs before it.
    Inconsistent {
        /// Why.
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

/// How far the writer got with some logs.
pub(crate) enum Imported {
    /// All are in.
    All,
    /// Another import came in between, nothing was done.
    Overtaken,
    /// This one was refused, those before it are in.
    Refused(LogId, ImportRefusal),
}
