//! Reads the rows of one run between two keys, in either direction.

use ledger_codec::Corrupt;

use super::block::{Block, BlockRows, corrupt};
use super::block_cursor::{BlockCursor, find_block};
use super::error::IndexError;
use super::order::Direction;
use super::row::{KeyBytes, Row};
use super::run_list::RunMeta;
use super::snapshot::IndexSnapshot;

/// The rows between two keys in a run, which are loaded block by block.
pub(super) struct RunCursor<R: Row> {
    blocks: BlockCursor,
    /// The remaining rows of the loaded block. All of them are within the bounds.
    rows: BlockRows<R>,
    from: R::Key,
    to: R::Key,
}

/// Returns the last block of a run that begins at or before `key`, which must not be before the run's first key, as
/// `use_block` reads it. Also returns the first key of the block after it.
pub(super) fn block_at<R: Row, T>(
    snapshot: &IndexSnapshot,
    run: &RunMeta,
    key: &KeyBytes,
    use_block: impl Fn(Block<'_>) -> Result<T, Corrupt>,
) -> Result<(T, Option<KeyBytes>), IndexError> {
    let mut read = None;
    let next = find_block(snapshot, R::TABLE, run, key, &mut |block| {
        read = Some(use_block(block)?);
        Ok(())
    })?;
    Ok((read.expect("a block that is found is read"), next))
}

impl<R: Row> RunCursor<R> {
    /// Creates a cursor over the rows from `from` to `to`, both inclusive. Returns `None` if the bounds are outside
    /// the run's keys.
    pub(super) fn open(
        snapshot: &IndexSnapshot,
        run: &RunMeta,
        from: R::Key,
        to: R::Key,
        direction: Direction,
    ) -> Result<Option<Self>, IndexError> {
        let (first, last) = (KeyBytes::of::<R>(&from), KeyBytes::of::<R>(&to));
        let mut rows = BlockRows::none(from.clone(), to.clone());
        let blocks = BlockCursor::open(snapshot, R::TABLE, run, first, last, direction, &mut |block| {
            rows = block.rows_in::<R>(&from, &to, direction)?;
            Ok(())
        })?;
        Ok(blocks.map(|blocks| Self { blocks, rows, from, to }))
    }

    /// Takes the row whose key [`Self::peek`] returned. Loads no block.
    #[inline]
    pub(super) fn take(&mut self, direction: Direction) -> Option<R> {
        self.rows.take(direction)
    }

    /// Returns the next key. May have to load a block.
    #[inline]
    pub(super) fn peek(&mut self, direction: Direction) -> Result<Option<R::Key>, IndexError> {
        loop {
            if let Some(key) = self.rows.peek(direction).map_err(corrupt::<R>)? {
                return Ok(Some(key));
            }
            if self.blocks.is_done() {
                return Ok(None);
            }
            self.load(direction)?;
        }
    }

    /// Loads the next block in the direction.
    fn load(&mut self, direction: Direction) -> Result<(), IndexError> {
        let Self { blocks, from, to, .. } = self;
        let mut loaded = None;
        blocks.load(direction, &mut |block| {
            loaded = Some(block.rows_in::<R>(from, to, direction)?);
            Ok(())
        })?;
        // Only now, because the cursor refuses a block that does not follow the one before.
        if let Some(rows) = loaded {
            self.rows = rows;
        }
        Ok(())
    }
}
