//! One table of the index as readers see it: memtables on top of runs.

use super::block::Block;
use super::cursor::{Cursor, UnopenedSource, may_hold};
use super::error::IndexError;
use super::filter::may_contain;
use super::order::Direction;
use super::row::{KeyBytes, MemtableRows, Row};
use super::rows::KeyRow;
use super::run_cursor::block_at;
use super::run_list::RunMeta;
use super::snapshot::IndexSnapshot;
use super::tables::FILTERS;

/// One version of a table. Cheap to clone; holds no lock.
#[derive(Debug, Clone)]
pub struct TableView<R> {
    /// The rows of memtables, oldest first. All of them are newer than any run.
    memtables: Vec<MemtableRows<R>>,
    snapshot: IndexSnapshot,
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "keys are a few integers, except those of documents, and callers make them for the call"
)]
impl<R: Row> TableView<R> {
    /// Creates a view of the runs in `snapshot` and of `memtables`, oldest first, which the runs must not contain yet.
    pub fn new(memtables: Vec<MemtableRows<R>>, snapshot: IndexSnapshot) -> Self {
        Self { memtables, snapshot }
    }

    /// Returns the rows of memtables, oldest first.
    pub fn memtables(&self) -> &[MemtableRows<R>] {
        &self.memtables
    }

    /// Returns the runs, oldest first.
    pub(crate) fn runs(&self) -> &[RunMeta] {
        self.snapshot.runs(R::TABLE)
    }

    /// Returns the number of rows in all sources, including superseded ones.
    pub fn row_count(&self) -> u64 {
        let memtables: u64 = self.memtables.iter().map(|memtable| memtable.len() as u64).sum();
        memtables + self.runs().iter().map(|run| run.rows).sum::<u64>()
    }

