//! Reads the rows of one run in key order for a merge, either row by row or as whole stored blocks.

use ledger_codec::{Corrupt, Reader};

use super::block::{STORED_BYTES_MAX, corrupt, load};
use super::error::{IndexError, catch_redb_panic};
use super::order::Direction;
use super::row::{KeyBytes, Row};
use super::rows::TABLES;
use super::run_list::{BlockKey, RunMeta};
use super::snapshot::IndexSnapshot;
use super::stored::{RawRange, entries, take_entry};

/// The blocks of a run, which are loaded one after the other. Not generic, so that this code is not compiled for each
/// type of rows.
struct BlockStream {
    table: u8,
    /// The blocks that are not loaded yet, if there are any.
    blocks: Option<RawRange<'static>>,
    /// The first key of the loaded block.
    first: KeyBytes,
    /// The first key of the block after it, so that a missing block is noticed.
    next: Option<KeyBytes>,
    /// The last key of the run.
    last: KeyBytes,
    /// The rows of the loaded block.
    bytes: Vec<u8>,
    /// The offsets of its complete rows, except the first. Each row between them is stored as a difference from the
    /// row before.
    restarts: Vec<u16>,
}

impl BlockStream {
    /// Starts before the first block of a run.
    fn open(table: u8, snapshot: &IndexSnapshot, run: &RunMeta) -> Result<Self, IndexError> {
        let (first, last) = (BlockKey::new(run.id, &run.first), BlockKey::new(run.id, &run.last));
        let blocks = entries(snapshot.blocks(table), first.as_slice(), last.as_slice())?;
        Ok(Self {
            table,
            blocks: Some(blocks),
            first: run.first.clone(),
            next: Some(run.first.clone()),
            last: run.last.clone(),
            bytes: Vec::new(),
            restarts: Vec::new(),
        })
    }

    fn name(&self) -> &'static str {
        TABLES[usize::from(self.table)]
    }

    /// Loads the next block. Returns whether there is one.
    fn load(&mut self) -> Result<bool, IndexError> {
        let Some(expected) = self.next.take() else {
            self.blocks = None;
            return Ok(false);
        };
        let Some(blocks) = &mut self.blocks else {
            return Ok(false);
        };
        let Some((key, stored)) = take_entry(blocks, Direction::Ascending)? else {
            return Err(IndexError::damaged(self.name(), "a block is missing"));
        };
        let (first, next) = catch_redb_panic("reading a block", || {
            let block = load(self.table, key.value(), stored.value())?;
            block.copy_to(&mut self.bytes, &mut self.restarts);
            let first = KeyBytes::from_slice(BlockKey::first_of(key.value()));
            Ok((first.map_err(|corrupt| IndexError::corrupt(self.name(), corrupt))?, block.next_key()))
        })?;
        if first != expected {
            return Err(IndexError::damaged(self.name(), "a block is missing"));
        }
        (self.first, self.next) = (first, next);
        Ok(true)
    }

    /// Returns the rows of a segment of the loaded block, and the offset of their end.
    fn segment(&self, segment: usize) -> Result<(&[u8], usize), Corrupt> {
        let place = |segment: usize| self.restarts.get(segment).map(|place| usize::from(*place));
        let start = segment.checked_sub(1).and_then(place).unwrap_or(0);
        let end = place(segment).unwrap_or(self.bytes.len());
        let rows = self.bytes.get(start..end).ok_or(Corrupt { what: "a part of a block has no rows" })?;
        Ok((rows, end))
    }

    /// Returns the loaded block if all of its rows come before another key, and it is at least half full. Merging smaller
    /// blocks by rows turns many into few.
    fn whole_before(&self, other: Option<&KeyBytes>) -> Option<WholeBlock<'_>> {
        if self.bytes.len() < STORED_BYTES_MAX / 2 {
            return None;
        }
        let is_before = match (other, &self.next) {
            (None, _) => true,
            (Some(other), Some(next)) => next <= other,
            (Some(other), None) => self.last < *other,
        };
        is_before.then(|| WholeBlock {
            first: self.first.clone(),
            last: if self.next.is_none() { Some(self.last.clone()) } else { None },
            rows: &self.bytes,
            restarts: &self.restarts,
        })
    }
}

