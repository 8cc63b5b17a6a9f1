//! Restore points, reports and errors of backups.

use std::fmt;
use std::str::FromStr;

use ledger_core::Timestamp;
use ledger_journal::Head;

use crate::error::OpenError;

/// A report of a backup or a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct BackupReport {
    /// Number of entries in the copy.
    pub entries: u64,
    /// Number of entries that this call copied.
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

/// The point at which a restored store ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RestorePoint {
    /// The end of the backup.
    #[default]
    End,
    /// At most this number of entries. [`Status::entries`](crate::Status::entries) counts them.
    Entries(u64),
    /// The last entry that was recorded at or before this date.
    Date(Timestamp),
}

/// The error for a text that is neither a number of entries nor a date.
///
/// ```
/// use ledger_store::{RestorePoint, RestorePointError, ledger_core::Timestamp};
/// let at = |text: &str| text.parse::<RestorePoint>();
/// assert_eq!(at("17"), Ok(RestorePoint::Entries(17)));
/// assert_eq!(at("1970-01-01T00:00:00Z"), Ok(RestorePoint::Date(Timestamp::from_micros(0))));
/// let refused: RestorePointError = at("yesterday").unwrap_err();
/// assert!(refused.to_string().starts_with("\"yesterday\" is neither a number of entries nor a date"));
/// ```
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

/// The reason why a backup or a restore failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum BackupError {
    /// The source, a store or a backup, cannot be read.
    Source(OpenError),
    /// The destination cannot be opened or written.
    Destination(OpenError),
    /// The destination is a backup of another store.
    OtherStore,
    /// The destination has entries that the store does not have: something else wrote to it, or the store was restored
    /// to an earlier point.
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

impl BackupError {
    /// Returns whether the same call may succeed later, because a directory was in use or the disk refused an access. A
    /// backup continues where it stopped. For a restore, remove the new directory first.
    ///
    /// ```
    /// use ledger_store::{BackupError, OpenError};
    /// assert!(BackupError::Destination(OpenError::Io("input/output error".into())).is_retryable());
    /// assert!(!BackupError::OtherStore.is_retryable());
    /// ```
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Source(error) | Self::Destination(error) => error.is_retryable(),
            Self::OtherStore | Self::OtherHistory { .. } => false,
        }
    }
}

pub(super) fn source(error: impl Into<OpenError>) -> BackupError {
    BackupError::Source(error.into())
}

pub(super) fn destination(error: impl Into<OpenError>) -> BackupError {
    BackupError::Destination(error.into())
}
