//! Chunks: consecutive entries under one digest, in one section per bucket or domain.
//!
//! The module `layout` describes their bytes.

mod layout;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use super::hashed::HashedBytes;
use super::{ChainHash, Position, SectionId};

#[cfg(feature = "testing")]
pub use self::layout::decode_untrusted;
pub(super) use self::layout::{DecodeError, FORMAT_VERSION, decode, encode, encode_without, peek_positions};

/// The size a chunk should have, in bytes and with its head: about four blocks
/// of a disk, which a lookup reads and verifies as a whole. More entries than
/// fit go to the next chunk; a larger entry gets a chunk of its own. A little
/// more than 16 KiB, since BLAKE3 hashes 16 KiB at once twice as fast as less.
pub const CHUNK_BYTES: usize = 16 * 1024 + 256;

/// The most that the sections of one chunk may hold, in bytes.
pub const MAX_CHUNK_PAYLOAD_BYTES: usize = 4 * 1024 * 1024;

/// About what a chunk takes in memory without its sections' bytes.
const EMPTY_WEIGHT: usize = 512;

/// A chunk to be appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkDraft {
    /// The position of its first entry.
    pub first: Position,
    /// How many entries it holds, at least 1.
    pub entries: u32,
    /// Its sections, by ascending and unique id; at least one section, and
    /// [`MAX_CHUNK_PAYLOAD_BYTES`] in total.
    pub sections: Vec<(SectionId, HashedBytes)>,
}

impl ChunkDraft {
    /// Says which rule the draft breaks.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        if self.entries == 0 {
            return Err("a chunk holds at least one entry");
        }
        if self.sections.is_empty() {
            return Err("a chunk has at least one section");
        }
        if !self.sections.is_sorted_by(|(a, _), (b, _)| a < b) {
            return Err("sections are sorted by unique ids");
        }
        if self.sections.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() > MAX_CHUNK_PAYLOAD_BYTES {
            return Err("a chunk holds at most 4 MiB");
        }
        Ok(())
    }
}

/// The bytes of a section: a part of its chunk's, cheap to clone.
#[derive(Clone)]
pub struct SectionBytes {
    chunk: Arc<[u8]>,
    range: Range<usize>,
}

impl Deref for SectionBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.chunk[self.range.clone()]
    }
}

impl fmt::Debug for SectionBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SectionBytes({} bytes)", self.len())
    }
}

/// The content of a chunk for one bucket or domain.
#[derive(Clone, Debug)]
pub enum Section {
    /// The bytes that were appended.
    Present(SectionBytes),
    /// The bucket was removed; only the digest of the bytes is left.
    Removed,
}

/// A row of the section table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    id: SectionId,
    len: u64,
    present: bool,
    digest: [u8; 32],
}

/// A chunk that was read and verified.
#[derive(Clone, Debug)]
pub struct Chunk {
    first: Position,
    entries: u32,
    previous: ChainHash,
    chain: ChainHash,
    rows: Vec<Row>,
    sections: Vec<(SectionId, Section)>,
}

impl Chunk {
    /// The position of its first entry.
    pub fn first(&self) -> Position {
        self.first
    }

    /// How many entries it holds, at least 1.
    #[cfg(test)]
    pub(crate) fn entries(&self) -> u32 {
        self.entries
    }

    /// The position after its last entry.
    pub fn next(&self) -> Position {
        self.first.after(self.entries).expect("checked when the chunk was decoded")
    }

    /// The chain hash before it.
    pub fn previous(&self) -> ChainHash {
        self.previous
    }

    /// The chain hash that it ends with.
    pub fn chain(&self) -> ChainHash {
        self.chain
    }

    /// Its sections, by ascending id.
    pub fn sections(&self) -> &[(SectionId, Section)] {
        &self.sections
    }

    /// Whether only the digest is left of a section.
    pub fn has_holes(&self) -> bool {
        self.rows.iter().any(|row| !row.present)
    }

    /// Whether it has the bytes of one of these sections.
    pub(super) fn has_any(&self, sections: &BTreeSet<SectionId>) -> bool {
        self.rows.iter().any(|row| row.present && sections.contains(&row.id))
    }

    /// Its size where bytes are gathered: that of its sections, and
    /// something for a chunk that has none left, so that no number of them
    /// counts for nothing.
    pub(super) fn weight(&self) -> usize {
        match self.payload_bytes() {
            0 => EMPTY_WEIGHT,
            bytes => bytes,
        }
    }

    /// The bytes of its present sections, in total.
    pub(crate) fn payload_bytes(&self) -> usize {
        self.rows.iter().filter(|row| row.present).map(|row| row.len as usize).sum()
    }
}
