//! The journal: the truth of a store.
//!
//! A journal is an ordered sequence of *entries*, each with a [`Position`]
//! that is gapless and starts at 1. To this layer an entry is opaque bytes.
//! The writer packs entries into [chunks](ChunkDraft), which hold consecutive
//! positions; inside a chunk there is one *section* per bucket or domain, so
//! that a bucket can be removed without breaking what the others rely on.
//!
//! Every chunk names the hash of the one before it, over the digests of its
//! sections ([`ChainHash`]): whoever knows the head can check all of history.
//!
//! Invariants:
//!
//! - What [`Journal::append`] has returned `Ok` for is durable, and is never
//!   changed afterwards; a removed section leaves its digest behind.
//! - An append is all or nothing, also across a power cut.
//! - Bytes that were damaged give an error that names file and position. They
//!   are never served, and never dropped to make a file readable again.
//!
//! Nothing above this module may assume a file: [`MemoryJournal`] keeps its
//! chunks in memory, [`SegmentedJournal`] in files on a disk, and a replicated
//! log can stand in their place.

mod chunk;
mod error;
mod frame;
mod hashed;
mod identity;
mod mark;
mod memory;
mod offsets;
mod opening;
mod prepared;
mod record;
mod recover;
mod removal;
mod segment;
mod segments;
mod tail;
#[cfg(test)]
mod tests;
mod walk;

use std::collections::BTreeSet;
use std::fmt;

#[cfg(feature = "testing")]
pub(crate) use self::chunk::decode_untrusted;
pub(crate) use self::chunk::{CHUNK_BYTES, Chunk, ChunkDraft, MAX_CHUNK_PAYLOAD_BYTES, Section};
pub(crate) use self::error::JournalError;
pub(crate) use self::identity::{Identity, Secret, StoreId};
pub(crate) use self::memory::MemoryJournal;
pub use self::recover::DroppedTail;
pub(crate) use self::segments::{SegmentOptions, SegmentedJournal};

/// The place of an entry in the journal: 1 for the first, gapless.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Position(u64);

impl Position {
    /// The place of the first entry of every journal.
    pub(crate) const FIRST: Self = Self(1);

    /// The position with this number; zero is none.
    pub(crate) const fn new(number: u64) -> Option<Self> {
        if number == 0 { None } else { Some(Self(number)) }
    }

    /// The number, at least 1.
    pub(crate) const fn get(self) -> u64 {
        self.0
    }

    /// The position after this one.
    ///
    /// # Panics
    ///
    /// After 2^64 - 1 entries, which no journal reaches; stored numbers are
    /// checked with [`Position::after`].
    pub(crate) fn next(self) -> Self {
        self.after(1).expect("a journal does not reach 2^64 entries")
    }

    /// The position that follows `entries` entries of which this is the
    /// first, or `None` beyond 2^64 - 1.
    pub(crate) const fn after(self, entries: u32) -> Option<Self> {
        match self.0.checked_add(entries as u64) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}", self.0)
    }
}

/// Names the bucket or domain that a section of a chunk belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SectionId(pub(crate) u32);

/// The hash of a chunk and, through the one before it, of all history up to
/// there.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ChainHash(pub(crate) [u8; 32]);

impl ChainHash {
    /// What the first chunk of a store names as the hash before it. It
    /// depends on the store, so that no two stores share a chain.
    pub(crate) fn genesis(store: StoreId) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"ledger journal genesis");
        hasher.update(&store.0);
        Self(*hasher.finalize().as_bytes())
    }
}

impl fmt::Display for ChainHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ChainHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChainHash({self})")
    }
}

/// Where a journal ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The position that the next entry gets.
    pub(crate) next: Position,
    /// The hash of everything before it.
    pub(crate) chain: ChainHash,
}

/// What the removal of sections gave back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Freed {
    /// Bytes.
    pub(crate) bytes: u64,
    /// Whether the sections are gone everywhere.
    pub(crate) is_done: bool,
}

/// A durable, ordered sequence of chunks with one appender and many readers.
pub(crate) trait Journal: Send + Sync {
    /// Where the journal ends: everything before it is durable.
    fn head(&self) -> Head;

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

    /// The chunk that holds `at`, verified; `None` beyond the head.
    ///
    /// # Errors
    ///
    /// [`JournalError::Damaged`] and its relatives for stored bytes that do
    /// not verify, [`JournalError::Storage`] when the disk does not answer.
    fn read(&self, at: Position) -> Result<Option<Chunk>, JournalError>;

    /// Reduces sections to their digests, in all chunks. To these sections
    /// nothing may be appended any more. Stops early when it is told to, and
    /// may be called again.
    ///
    /// # Errors
    ///
    /// As [`Journal::read`]; [`JournalError::Storage`] also if there is no
    /// room for the copy of a file, and [`JournalError::Poisoned`]. Nothing
    /// else is lost then, and part of the sections may be gone.
    fn remove_sections(
        &self,
        removed: &BTreeSet<SectionId>,
        should_stop: &dyn Fn() -> bool,
    ) -> Result<Freed, JournalError>;

    /// Verified chunks in order, from the one that holds `from`, until their
    /// payloads come to `max_bytes`: at least one unless `from` is beyond the
    /// head.
    ///
    /// # Errors
    ///
    /// As [`Journal::read`]. Chunks before a damaged one are not returned
    /// with the error; ask for fewer bytes to get them. Chunks whose sections
    /// are all removed count for something too.
    fn scan(&self, from: Position, max_bytes: usize) -> Result<Vec<Chunk>, JournalError>;
}

/// Checks what every implementation demands of an append.
fn check_append(head: Head, expected: Position, chunks: &[ChunkDraft]) -> Result<(), JournalError> {
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
