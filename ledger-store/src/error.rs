//! Errors of a store, one type for each kind of operation.

use std::fmt;
use std::path::PathBuf;

use ledger_core::LedgerName;
use ledger_journal::JournalError;

use crate::cause::Cause;
use crate::directory::DirectoryError;
use crate::documents::DocumentRejection;

/// The reason why a store cannot be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process, or another `Store` in this process, has the directory open.
    Locked {
        /// The directory.
        path: PathBuf,
        /// The holder's description of itself, usually its process id. Empty if that cannot be read.
        holder: String,
    },
    /// The directory has files but no manifest, so it is not a complete store.
    NotAStore {
        /// The directory.
        path: PathBuf,
        /// The files that were found.
        reason: String,
    },
    /// The directory is a store already, and a restore never overwrites one.
    Exists {
        /// The directory.
        path: PathBuf,
    },
    /// A newer release wrote the store. Nothing was changed.
    NewerFormat {
        /// The format found.
        found: u32,
        /// The newest that this release reads.
        supported: u32,
    },
    /// Bytes on disk differ from those that were written: the defect and where it is. Nothing was repaired, and the
    /// store does not open.
    Damaged(Cause),
    /// The operating system refused an access: the attempted access and its error.
    Io(Cause),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Locked { path, holder } if holder.is_empty() => {
                write!(f, "{} is in use by another process", path.display())
            }
            Self::Locked { path, holder } => write!(f, "{} is in use by {holder}", path.display()),
            Self::NotAStore { path, reason } => write!(f, "{} is not a store: {reason}", path.display()),
            Self::Exists { path } => {
                write!(f, "{} is a store already: choose an absent or empty directory", path.display())
            }
            Self::NewerFormat { found, supported } => {
                write!(f, "format version {found} is newer than {supported}, the newest this release reads")
            }
            Self::Damaged(cause) => write!(f, "damaged: {cause}"),
            Self::Io(cause) => cause.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Damaged(cause) | Self::Io(cause) => cause.source(),
            Self::Locked { .. } | Self::NotAStore { .. } | Self::Exists { .. } | Self::NewerFormat { .. } => {
                None
            }
        }
    }
}

impl OpenError {
    /// Returns whether opening the same directory may succeed later: another holder may close it, or the disk may work
    /// again.
    ///
    /// ```
    /// use ledger_store::OpenError;
    /// let path = std::path::PathBuf::from("data");
    /// assert!(OpenError::Locked { path: path.clone(), holder: "process 7".to_owned() }.is_retryable());
    /// assert!(!OpenError::Exists { path }.is_retryable());
    /// ```
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Locked { .. } | Self::Io(_) => true,
            Self::NotAStore { .. } | Self::Exists { .. } | Self::NewerFormat { .. } | Self::Damaged(_) => {
                false
            }
        }
    }
}

/// The reason why a write has no outcome. If the rules refuse a command, the outcome is a [`ledger_core::Rejection`]
/// and not this error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteError {
    /// The ledger does not exist. The write had no effect.
    LedgerNotFound {
        /// The name of the ledger.
        ledger: LedgerName,
    },
    /// A ledger with this name exists. The write had no effect.
    LedgerExists,
    /// The ledgers of this bucket were [removed](crate::Store::remove_deleted) for good. The write had no effect.
    BucketRemoved,
    /// A change of a document was refused. The write had no effect.
    Document(DocumentRejection),
    /// The queue is full. The write had no effect; try again later.
    Busy,
    /// The disk is nearly full. The write had no effect; try again when there is space.
    DiskNearlyFull,
    /// The disk refused an access before anything was written. The write had no effect; try again later.
    Storage(Cause),
    /// The commit failed. Whether the write is on disk is unknown until the store is opened again, and the store accepts
    /// no more writes. Or the write is on disk, but the details of its answer cannot be read; the store goes on then.
    OutcomeUnknown(Cause),
    /// The store accepts no more writes, because an earlier commit failed or the store is closing. The write had no
    /// effect.
    Stopped {
        /// The reason.
        reason: String,
    },
    /// A read that the write needs failed. The write had no effect; try again.
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
            Self::Storage(cause) => write!(f, "the disk refused: {cause}"),
            Self::OutcomeUnknown(cause) => write!(f, "the outcome of the write is unknown: {cause}"),
            Self::Stopped { reason } => write!(f, "the store takes no writes: {reason}"),
            Self::Read(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Document(rejection) => Some(rejection),
            Self::Storage(cause) | Self::OutcomeUnknown(cause) => cause.source(),
            Self::Read(error) => Some(error),
            Self::LedgerNotFound { .. }
            | Self::LedgerExists
            | Self::BucketRemoved
            | Self::Busy
            | Self::DiskNearlyFull
            | Self::Stopped { .. } => None,
        }
    }
}

