//! The bytes of a chunk.
//!
//! They can never change: no rebuild reaches them. Version 1:
//!
//! ```text
//! offset size
//!      0   16  digest   blake3 keyed by the store's secret over
//!                       (bytes 16.. of the head, chain), first half
//!     16    1  version  1
//!     17   32  previous the chain hash before this chunk
//!     49    8  first    position of the first entry, big-endian
//!     57    v  entries  how many, at least 1
//!      .    v  sections how many, at least 1; then for each, by ascending id:
//!                v  id
//!                v  length   of the section's bytes
//!                1  state    1 present, 0 removed
//!               32  digest   blake3 of the section's bytes, only if it is removed
//!      .       the bytes of the present sections, in the same order
//! ```
//!
//! `v` is a varint. The head is all before the sections' bytes. The chain
//! hash is not stored; it is blake3 over
//!
//! ```text
//! "ledger chunk v1" ‖ previous ‖ first u64 ‖ entries u32 ‖ sections u32
//!                   ‖ (id u32 ‖ length u64 ‖ digest)*
//! ```
//!
//! with big-endian numbers. It does not see if a section is present, so
//! reducing one to its digest changes no chain; the keyed digest sees it, so
//! only the store itself can do that.
//!
//! The keyed digest is what nobody without the store's secret can make, so
//! that no client can choose bytes that read as a chunk.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use ledger_codec::{Corrupt, Reader, put_varint, varint_len};

use super::hashed::HashedBytes;
use super::{ChainHash, Position, Secret, SectionId};

/// The newest version of the layout above.
pub(super) const FORMAT_VERSION: u8 = 1;

/// The size a chunk should have, in bytes and with its head: about four blocks
/// of a disk, which a lookup reads and verifies as a whole. More entries than
/// fit go to the next chunk; a larger entry gets a chunk of its own. A little
/// more than 16 KiB, since BLAKE3 hashes 16 KiB at once twice as fast as less.
pub const CHUNK_BYTES: usize = 16 * 1024 + 256;

/// The most that the sections of one chunk may hold, in bytes.
pub const MAX_CHUNK_PAYLOAD_BYTES: usize = 4 * 1024 * 1024;

/// About what a chunk takes in memory without its sections' bytes.
const EMPTY_WEIGHT: usize = 512;

const DIGEST_BYTES: usize = 16;
const FIXED_HEAD_BYTES: usize = DIGEST_BYTES + 1 + 32 + 8;
/// Two one-byte varints and the state.
const MIN_TABLE_ROW_BYTES: usize = 2 + 1;

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
    /// The size of the chunk's bytes with its head, for comparison with
    /// [`CHUNK_BYTES`].
    pub(crate) fn encoded_len(&self) -> usize {
        let rows: usize = self
            .sections
            .iter()
            .map(|(id, bytes)| varint_len(u64::from(id.0)) + varint_len(bytes.len() as u64) + 1 + bytes.len())
            .sum();
        FIXED_HEAD_BYTES + varint_len(u64::from(self.entries)) + varint_len(self.sections.len() as u64) + rows
    }

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

/// Why the bytes of a chunk cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DecodeError {
    /// They are not what was written.
    Corrupt(Corrupt),
    /// They have a layout that this version does not know.
    Newer(u8),
}

impl From<Corrupt> for DecodeError {
    fn from(corrupt: Corrupt) -> Self {
        Self::Corrupt(corrupt)
    }
}

/// Appends the bytes of `draft` to `out` and returns the chain hash after it.
///
/// The draft has been [checked](ChunkDraft::check).
pub(super) fn encode(
    draft: &ChunkDraft,
    previous: ChainHash,
    secret: &Secret,
    out: &mut Vec<u8>,
) -> ChainHash {
    let rows: Vec<Row> = draft
        .sections
        .iter()
        .map(|(id, bytes)| Row { id: *id, len: bytes.len() as u64, present: true, digest: bytes.digest() })
        .collect();
    out.reserve(draft.encoded_len());
    let chain = put_head(out, previous, draft.first, draft.entries, &rows, secret);
    for (_, bytes) in &draft.sections {
        out.extend_from_slice(bytes);
    }
    chain
}

