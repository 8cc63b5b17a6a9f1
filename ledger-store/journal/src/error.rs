//! Errors of a journal.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::{Position, StoreId};

/// A refusal or failure of the journal.
///
/// Paths name the file a person has to look at. Only
/// [`JournalError::OutcomeUnknown`] leaves it open if an append took place.
#[derive(Debug)]
pub enum JournalError {
    /// The append expected another head: someone else has appended.
    Fenced {
        /// The caller's next position.
        expected: Position,
        /// The journal's next position.
        next: Position,
    },
    /// The chunks to append break a rule; a defect of the caller.
    BadDraft {
        /// The first position of the offending chunk.
        position: Position,
        /// The rule.
        what: &'static str,
    },
    /// Stored bytes are not what was written.
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first position that is affected, where one is known.
        position: Option<Position>,
        /// The broken rule.
        what: String,
    },
    /// A file has no bytes at all. It is never taken for a new one.
    ZeroLength {
        /// The file.
        path: PathBuf,
    },
    /// A file that must exist does not.
    Missing {
        /// Where it should be.
        path: PathBuf,
        /// The first position it holds.
        first: Position,
    },
    /// The journal's directory holds a file that is none of the journal's.
    UnknownFile {
        /// The file.
        path: PathBuf,
    },
    /// Two segments do not join: entries are missing between them, or they
    /// belong to different histories.
    Gap {
        /// The later segment.
        path: PathBuf,
        /// Where the earlier one ends.
        expected: Position,
        /// Where the later one begins.
        found: Position,
    },
    /// A file belongs to another store.
    ForeignStore {
        /// The file.
        path: PathBuf,
        /// The store that was opened.
        expected: StoreId,
        /// The store that the file belongs to.
        found: StoreId,
    },
    /// A file was written by a newer version of this software.
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Its format version.
        found: u8,
        /// The newest that can be read.
        supported: u8,
    },
    /// The disk failed. An append that gives this did not take place.
    Storage {
        /// The file.
        path: PathBuf,
        /// The attempted action.
        action: &'static str,
        /// The disk's answer.
        cause: io::Error,
    },
    /// The commit of an append failed. Whether its entries are in the journal
    /// is known only after it has been opened again.
    OutcomeUnknown {
        /// The file.
        path: PathBuf,
        /// The first position of the append.
        position: Position,
        /// The disk's answer.
        cause: io::Error,
    },
    /// An earlier append failed, and the journal takes no more until it has
    /// been opened again.
    Poisoned,
}

impl JournalError {
    /// Whether the disk refused for want of room: with more of it, the same may succeed.
    pub fn is_want_of_room(&self) -> bool {
        matches!(self, Self::Storage { cause, .. } if is_want_of_room(cause))
    }
}

/// Whether a disk refused for want of room.
pub(super) fn is_want_of_room(cause: &io::Error) -> bool {
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
