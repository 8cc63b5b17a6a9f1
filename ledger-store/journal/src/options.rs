//! How a journal on disk uses memory and files.

use super::frame::FRAMES_START;
use crate::disk::BLOCK_BYTES;

/// How a journal on disk uses memory and files.
#[derive(Clone, Copy, Debug)]
pub struct SegmentOptions {
    /// A segment that has taken this many bytes is sealed before the next batch. Bounds what is read again after a
    /// crash.
    pub segment_bytes: u64,
    /// How much of what was appended last is kept in memory, in bytes: direct writes leave nothing in the page cache.
    pub cache_bytes: usize,
    /// How much of the end is verified when a journal is opened that was closed, in bytes.
    pub tail_bytes: usize,
    /// How many sealed segments are kept open for reading.
    pub open_sealed: usize,
    /// How much space is set aside at a time at the end of the segment that is written, in bytes. At least an eighth of
    /// it is there before a batch is decided, so that a full disk refuses the batch instead of breaking it off.
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
    /// The length of a new segment's file.
    pub(crate) fn new_file_bytes(&self) -> u64 {
        (FRAMES_START + self.space_bytes).next_multiple_of(BLOCK_BYTES as u64)
    }
}
