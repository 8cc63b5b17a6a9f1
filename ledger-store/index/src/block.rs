//! Blocks: a run is stored as blocks of a few kilobytes of rows, each under one key.
//!
//! ```text
//! rows         each as a difference from the one before; every 64th one complete
//! [next key    the first key of the run's next block]
//! restarts     u16 little-endian each: the offsets of the complete rows, except the first
//! count        u8, number of restarts
//! next length  u16 little-endian, length of the next key; 0 if there is no next block
//! checksum     8 bytes, added and verified by the file
//! ```
//!
//! The key of the next block links the blocks of a run into a chain: a read across a missing block, or one that a
//! damaged tree hides, notices the gap. A search halves the list of complete rows, so finding one row decodes up to 64
//! rows and not the whole block.

#![allow(
    clippy::cast_possible_truncation,
    reason = "a block has at most 2^16 bytes, as has a key, and far fewer restarts"
)]

use std::ops::Range;

use ledger_codec::{Corrupt, Output, Reader};

use super::error::IndexError;
use super::order::Direction;
use super::row::{KeyBytes, Row, SHORT_KEY_BYTES};
use super::rows::TABLES;
use super::stored::{CHECKSUM_BYTES, verified};

/// Maximum stored size of a block with more than one row and of keys of usual length, in bytes.
///
/// redb rounds a page up to a power of two and needs some of it for itself and for a short key.
pub(super) const STORED_BYTES_MAX: usize = 8 * 1024 - 64;

/// Number of bytes after the restarts: their number, and the length of the next key.
const FOOTER_BYTES: usize = 3;

/// Number of rows in a segment: a complete row and the differences after it.
const SEGMENT_ROWS: usize = 64;

const EMPTY_SEGMENT: Corrupt = Corrupt { what: "a part of a block has no rows" };

/// Builds a block at the end of a buffer.
#[derive(Debug)]
pub(crate) struct BlockBuilder {
    /// Offset of the block in the buffer.
    start: usize,
    /// Maximum offset of the end of its rows, once the block has one.
    end_max: usize,
    /// Number of rows until the next complete one.
    until_restart: usize,
    restarts: Vec<u16>,
}

impl BlockBuilder {
    /// Creates an empty block at offset `start`.
    pub(crate) fn new(start: usize) -> Self {
        Self { start, end_max: start, until_restart: 0, restarts: Vec::new() }
    }

    /// Returns the offset of the block in the buffer.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// Adjusts the offsets after the bytes before the block were removed from the buffer.
    pub(crate) fn move_to_front(&mut self) {
        self.end_max -= self.start;
        self.start = 0;
    }

    /// Appends a row. Returns `false` without effect if the block has no space for it.
    ///
    /// `previous` is the row that was appended before it, if there was one.
    #[inline]
    pub(crate) fn push<R: Row>(&mut self, row: &R, previous: Option<&R>, out: &mut Output) -> bool {
        let mark = out.len();
        out.make_room();
        if self.until_restart == 0 {
            row.encode(None, out);
            return self.restart::<R>(mark, out);
        }
        row.encode(previous, out);
        if out.len() > self.end_max {
            out.truncate(mark);
            return false;
        }
        self.until_restart -= 1;
        true
    }

    /// Keeps the complete row that was appended at `mark`, if there is space for it.
    fn restart<R: Row>(&mut self, mark: usize, out: &mut Output) -> bool {
        if mark == self.start {
            // A row that is larger than a block gets a block of its own.
            let keys = 2 * R::KEY_BYTES - SHORT_KEY_BYTES;
            self.end_max = self.start + STORED_BYTES_MAX - (keys + FOOTER_BYTES + CHECKSUM_BYTES);
        } else {
            if out.len() + size_of::<u16>() > self.end_max {
                out.truncate(mark);
                return false;
            }
            self.end_max -= size_of::<u16>();
            self.restarts.push((mark - self.start) as u16);
        }
        self.until_restart = SEGMENT_ROWS - 1;
        true
    }

    /// Copies the rows of a stored block into this block, which must be empty and is then full.
    pub(crate) fn adopt(&mut self, rows: &[u8], restarts: &[u16], out: &mut Output) {
        debug_assert!(out.len() == self.start, "the block is empty");
        out.put_bytes(rows);
        self.restarts.extend_from_slice(restarts);
        self.end_max = self.start;
        self.until_restart = 0;
    }

