//! Reads several sorted sources as one, in either direction.

use super::error::IndexError;
use super::filter::may_contain;
use super::order::{Direction, Heap};
use super::row::{KeyBytes, MemtableRows, Row, SHORT_KEY_BYTES};
use super::run_cursor::RunCursor;
use super::run_list::RunMeta;
use super::snapshot::IndexSnapshot;

/// A source that was not read yet.
pub(super) enum UnopenedSource<R> {
    Memtable(MemtableRows<R>),
    Run(RunMeta),
}

/// The rows between two keys in one source.
enum Source<R: Row> {
    Memtable { rows: MemtableRows<R>, start: usize, end: usize },
    Run(Box<RunCursor<R>>),
}

impl<R: Row> Source<R> {
    #[inline]
    fn take(&mut self, direction: Direction) -> Option<R> {
        match self {
            Self::Memtable { rows, start, end } => {
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
            Self::Run(run) => run.take(direction),
        }
    }

    /// Returns the next key. A run may have to load a block for it.
    #[inline]
    fn peek(&mut self, direction: Direction) -> Result<Option<R::Key>, IndexError> {
        match self {
            Self::Memtable { rows, start, end } => {
                let rows = rows.get(*start..*end).unwrap_or_default();
                let row = if direction == Direction::Ascending { rows.first() } else { rows.last() };
                Ok(row.map(Row::key))
            }
            Self::Run(run) => run.peek(direction),
        }
    }
}

/// The rows of a table between two keys, from all sources in one order.
///
/// Opens sources and loads blocks when they are needed. After an error the cursor returns no more rows.
pub struct Cursor<R: Row> {
    snapshot: IndexSnapshot,
    from: R::Key,
    to: R::Key,
    direction: Direction,
    /// Sources that are not opened yet, in reverse order of opening.
    unopened: Vec<UnopenedSource<R>>,
    sources: Vec<Source<R>>,
    heap: Heap<R::Key>,
    /// True if all rows of one source come before those of the next.
    in_sequence: bool,
}

impl<R: Row> Cursor<R> {
    /// Creates a cursor over sources, from the oldest to the newest. Both keys are inclusive.
    pub(super) fn new(
        snapshot: IndexSnapshot,
        mut sources: Vec<UnopenedSource<R>>,
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

    /// Returns the next row, or `None` at the end.
    ///
    /// # Errors
    ///
    /// [`IndexError::Damaged`] if a block is damaged or missing; otherwise the errors of the storage engine.
    pub(crate) fn next_row(&mut self) -> Result<Option<R>, IndexError> {
        let result = self.advance();
        if let Err(error) = &result {
            self.snapshot.note_error(error);
            self.unopened.clear();
            self.heap.clear();
        }
        result
    }

    #[inline]
    fn advance(&mut self) -> Result<Option<R>, IndexError> {
        while !self.unopened.is_empty() && (!self.in_sequence || self.heap.is_empty()) {
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
            Some(UnopenedSource::Memtable(rows)) => {
                let start = rows.partition_point(|row| row.key() < self.from);
                let end = rows.partition_point(|row| row.key() <= self.to);
                Source::Memtable { rows, start, end }
            }
            Some(UnopenedSource::Run(run)) => {
                if !may_hold::<R>(&self.snapshot, &run, &self.from, &self.to)? {
                    return Ok(());
                }
                let (from, to) = (self.from.clone(), self.to.clone());
                match RunCursor::open(&self.snapshot, &run, from, to, self.direction)? {
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

    /// Returns an iterator over the current rows: without superseded rows and without removals.
    pub fn current(self) -> CurrentRows<R> {
        CurrentRows { cursor: self, held: None }
    }
}

impl<R: Row> Iterator for Cursor<R> {
    type Item = Result<R, IndexError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_row().transpose()
    }
}

/// Returns whether a run may hold rows from `from` to `to`, according to its first and last key and its filter.
pub(super) fn may_hold<R: Row>(
    snapshot: &IndexSnapshot,
    run: &RunMeta,
    from: &R::Key,
    to: &R::Key,
) -> Result<bool, IndexError> {
    let filter_holds = || match (R::probe_key(from), R::probe_key(to)) {
        (Some(one), Some(other)) if one == other => may_contain(snapshot, run, one),
        _ => Ok(true),
    };
    let is_within = || KeyBytes::of::<R>(to) >= run.first && KeyBytes::of::<R>(from) <= run.last;
    // Long keys are encoded with an allocation, so most lookups of documents should end at the filter.
    if R::KEY_BYTES > SHORT_KEY_BYTES {
        return Ok(filter_holds()? && is_within());
    }
    Ok(is_within() && filter_holds()?)
}

/// The rows of a cursor that are not superseded, without removals.
///
/// The bounds of the cursor must not separate a row from one that supersedes it.
pub struct CurrentRows<R: Row> {
    cursor: Cursor<R>,
    /// Ascending: the last row that was read, which the next may supersede. Descending: the last row that was not
    /// superseded.
    held: Option<R>,
}

impl<R: Row> CurrentRows<R> {
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

impl<R: Row> Iterator for CurrentRows<R> {
    type Item = Result<R, IndexError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_current().transpose()
    }
}
