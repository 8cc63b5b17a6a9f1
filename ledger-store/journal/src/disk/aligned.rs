//! Memory that is aligned to disk blocks.
//!
//! A direct write bypasses the page cache. The file system requires that its memory address, its file offset and its
//! length are multiples of the block size.

/// The block size of direct writes, in bytes. Every common file system accepts it.
pub const BLOCK_BYTES: usize = 4096;

/// Bytes whose memory address is a multiple of [`BLOCK_BYTES`].
#[derive(Debug, Default)]
pub struct AlignedBuffer {
    /// The bytes, after a few unused ones for alignment.
    memory: Vec<u8>,
    start: usize,
}

impl AlignedBuffer {
    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.start..]
    }

    /// Returns the number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.memory.len() - self.start
    }

    /// Reserves capacity for `more` bytes, so that [`AlignedBuffer::end`] can append them without reallocation.
    pub fn reserve(&mut self, more: usize) {
        let fits = self.memory.capacity() - self.memory.len() >= more;
        if fits && self.bytes().as_ptr().addr().is_multiple_of(BLOCK_BYTES) {
            return;
        }
        let mut memory: Vec<u8> = Vec::with_capacity(BLOCK_BYTES + self.len() + more);
        let start = memory.as_ptr().align_offset(BLOCK_BYTES);
        memory.resize(start, 0);
        memory.extend_from_slice(self.bytes());
        *self = Self { memory, start };
    }

    /// Returns the vector to append to. Appending more than was [reserved](AlignedBuffer::reserve) may move the buffer
    /// to unaligned memory, which is then written through the page cache.
    pub fn end(&mut self) -> &mut Vec<u8> {
        &mut self.memory
    }

    /// Keeps the first `len` bytes.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.memory.truncate(self.start + len);
    }

    /// Appends zeros up to a multiple of a block.
    pub(crate) fn pad_to_block(&mut self) {
        let len = self.len().next_multiple_of(BLOCK_BYTES);
        self.memory.resize(self.start + len, 0);
    }

    /// Removes the first `len` bytes.
    pub(crate) fn discard(&mut self, len: usize) {
        self.memory.copy_within(self.start + len.., self.start);
        self.memory.truncate(self.memory.len() - len);
    }
}

/// Returns whether a write of `data` at `offset` can be direct.
pub(crate) fn is_aligned(offset: u64, data: &[u8]) -> bool {
    offset.is_multiple_of(BLOCK_BYTES as u64)
        && data.len().is_multiple_of(BLOCK_BYTES)
        && data.as_ptr().addr().is_multiple_of(BLOCK_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_aligned_while_it_grows() {
        let mut buffer = AlignedBuffer::default();
        let mut model: Vec<u8> = Vec::new();
        for round in 0..200_usize {
            let more = round * 97 % 9000;
            buffer.reserve(more + BLOCK_BYTES);
            buffer.end().extend(std::iter::repeat_n(round as u8, more));
            model.extend(std::iter::repeat_n(round as u8, more));
            let len = buffer.len();
            buffer.pad_to_block();
            assert!(is_aligned(8192, buffer.bytes()), "round {round}");
            buffer.truncate(len);
            assert!(buffer.bytes() == model);
            let gone = len / BLOCK_BYTES * BLOCK_BYTES;
            buffer.discard(gone);
            model.drain(..gone);
        }
    }
}
