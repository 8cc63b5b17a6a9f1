//! Chunks: consecutive entries under one digest, with one section for each bucket and one for documents.
//!
//! The module `layout` defines the encoding.

#![allow(clippy::cast_possible_truncation, reason = "the sections of a chunk are in memory")]

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

/// Target size of a chunk in bytes, including its head: about four disk blocks, which a lookup reads and verifies as a
/// whole. Further entries go to the next chunk, and a larger entry gets a chunk of its own. A little more than 16 KiB,
/// because BLAKE3 hashes 16 KiB at once twice as fast as less.
pub const CHUNK_BYTES: usize = 16 * 1024 + 256;

/// Maximum number of bytes in the sections of one chunk.
pub const MAX_CHUNK_PAYLOAD_BYTES: usize = 4 * 1024 * 1024;

/// Approximate memory of a chunk without its sections' bytes.
const EMPTY_WEIGHT: usize = 512;

/// A chunk to be appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkDraft {
    /// The position of the first entry.
    pub first: Position,
    /// Number of entries, at least 1.
    pub entries: u32,
    /// The sections, by ascending and unique id. There must be at least one, and at most [`MAX_CHUNK_PAYLOAD_BYTES`]
    /// in total.
    pub sections: Vec<(SectionId, HashedBytes)>,
}

impl ChunkDraft {
    /// Checks the rules for chunks. The error names the broken one.
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

/// The bytes of a section. They share memory with their chunk and are cheap to clone.
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

/// The content of a chunk for one bucket, or for the documents.
#[derive(Clone, Debug)]
pub enum Section {
    /// The bytes that were appended.
    Present(SectionBytes),
    /// The section was removed. Only the digest of its bytes is left.
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
    /// Returns the position of its first entry.
    pub fn first(&self) -> Position {
        self.first
    }

    /// Returns the number of its entries, at least 1.
    #[cfg(test)]
    pub(crate) fn entries(&self) -> u32 {
        self.entries
    }

    /// Returns the position after its last entry.
    pub fn next(&self) -> Position {
        self.first.after(self.entries).expect("decoding has checked the number of entries")
    }

    /// Returns the chain hash before it.
    pub fn previous(&self) -> ChainHash {
        self.previous
    }

    /// Returns the chain hash at its end.
    pub fn chain(&self) -> ChainHash {
        self.chain
    }

    /// Returns its sections, by ascending id.
    pub fn sections(&self) -> &[(SectionId, Section)] {
        &self.sections
    }

    /// Returns whether one of its sections was removed.
    pub fn has_holes(&self) -> bool {
        self.rows.iter().any(|row| !row.present)
    }

    /// Returns whether it holds the bytes of one of these sections.
    pub(super) fn has_any(&self, sections: &BTreeSet<SectionId>) -> bool {
        self.rows.iter().any(|row| row.present && sections.contains(&row.id))
    }

    /// Returns the size that counts towards limits: the bytes of its sections, but a small fixed size for a chunk
    /// without any, so that the number of such chunks is bounded too.
    pub(super) fn weight(&self) -> usize {
        match self.payload_bytes() {
            0 => EMPTY_WEIGHT,
            bytes => bytes,
        }
    }

    /// Returns the total size of its present sections in bytes.
    pub(crate) fn payload_bytes(&self) -> usize {
        self.rows.iter().filter(|row| row.present).map(|row| row.len as usize).sum()
    }
}
