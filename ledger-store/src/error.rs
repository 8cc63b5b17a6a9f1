//! Errors of a store, by kind of operation.

use std::fmt;
use std::path::PathBuf;

use ledger_core::LedgerName;
use ledger_journal::JournalError;

use crate::directory::DirectoryError;
use crate::documents::DocumentRejection;

/// Why a store does not open.
#[derive(Debug)]
pub enum OpenError {
    /// Another process, or another `Store` of this one, has the directory.
    Locked {
        /// The directory.
        path: PathBuf,
        /// The holder's description of itself, usually its process id; empty if that cannot be read.
        holder: String,
    },
    /// The directory has files but no manifest: it is not a store, or not a whole one.
    NotAStore {
        /// The directory.
        path: PathBuf,
        /// The files that were found.
        reason: String,
    },
    /// Written by a newer release; nothing was touched.
    NewerFormat {
        /// The format found.
        found: u32,
        /// The newest that this release reads.
        supported: u32,
    },
    /// Bytes on disk are not what was written there. Nothing was repaired and nothing is served.
    Damaged {
        /// The defect and its place.
        reason: String,
    },
    /// The operating system refused.
    Io {
        /// The attempted access.
        reason: String,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Locked { path, holder } if holder.is_empty() => {
                write!(f, "{} is in use by another process", path.display())
            }
            Self::Locked { path, holder } => write!(f, "{} is in use by {holder}", path.display()),
            Self::NotAStore { path, reason } => write!(f, "{} is not a store: {reason}", path.display()),
            Self::NewerFormat { found, supported } => {
                write!(f, "format version {found} is newer than {supported}, the newest this release reads")
            }
            Self::Damaged { reason } => write!(f, "damaged: {reason}"),
            Self::Io { reason } => f.write_str(reason),
        }
    }
}

impl std::error::Error for OpenError {}

/// Why a write has no outcome. A refusal by the rules is no such error: see [`ledger_core::Rejection`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// No such ledger. Nothing happened.
    LedgerNotFound {
        /// Its name.
        ledger: LedgerName,
    },
    /// A ledger of this name exists. Nothing happened.
    LedgerExists,
    /// The ledgers of this bucket were [removed](crate::Store::remove_deleted) for good. Nothing happened.
    BucketRemoved,
    /// Documents were not to be changed so. Nothing happened.
    Document(DocumentRejection),
    /// The queue is full. Nothing happened; try again later.
    Busy,
    /// The disk is nearly full. Nothing happened; it can be tried again when there is room.
    DiskNearlyFull,
    /// The disk refused before anything was written. Nothing happened; try again later.
    Storage {
        /// The disk's answer.
        reason: String,
    },
    /// The commit failed: whether the write is on disk is unknown until the store is opened again. The store
    /// takes no more writes.
    OutcomeUnknown {
        /// The failure.
        reason: String,
    },
    /// The store takes no writes any more since an earlier commit failed or it is closing. Nothing happened.
    Stopped {
        /// Why.
        reason: String,
    },
    /// A failed read of something that the write needs. Nothing happened; it can be tried again.
    Read(ReadError),
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LedgerNotFound { ledger } => write!(f, "ledger \"{ledger}\" not found"),
            Self::LedgerExists => f.write_str("ledger already exists"),
            Self::BucketRemoved => f.write_str("the bucket was removed for good"),
            Self::Document(rejection) => rejection.fmt(f),
            Self::Busy => f.write_str("too many writes are waiting"),
            Self::DiskNearlyFull => f.write_str("the disk is nearly full"),
            Self::Storage { reason } => write!(f, "the disk refused: {reason}"),
            Self::OutcomeUnknown { reason } => write!(f, "the outcome of the write is unknown: {reason}"),
            Self::Stopped { reason } => write!(f, "the store takes no writes: {reason}"),
            Self::Read(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for WriteError {}

impl WriteError {
    /// Whether the same write may succeed later. Nothing of it happened.
    ///
    /// ```
    /// use ledger_store::WriteError;
    /// assert!(WriteError::Busy.is_retryable());
    /// assert!(!WriteError::LedgerExists.is_retryable());
    /// ```
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Busy | Self::DiskNearlyFull | Self::Storage { .. } => true,
            Self::Read(error) => error.is_retryable(),
            Self::LedgerNotFound { .. }
            | Self::LedgerExists
            | Self::BucketRemoved
            | Self::Document(_)
            | Self::OutcomeUnknown { .. }
            | Self::Stopped { .. } => false,
        }
    }

    /// Whether the write may have happened.
    ///
    /// ```
    /// use ledger_store::WriteError;
    /// let failed = WriteError::OutcomeUnknown { reason: "input/output error".to_owned() };
    /// assert!(failed.is_outcome_unknown() && !failed.is_retryable());
    /// ```
    pub const fn is_outcome_unknown(&self) -> bool {
        matches!(self, Self::OutcomeUnknown { .. })
    }
}

impl From<ReadError> for WriteError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

/// Why a read has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// Stored bytes are not what was written.
    Damaged {
        /// The defect and its place.
        reason: String,
    },
    /// The question would take more work than one read may.
    TooExpensive {
        /// Which limit was hit.
        reason: String,
    },
    /// The ledger was created without what the question asks for.
    MissingFeature {
        /// The feature, as the API spells it.
        feature: &'static str,
    },
    /// The ledger was removed for good while it was read.
    LedgerRemoved,
    /// The operating system refused.
    Io {
        /// The attempted access.
        reason: String,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged { reason } => write!(f, "damaged: {reason}"),
            Self::TooExpensive { reason } => write!(f, "the query is too expensive: {reason}"),
            Self::MissingFeature { feature } => write!(f, "missing feature \"{feature}\""),
            Self::LedgerRemoved => f.write_str("the ledger was removed for good"),
            Self::Io { reason } => f.write_str(reason),
        }
    }
}

impl std::error::Error for ReadError {}

impl ReadError {
    /// Whether the same read may succeed later.
    ///
    /// ```
    /// use ledger_store::ReadError;
    /// assert!(ReadError::Io { reason: "input/output error".to_owned() }.is_retryable());
    /// assert!(!ReadError::LedgerRemoved.is_retryable());
    /// ```
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::Io { .. })
    }
}

impl From<DirectoryError> for OpenError {
    fn from(error: DirectoryError) -> Self {
        match error {
            DirectoryError::InUse { path, holder } => Self::Locked { path, holder },
            DirectoryError::NotAStore { path, found } => {
                Self::NotAStore { path, reason: format!("it has {found}") }
            }
            DirectoryError::NewerFormat { found, supported, .. } => Self::NewerFormat { found, supported },
            error @ (DirectoryError::Missing { .. } | DirectoryError::Damaged { .. }) => {
                Self::Damaged { reason: error.to_string() }
            }
            DirectoryError::Journal(error) => error.into(),
            error @ DirectoryError::Storage { .. } => Self::Io { reason: error.to_string() },
        }
    }
}

impl From<JournalError> for OpenError {
    fn from(error: JournalError) -> Self {
        match error {
            error @ JournalError::Storage { .. } => Self::Io { reason: error.to_string() },
            error => Self::Damaged { reason: error.to_string() },
        }
    }
}
