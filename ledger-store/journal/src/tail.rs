//! The end of the last segment, where chunks become frames in whole disk blocks.

#![allow(clippy::cast_possible_truncation, reason = "the bytes that one read or write takes are in memory")]

use std::collections::BTreeSet;
use std::io;

use super::chunk::{encode, encode_without};
use super::frame::{HEADER_BYTES, Header, Kind, SECTOR_BYTES, blank_pieces, header_place};
use super::offsets::Offsets;
use super::record::Seal;
use super::{Chunk, ChunkDraft, Head, Position, Secret};
use crate::disk::{AlignedBuffer, BLOCK_BYTES, DiskFile};

/// The offset of the next frame, and the content of the block that it begins in.
///
/// A block with acknowledged bytes is written again with the same beginning, so that small appends share a block.
#[derive(Debug)]
pub(super) struct Tail {
    /// The first position of the segment.
    first: Position,
    /// The bytes of the last used block and, during a write, the bytes to add.
    buffer: AlignedBuffer,
    /// The offset of the buffer in the file, a multiple of the block size.
    start: u64,
}

/// The frame of a chunk.
#[derive(Debug)]
pub(super) struct ChunkFrame {
    /// The first position of the chunk.
    pub(super) position: Position,
    /// The offset of the frame.
    pub(super) offset: u64,
    /// The bytes of the chunk.
    length: usize,
}

/// A write that is being assembled as frames in [`Tail`]'s buffer.
#[derive(Debug)]
pub(super) struct Write {
    /// The offset of the first frame of the write.
    start: u64,
    remaining: u32,
}

impl Tail {
    /// Opens the tail of a file whose frames end at `end`.
    pub(super) fn open(file: &dyn DiskFile, first: Position, end: u64) -> io::Result<Self> {
        let start = end / BLOCK_BYTES as u64 * BLOCK_BYTES as u64;
        let mut block = vec![0; (end - start) as usize];
        file.read_at(start, &mut block)?;
        let mut buffer = AlignedBuffer::default();
        buffer.reserve(BLOCK_BYTES);
        buffer.end().extend_from_slice(&block);
        Ok(Self { first, buffer, start })
    }

    /// Returns the offset after the last frame.
    pub(super) fn end(&self) -> u64 {
        self.start + self.buffer.len() as u64
    }

    /// Adds `chunks`, which continue `head`, as frames. Returns the new head and the frames.
    pub(super) fn put_chunks(
        &mut self,
        chunks: &[ChunkDraft],
        mut head: Head,
        secret: &Secret,
    ) -> (Head, Vec<ChunkFrame>) {
        let bytes: usize = chunks.iter().map(|chunk| chunk.encoded_len() + MAX_FRAME_OVERHEAD).sum();
        let mut write = self.begin(chunks.len() as u32, bytes);
        let placed = chunks.iter().map(|chunk| {
            let offset = self.put(&mut write, Kind::Chunk, secret, |out| {
                let chain = encode(chunk, head.chain, secret, out);
                let next = chunk.first.after(chunk.entries).expect("the append has checked its positions");
                head = Head { next, chain };
            });
            let length = (self.end() - offset) as usize - HEADER_BYTES;
            ChunkFrame { position: chunk.first, offset, length }
        });
        let placed = placed.collect();
        (head, placed)
    }

    /// Adds `chunks` of another journal, which continue `head`, as frames without changing them. Returns the new head
    /// and the frames.
    pub(super) fn put_copies(
        &mut self,
        chunks: &[Chunk],
        mut head: Head,
        secret: &Secret,
    ) -> (Head, Vec<ChunkFrame>) {
        let none = BTreeSet::new();
        let encoded: Vec<_> = chunks.iter().map(|chunk| encode_without(chunk, &none, secret)).collect();
        let bytes = encoded.iter().map(|bytes| bytes.len() + MAX_FRAME_OVERHEAD).sum();
        let mut write = self.begin(chunks.len() as u32, bytes);
        let mut placed = Vec::with_capacity(chunks.len());
        for (chunk, bytes) in chunks.iter().zip(encoded) {
            let offset = self.put(&mut write, Kind::Chunk, secret, |out| out.extend_from_slice(&bytes));
            placed.push(ChunkFrame { position: chunk.first(), offset, length: bytes.len() });
            head = Head { next: chunk.next(), chain: chunk.chain() };
        }
        (head, placed)
    }

    /// Starts a write of `frames` frames.
    pub(super) fn begin(&mut self, frames: u32, bytes: usize) -> Write {
        self.buffer.reserve(bytes + BLOCK_BYTES);
        Write { start: header_place(self.end()), remaining: frames }
    }

    /// Adds the next frame of a write. `encode` appends its body. Returns its offset.
    pub(super) fn put(
        &mut self,
        write: &mut Write,
        kind: Kind,
        secret: &Secret,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> u64 {
        let place = header_place(self.end());
        let padding = (place - self.end()) as usize;
        let out = self.buffer.end();
        out.resize(out.len() + padding, 0);
        let header_at = out.len();
        out.extend_from_slice(&[0; HEADER_BYTES]);
        let body_at = out.len();
        encode(out);
        let body = &out[body_at..];
        write.remaining -= 1;
        let header = Header {
            back: u32::try_from(place - write.start).expect("an append is far smaller than 4 GiB"),
            length: u32::try_from(body.len()).expect("a frame is far smaller than 4 GiB"),
            blank: blank_pieces(place + HEADER_BYTES as u64, body),
            remaining: write.remaining,
            kind,
        };
        out[header_at..body_at].copy_from_slice(&header.encode(secret, self.first, place));
        place
    }

    /// Ends the file: adds its remaining offsets and the seal, and truncates it there.
    pub(super) fn seal(
        &mut self,
        file: &dyn DiskFile,
        offsets: &mut Offsets,
        end: Head,
        secret: &Secret,
    ) -> io::Result<Seal> {
        let list = offsets.encode(secret);
        let mut write = self.begin(2, list.len() + Seal::BYTES + 2 * MAX_FRAME_OVERHEAD);
        let listed = self.put(&mut write, Kind::Offsets, secret, |out| out.extend_from_slice(&list));
        offsets.set_stored(listed);
        let seal = Seal { end, offsets: listed };
        self.put(&mut write, Kind::Seal, secret, |out| out.extend_from_slice(&seal.encode(secret)));
        let len = self.end();
        self.write(file)?;
        file.set_len(len)?;
        file.sync()?;
        Ok(seal)
    }

    /// Returns the bytes of a chunk that was added but is not written yet.
    pub(super) fn chunk(&self, placed: &ChunkFrame) -> &[u8] {
        let body = (placed.offset - self.start) as usize + HEADER_BYTES;
        &self.buffer.bytes()[body..body + placed.length]
    }

    /// Returns the minimum length of the file after the next write.
    pub(super) fn blocks_end(&self) -> u64 {
        self.end().next_multiple_of(BLOCK_BYTES as u64)
    }

    /// Writes the added frames durably.
    pub(super) fn write(&mut self, file: &dyn DiskFile) -> io::Result<()> {
        let len = self.buffer.len();
        self.buffer.pad_to_block();
        file.write_durably(self.start, self.buffer.bytes())?;
        self.buffer.truncate(len);
        let done = len / BLOCK_BYTES * BLOCK_BYTES;
        self.buffer.discard(done);
        self.start += done as u64;
        Ok(())
    }
}

/// Maximum size of a frame apart from its body, in bytes.
const MAX_FRAME_OVERHEAD: usize = HEADER_BYTES + SECTOR_BYTES as usize;