    /// Completes the block except for its checksum, and starts an empty block after that.
    pub(crate) fn close(&mut self, next: Option<&KeyBytes>, out: &mut Output) {
        if let Some(next) = next {
            out.put_bytes(next.as_slice());
        }
        for restart in &self.restarts {
            out.put_bytes(&restart.to_le_bytes());
        }
        out.put_byte(self.restarts.len() as u8);
        let length = next.map_or(0, |next| next.as_slice().len()) as u16;
        out.put_bytes(&length.to_le_bytes());
        self.start = out.len() + CHECKSUM_BYTES;
        self.end_max = self.start;
        self.until_restart = 0;
        self.restarts.clear();
    }
}

/// A stored block whose checksum was verified and removed.
pub(crate) struct Block<'a> {
    rows: &'a [u8],
    restarts: &'a [[u8; 2]],
    next: Option<KeyBytes>,
}

impl<'a> Block<'a> {
    /// Decodes everything except the rows.
    ///
    /// # Errors
    ///
    /// [`Corrupt`] if the bytes are not a block.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, Corrupt> {
        const SHORT: Corrupt = Corrupt { what: "a block is too short" };
        let (bytes, [restarts, low, high]) = bytes.split_last_chunk::<FOOTER_BYTES>().ok_or(SHORT)?;
        let length = bytes.len().checked_sub(2 * usize::from(*restarts)).ok_or(SHORT)?;
        let (bytes, restarts) = bytes.split_at(length);
        let (rows, next) = match u16::from_le_bytes([*low, *high]) {
            0 => (bytes, None),
            length => {
                let length = bytes.len().checked_sub(length.into()).ok_or(SHORT)?;
                let (rows, next) = bytes.split_at(length);
                (rows, Some(KeyBytes::from_slice(next)?))
            }
        };
        Ok(Self { rows, restarts: restarts.as_chunks().0, next })
    }

    /// Returns the first key of the run's next block, or `None` in the last block.
    pub(crate) fn next_key(&self) -> Option<KeyBytes> {
        self.next.clone()
    }

    /// Replaces the contents of the buffers by the block's rows, and by the offsets of the complete rows except the
    /// first.
    pub(crate) fn copy_to(&self, rows: &mut Vec<u8>, restarts: &mut Vec<u16>) {
        rows.clear();
        rows.extend_from_slice(self.rows);
        restarts.clear();
        restarts.extend(self.restarts.iter().map(|place| u16::from_le_bytes(*place)));
    }

    /// Returns the offset of a segment, or after the last one the end of the rows.
    fn place(&self, segment: usize) -> usize {
        let restart = segment.checked_sub(1).map(|before| self.restarts.get(before));
        restart.map_or(0, |place| place.map_or(self.rows.len(), |place| u16::from_le_bytes(*place).into()))
    }

    /// Returns a reader of the rows from one complete row up to the next.
    fn segment(&self, number: usize) -> Result<Reader<'a>, Corrupt> {
        let rows = self.rows.get(self.place(number)..self.place(number + 1));
        rows.filter(|rows| !rows.is_empty()).map(Reader::new).ok_or(EMPTY_SEGMENT)
    }

    /// Returns the rows from `from` to `to`, both inclusive. Decodes the rows at the first end now and the others when
    /// they are needed, so that a reader of few rows does not wait for a whole block.
    ///
    /// # Errors
    ///
    /// [`Corrupt`] if one of the decoded rows is malformed.
    pub(crate) fn rows_in<R: Row>(
        &self,
        from: &R::Key,
        to: &R::Key,
        direction: Direction,
    ) -> Result<BlockRows<R>, Corrupt> {
        let first = self.segment_of::<R>(from)?;
        let last = match &self.next {
            Some(next) if *next <= KeyBytes::of::<R>(to) => self.restarts.len(),
            _ => self.segment_of::<R>(to)?,
        };
        let (left, decoded) = match direction {
            Direction::Ascending => (first + 1..last + 1, first),
            Direction::Descending => (first..last, last),
        };
        let decoded = segment_rows::<R>(self.segment(decoded)?, from, to)?.into_iter();
        let begin = self.place(left.start);
        let bytes = if left.is_empty() { None } else { self.rows.get(begin..self.place(left.end)) };
        let ends = left.clone().map(|segment| self.place(segment + 1).saturating_sub(begin)).collect();
        let undecoded = Segments { bytes: bytes.unwrap_or_default().into(), ends, left: 0..left.len() };
        Ok(BlockRows { decoded, undecoded, from: from.clone(), to: to.clone() })
    }

    /// Returns the index of the last segment that begins at or before `key`, or the first one.
    fn segment_of<R: Row>(&self, key: &R::Key) -> Result<usize, Corrupt> {
        let (mut found, mut end) = (0, self.restarts.len() + 1);
        while end - found > 1 {
            let middle = usize::midpoint(found, end);
            if R::decode(None, &mut self.segment(middle)?)?.key() <= *key {
                found = middle;
            } else {
                end = middle;
            }
        }
        Ok(found)
    }

    /// Returns the last row at or before `key`, if the block has one.
    ///
    /// # Errors
    ///
    /// [`Corrupt`] if one of the decoded rows is malformed.
    pub(crate) fn last_at_or_before<R: Row>(&self, key: &R::Key) -> Result<Option<R>, Corrupt> {
        let mut reader = self.segment(self.segment_of::<R>(key)?)?;
        let mut found: Option<R> = None;
        while !reader.is_empty() {
            let row = R::decode(found.as_ref(), &mut reader)?;
            if row.key() > *key {
                break;
            }
            found = Some(row);
        }
        Ok(found)
    }

    /// Returns the first row at or after `key`, if the block has one.
    ///
    /// # Errors
    ///
    /// [`Corrupt`] if one of the decoded rows is malformed.
    pub(crate) fn first_at_or_after<R: Row>(&self, key: &R::Key) -> Result<Option<R>, Corrupt> {
        let start = self.segment_of::<R>(key)?;
        for number in start..=self.restarts.len() {
            let mut reader = self.segment(number)?;
            let mut previous: Option<R> = None;
            while !reader.is_empty() {
                let row = R::decode(previous.as_ref(), &mut reader)?;
                if row.key() >= *key {
                    return Ok(Some(row));
                }
                previous = Some(row);
            }
        }
        Ok(None)
    }
}

