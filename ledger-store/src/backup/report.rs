//! Restore points, reports and errors of backups.

use std::fmt;
use std::str::FromStr;

use ledger_core::Timestamp;
use ledger_journal::Head;

use crate::error::OpenError;

/// The work of a backup or a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupReport {
    /// Number of entries in the copy.
    pub entries: u64,
    /// Number of entries that were copied by this call.
    pub copied: u64,
    /// The hash of all entries of the copy. See [`Status::chain`](crate::Status::chain).
    pub chain: String,
}

impl BackupReport {
    pub(super) fn new(begin: Head, end: Head) -> Self {
        let entries = end.next.get() - 1;
        Self { entries, copied: end.next.get() - begin.next.get(), chain: end.chain.to_string() }
    }
}

/// How far a restored store goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RestorePoint {
    /// To the end of the backup.
    #[default]
    End,
    /// To this number of entries at most. [`Status::entries`](crate::Status::entries) counts them.
    Entries(u64),
    /// To the last entry that was recorded at this date or before.
    Date(Timestamp),
}

/// The text is neither a number of entries nor a date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestorePointError {
    text: String,
}

impl fmt::Display for RestorePointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is neither a number of entries nor a date such as 2024-05-01T10:00:00Z", self.text)
    }
}

impl std::error::Error for RestorePointError {}

impl FromStr for RestorePoint {
    type Err = RestorePointError;

    fn from_str(text: &str) -> Result<Self, RestorePointError> {
        let entries = text.parse().ok().map(Self::Entries);
        let point = entries.or_else(|| Timestamp::parse(text).ok().map(Self::Date));
        point.ok_or_else(|| RestorePointError { text: text.chars().take(100).collect() })
    }
}

/// Why a backup or a restore failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum BackupError {
    /// The store or the backup that is copied cannot be read.
    Source(OpenError),
    /// The directory of the copy cannot be opened or written.
    Destination(OpenError),
    /// The destination is a backup of another store.
    OtherStore,
    /// The destination has entries that the store does not have: somebody wrote to it, or the store was restored to an
    /// earlier point.
    OtherHistory {
        /// Number of entries in the destination.
        entries: u64,
    },
}

impl fmt::Display for BackupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(error) => write!(f, "the source cannot be read: {error}"),
            Self::Destination(error) => write!(f, "the destination cannot be used: {error}"),
            Self::OtherStore => f.write_str("the destination is a backup of another store"),
            Self::OtherHistory { entries } => write!(
                f,
                "the {entries} entries of the destination are not the first entries of the store: back up into an \
                 empty directory"
            ),
        }
    }
}

impl std::error::Error for BackupError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Source(error) | Self::Destination(error) => Some(error),
            Self::OtherStore | Self::OtherHistory { .. } => None,
        }
    }
}

pub(super) fn source(error: impl Into<OpenError>) -> BackupError {
    BackupError::Source(error.into())
}

pub(super) fn destination(error: impl Into<OpenError>) -> BackupError {
    BackupError::Destination(error.into())
}