    /// Returns the row with this key.
    ///
    /// # Errors
    ///
    /// [`IndexError::Damaged`] if a block is damaged; otherwise the errors of the storage engine.
    pub fn get(&self, key: R::Key) -> Result<Option<R>, IndexError> {
        // No two sources hold the same key.
        for source in self.newest_first() {
            if let Some(row) = self.last_in_source(&source, &key, &key)? {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// Returns the last row from `from` to `to`, both inclusive.
    ///
    /// Searches each source that may hold one, but only the newest of them if both keys belong to one sequence.
    ///
    /// # Errors
    ///
    /// The errors of [`get`](Self::get).
    pub fn last_in(&self, from: R::Key, to: R::Key) -> Result<Option<R>, IndexError> {
        let mut best: Option<R> = None;
        for source in self.newest_first() {
            let found = self.last_in_source(&source, &from, &to)?;
            if found.is_some() && R::same_sequence(&from, &to) {
                return Ok(found);
            }
            if let Some(row) = found
                && best.as_ref().is_none_or(|best| best.key() < row.key())
            {
                best = Some(row);
            }
        }
        Ok(best)
    }

    /// Returns the first row from `from` to `to`, both inclusive.
    ///
    /// Costs as much as [`last_in`](Self::last_in), with the oldest source in the place of the newest.
    ///
    /// # Errors
    ///
    /// The errors of [`get`](Self::get).
    pub fn first_in(&self, from: R::Key, to: R::Key) -> Result<Option<R>, IndexError> {
        let mut best: Option<R> = None;
        for source in self.newest_first().rev() {
            let found = self.first_in_source(&source, &from, &to)?;
            if found.is_some() && R::same_sequence(&from, &to) {
                return Ok(found);
            }
            if let Some(row) = found
                && best.as_ref().is_none_or(|best| best.key() > row.key())
            {
                best = Some(row);
            }
        }
        Ok(best)
    }

    /// Returns the last row at or before `key` in the whole table.
    ///
    /// # Errors
    ///
    /// The errors of [`get`](Self::get).
    #[cfg(test)]
    pub(crate) fn last_at_or_before(&self, key: R::Key) -> Result<Option<R>, IndexError> {
        self.last_in(R::first_key(), key)
    }

    /// Returns the first row at or after `key` in the whole table.
    ///
    /// # Errors
    ///
    /// The errors of [`get`](Self::get).
    #[cfg(test)]
    pub(crate) fn first_at_or_after(&self, key: R::Key) -> Result<Option<R>, IndexError> {
        self.first_in(key, R::last_key())
    }

    /// Returns the last row from `from` to `to` of each source that has one, newest source first.
    ///
    /// For rows with sums that are local to their source: the total is the sum over these rows.
    ///
    /// # Errors
    ///
    /// The errors of [`get`](Self::get).
    pub fn last_of_each(&self, from: R::Key, to: R::Key) -> Result<Vec<R>, IndexError> {
        let mut found = Vec::new();
        for source in self.newest_first() {
            found.extend(self.last_in_source(&source, &from, &to)?);
        }
        Ok(found)
    }

    /// Returns the rows from `from` to `to`, both inclusive, in either direction.
    pub fn cursor(&self, from: R::Key, to: R::Key, direction: Direction) -> Cursor<R> {
        let runs = self.runs().iter().cloned().map(UnopenedSource::Run);
        let memtables = self.memtables.iter().cloned().map(UnopenedSource::Memtable);
        Cursor::new(self.snapshot.clone(), runs.chain(memtables).collect(), from, to, direction)
    }

    /// Looks up each row of each run in the run's filter. A filter that denied a row would hide it from every reader
    /// that asks for its key.
    ///
    /// # Errors
    ///
    /// [`IndexError::Damaged`] if a filter denies a row, or if a filter or a block is damaged; otherwise the errors of
    /// the storage engine.
    pub fn check_filters(&self) -> Result<(), IndexError> {
        for run in self.runs() {
            let source = vec![UnopenedSource::Run(run.clone())];
            let rows = Cursor::<R>::new(
                self.snapshot.clone(),
                source,
                R::first_key(),
                R::last_key(),
                Direction::Ascending,
            );
            let mut asked = None;
            for row in rows {
                let probe_key = R::probe_key(&row?.key());
                if let Some(key) = probe_key
                    && asked != probe_key
                    && !may_contain(&self.snapshot, run, key)?
                {
                    return Err(IndexError::damaged(FILTERS, "a filter denies a row of its run"));
                }
                asked = probe_key;
            }
        }
        Ok(())
    }

    fn newest_first(&self) -> impl DoubleEndedIterator<Item = SourceRef<'_, R>> {
        let memtables = self.memtables.iter().rev().map(|memtable| SourceRef::Memtable(memtable));
        memtables.chain(self.runs().iter().rev().map(SourceRef::Run))
    }

    fn last_in_source(
        &self,
        source: &SourceRef<'_, R>,
        from: &R::Key,
        to: &R::Key,
    ) -> Result<Option<R>, IndexError> {
        self.snapshot.note(self.find_last(source, from, to))
    }

    fn find_last(
        &self,
        source: &SourceRef<'_, R>,
        from: &R::Key,
        to: &R::Key,
    ) -> Result<Option<R>, IndexError> {
        let found = match source {
            // Clone only the matching row, because its bytes may be on the heap.
            SourceRef::Memtable(memtable) if is_apart(memtable, from, to) => None,
            SourceRef::Memtable(memtable) => {
                let end = memtable.partition_point(|row| row.key() <= *to);
                let last = end.checked_sub(1).map(|last| &memtable[last]);
                last.filter(|row| row.key() >= *from).cloned()
            }
            SourceRef::Run(run) => {
                if !may_hold::<R>(&self.snapshot, run, from, to)? {
                    return Ok(None);
                }
                let key = KeyBytes::of::<R>(to).min(run.last.clone());
                block_at::<R, _>(&self.snapshot, run, &key, |block| block.last_at_or_before::<R>(to))?.0
            }
        };
        Ok(found.filter(|row| row.key() >= *from))
    }

    fn first_in_source(
        &self,
        source: &SourceRef<'_, R>,
        from: &R::Key,
        to: &R::Key,
    ) -> Result<Option<R>, IndexError> {
        self.snapshot.note(self.find_first(source, from, to))
    }

    fn find_first(
        &self,
        source: &SourceRef<'_, R>,
        from: &R::Key,
        to: &R::Key,
    ) -> Result<Option<R>, IndexError> {
        let found = match source {
            SourceRef::Memtable(memtable) if is_apart(memtable, from, to) => None,
            SourceRef::Memtable(memtable) => {
                let first = memtable.get(memtable.partition_point(|row| row.key() < *from));
                first.filter(|row| row.key() <= *to).cloned()
            }
            SourceRef::Run(run) => {
                if !may_hold::<R>(&self.snapshot, run, from, to)? {
                    return Ok(None);
                }
                let key = KeyBytes::of::<R>(from).max(run.first.clone());
                let first = |block: Block<'_>| block.first_at_or_after::<R>(from);
                match block_at::<R, _>(&self.snapshot, run, &key, first)? {
                    (None, Some(next)) if next <= KeyBytes::of::<R>(to) => {
                        block_at::<R, _>(&self.snapshot, run, &next, first)?.0
                    }
                    (found, _) => found,
                }
            }
        };
        Ok(found.filter(|row| row.key() <= *to))
    }
}

impl TableView<KeyRow> {
    /// Returns the values with this fingerprint, in ascending order.
    ///
    /// # Errors
    ///
    /// The errors of [`get`](Self::get).
    pub fn probe(&self, space: u64, fingerprint: u64) -> Result<Vec<u64>, IndexError> {
        let from = (space, fingerprint, 0);
        let to = (space, fingerprint, u64::MAX);
        self.cursor(from, to, Direction::Ascending).map(|row| row.map(|row| row.value)).collect()
    }
}

/// Returns whether all rows of a memtable are before or after a range of keys, which two comparisons show in most
/// cases.
fn is_apart<R: Row>(memtable: &[R], from: &R::Key, to: &R::Key) -> bool {
    memtable.last().is_none_or(|last| last.key() < *from) || memtable[0].key() > *to
}

/// One source of a view.
enum SourceRef<'a, R> {
    Memtable(&'a [R]),
    Run(&'a RunMeta),
}