/// Decodes the rows of a segment from `from` to `to`, both inclusive.
fn segment_rows<R: Row>(mut reader: Reader<'_>, from: &R::Key, to: &R::Key) -> Result<Vec<R>, Corrupt> {
    let mut rows = Vec::with_capacity(SEGMENT_ROWS);
    let mut row = R::decode(None, &mut reader)?;
    loop {
        let key = row.key();
        if key > *to {
            return Ok(rows);
        }
        let next = if reader.is_empty() { None } else { Some(R::decode(Some(&row), &mut reader)?) };
        if key >= *from {
            rows.push(row);
        }
        match next {
            Some(next) => row = next,
            None => return Ok(rows),
        }
    }
}

/// The segments that are not decoded yet.
struct Segments {
    bytes: Box<[u8]>,
    /// The end offset of each segment.
    ends: Vec<usize>,
    /// The indexes of the remaining segments.
    left: Range<usize>,
}

impl Segments {
    /// Takes the next segment in a direction, if one is left.
    fn take(&mut self, direction: Direction) -> Option<Result<Reader<'_>, Corrupt>> {
        let number = match direction {
            Direction::Ascending => self.left.next(),
            Direction::Descending => self.left.next_back(),
        }?;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        let rows = self.bytes.get(start..self.ends[number]).filter(|rows| !rows.is_empty());
        Some(rows.map(Reader::new).ok_or(EMPTY_SEGMENT))
    }
}

/// The rows of a block, some of which are decoded. All are taken from the same end.
pub(crate) struct BlockRows<R: Row> {
    decoded: std::vec::IntoIter<R>,
    undecoded: Segments,
    from: R::Key,
    to: R::Key,
}

impl<R: Row> BlockRows<R> {
    /// Creates a value without rows.
    pub(crate) fn none(from: R::Key, to: R::Key) -> Self {
        let undecoded = Segments { bytes: Box::default(), ends: Vec::new(), left: 0..0 };
        Self { decoded: Vec::new().into_iter(), undecoded, from, to }
    }

    /// Returns the key of the next row, and decodes the row if necessary.
    ///
    /// # Errors
    ///
    /// [`Corrupt`] if the row is malformed.
    #[inline]
    pub(crate) fn peek(&mut self, direction: Direction) -> Result<Option<R::Key>, Corrupt> {
        loop {
            let rows = self.decoded.as_slice();
            let row = if direction == Direction::Ascending { rows.first() } else { rows.last() };
            if let Some(row) = row {
                return Ok(Some(row.key()));
            }
            let Some(segment) = self.undecoded.take(direction) else { return Ok(None) };
            self.decoded = segment_rows::<R>(segment?, &self.from, &self.to)?.into_iter();
        }
    }

