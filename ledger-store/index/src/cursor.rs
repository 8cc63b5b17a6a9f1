//! Reading several sorted sources as one, forward and back.

use std::ops::Bound;
use std::sync::Arc;

use ledger_codec::Corrupt;
use redb::ReadableTable;

use super::block::{Block, BlockRows};
use super::error::{IndexError, shield, storage};
use super::filter::may_contain;
use super::row::{KeyBytes, PieceRows, Row, link_all};
use super::rows::TABLES;
use super::runs::{BlockKey, RunMeta};
use super::snapshot::IndexSnapshot;
use super::stored::{RawRange, verified};
use super::tournament::{Scale, Tournament};

/// Which way a cursor goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the least key to the greatest.
    Ascending,
    /// From the greatest key to the least.
    Descending,
}

/// The next key of each source, the one to be taken first at the top of a binary heap.
struct Heap<K> {
    entries: Vec<(K, usize)>,
    direction: Direction,
}

impl<K: Ord + Copy> Heap<K> {
    fn new(direction: Direction) -> Self {
        Self { entries: Vec::new(), direction }
    }

    #[inline]
    fn is_before(&self, one: usize, other: usize) -> bool {
        match self.direction {
            Direction::Ascending => self.entries[one].0 < self.entries[other].0,
            Direction::Descending => self.entries[one].0 > self.entries[other].0,
        }
    }

    fn push(&mut self, key: K, source: usize) {
        let mut place = self.entries.len();
        self.entries.push((key, source));
        while place > 0 && self.is_before(place, (place - 1) / 2) {
            self.entries.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
    }

    #[inline]
    fn first(&self) -> Option<usize> {
        self.entries.first().map(|entry| entry.1)
    }

    /// Gives the first source its next key; none removes it.
    #[inline]
    fn replace_first(&mut self, key: Option<K>) {
        match key {
            Some(key) => self.entries[0].0 = key,
            None => {
                self.entries.swap_remove(0);
            }
        }
        let mut place = 0;
        loop {
            let left = 2 * place + 1;
            if left >= self.entries.len() {
                return;
            }
            let right = left + 1;
            let child = if right < self.entries.len() && self.is_before(right, left) { right } else { left };
            if !self.is_before(child, place) {
                return;
            }
            self.entries.swap(place, child);
            place = child;
        }
    }
}

/// The rows of several pieces in the order of their keys; what is superseded among them is still there.
pub struct Merged<'a, R: Row> {
    /// The remaining rows of each piece.
    rests: Vec<&'a [R]>,
    order: Order,
}

/// How the next row is found.
enum Order {
    /// Each piece as a whole comes before the next; this is the number of the one that is read.
    InSequence(usize),
    Mixed(Tournament, Scale),
}

/// Merges the rows of pieces without copying them.
pub fn merged<'a, R: Row>(pieces: impl IntoIterator<Item = &'a PieceRows<R>>) -> Merged<'a, R> {
    let pieces = pieces.into_iter().map(|piece| piece.as_slice());
    let rests: Vec<&[R]> = pieces.filter(|rows| !rows.is_empty()).collect();
    let in_sequence = |pair: &[&[R]]| pair[0][pair[0].len() - 1].key() < pair[1][0].key();
    let order = if rests.windows(2).all(in_sequence) {
        Order::InSequence(0)
    } else {
        let ends = rests.iter().flat_map(|rest| [&rest[0], &rest[rest.len() - 1]]);
        let scale = Scale::of(ends.map(|row| R::rank(&row.key())));
        let first = rests.iter().map(|rest| next_rank(rest, scale));
        Order::Mixed(Tournament::new(first, |one, other| is_before(&rests, one, other)), scale)
    };
    Merged { rests, order }
}

#[inline]
fn next_rank<R: Row>(rest: &[R], scale: Scale) -> Option<u64> {
    rest.first().map(|row| scale.rank(R::rank(&row.key())))
}

/// Whether the next row of one source comes before that of another; none is after all.
#[cold]
fn is_before<R: Row>(rests: &[&[R]], one: usize, other: usize) -> bool {
    let next = |source: usize| rests.get(source).and_then(|rest| rest.first()).map(Row::key);
    match (next(one), next(other)) {
        (Some(one), Some(other)) => one < other,
        (one, _) => one.is_some(),
    }
}

impl<'a, R: Row> Iterator for Merged<'a, R> {
    type Item = &'a R;

