//! Blocks: what a run is stored in, a few kilobytes of rows behind one key.
//!
//! ```text
//! rows         each as a difference to the one before, the first one whole
//! [next key    KEY_BYTES, the first key of the run's next block]
//! has next     u8, 1 if there is a next block, else 0
//! checksum     8 bytes, put and checked by the file
//! ```
//!
//! The next block's key makes the blocks of a run a chain: a block that is
//! missing, or that a damaged tree hides, is noticed by whoever crosses it.

use std::marker::PhantomData;

use crate::codec::{Corrupt, Reader};

use super::file::CHECKSUM_BYTES;
use super::row::{KeyBytes, Row};

/// The greatest length of a stored block of more than one row.
///
/// The storage engine rounds a page up to a power of two and needs some of it for itself.
const STORED_BYTES_MAX: usize = 8 * 1024 - 64;

/// The greatest length of the encoded rows of a block, unless it has but one row.
pub(crate) const fn row_bytes_max<R: Row>() -> usize {
    STORED_BYTES_MAX - CHECKSUM_BYTES - 1 - R::KEY_BYTES
}

/// Completes a block whose rows were encoded.
pub(crate) fn close(out: &mut Vec<u8>, next: Option<&KeyBytes>) {
    if let Some(next) = next {
        out.extend_from_slice(next.as_slice());
    }
    out.push(u8::from(next.is_some()));
}

/// A stored block, its checksum verified and removed.
pub(crate) struct Block<'a, R> {
    rows: Reader<'a>,
    next: Option<KeyBytes>,
    kind: PhantomData<R>,
}

impl<'a, R: Row> Block<'a, R> {
    /// Reads what stands around the rows.
    ///
    /// # Errors
    ///
    /// [`Corrupt`] if the bytes are not a block.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, Corrupt> {
        const SHORT: Corrupt = Corrupt { what: "a block is too short" };
        let (has_next, bytes) = bytes.split_last().ok_or(SHORT)?;
        let (rows, next) = match has_next {
            0 => (bytes, None),
            1 => {
                let length = bytes.len().checked_sub(R::KEY_BYTES).ok_or(SHORT)?;
                let (rows, next) = bytes.split_at(length);
                (rows, Some(KeyBytes::from_slice(next)?))
            }
            _ => return Err(Corrupt { what: "a block ends in no known way" }),
        };
        if rows.is_empty() {
            return Err(Corrupt { what: "a block has no rows" });
        }
        Ok(Self { rows: Reader::new(rows), next, kind: PhantomData })
    }

    /// The first key of the run's next block; none if this is the last.
    pub(crate) fn next_key(&self) -> Option<KeyBytes> {
        self.next
    }

    /// All rows, in order.
    ///
    /// # Errors
    ///
    /// [`Corrupt`] if they do not decode.
    pub(crate) fn rows(mut self) -> Result<Vec<R>, Corrupt> {
        // Most rows take four bytes or more.
        let mut rows = Vec::with_capacity(STORED_BYTES_MAX / 6);
        while !self.rows.is_empty() {
            let row = R::decode(rows.last(), &mut self.rows)?;
            rows.push(row);
        }
        Ok(rows)
    }

    /// The last row at or before `key`, if the block has one.
    ///
    /// # Errors
    ///
    /// [`Corrupt`] if the rows up to there do not decode.
    pub(crate) fn last_at_or_before(mut self, key: &R::Key) -> Result<Option<R>, Corrupt> {
        let mut found = None;
        while !self.rows.is_empty() {
            let row = R::decode(found.as_ref(), &mut self.rows)?;
            if row.key() > *key {
                break;
            }
            found = Some(row);
        }
        Ok(found)
    }

    /// The first row at or after `key`, if the block has one.
    ///
    /// # Errors
    ///
    /// [`Corrupt`] if the rows up to there do not decode.
    pub(crate) fn first_at_or_after(mut self, key: &R::Key) -> Result<Option<R>, Corrupt> {
        let mut previous = None;
        while !self.rows.is_empty() {
            let row = R::decode(previous.as_ref(), &mut self.rows)?;
            if row.key() >= *key {
                return Ok(Some(row));
            }
            previous = Some(row);
        }
        Ok(None)
    }
}
