//! Options of a journal on disk.

use super::frame::FRAMES_START;
use crate::disk::BLOCK_BYTES;

/// How a journal on disk uses memory and files.
#[derive(Clone, Copy, Debug)]
pub struct SegmentOptions {
    /// Size in bytes at which a segment is sealed before the next batch. Bounds how much is read again after a crash.
    pub segment_bytes: u64,
    /// Bytes of memory for caching the newest chunks, because direct writes bypass the page cache.
    pub cache_bytes: usize,
    /// Number of bytes at the end that are verified when a closed journal is opened.
    pub tail_bytes: usize,
    /// Maximum number of sealed segments that are kept open for reading.
    pub open_sealed: usize,
    /// Number of bytes that are preallocated at a time at the end of the last segment. At least an eighth of
    /// it is available before a batch is decided, so that a full disk refuses the batch instead of interrupting it.
    pub space_bytes: u64,
}

impl Default for SegmentOptions {
    fn default() -> Self {
        Self {
            segment_bytes: 1 << 30,
            cache_bytes: 4 << 20,
            tail_bytes: 4 << 20,
            open_sealed: 8,
            space_bytes: 8 << 20,
        }
    }
}

impl SegmentOptions {
    /// Returns the length of a new segment's file.
    pub(crate) fn new_file_bytes(&self) -> u64 {
        (FRAMES_START + self.space_bytes).next_multiple_of(BLOCK_BYTES as u64)
    }
}
