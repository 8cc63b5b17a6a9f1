//! The byte layout of a chunk.
//!
//! The layout can never change, because no rebuild rewrites chunks. Version 1:
//!
//! ```text
//! offset size
//!      0   16  digest   blake3 keyed by the store's secret over
//!                       (bytes 16.. of the head, chain), first half
//!     16    1  version  1
//!     17   32  previous chain hash before this chunk
//!     49    8  first    position of the first entry, big-endian
//!     57    v  entries  number of entries, at least 1
//!      .    v  sections number of sections, at least 1; then for each, by ascending id:
//!                v  id
//!                v  length   of the section's bytes
//!                1  state    1 present, 0 removed
//!               32  digest   blake3 of the section's bytes, only if it is removed
//!      .       the bytes of the present sections, in the same order
//! ```
//!
//! `v` is a varint. The head is everything before the sections' bytes. The chain hash is not stored; it is blake3 over
//!
//! ```text
//! "ledger chunk v1" ‖ previous ‖ first u64 ‖ entries u32 ‖ sections u32
//!                   ‖ (id u32 ‖ length u64 ‖ digest)*
//! ```
//!
//! with big-endian numbers. The chain hash does not depend on whether a section is present, so reducing a section to
//! its digest changes no chain. The keyed digest does depend on it, so only the store itself can reduce a section.
//!
//! Only the holder of the store's secret can compute the keyed digest, so no client can choose bytes that read as a
//! chunk.

use std::collections::BTreeSet;
use std::sync::Arc;

use ledger_codec::{Corrupt, Reader, put_varint, varint_len};

use super::{Chunk, ChunkDraft, Row, Section, SectionBytes};
use crate::{ChainHash, Position, Secret, SectionId};

/// The newest version of this layout.
pub(crate) const FORMAT_VERSION: u8 = 1;

pub(super) const DIGEST_BYTES: usize = 16;
const FIXED_HEAD_BYTES: usize = DIGEST_BYTES + 1 + 32 + 8;
/// Minimum size of a row of the section table: two one-byte varints and the state.
const MIN_TABLE_ROW_BYTES: usize = 2 + 1;

impl ChunkDraft {
    /// Returns the size of the encoded chunk including its head, for comparison with [`CHUNK_BYTES`].
    pub(crate) fn encoded_len(&self) -> usize {
        let rows: usize = self
            .sections
            .iter()
            .map(|(id, bytes)| varint_len(u64::from(id.0)) + varint_len(bytes.len() as u64) + 1 + bytes.len())
            .sum();
        FIXED_HEAD_BYTES + varint_len(u64::from(self.entries)) + varint_len(self.sections.len() as u64) + rows
    }
}

/// The reason why the bytes of a chunk cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DecodeError {
    /// The bytes differ from those that were written.
    Corrupt(Corrupt),
    /// The bytes have a layout that this version does not know.
    Newer(u8),
}

impl From<Corrupt> for DecodeError {
    fn from(corrupt: Corrupt) -> Self {
        Self::Corrupt(corrupt)
    }
}

/// Appends the encoded `draft` to `out`, and returns the chain hash after it.
///
/// The draft must have passed [its check](ChunkDraft::check).
pub(crate) fn encode(
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

/// Encodes `chunk` with some sections reduced to their digests. Its chain hash does not change.
pub(crate) fn encode_without(chunk: &Chunk, removed: &BTreeSet<SectionId>, secret: &Secret) -> Vec<u8> {
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

/// Decodes and verifies the bytes of a chunk. They are hashed once and copied once, however many sections there are.
pub(crate) fn decode(bytes: &[u8], secret: &Secret) -> Result<Chunk, DecodeError> {
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
    // Check the number before allocating memory for it.
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
    // The chain hash covers the sections' digests, and the keyed digest covers the chain hash.
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

/// Returns the first position of an encoded chunk and the one after its last, without verification. For skipping
/// chunks on the way to the wanted one.
pub(crate) fn peek_positions(bytes: &[u8]) -> Option<(Position, Position)> {
    let mut reader = Reader::new(bytes.get(FIXED_HEAD_BYTES - 8..)?);
    let first = Position::new(reader.u64().ok()?)?;
    let next = first.after(reader.varint_u32().ok()?)?;
    Some((first, next))
}

/// Decodes any bytes as a chunk, for fuzzing: as they are, or as two sections with fitting digests.
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

/// Appends the head to `out`, including its digest.
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
    let sections = u32::try_from(rows.len()).expect("a chunk has no more sections than entries");
    hasher.update(&sections.to_be_bytes());
    for row in rows {
        hasher.update(&row.id.0.to_be_bytes());
        hasher.update(&row.len.to_be_bytes());
        hasher.update(&row.digest);
    }
    ChainHash(*hasher.finalize().as_bytes())
}