    /// Takes the row whose key was peeked at.
    #[inline]
    pub(crate) fn take(&mut self, direction: Direction) -> Option<R> {
        match direction {
            Direction::Ascending => self.decoded.next(),
            Direction::Descending => self.decoded.next_back(),
        }
    }
}

pub(super) fn corrupt<R: Row>(corrupt: Corrupt) -> IndexError {
    IndexError::corrupt(R::TABLE_NAME, corrupt)
}

/// Verifies a stored entry of a run, and decodes everything except the rows.
pub(super) fn load<'a>(table: u8, stored_key: &[u8], stored: &'a [u8]) -> Result<Block<'a>, IndexError> {
    let name = TABLES[usize::from(table)];
    let block = verified(name, stored_key, stored)?;
    Block::parse(block).map_err(|corrupt| IndexError::corrupt(name, corrupt))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TermRow;

    const ROWS: u64 = 3 * SEGMENT_ROWS as u64 + 10;

    /// Creates the rows of a term with even ids.
    fn row(number: u64) -> TermRow {
        TermRow::new(1, 7, 2 * number, number, true)
    }

    fn block() -> Vec<u8> {
        let (mut out, mut builder, mut previous) = (Output::default(), BlockBuilder::new(0), None);
        for number in 0..ROWS {
            let row = row(number);
            assert!(builder.push(&row, previous.as_ref(), &mut out), "the block has room");
            previous = Some(row);
        }
        builder.close(None, &mut out);
        out.as_slice().to_vec()
    }

    fn taken(mut rows: BlockRows<TermRow>, direction: Direction) -> Vec<u64> {
        let mut ids = Vec::new();
        while let Some(key) = rows.peek(direction).expect("it decodes") {
            assert_eq!(rows.take(direction).expect("it was peeked at").key(), key);
            ids.push(key.2);
        }
        assert_eq!(rows.take(direction), None);
        ids
    }

    #[test]
    fn ranges_are_read_from_either_end() {
        let stored = block();
        let block = Block::parse(&stored).expect("a block");
        let key = |id| (1, 7, id, u64::MAX);
        let near = |segment: u64| [0, 1, 2, 3].map(|more| 2 * segment * SEGMENT_ROWS as u64 + more);
        let ids: Vec<u64> = (0..=4).flat_map(near).chain([2 * ROWS - 1, 1_000]).collect();
        for from in &ids {
            for to in ids.iter().filter(|to| *to >= from) {
                let mut expected: Vec<u64> =
                    (0..ROWS).map(|number| 2 * number).filter(|id| id > from && id <= to).collect();
                for direction in [Direction::Ascending, Direction::Descending] {
                    let rows =
                        block.rows_in::<TermRow>(&key(*from), &key(*to), direction).expect("it decodes");
                    assert_eq!(taken(rows, direction), expected, "{from} to {to}, {direction:?}");
                    expected.reverse();
                }
            }
        }
    }

    #[test]
    fn only_the_segment_in_use_is_decoded() {
        let mut stored = block();
        let mut whole = Output::default();
        whole.make_room();
        row(SEGMENT_ROWS as u64).encode(None, &mut whole);
        let damaged = Block::parse(&stored).expect("a block").place(1) + whole.len();
        // Writes invalid flags into the second row of the second segment.
        stored[damaged] = u8::MAX;
        let block = Block::parse(&stored).expect("a block");
        let (first, last) = (TermRow::first_key(), row(SEGMENT_ROWS as u64 - 1).key());
        let rows = block
            .rows_in::<TermRow>(&first, &last, Direction::Ascending)
            .expect("the first segment is whole");
        assert_eq!(taken(rows, Direction::Ascending).len(), SEGMENT_ROWS);
        let rows = block.rows_in::<TermRow>(&first, &TermRow::last_key(), Direction::Ascending);
        let mut rows = rows.expect("the first segment is whole");
        for _ in 0..SEGMENT_ROWS {
            assert!(rows.peek(Direction::Ascending).is_ok_and(|key| key.is_some()));
            rows.take(Direction::Ascending);
        }
        assert!(rows.peek(Direction::Ascending).is_err());
    }
}
