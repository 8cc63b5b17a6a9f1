//! Copies chunks between journals of one store, and verifies them.

use ledger_journal::{Chunk, Head, Journal, JournalError, JournalReader, Position, SegmentedJournal};

use super::report::{BackupError, destination, source};
use crate::error::OpenError;

/// Number of bytes that are read and appended at once. Tests copy in many parts.
const COPY_BYTES: usize = if cfg!(test) { 16 << 10 } else { 4 << 20 };

/// Checks that the entries of a copy are the first ones of a journal.
pub(super) fn check_history(journal: &dyn JournalReader, head: Head, copy: Head) -> Result<(), BackupError> {
    let other = BackupError::OtherHistory { entries: copy.next.get() - 1 };
    let Some(last) = Position::new(copy.next.get() - 1) else { return Ok(()) };
    if copy.next > head.next {
        return Err(other);
    }
    let chunk = journal.read(last).map_err(source)?;
    match chunk {
        Some(chunk) if (chunk.next(), chunk.chain()) == (copy.next, copy.chain) => Ok(()),
        _ => Err(other),
    }
}

/// Appends all chunks before `end` that the copy lacks.
pub(super) fn copy_until(
    from: &dyn JournalReader,
    to: &SegmentedJournal,
    end: Position,
) -> Result<(), BackupError> {
    while to.head().next < end {
        let mut chunks = from.scan(to.head().next, COPY_BYTES).map_err(source)?;
        let wanted = chunks.iter().take_while(|chunk| chunk.next() <= end).count();
        chunks.truncate(wanted);
        if chunks.is_empty() {
            return Err(BackupError::Source(broken(to.head().next)));
        }
        to.make_room().map_err(destination)?;
        match to.append_copies(&chunks) {
            // The chunks were verified one by one. They do not continue each other.
            Err(JournalError::BadDraft { position, .. }) => {
                return Err(BackupError::Source(broken(position)));
            }
            appended => appended.map_err(destination)?,
        };
    }
    Ok(())
}

/// Reads a journal from `begin` to its head.
pub(super) fn verify_from(journal: &dyn JournalReader, begin: Head) -> Result<(), OpenError> {
    let end = journal.head();
    let reached = walk(journal, begin, |_| Ok(()))?;
    if reached == end { Ok(()) } else { Err(broken(reached.next)) }
}

/// Calls `each` for every chunk from `begin` on, and returns the end.
pub(super) fn walk(
    journal: &dyn JournalReader,
    begin: Head,
    mut each: impl FnMut(&Chunk) -> Result<(), OpenError>,
) -> Result<Head, OpenError> {
    let mut reached = begin;
    while reached.next < journal.head().next {
        let chunks = journal.scan(reached.next, COPY_BYTES)?;
        for chunk in &chunks {
            if (chunk.first(), chunk.previous()) != (reached.next, reached.chain) {
                return Err(broken(chunk.first()));
            }
            each(chunk)?;
            reached = Head { next: chunk.next(), chain: chunk.chain() };
        }
        if chunks.is_empty() {
            return Err(broken(reached.next));
        }
    }
    Ok(reached)
}

fn broken(position: Position) -> OpenError {
    OpenError::Damaged(format!("the chain of hashes breaks at entry {position}").into())
}