impl WriteError {
    /// Returns whether the same write may succeed later. The failed attempt had no effect.
    ///
    /// ```
    /// use ledger_store::WriteError;
    /// assert!(WriteError::Busy.is_retryable());
    /// assert!(!WriteError::LedgerExists.is_retryable());
    /// ```
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Busy | Self::DiskNearlyFull | Self::Storage(_) => true,
            Self::Read(error) => error.is_retryable(),
            Self::LedgerNotFound { .. }
            | Self::LedgerExists
            | Self::BucketRemoved
            | Self::Document(_)
            | Self::OutcomeUnknown(_)
            | Self::Stopped { .. } => false,
        }
    }

    /// Returns whether the write may have taken effect.
    ///
    /// ```
    /// use ledger_store::WriteError;
    /// let failed = WriteError::OutcomeUnknown("input/output error".into());
    /// assert!(failed.is_outcome_unknown() && !failed.is_retryable());
    /// ```
    pub const fn is_outcome_unknown(&self) -> bool {
        matches!(self, Self::OutcomeUnknown(_))
    }
}

impl From<ReadError> for WriteError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

/// The reason why a read has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// Stored bytes differ from those that were written: the defect and where it is.
    Damaged(Cause),
    /// The query needs more work than the limits allow for one read.
    TooExpensive {
        /// The limit that was exceeded.
        reason: String,
    },
    /// The ledger was created without a feature that the query needs.
    MissingFeature {
        /// The feature, as the API spells it.
        feature: &'static str,
    },
    /// The ledger was removed for good during the read.
    LedgerRemoved,
    /// The operating system refused an access: the attempted access and its error.
    Io(Cause),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged(cause) => write!(f, "damaged: {cause}"),
            Self::TooExpensive { reason } => write!(f, "the query is too expensive: {reason}"),
            Self::MissingFeature { feature } => write!(f, "missing feature \"{feature}\""),
            Self::LedgerRemoved => f.write_str("the ledger was removed for good"),
            Self::Io(cause) => cause.fmt(f),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Damaged(cause) | Self::Io(cause) => cause.source(),
            Self::TooExpensive { .. } | Self::MissingFeature { .. } | Self::LedgerRemoved => None,
        }
    }
}

impl ReadError {
    /// Returns whether the same read may succeed later.
    ///
    /// ```
    /// use ledger_store::ReadError;
    /// assert!(ReadError::Io("input/output error".into()).is_retryable());
    /// assert!(!ReadError::LedgerRemoved.is_retryable());
    /// ```
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Io(_) => true,
            Self::Damaged(_)
            | Self::TooExpensive { .. }
            | Self::MissingFeature { .. }
            | Self::LedgerRemoved => false,
        }
    }
}

impl From<DirectoryError> for OpenError {
    fn from(error: DirectoryError) -> Self {
        match error {
            DirectoryError::InUse { path, holder } => Self::Locked { path, holder },
            DirectoryError::NotAStore { path, found } => {
                Self::NotAStore { path, reason: format!("it has {found}") }
            }
            DirectoryError::Exists { path } => Self::Exists { path },
            DirectoryError::NewerFormat { found, supported, .. } => Self::NewerFormat { found, supported },
            error @ (DirectoryError::Missing { .. } | DirectoryError::Damaged { .. }) => {
                Self::Damaged(Cause::of(error))
            }
            DirectoryError::Journal(error) => error.into(),
            error @ DirectoryError::Storage { .. } => Self::Io(Cause::of(error)),
        }
    }
}

impl From<JournalError> for OpenError {
    fn from(error: JournalError) -> Self {
        let is_of_the_disk = matches!(error, JournalError::Storage { .. });
        let cause = Cause::of(error);
        if is_of_the_disk { Self::Io(cause) } else { Self::Damaged(cause) }
    }
}
