//! The journal as a trait: what every implementation promises.

use std::collections::BTreeSet;

use super::{Chunk, ChunkDraft, Head, JournalError, Position, SectionId};

/// The space that the removal of sections gave back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Freed {
    /// Bytes.
    pub bytes: u64,
    /// Whether the sections are gone everywhere.
    pub is_done: bool,
}

/// A durable, ordered sequence of chunks, as its readers see it.
pub trait JournalReader: Send + Sync {
    /// Where the journal ends: everything before it is durable.
    fn head(&self) -> Head;

    /// The chunk that holds `at`, verified; `None` beyond the head.
    ///
    /// # Errors
    ///
    /// [`JournalError::Damaged`] and its relatives for stored bytes that do
    /// not verify, [`JournalError::Storage`] when the disk does not answer.
    fn read(&self, at: Position) -> Result<Option<Chunk>, JournalError>;

    /// Verified chunks in order, from the one that holds `from`, until their
    /// payloads come to `max_bytes`: at least one unless `from` is beyond the
    /// head.
    ///
    /// # Errors
    ///
    /// As [`JournalReader::read`]. Chunks before a damaged one are not returned
    /// with the error; ask for fewer bytes to get them. Chunks whose sections
    /// are all removed count for something too.
    fn scan(&self, from: Position, max_bytes: usize) -> Result<Vec<Chunk>, JournalError>;
}

/// A journal that takes appends: it has one appender and many readers.
pub trait Journal: JournalReader {
    /// Appends `chunks`, which follow one another from `expected` on, and
    /// says the new head. All or nothing; durable when it returns.
    ///
    /// No chunks change nothing.
    ///
    /// # Errors
    ///
    /// [`JournalError::Fenced`] unless `expected` is the head's next position,
    /// [`JournalError::BadDraft`] for chunks that break a rule of
    /// [`ChunkDraft`], [`JournalError::Storage`] when the disk refused before
    /// anything could have been written. In these cases the chunks are
    /// certainly not in the journal. After [`JournalError::OutcomeUnknown`]
    /// they may be, and from then on every append answers
    /// [`JournalError::Poisoned`] until the journal has been opened again.
    fn append(&self, expected: Position, chunks: &[ChunkDraft]) -> Result<Head, JournalError>;

    /// Sees to it that the next append finds room on the disk, as long as it is not very large. To be called before what
    /// is appended is decided: then a disk that is full refuses it, and nothing has happened.
    ///
    /// # Errors
    ///
    /// [`JournalError::Storage`] if there is no room, or the disk fails. It may be called again.
    fn make_room(&self) -> Result<(), JournalError> {
        Ok(())
    }

    /// Whether [`Journal::tend`] should be called soon.
    fn wants_space(&self) -> bool {
        false
    }

    /// Work beside the appends, for a thread of the engine: sets space aside on the disk before it is needed.
    ///
    /// # Errors
    ///
    /// As [`Journal::make_room`], which meets the same failure where it matters.
    fn tend(&self) -> Result<(), JournalError> {
        Ok(())
    }

    /// Takes no more appends, and notes durably where the journal ends. Reads go on.
    ///
    /// # Errors
    ///
    /// [`JournalError::Storage`]: then the next opening finds a journal that was not closed.
    fn close(&self) -> Result<(), JournalError> {
        Ok(())
    }

    /// Reduces sections to their digests, in all chunks. To these sections
    /// nothing may be appended any more. Stops early when it is told to, and
    /// may be called again.
    ///
    /// # Errors
    ///
    /// As [`JournalReader::read`]; [`JournalError::Storage`] also if there is no
    /// room for the copy of a file, and [`JournalError::Poisoned`]. Nothing
    /// else is lost then, and part of the sections may be gone.
    fn remove_sections(
        &self,
        removed: &BTreeSet<SectionId>,
        should_stop: &dyn Fn() -> bool,
    ) -> Result<Freed, JournalError>;
}

/// Checks what every implementation demands of an append.
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

/// Checks that chunks of another journal follow the head of this one.
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