/// The bytes of `chunk` with some sections reduced to their digests. Its
/// chain hash stays what it was.
pub(super) fn encode_without(chunk: &Chunk, removed: &BTreeSet<SectionId>, secret: &Secret) -> Vec<u8> {
    let mut rows = chunk.rows.clone();
    for row in &mut rows {
        row.present &= !removed.contains(&row.id);
    }
    let mut out = Vec::new();
    let chain = put_head(&mut out, chunk.previous, chunk.first, chunk.entries, &rows, secret);
    assert_eq!(chain, chunk.chain, "a removed section does not change the chain");
    for (row, (_, section)) in rows.iter().zip(&chunk.sections) {
        if let (true, Section::Present(bytes)) = (row.present, section) {
            out.extend_from_slice(bytes);
        }
    }
    out
}

/// Reads and verifies the bytes of a chunk: they are hashed once and copied
/// once, whatever their number of sections.
pub(super) fn decode(bytes: &[u8], secret: &Secret) -> Result<Chunk, DecodeError> {
    let mut reader = Reader::new(bytes);
    let digest: [u8; DIGEST_BYTES] = reader.array()?;
    let version = reader.u8()?;
    if version != FORMAT_VERSION {
        return Err(DecodeError::Newer(version));
    }
    let previous = ChainHash(reader.array()?);
    let first = Position::new(reader.u64()?).ok_or(Corrupt { what: "position zero" })?;
    let entries = reader.varint_u32()?;
    if entries == 0 || first.after(entries).is_none() {
        return Err(Corrupt { what: "impossible number of entries" }.into());
    }
    let count = reader.varint_u32()? as usize;
    // Before memory is set aside for that many.
    if count == 0 || count > reader.remaining() / MIN_TABLE_ROW_BYTES {
        return Err(Corrupt { what: "impossible number of sections" }.into());
    }
    let mut rows: Vec<Row> = Vec::with_capacity(count);
    for _ in 0..count {
        let id = SectionId(reader.varint_u32()?);
        let len = reader.varint()?;
        let (present, digest) = match reader.u8()? {
            1 => (true, [0; 32]),
            0 => (false, reader.array()?),
            _ => return Err(Corrupt { what: "unknown state of a section" }.into()),
        };
        if rows.last().is_some_and(|before| before.id >= id) {
            return Err(Corrupt { what: "sections out of order" }.into());
        }
        rows.push(Row { id, len, present, digest });
    }
    let head_len = bytes.len() - reader.remaining();
    let mut ranges = Vec::with_capacity(count);
    for row in &mut rows {
        if !row.present {
            ranges.push(None);
            continue;
        }
        let start = bytes.len() - reader.remaining();
        let len = usize::try_from(row.len).map_err(|_| Corrupt { what: "impossible length" })?;
        row.digest = *blake3::hash(reader.bytes(len)?).as_bytes();
        ranges.push(Some(start..start + len));
    }
    // The chain covers the sections' digests, and the keyed digest the chain.
    let chain = chain_hash(previous, first, entries, &rows);
    if secret.digest(&[&bytes[DIGEST_BYTES..head_len], &chain.0]) != digest {
        return Err(Corrupt { what: "the chunk does not match its digest" }.into());
    }
    reader.finish()?;
    let chunk: Arc<[u8]> = Arc::from(bytes);
    let sections = rows
        .iter()
        .zip(ranges)
        .map(|(row, range)| {
            let section = match range {
                Some(range) => Section::Present(SectionBytes { chunk: Arc::clone(&chunk), range }),
                None => Section::Removed,
            };
            (row.id, section)
        })
        .collect();
    Ok(Chunk { first, entries, previous, chain, rows, sections })
}

/// The first position of the chunk with these bytes and the one after its last, not verified: to pass over chunks on
/// the way to the one that is wanted.
pub(super) fn peek_positions(bytes: &[u8]) -> Option<(Position, Position)> {
    let mut reader = Reader::new(bytes.get(FIXED_HEAD_BYTES - 8..)?);
    let first = Position::new(reader.u64().ok()?)?;
    let next = first.after(reader.varint_u32().ok()?)?;
    Some((first, next))
}

