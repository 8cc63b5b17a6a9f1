//! Errors of the index.

use std::fmt;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ledger_codec::Corrupt;

/// The reason why the index did not answer.
///
/// No error means a loss of data: the index can be rebuilt from the journal.
#[derive(Debug)]
#[non_exhaustive]
pub enum IndexError {
    /// Stored bytes differ from those that were written.
    Damaged {
        /// The table that contains them.
        table: String,
        /// The broken rule.
        what: &'static str,
    },
    /// Another release wrote the file. This is not damage.
    OtherFormat,
    /// redb or the disk failed.
    Storage(Box<redb::Error>),
    /// redb panicked, as it does on damaged pages.
    Panicked {
        /// The operation.
        doing: &'static str,
    },
}

impl IndexError {
    /// Creates the error for damage in a table. `what` is the rule that its bytes break.
    pub fn damaged(table: &str, what: &'static str) -> Self {
        Self::Damaged { table: table.to_owned(), what }
    }

    /// Creates the error for a table whose bytes do not follow their layout.
    pub fn corrupt(table: &str, corrupt: Corrupt) -> Self {
        Self::damaged(table, corrupt.what)
    }

    /// Returns whether the disk refused an access, for example because it is full. Such an error implies nothing about
    /// the stored data.
    pub fn is_of_the_disk(&self) -> bool {
        let Self::Storage(error) = self else { return false };
        match &**error {
            redb::Error::Io(error) => is_refusal(error.kind()),
            error => matches!(error, redb::Error::PreviousIo),
        }
    }
}

/// Returns whether an error of an access to the file is a refusal by the disk.
///
/// A read after the end of the file and a wrong magic number also appear as disk errors, but mean damage.
pub(super) fn is_refusal(kind: ErrorKind) -> bool {
    !matches!(kind, ErrorKind::UnexpectedEof | ErrorKind::InvalidData)
}

impl fmt::Display for IndexError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged { table, what } => write!(formatter, "the index is damaged in {table}: {what}"),
            Self::OtherFormat => formatter.write_str("the index is of another format"),
            Self::Storage(error) => write!(formatter, "the index cannot be accessed: {error}"),
            Self::Panicked { doing } => write!(formatter, "the index is damaged: panic while {doing}"),
        }
    }
}

impl std::error::Error for IndexError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Storage(error) => match &**error {
                // redb names no source, so its own error would hide that of the disk.
                redb::Error::Io(error) => Some(error),
                error => Some(error),
            },
            Self::Damaged { .. } | Self::OtherFormat | Self::Panicked { .. } => None,
        }
    }
}

/// Converts an error of redb.
pub(super) fn storage(error: impl Into<redb::Error>) -> IndexError {
    IndexError::Storage(Box::new(error.into()))
}

/// Runs code that calls redb, and converts its panic into an error.
pub(super) fn catch_redb_panic<T>(
    doing: &'static str,
    action: impl FnOnce() -> Result<T, IndexError>,
) -> Result<T, IndexError> {
    // The state that redb shares survives a panic: its locks are poisoned and refuse further use.
    catch_unwind(AssertUnwindSafe(action)).unwrap_or(Err(IndexError::Panicked { doing }))
}
