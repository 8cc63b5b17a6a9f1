//! Why the index does not answer.

use std::fmt;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ledger_codec::Corrupt;

/// Why the index did not answer.
///
/// The index can be rebuilt from the journal; none of these is a loss.
#[derive(Debug)]
pub enum IndexError {
    /// Stored bytes are not what was written.
    Damaged {
        /// The table they are in.
        table: String,
        /// The broken rule.
        what: &'static str,
    },
    /// It was written by another release. That is no damage.
    OtherFormat,
    /// The storage engine failed, or the disk below it.
    Storage(Box<redb::Error>),
    /// The storage engine panicked, as it does on damaged pages.
    Panicked {
        /// The operation.
        doing: &'static str,
    },
}

impl IndexError {
    /// The damage of a table: which rule its stored bytes break.
    pub fn damaged(table: &str, what: &'static str) -> Self {
        Self::Damaged { table: table.to_owned(), what }
    }

    /// The damage of a table whose stored bytes do not follow their layout.
    pub fn corrupt(table: &str, corrupt: Corrupt) -> Self {
        Self::damaged(table, corrupt.what)
    }

    /// Whether the disk refused, such as one that is full: that says nothing of what is stored.
    pub fn is_of_the_disk(&self) -> bool {
        let Self::Storage(error) = self else { return false };
        match &**error {
            redb::Error::Io(error) => is_refusal(error.kind()),
            error => matches!(error, redb::Error::PreviousIo),
        }
    }
}

/// Whether an error of an access to the file is a refusal of the disk.
///
/// A read behind the end of the file and a wrong magic number come as errors of the disk too. Both are damage.
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
            Self::Storage(error) => Some(error),
            Self::Damaged { .. } | Self::OtherFormat | Self::Panicked { .. } => None,
        }
    }
}

/// An error of the storage engine as one of the index.
pub(super) fn storage(error: impl Into<redb::Error>) -> IndexError {
    IndexError::Storage(Box::new(error.into()))
}

/// Runs what calls into the storage engine; its panic becomes an error.
pub(super) fn shield<T>(
    doing: &'static str,
    action: impl FnOnce() -> Result<T, IndexError>,
) -> Result<T, IndexError> {
    // The engine's shared state survives a panic: its locks latch it and refuse from then on.
    catch_unwind(AssertUnwindSafe(action)).unwrap_or(Err(IndexError::Panicked { doing }))
}
