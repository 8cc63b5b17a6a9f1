//! The traits of a journal: what every implementation guarantees.

use std::collections::BTreeSet;

use super::{Chunk, ChunkDraft, Head, JournalError, Position, SectionId};

/// The result of removing sections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Freed {
    /// Number of bytes that were freed.
    pub bytes: u64,
    /// True if no chunk contains the sections any more.
    pub is_done: bool,
}

/// The reading side of a journal: a durable, ordered sequence of chunks.
pub trait JournalReader: Send + Sync {
    /// Returns the end of the journal. Everything before it is durable.
    fn head(&self) -> Head;

    /// Returns the verified chunk that holds the entry at `at`, or `None` after the head.
    ///
    /// # Errors
    ///
    /// [`JournalError::Damaged`] and similar errors for stored bytes that do not verify, [`JournalError::Storage`] if
    /// the disk fails.
    fn read(&self, at: Position) -> Result<Option<Chunk>, JournalError>;

    /// Returns verified chunks in order, starting with the one that holds `from`, until their payloads reach
    /// `max_bytes`. Returns at least one chunk unless `from` is after the head. Chunks whose sections are all removed
    /// count with a small fixed size.
    ///
    /// # Errors
    ///
    /// The errors of [`JournalReader::read`]. A failed scan returns none of the sound chunks before the damaged one;
    /// request fewer bytes to get them.
    fn scan(&self, from: Position, max_bytes: usize) -> Result<Vec<Chunk>, JournalError>;
}

/// A journal that accepts appends. It has one appender and many readers.
pub trait Journal: JournalReader {
    /// Appends `chunks`, which must be consecutive and begin at `expected`, and returns the new head. Appends all
    /// chunks or none. They are durable when this returns. Appending no chunks changes nothing.
    ///
    /// # Errors
    ///
    /// [`JournalError::Fenced`] if `expected` is not the next position of the head, [`JournalError::BadDraft`] for
    /// chunks that break a rule of [`ChunkDraft`], [`JournalError::Storage`] if the disk refused before anything was
    /// written. In these cases the journal certainly does not contain the chunks. After
    /// [`JournalError::OutcomeUnknown`] it may contain them, and from then on every append returns
    /// [`JournalError::Poisoned`] until the journal is reopened.
    fn append(&self, expected: Position, chunks: &[ChunkDraft]) -> Result<Head, JournalError>;

    /// Ensures that the disk has space for the next append, unless that is very large. Call it before the entries are
    /// decided: if the disk is full, this refuses and nothing has happened.
    ///
    /// # Errors
    ///
    /// [`JournalError::Storage`] if space is lacking or the disk fails. The call may be repeated.
    fn make_room(&self) -> Result<(), JournalError> {
        Ok(())
    }

    /// Returns whether [`Journal::prepare_space`] should be called soon.
    fn needs_space(&self) -> bool {
        false
    }

    /// Prepares space on the disk before it is needed. A background thread of the engine calls it between appends.
    ///
    /// # Errors
    ///
    /// The errors of [`Journal::make_room`], which meets the same failure before it matters.
    fn prepare_space(&self) -> Result<(), JournalError> {
        Ok(())
    }

    /// Accepts no more appends, and durably records the end of the journal. Reads remain possible.
    ///
    /// # Errors
    ///
    /// [`JournalError::Storage`]. The next opening then finds a journal that was not closed.
    fn close(&self) -> Result<(), JournalError> {
        Ok(())
    }

    /// Reduces sections to their digests in all chunks. Nothing may be appended to these sections any more. Stops
    /// early if `should_stop` returns `true`. The call may be repeated.
    ///
    /// # Errors
    ///
    /// The errors of [`JournalReader::read`]; [`JournalError::Storage`] also if there is no space for the copy of a
    /// file; and [`JournalError::Poisoned`]. Some of the sections may be removed by then; no other data is lost.
    fn remove_sections(
        &self,
        removed: &BTreeSet<SectionId>,
        should_stop: &dyn Fn() -> bool,
    ) -> Result<Freed, JournalError>;
}

/// Checks the rules that every implementation requires of an append.
pub(super) fn check_append(
    head: Head,
    expected: Position,
    chunks: &[ChunkDraft],
) -> Result<(), JournalError> {
    if expected != head.next {
        return Err(JournalError::Fenced { expected, next: head.next });
    }
    let mut next = expected;
    for draft in chunks {
        let refuse = |what| JournalError::BadDraft { position: draft.first, what };
        if draft.first != next {
            return Err(refuse("chunks do not follow one another"));
        }
        draft.check().map_err(refuse)?;
        next = draft.first.after(draft.entries).ok_or_else(|| refuse("positions are used up"))?;
    }
    Ok(())
}

/// Checks that chunks of another journal continue the head of this one.
pub(super) fn check_copies(head: Head, chunks: &[Chunk]) -> Result<(), JournalError> {
    let mut end = head;
    for chunk in chunks {
        if (chunk.first(), chunk.previous()) != (end.next, end.chain) {
            let what = "a copied chunk does not continue this journal";
            return Err(JournalError::BadDraft { position: chunk.first(), what });
        }
        end = Head { next: chunk.next(), chain: chunk.chain() };
    }
    Ok(())
}
