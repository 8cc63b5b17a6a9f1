//! Finds the blocks of one run, in either direction, and notices a missing one. Not generic, so that it is not compiled
//! for each type of rows.

use ledger_codec::Corrupt;

use super::block::{Block, load};
use super::error::{IndexError, catch_redb_panic};
use super::order::Direction;
use super::row::KeyBytes;
use super::rows::TABLES;
use super::run_list::{BlockKey, RunMeta};
use super::snapshot::IndexSnapshot;
use super::stored::{RawRange, entries, entry_at_or_before, take_entry};

/// A function that gets a loaded block.
type UseBlock<'f> = &'f mut dyn FnMut(Block<'_>) -> Result<(), Corrupt>;

/// The blocks of a run that may have keys between two bounds, one after the other.
pub(super) struct BlockCursor {
    table: u8,
    /// The blocks that are not loaded yet, or `None` if no more are needed.
    blocks: Option<RawRange<'static>>,
    link: Link,
    from: KeyBytes,
    to: KeyBytes,
    /// The first key of the run.
    first: KeyBytes,
}

/// The condition that the next block must fulfil, so that a missing block is noticed.
enum Link {
    /// Descending, and nothing is loaded yet: the key of the block after the next one is above the upper bound.
    Start,
    /// Ascending: the next block begins with this key.
    NextBeginsAt(KeyBytes),
    /// Descending: the next block names this key as the first of the block after it.
    NextPointsTo(KeyBytes),
}

/// Loads the last block of a run that begins at or before `key`, which must not be before the run's first key. Returns the
/// first key of the block after it.
///
/// Checks that the block after it begins after `key`, so that a missing block is noticed instead of an earlier one being
/// used.
pub(super) fn find_block(
    snapshot: &IndexSnapshot,
    table: u8,
    run: &RunMeta,
    key: &KeyBytes,
    use_block: UseBlock<'_>,
) -> Result<Option<KeyBytes>, IndexError> {
    let (blocks, place) = (snapshot.blocks(table), BlockKey::new(run.id, key));
    let Some((stored_key, stored)) = entry_at_or_before(blocks, place.as_slice(), &run.id.to_be_bytes())?
    else {
        return Err(missing(table));
    };
    let next = catch_redb_panic("reading a block", || {
        let block = load(table, stored_key.value(), stored.value())?;
        let next = block.next_key();
        use_block(block).map_err(|error| corrupt(table, error))?;
        Ok(next)
    })?;
    if next.as_ref().is_some_and(|next| next <= key) {
        return Err(missing(table));
    }
    Ok(next)
}

impl BlockCursor {
    /// Creates a cursor over the blocks with keys from `from` to `to`, both inclusive. If the direction is
    /// ascending, it already passes the first block to `use_block`. Returns `None` if the bounds are outside the run's keys.
    pub(super) fn open(
        snapshot: &IndexSnapshot,
        table: u8,
        run: &RunMeta,
        from: KeyBytes,
        to: KeyBytes,
        direction: Direction,
        use_block: UseBlock<'_>,
    ) -> Result<Option<Self>, IndexError> {
        let first_key = from.clone().max(run.first.clone());
        let last_key = to.clone().min(run.last.clone());
        if first_key > last_key {
            return Ok(None);
        }
        let range = |start: &KeyBytes| {
            let (start, end) = (BlockKey::new(run.id, start), BlockKey::new(run.id, &last_key));
            entries(snapshot.blocks(table), start.as_slice(), end.as_slice()).map(Some)
        };
        let mut cursor = Self { table, blocks: None, link: Link::Start, from, to, first: run.first.clone() };
        match direction {
            Direction::Descending => cursor.blocks = range(&run.first)?,
            // The block that may contain the first key begins before it, so look it up separately.
            Direction::Ascending => {
                let next = find_block(snapshot, table, run, &first_key, use_block)?;
                if let Some(next) = next.filter(|next| *next <= last_key) {
                    cursor.blocks = range(&next)?;
                    cursor.link = Link::NextBeginsAt(next);
                }
            }
        }
        Ok(Some(cursor))
    }

    /// Returns whether no more blocks are needed.
    #[inline]
    pub(super) const fn is_done(&self) -> bool {
        self.blocks.is_none()
    }

    /// Loads the next block in the direction, unless no more are needed.
    pub(super) fn load(&mut self, direction: Direction, use_block: UseBlock<'_>) -> Result<(), IndexError> {
        let Some(blocks) = &mut self.blocks else {
            return Ok(());
        };
        let table = self.table;
        let Some((key, stored)) = take_entry(blocks, direction)? else {
            return Err(missing(table));
        };
        let (first, next) = catch_redb_panic("reading a block", || {
            let block = load(table, key.value(), stored.value())?;
            let corrupt = |error| corrupt(table, error);
            let first = KeyBytes::from_slice(BlockKey::first_of(key.value())).map_err(corrupt)?;
            let next = block.next_key();
            use_block(block).map_err(corrupt)?;
            Ok((first, next))
        })?;
        let fits = match &self.link {
            Link::NextBeginsAt(expected) => first == *expected,
            Link::NextPointsTo(expected) => next.as_ref() == Some(expected),
            Link::Start => next.as_ref().is_none_or(|next| *next > self.to),
        };
        if !fits {
            return Err(missing(table));
        }
        let is_last = match direction {
            Direction::Ascending => match next.filter(|next| *next <= self.to) {
                Some(next) => {
                    self.link = Link::NextBeginsAt(next);
                    false
                }
                None => true,
            },
            Direction::Descending => {
                let is_last = first == self.first || first <= self.from;
                self.link = Link::NextPointsTo(first);
                is_last
            }
        };
        if is_last {
            self.blocks = None;
        }
        Ok(())
    }
}

fn missing(table: u8) -> IndexError {
    IndexError::damaged(TABLES[usize::from(table)], "a block is missing")
}

fn corrupt(table: u8, error: Corrupt) -> IndexError {
    IndexError::corrupt(TABLES[usize::from(table)], error)
}
