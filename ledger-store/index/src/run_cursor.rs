//! Reads the rows of one run between two keys, in either direction.

use ledger_codec::Corrupt;

use super::block::{Block, BlockRows, corrupt, damaged, load};
use super::error::{IndexError, catch_redb_panic};
use super::order::Direction;
use super::row::{KeyBytes, Row};
use super::run_list::{BlockKey, RunMeta};
use super::snapshot::IndexSnapshot;
use super::stored::{RawRange, entries, entry_at_or_before, take_entry};

/// The rows between two keys in a run, which are loaded block by block.
pub(super) struct RunCursor<R: Row> {
    /// The blocks that are not loaded yet, or `None` if no more are needed.
    blocks: Option<RawRange<'static>>,
    /// The remaining rows of the loaded block. All of them are within the bounds.
    rows: BlockRows<R>,
    link: Link,
    from: R::Key,
    to: R::Key,
    /// The first key of the run.
    first: KeyBytes,
}

/// The condition that the next block must fulfil, so that a missing block is noticed.
enum Link {
    /// Descending, and nothing is loaded yet: the key of the block after the next one is above the upper bound.
    Start,
    /// Ascending: the next block begins with this key.
    Begins(KeyBytes),
    /// Descending: the next block names this key as the first of the block after it.
    Announces(KeyBytes),
}

/// Returns the last block of a run that begins at or before `key`, which must not be before the run's first key.
///
/// Checks that the block after it begins after `key`, so no damage can substitute another block.
pub(super) fn block_at<R: Row, T>(
    snapshot: &IndexSnapshot,
    run: &RunMeta,
    key: &KeyBytes,
    use_block: impl FnOnce(Block<'_>) -> Result<T, Corrupt>,
) -> Result<(T, Option<KeyBytes>), IndexError> {
    let (blocks, place) = (snapshot.blocks(R::TABLE), BlockKey::new(run.id, key));
    let Some((stored_key, stored)) = entry_at_or_before(blocks, place.as_slice(), &run.id.to_be_bytes())?
    else {
        return Err(damaged::<R>("a block is missing"));
    };
    let (next, result) = catch_redb_panic("reading a block", || {
        let block = load(R::TABLE, stored_key.value(), stored.value())?;
        Ok((block.next_key(), use_block(block).map_err(corrupt::<R>)?))
    })?;
    if next.as_ref().is_some_and(|next| next <= key) {
        return Err(damaged::<R>("a block is missing"));
    }
    Ok((result, next))
}

impl<R: Row> RunCursor<R> {
    /// Creates a cursor over the rows from `from` to `to`, both inclusive. Returns `None` if the run has none.
    pub(super) fn open(
        snapshot: &IndexSnapshot,
        run: &RunMeta,
        from: R::Key,
        to: R::Key,
        direction: Direction,
    ) -> Result<Option<Self>, IndexError> {
        let from_bytes = KeyBytes::of::<R>(&from).max(run.first.clone());
        let to_bytes = KeyBytes::of::<R>(&to).min(run.last.clone());
        if from_bytes > to_bytes {
            return Ok(None);
        }
        let range = |start: &KeyBytes| {
            let (start, end) = (BlockKey::new(run.id, start), BlockKey::new(run.id, &to_bytes));
            entries(snapshot.blocks(R::TABLE), start.as_slice(), end.as_slice()).map(Some)
        };
        let rows = BlockRows::none(from.clone(), to.clone());
        let first = run.first.clone();
        let mut cursor = Self { blocks: None, rows, link: Link::Start, from, to, first };
        match direction {
            Direction::Descending => cursor.blocks = range(&run.first)?,
            // The block that may contain `from` begins before it, so look it up separately.
            Direction::Ascending => {
                let (rows, next) = block_at::<R, _>(snapshot, run, &from_bytes, |block| {
                    block.rows_in::<R>(&cursor.from, &cursor.to, direction)
                })?;
                cursor.rows = rows;
                if let Some(next) = next.filter(|next| *next <= to_bytes) {
                    cursor.blocks = range(&next)?;
                    cursor.link = Link::Begins(next);
                }
            }
        }
        Ok(Some(cursor))
    }

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
            if self.blocks.is_none() {
                return Ok(None);
            }
            self.load(direction)?;
        }
    }

    /// Loads the next block in the direction.
    fn load(&mut self, direction: Direction) -> Result<(), IndexError> {
        let Some(blocks) = &mut self.blocks else {
            return Ok(());
        };
        let Some((key, stored)) = take_entry(blocks, direction)? else {
            return Err(damaged::<R>("a block is missing"));
        };
        let (first, next, rows) = catch_redb_panic("reading a block", || {
            let block = load(R::TABLE, key.value(), stored.value())?;
            let first = KeyBytes::from_slice(BlockKey::first_of(key.value())).map_err(corrupt::<R>)?;
            let rows = block.rows_in::<R>(&self.from, &self.to, direction).map_err(corrupt::<R>)?;
            Ok((first, block.next_key(), rows))
        })?;
        let to = KeyBytes::of::<R>(&self.to);
        let fits = match &self.link {
            Link::Begins(expected) => first == *expected,
            Link::Announces(expected) => next.as_ref() == Some(expected),
            Link::Start => next.as_ref().is_none_or(|next| *next > to),
        };
        if !fits {
            return Err(damaged::<R>("a block is missing"));
        }
        let is_last = match direction {
            Direction::Ascending => match next.filter(|next| *next <= to) {
                Some(next) => {
                    self.link = Link::Begins(next);
                    false
                }
                None => true,
            },
            Direction::Descending => {
                let is_last = first == self.first || first <= KeyBytes::of::<R>(&self.from);
                self.link = Link::Announces(first);
                is_last
            }
        };
        if is_last {
            self.blocks = None;
        }
        self.rows = rows;
        Ok(())
    }
}