/// Any bytes as a chunk, for fuzzing: as they are, or else as two sections with digests that fit.
#[cfg(feature = "testing")]
pub fn decode_untrusted(bytes: &[u8]) -> Option<Chunk> {
    let secret = Secret([0; 32]);
    if let Ok(chunk) = decode(bytes, &secret) {
        return Some(chunk);
    }
    let (first, rest) = bytes.split_first()?;
    let (documents, logs) = rest.split_at(usize::from(*first).min(rest.len()));
    let sections = vec![(SectionId(0), documents.to_vec().into()), (SectionId(1), logs.to_vec().into())];
    let draft = ChunkDraft { first: Position::FIRST, entries: 1 + u32::from(*first), sections };
    let mut out = Vec::new();
    encode(&draft, ChainHash([0; 32]), &secret, &mut out);
    decode(&out, &secret).ok()
}

/// Appends the head to `out`, digest included.
fn put_head(
    out: &mut Vec<u8>,
    previous: ChainHash,
    first: Position,
    entries: u32,
    rows: &[Row],
    secret: &Secret,
) -> ChainHash {
    let chain = chain_hash(previous, first, entries, rows);
    let start = out.len();
    out.extend_from_slice(&[0; DIGEST_BYTES]);
    out.push(FORMAT_VERSION);
    out.extend_from_slice(&previous.0);
    out.extend_from_slice(&first.get().to_be_bytes());
    put_varint(out, u64::from(entries));
    put_varint(out, rows.len() as u64);
    for row in rows {
        put_varint(out, u64::from(row.id.0));
        put_varint(out, row.len);
        out.push(u8::from(row.present));
        if !row.present {
            out.extend_from_slice(&row.digest);
        }
    }
    let digest = secret.digest(&[&out[start + DIGEST_BYTES..], &chain.0]);
    out[start..start + DIGEST_BYTES].copy_from_slice(&digest);
    chain
}

