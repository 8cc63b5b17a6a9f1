//! A cache of the newest chunks: direct writes leave nothing in the page cache.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Position;

/// The bytes of the newest chunks, by their first positions.
#[derive(Debug, Default)]
pub(crate) struct RecentChunks {
    chunks: VecDeque<(Position, Arc<[u8]>)>,
    bytes: usize,
}

impl RecentChunks {
    pub(crate) fn push(&mut self, first: Position, bytes: &[u8], max_bytes: usize) {
        self.bytes += bytes.len();
        self.chunks.push_back((first, Arc::from(bytes)));
        while self.bytes > max_bytes
            && let Some((_, gone)) = self.chunks.pop_front()
        {
            self.bytes -= gone.len();
        }
    }

    /// Returns the bytes of the chunk that holds `at`, if they are cached. `at` must be before the head.
    pub(crate) fn get(&self, at: Position) -> Option<Arc<[u8]>> {
        let after = self.chunks.partition_point(|(first, _)| *first <= at);
        after.checked_sub(1).map(|place| self.chunks[place].1.clone())
    }
}