/// A run that is read once from its first row to its last.
pub(super) struct RunStream<R: Row> {
    blocks: BlockStream,
    /// The index of the segment from which rows are currently decoded: a complete row and the differences after it.
    segment: usize,
    /// The start of the remaining rows in that segment, and their end.
    at: usize,
    end: usize,
    /// The next row, or `None` at the end.
    row: Option<R>,
    /// True if the next row is the first one of the block.
    is_at_block_start: bool,
}

/// A block of which no row was taken.
pub(super) struct WholeBlock<'a> {
    /// The key of its first row.
    pub(super) first: KeyBytes,
    /// The key of its last row, if it is the last block of the run.
    pub(super) last: Option<KeyBytes>,
    /// The rows.
    pub(super) rows: &'a [u8],
    /// The offsets of the complete rows, except the first.
    pub(super) restarts: &'a [u16],
}

impl<R: Row> RunStream<R> {
    /// Starts at the first row of a run.
    ///
    /// # Errors
    ///
    /// The errors of [`take`](Self::take).
    pub(super) fn open(snapshot: &IndexSnapshot, run: &RunMeta) -> Result<Self, IndexError> {
        let blocks = BlockStream::open(R::TABLE, snapshot, run)?;
        let mut stream = Self { blocks, segment: 0, at: 0, end: 0, row: None, is_at_block_start: false };
        stream.load()?;
        Ok(stream)
    }

    /// Returns the next row, or `None` at the end.
    #[inline]
    pub(super) fn peek(&self) -> Option<&R> {
        self.row.as_ref()
    }

    /// Takes the next row.
    ///
    /// # Errors
    ///
    /// [`IndexError::Damaged`] if the run is damaged; otherwise the errors of the storage engine. The stream must then
    /// be dropped.
    #[inline]
    pub(super) fn take(&mut self) -> Result<Option<R>, IndexError> {
        self.is_at_block_start = false;
        if self.at == self.end {
            let row = self.row.take();
            self.next_segment()?;
            return Ok(row);
        }
        let mut reader = Reader::new(&self.blocks.bytes[self.at..self.end]);
        let next = R::decode(self.row.as_ref(), &mut reader).map_err(corrupt::<R>)?;
        self.at = self.end - reader.remaining();
        Ok(self.row.replace(next))
    }

    /// Returns whether no row of the loaded block was taken.
    #[inline]
    pub(super) fn is_at_block_start(&self) -> bool {
        self.is_at_block_start
    }

    /// Returns the loaded block if none of its rows was taken, all of them come before another key, and copying it is
    /// better than merging its rows.
    pub(super) fn whole_before(&self, other: Option<&KeyBytes>) -> Option<WholeBlock<'_>> {
        if self.is_at_block_start { self.blocks.whole_before(other) } else { None }
    }

    /// Continues with the block after the loaded one.
    ///
    /// # Errors
    ///
    /// The errors of [`take`](Self::take).
    pub(super) fn skip_block(&mut self) -> Result<(), IndexError> {
        self.row = None;
        self.is_at_block_start = false;
        // After the last block, no rows are left.
        self.blocks.restarts.clear();
        (self.segment, self.at, self.end) = (0, 0, 0);
        self.load()
    }

    #[cold]
    fn next_segment(&mut self) -> Result<(), IndexError> {
        if self.segment == self.blocks.restarts.len() {
            return self.load();
        }
        self.segment += 1;
        self.decode_first().map_err(corrupt::<R>)
    }

    /// Decodes the complete row at the start of the segment.
    fn decode_first(&mut self) -> Result<(), Corrupt> {
        let (rows, end) = self.blocks.segment(self.segment)?;
        let mut reader = Reader::new(rows);
        self.row = Some(R::decode(None, &mut reader)?);
        (self.at, self.end) = (end - reader.remaining(), end);
        Ok(())
    }

    /// Loads the next block, if there is one, and decodes its first row.
    fn load(&mut self) -> Result<(), IndexError> {
        if !self.blocks.load()? {
            return Ok(());
        }
        (self.segment, self.is_at_block_start) = (0, true);
        self.decode_first().map_err(corrupt::<R>)
    }
}