    #[inline]
    fn next(&mut self) -> Option<&'a R> {
        match &mut self.order {
            Order::InSequence(source) => loop {
                let rest = self.rests.get_mut(*source)?;
                if let Some((row, after)) = rest.split_first() {
                    *rest = after;
                    return Some(row);
                }
                *source += 1;
            },
            Order::Mixed(tournament, scale) => {
                let rest = self.rests.get_mut(tournament.winner())?;
                let (row, after) = rest.split_first()?;
                *rest = after;
                let rests = &self.rests;
                tournament.replace(next_rank(after, *scale), |one, other| is_before(rests, one, other));
                Some(row)
            }
        }
    }
}

/// Merges pieces, oldest first, into one; what is superseded within them goes.
pub fn merge_pieces<R: Row>(pieces: &[PieceRows<R>]) -> PieceRows<R> {
    let mut rows: Vec<R> = Vec::with_capacity(pieces.iter().map(|piece| piece.len()).sum());
    for row in merged(pieces) {
        match rows.last_mut() {
            Some(last) if R::SUPERSEDES && row.supersedes(last) => last.clone_from(row),
            _ => rows.push(row.clone()),
        }
    }
    link_all(&mut rows);
    Arc::new(rows)
}

/// A source that was not looked at yet.
pub(super) enum Unopened<R> {
    Piece(PieceRows<R>),
    Run(RunMeta),
}

/// The rows between two keys in one source.
enum Source<R: Row> {
    Piece { rows: PieceRows<R>, start: usize, end: usize },
    Run(Box<RunCursor<R>>),
}

impl<R: Row> Source<R> {
    #[inline]
    fn take(&mut self, direction: Direction) -> Option<R> {
        match self {
            Self::Piece { rows, start, end } => {
                if start >= end {
                    return None;
                }
                if direction == Direction::Ascending {
                    *start += 1;
                    Some(rows[*start - 1].clone())
                } else {
                    *end -= 1;
                    Some(rows[*end].clone())
                }
            }
            Self::Run(run) => run.rows.take(direction),
        }
    }

    /// The next key, for which a run may have to load a block.
    #[inline]
    fn peek(&mut self, direction: Direction) -> Result<Option<R::Key>, IndexError> {
        match self {
            Self::Piece { rows, start, end } => {
                let rows = rows.get(*start..*end).unwrap_or_default();
                let row = if direction == Direction::Ascending { rows.first() } else { rows.last() };
                Ok(row.map(Row::key))
            }
            Self::Run(run) => run.peek(direction),
        }
    }
}

/// The rows between two keys in a run, a block at a time.
struct RunCursor<R: Row> {
    /// The blocks that were not loaded yet; none if they are not needed.
    blocks: Option<RawRange<'static>>,
    /// Rows of the loaded block that are left, all of them within the bounds.
    rows: BlockRows<R>,
    link: Link,
    from: R::Key,
    to: R::Key,
    /// The first key of the run.
    first: KeyBytes,
}

/// The rule that the next block has to fit, so that none can be missing unnoticed.
enum Link {
    /// Descending, nothing loaded yet: the block after it begins behind the upper bound.
    Start,
    /// Ascending: it begins with this key.
    Begins(KeyBytes),
    /// Descending: it announces this key as the first of the block after it.
    Announces(KeyBytes),
}

pub(super) fn damaged<R: Row>(what: &'static str) -> IndexError {
    IndexError::damaged(TABLES[usize::from(R::TABLE)], what)
}

pub(super) fn corrupt<R: Row>(corrupt: Corrupt) -> IndexError {
    IndexError::corrupt(TABLES[usize::from(R::TABLE)], corrupt)
}

