//! Errors of a journal.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::{Position, StoreId};

/// An error of the journal.
///
/// Paths name the file that a person has to look at. Only after [`JournalError::OutcomeUnknown`] is it unknown whether
/// an append took place.
#[derive(Debug)]
#[non_exhaustive]
pub enum JournalError {
    /// The append expected another head: something else has appended.
    Fenced {
        /// The next position that the caller expected.
        expected: Position,
        /// The next position of the journal.
        next: Position,
    },
    /// The chunks to append break a rule, which is a bug of the caller.
    BadDraft {
        /// The first position of the offending chunk.
        position: Position,
        /// The broken rule.
        what: &'static str,
    },
    /// Stored bytes differ from those that were written.
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first affected position, if known.
        position: Option<Position>,
        /// The broken rule.
        what: String,
    },
    /// A file is empty. The journal never takes an empty file for a new one.
    ZeroLength {
        /// The file.
        path: PathBuf,
    },
    /// A file is missing.
    Missing {
        /// The path where the file should be.
        path: PathBuf,
        /// The first position that the file holds.
        first: Position,
    },
    /// The journal's directory contains a file that does not belong to a journal.
    UnknownFile {
        /// The file.
        path: PathBuf,
    },
    /// Two segments do not join: entries are missing between them, or they belong to different histories.
    Gap {
        /// The later segment.
        path: PathBuf,
        /// The position where the earlier segment ends.
        expected: Position,
        /// The position where the later segment begins.
        found: Position,
    },
    /// A file belongs to another store.
    ForeignStore {
        /// The file.
        path: PathBuf,
        /// The id of the opened store.
        expected: StoreId,
        /// The id of the store that the file belongs to.
        found: StoreId,
    },
    /// A newer version of this software wrote a file.
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// The format version of the file.
        found: u8,
        /// The newest format version that this software reads.
        supported: u8,
    },
    /// The disk failed. If an append returns this, it did not take place.
    Storage {
        /// The file.
        path: PathBuf,
        /// The attempted action.
        action: &'static str,
        /// The error of the disk.
        cause: io::Error,
    },
    /// The commit of an append failed. Only reopening the journal shows whether it contains the entries.
    OutcomeUnknown {
        /// The file.
        path: PathBuf,
        /// The first position of the append.
        position: Position,
        /// The error of the disk.
        cause: io::Error,
    },
    /// An earlier append failed. The journal accepts no more appends until it is reopened.
    Poisoned,
}

impl JournalError {
    /// Returns whether the disk refused for lack of space. The operation may succeed once there is more.
    pub fn is_out_of_space(&self) -> bool {
        matches!(self, Self::Storage { cause, .. } if is_out_of_space(cause))
    }
}

/// Returns whether a disk error means lack of space.
pub(super) fn is_out_of_space(cause: &io::Error) -> bool {
    matches!(
        cause.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fenced { expected, next } => {
                write!(f, "append expected position {expected}, the next is {next}")
            }
            Self::BadDraft { position, what } => write!(f, "chunk at position {position} refused: {what}"),
            Self::Damaged { path, position: Some(position), what } => {
                write!(f, "{} is damaged at position {position}: {what}", path.display())
            }
            Self::Damaged { path, position: None, what } => {
                write!(f, "{} is damaged: {what}", path.display())
            }
            Self::ZeroLength { path } => write!(f, "{} is damaged: it has no bytes", path.display()),
            Self::Missing { path, first } => {
                write!(f, "{} is missing, with the entries from position {first}", path.display())
            }
            Self::UnknownFile { path } => write!(f, "{} is no file of a journal", path.display()),
            Self::Gap { path, expected, found } => write!(
                f,
                "{} begins at position {found} and does not join the segment before it, which ends before {expected}",
                path.display()
            ),
            Self::ForeignStore { path, expected, found } => {
                write!(f, "{} belongs to store {found}, not to {expected}", path.display())
            }
            Self::NewerFormat { path, found, supported } => write!(
                f,
                "{} has format version {found}; this version reads up to {supported}",
                path.display()
            ),
            Self::Storage { path, action, cause } => {
                write!(f, "cannot {action} {}: {cause}", path.display())
            }
            Self::OutcomeUnknown { path, position, cause } => write!(
                f,
                "the append at position {position} to {} may or may not have taken place: {cause}",
                path.display()
            ),
            Self::Poisoned => f.write_str("the journal takes no appends after a failed one; open it again"),
        }
    }
}

impl std::error::Error for JournalError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Storage { cause, .. } | Self::OutcomeUnknown { cause, .. } => Some(cause),
            Self::Fenced { .. }
            | Self::BadDraft { .. }
            | Self::Damaged { .. }
            | Self::ZeroLength { .. }
            | Self::Missing { .. }
            | Self::UnknownFile { .. }
            | Self::Gap { .. }
            | Self::ForeignStore { .. }
            | Self::NewerFormat { .. }
            | Self::Poisoned => None,
        }
    }
}