fn chain_hash(previous: ChainHash, first: Position, entries: u32, rows: &[Row]) -> ChainHash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"ledger chunk v1");
    hasher.update(&previous.0);
    hasher.update(&first.get().to_be_bytes());
    hasher.update(&entries.to_be_bytes());
    hasher.update(&(rows.len() as u32).to_be_bytes());
    for row in rows {
        hasher.update(&row.id.0.to_be_bytes());
        hasher.update(&row.len.to_be_bytes());
        hasher.update(&row.digest);
    }
    ChainHash(*hasher.finalize().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREVIOUS: ChainHash = ChainHash([7; 32]);

    fn secret() -> Secret {
        Secret([9; 32])
    }

    fn draft() -> ChunkDraft {
        ChunkDraft {
            first: Position::new(41).unwrap(),
            entries: 3,
            sections: vec![
                (SectionId(0), HashedBytes::from(b"documents".to_vec())),
                (SectionId(5), HashedBytes::from(Vec::new())),
                (SectionId(300), HashedBytes::from(vec![0xab; 700])),
            ],
        }
    }

    fn encoded(draft: &ChunkDraft) -> (Vec<u8>, ChainHash) {
        let mut out = vec![1, 2, 3];
        let chain = encode(draft, PREVIOUS, &secret(), &mut out);
        (out.split_off(3), chain)
    }

    fn present(chunk: &Chunk) -> Vec<(SectionId, Option<Vec<u8>>)> {
        let bytes = |section: &Section| match section {
            Section::Present(bytes) => Some(bytes.to_vec()),
            Section::Removed => None,
        };
        chunk.sections().iter().map(|(id, section)| (*id, bytes(section))).collect()
    }

    #[test]
    fn a_chunk_reads_back_as_it_was_written() {
        let draft = draft();
        let (bytes, chain) = encoded(&draft);
        assert_eq!(bytes.len(), draft.encoded_len());
        let chunk = decode(&bytes, &secret()).unwrap();
        assert_eq!((chunk.first(), chunk.entries(), chunk.next().get()), (draft.first, 3, 44));
        assert_eq!((chunk.previous(), chunk.chain()), (PREVIOUS, chain));
        assert_eq!(chunk.payload_bytes(), 709);
        let sections: Vec<_> =
            draft.sections.into_iter().map(|(id, bytes)| (id, Some(bytes.to_vec()))).collect();
        assert_eq!(present(&chunk), sections);
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let (mut bytes, _) = encoded(&draft());
        for i in 0..bytes.len() * 8 {
            bytes[i / 8] ^= 1 << (i % 8);
            assert!(decode(&bytes, &secret()).is_err(), "bit {i}");
            bytes[i / 8] ^= 1 << (i % 8);
        }
        decode(&bytes, &secret()).unwrap();
    }

    #[test]
    fn every_cut_and_every_extension_is_noticed() {
        let (mut bytes, _) = encoded(&draft());
        for len in 0..bytes.len() {
            assert!(decode(&bytes[..len], &secret()).is_err(), "cut to {len}");
        }
        bytes.push(0);
        assert!(decode(&bytes, &secret()).is_err());
    }

    #[test]
    fn only_the_store_can_write_a_chunk() {
        let (bytes, _) = encoded(&draft());
        let corrupt = Corrupt { what: "the chunk does not match its digest" };
        assert_eq!(decode(&bytes, &Secret([8; 32])).unwrap_err(), DecodeError::Corrupt(corrupt));
    }

    #[test]
    fn a_newer_layout_is_told_from_damage() {
        let (mut bytes, _) = encoded(&draft());
        bytes[DIGEST_BYTES] = 2;
        assert_eq!(decode(&bytes, &secret()).unwrap_err(), DecodeError::Newer(2));
    }

    #[test]
    fn the_chain_depends_on_every_field() {
        let base = encoded(&draft()).1;
        let with = |change: fn(&mut ChunkDraft)| {
            let mut changed = draft();
            change(&mut changed);
            encoded(&changed).1
        };
        assert_ne!(base, with(|d| d.first = d.first.next()));
        assert_ne!(base, with(|d| d.entries += 1));
        assert_ne!(base, with(|d| d.sections[1].0 = SectionId(6)));
        assert_ne!(base, with(|d| d.sections[0].1 = HashedBytes::from(b"Documents".to_vec())));
        assert_ne!(base, with(|d| drop(d.sections.remove(1))));
        assert_ne!(base, encode(&draft(), ChainHash([8; 32]), &secret(), &mut Vec::new()));
    }

    #[test]
    fn a_removed_section_leaves_the_chain_intact() {
        let (bytes, chain) = encoded(&draft());
        let whole = decode(&bytes, &secret()).unwrap();
        let reduced_bytes = encode_without(&whole, &BTreeSet::from([SectionId(300)]), &secret());
        assert_eq!(reduced_bytes.len(), bytes.len() - 700 + 32, "the digest takes their place");
        let reduced = decode(&reduced_bytes, &secret()).unwrap();
        assert_eq!(reduced.chain(), chain);
        assert_eq!(
            present(&reduced),
            [
                (SectionId(0), Some(b"documents".to_vec())),
                (SectionId(5), Some(Vec::new())),
                (SectionId(300), None)
            ]
        );
        // Reducing another one keeps the first reduced.
        let twice = encode_without(&reduced, &BTreeSet::from([SectionId(0)]), &secret());
        let twice = decode(&twice, &secret()).unwrap();
        assert_eq!(twice.chain(), chain);
        assert_eq!(twice.payload_bytes(), 0);
    }

    #[test]
    fn drafts_that_break_a_rule_are_refused() {
        let refused = |change: fn(&mut ChunkDraft)| {
            let mut changed = draft();
            change(&mut changed);
            changed.check().unwrap_err();
        };
        draft().check().unwrap();
        refused(|d| d.entries = 0);
        refused(|d| d.sections.clear());
        refused(|d| d.sections.swap(0, 1));
        refused(|d| d.sections[1].0 = SectionId(0));
        refused(|d| d.sections[1].1 = HashedBytes::from(vec![0; MAX_CHUNK_PAYLOAD_BYTES]));
    }
}