/// Loads the block behind a stored entry: its first key, the next block's first key, its rows.
pub(super) fn load<R: Row, T>(
    stored_key: &[u8],
    stored: &[u8],
    use_block: impl FnOnce(Block<'_, R>) -> Result<T, Corrupt>,
) -> Result<T, IndexError> {
    let block = Block::parse(verified(TABLES[usize::from(R::TABLE)], stored_key, stored)?);
    block.and_then(use_block).map_err(corrupt::<R>)
}

/// The last block of a run that begins at or before `key`, which is not before the run's first key.
///
/// That the next block begins after `key` is checked: no damage can pass off another block as this one.
pub(super) fn block_at<R: Row, T>(
    snapshot: &IndexSnapshot,
    run: &RunMeta,
    key: &KeyBytes,
    use_block: impl FnOnce(Block<'_, R>) -> Result<T, Corrupt>,
) -> Result<(T, Option<KeyBytes>), IndexError> {
    shield("reading a block", || {
        let place = BlockKey::new(run.id, key);
        let mut cursor =
            snapshot.blocks(R::TABLE).upper_bound(Bound::Included(place.as_slice())).map_err(storage)?;
        let entry = cursor.prev().map_err(storage)?;
        let entry = entry.filter(|(stored_key, _)| stored_key.value().starts_with(&run.id.to_be_bytes()));
        let Some((stored_key, stored)) = entry else {
            return Err(damaged::<R>("a block is missing"));
        };
        let (next, result) = load::<R, _>(stored_key.value(), stored.value(), |block| {
            Ok((block.next_key(), use_block(block)?))
        })?;
        if next.is_some_and(|next| next <= *key) {
            return Err(damaged::<R>("a block is missing"));
        }
        Ok((result, next))
    })
}

impl<R: Row> RunCursor<R> {
    /// A cursor over the rows from `from` to `to`, both included; none if the run has none.
    fn open(
        snapshot: &IndexSnapshot,
        run: &RunMeta,
        from: R::Key,
        to: R::Key,
        direction: Direction,
    ) -> Result<Option<Self>, IndexError> {
        let from_bytes = KeyBytes::of::<R>(&from).max(run.first);
        let to_bytes = KeyBytes::of::<R>(&to).min(run.last);
        if from_bytes > to_bytes {
            return Ok(None);
        }
        let range = |start: &KeyBytes| {
            let (start, end) = (BlockKey::new(run.id, start), BlockKey::new(run.id, &to_bytes));
            shield("reading blocks", || {
                let range = start.as_slice()..=end.as_slice();
                snapshot.blocks(R::TABLE).range::<&[u8]>(range).map(Some).map_err(storage)
            })
        };
        let rows = BlockRows::none(from, to);
        let mut cursor = Self { blocks: None, rows, link: Link::Start, from, to, first: run.first };
        match direction {
            Direction::Descending => cursor.blocks = range(&run.first)?,
            // The block in which `from` would stand begins before it, so it is found by itself.
            Direction::Ascending => {
                let (rows, next) = block_at::<R, _>(snapshot, run, &from_bytes, |block| {
                    block.rows_in(&from, &to, direction)
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
    fn peek(&mut self, direction: Direction) -> Result<Option<R::Key>, IndexError> {
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
        let (first, next, rows) = shield("reading a block", || {
            let entry = match direction {
                Direction::Ascending => blocks.next(),
                Direction::Descending => blocks.next_back(),
            };
            let Some((key, stored)) = entry.transpose().map_err(storage)? else {
                return Err(damaged::<R>("a block is missing"));
            };
            load::<R, _>(key.value(), stored.value(), |block| {
                let first = KeyBytes::from_slice(BlockKey::first_of(key.value()))?;
                Ok((first, block.next_key(), block.rows_in(&self.from, &self.to, direction)?))
            })
        })?;
        let to = KeyBytes::of::<R>(&self.to);
        let fits = match &self.link {
            Link::Begins(expected) => first == *expected,
            Link::Announces(expected) => next == Some(*expected),
            Link::Start => next.is_none_or(|next| next > to),
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
                self.link = Link::Announces(first);
                first == self.first || first <= KeyBytes::of::<R>(&self.from)
            }
        };
        if is_last {
            self.blocks = None;
        }
        self.rows = rows;
        Ok(())
    }
}

/// The rows of a table between two keys, of all sources in one order.
///
/// Sources are opened, and blocks loaded, as they are needed. After an error
/// the cursor has no more rows.
pub struct Cursor<R: Row> {
    snapshot: IndexSnapshot,
    from: R::Key,
    to: R::Key,
    direction: Direction,
    /// Sources not opened yet, the one to be opened first at the end.
    unopened: Vec<Unopened<R>>,
    sources: Vec<Source<R>>,
    heap: Heap<R::Key>,
    /// Whether all rows of one source come before those of the next.
    in_sequence: bool,
}

impl<R: Row> Cursor<R> {
    /// A cursor over sources given from oldest to newest; both keys are included.
    pub(super) fn new(
        snapshot: IndexSnapshot,
        mut sources: Vec<Unopened<R>>,
        from: R::Key,
        to: R::Key,
        direction: Direction,
    ) -> Self {
        let in_sequence = R::same_sequence(&from, &to);
        if in_sequence && direction == Direction::Ascending {
            sources.reverse();
        }
        let heap = Heap::new(direction);
        Self { snapshot, from, to, direction, unopened: sources, sources: Vec::new(), heap, in_sequence }
    }

    /// The next row; none at the end.
    ///
    /// # Errors
    ///
    /// [`IndexError::Damaged`] if a block is not as it was written or is
    /// missing; else as the storage engine fails.
    pub(crate) fn next_row(&mut self) -> Result<Option<R>, IndexError> {
        let result = self.advance();
        if let Err(error) = &result {
            self.snapshot.note_error(error);
            self.unopened.clear();
            self.heap.entries.clear();
        }
        result
    }

    #[inline]
    fn advance(&mut self) -> Result<Option<R>, IndexError> {
        while !self.unopened.is_empty() && (!self.in_sequence || self.heap.entries.is_empty()) {
            self.open_one()?;
        }
        let Some(place) = self.heap.first() else {
            return Ok(None);
        };
        let source = &mut self.sources[place];
        let row = source.take(self.direction);
        let next = source.peek(self.direction)?;
        self.heap.replace_first(next);
        Ok(row)
    }

    fn open_one(&mut self) -> Result<(), IndexError> {
        let mut source = match self.unopened.pop() {
            None => return Ok(()),
            Some(Unopened::Piece(rows)) => {
                let start = rows.partition_point(|row| row.key() < self.from);
                let end = rows.partition_point(|row| row.key() <= self.to);
                Source::Piece { rows, start, end }
            }
            Some(Unopened::Run(run)) => {
                if !may_hold::<R>(&self.snapshot, &run, &self.from, &self.to)? {
                    return Ok(());
                }
                match RunCursor::open(&self.snapshot, &run, self.from, self.to, self.direction)? {
                    Some(cursor) => Source::Run(Box::new(cursor)),
                    None => return Ok(()),
                }
            }
        };
        if let Some(key) = source.peek(self.direction)? {
            self.heap.push(key, self.sources.len());
            self.sources.push(source);
        }
        Ok(())
    }

    /// Only the rows that count: none that another supersedes, and no removals.
    pub fn current(self) -> Current<R> {
        Current { cursor: self, held: None }
    }
}

impl<R: Row> Iterator for Cursor<R> {
    type Item = Result<R, IndexError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_row().transpose()
    }
}

/// Whether a run may hold rows from `from` to `to`, by its bounds and its filter.
pub(super) fn may_hold<R: Row>(
    snapshot: &IndexSnapshot,
    run: &RunMeta,
    from: &R::Key,
    to: &R::Key,
) -> Result<bool, IndexError> {
    if KeyBytes::of::<R>(to) < run.first || KeyBytes::of::<R>(from) > run.last {
        return Ok(false);
    }
    match (R::probe_key(from), R::probe_key(to)) {
        (Some(one), Some(other)) if one == other => may_contain(snapshot, run, one),
        _ => Ok(true),
    }
}

/// The rows of a cursor that no other supersedes, without removals.
///
/// The bounds of the cursor must not part a row from one that supersedes it.
pub struct Current<R: Row> {
    cursor: Cursor<R>,
    /// Ascending: the last row read, which the next may supersede.
    /// Descending: the last row that was not superseded.
    held: Option<R>,
}

impl<R: Row> Current<R> {
    fn next_current(&mut self) -> Result<Option<R>, IndexError> {
        loop {
            let row = self.cursor.next_row()?;
            let found = match (self.cursor.direction, row) {
                (Direction::Ascending, Some(row)) => {
                    let superseded = self.held.as_ref().is_some_and(|held| row.supersedes(held));
                    let held = self.held.replace(row);
                    if superseded { None } else { held }
                }
                (Direction::Ascending, None) => match self.held.take() {
                    None => return Ok(None),
                    last => last,
                },
                (Direction::Descending, Some(row)) => {
                    if self.held.as_ref().is_some_and(|held| held.supersedes(&row)) {
                        None
                    } else {
                        self.held = Some(row.clone());
                        Some(row)
                    }
                }
                (Direction::Descending, None) => return Ok(None),
            };
            if let Some(row) = found.filter(|row| !row.is_removal()) {
                return Ok(Some(row));
            }
        }
    }
}

impl<R: Row> Iterator for Current<R> {
    type Item = Result<R, IndexError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_current().transpose()
    }
}
