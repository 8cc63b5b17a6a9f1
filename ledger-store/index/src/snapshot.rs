//! The content of the index at one commit, for readers.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use redb::{ReadableTable, ReadableTableMetadata};

use super::error::{IndexError, catch_redb_panic, storage};
use super::filter_cache::FilterCache;
use super::health::Health;
use super::range::PlainRange;
use super::rows::TABLES;
use super::run_list::RunMeta;
use super::stored::{RawTable, check_gap, read};

/// The index at one commit. Cheap to clone.
///
/// As long as a clone exists, the file keeps the data of this commit, even if later commits delete it.
#[derive(Clone)]
pub struct IndexSnapshot {
    pub(super) inner: Arc<Snapshot>,
}

/// The tables of a snapshot. A plain table has one row per key. The other tables consist of runs.
pub(super) struct Snapshot {
    pub(super) run_tables: Vec<RunTable>,
    pub(super) filter_pages: RawTable,
    pub(super) plain: HashMap<&'static str, RawTable>,
    pub(super) filters: Arc<FilterCache>,
    pub(super) health: Arc<Health>,
}

/// A table of runs.
pub(super) struct RunTable {
    pub(super) blocks: RawTable,
    pub(super) runs: Arc<[RunMeta]>,
}

impl IndexSnapshot {
    /// Returns the runs of a table, oldest first.
    pub(crate) fn runs(&self, table: u8) -> &Arc<[RunMeta]> {
        &self.inner.run_tables[usize::from(table)].runs
    }

    /// Returns the blocks of a table.
    pub(super) fn blocks(&self, table: u8) -> &RawTable {
        &self.inner.run_tables[usize::from(table)].blocks
    }

    /// Returns the pages of all filters.
    pub(super) fn filter_pages(&self) -> &RawTable {
        &self.inner.filter_pages
    }

    /// Returns the cache of filter pages.
    pub(super) fn filters(&self) -> &FilterCache {
        &self.inner.filters
    }

    /// Returns the value of `key` in a plain table, or `None` if there is none. To prove that a key is absent, this
    /// verifies the entries next to its place.
    ///
    /// # Errors
    ///
    /// [`IndexError::Damaged`] if the value or, for an absent key, a neighbouring entry is damaged; otherwise the
    /// errors of the storage engine.
    pub fn get(&self, table: &str, key: &[u8]) -> Result<Option<Vec<u8>>, IndexError> {
        self.read(table, key, |value| Ok(value.to_vec()))
    }

    /// Like [`get`](Self::get), but lends the value to `use_value` instead of copying it.
    ///
    /// # Errors
    ///
    /// The errors of [`get`](Self::get), and those that `use_value` returns.
    pub fn read<T>(
        &self,
        table: &str,
        key: &[u8],
        use_value: impl FnOnce(&[u8]) -> Result<T, IndexError>,
    ) -> Result<Option<T>, IndexError> {
        self.note(read(self.plain(table)?, table, key, use_value))
    }

    /// Records what the error in a result of reading this snapshot reveals about the file.
    #[inline]
    pub(super) fn note<T>(&self, result: Result<T, IndexError>) -> Result<T, IndexError> {
        self.inner.health.note(result)
    }

    /// Records what an error of reading this snapshot reveals about the file.
    pub(super) fn note_error(&self, error: &IndexError) {
        self.inner.health.note_error(error);
    }

    /// Records that a value is missing although other values refer to it.
    pub fn note_missing(&self, what: &'static str) {
        self.inner.health.note_error(&IndexError::damaged("a table", what));
    }

    /// Returns the entries of a plain table between two keys, in order, from either end.
    ///
    /// # Errors
    ///
    /// [`IndexError::Damaged`] if an entry at one of the ends is damaged, which could hide others; otherwise the
    /// errors of the storage engine.
    pub fn range<'a>(
        &self,
        table: &'a str,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
    ) -> Result<PlainRange<'a>, IndexError> {
        let raw = self.plain(table)?;
        let after_from = |key: &[u8]| match from {
            Bound::Included(from) => key >= from,
            Bound::Excluded(from) => key > from,
            Bound::Unbounded => true,
        };
        let before_to = |key: &[u8]| match to {
            Bound::Included(to) => key <= to,
            Bound::Excluded(to) => key < to,
            Bound::Unbounded => true,
        };
        let found = catch_redb_panic("reading a range", || {
            let (_, first) = check_gap(raw, table, raw.lower_bound(from), |key| {
                if after_from(key) { Ordering::Greater } else { Ordering::Less }
            })?;
            let (last, _) = check_gap(raw, table, raw.upper_bound(to), |key| {
                if before_to(key) { Ordering::Less } else { Ordering::Greater }
            })?;
            let ends = match (first.filter(|key| before_to(key)), last.filter(|key| after_from(key))) {
                (Some(first), Some(last)) => Some((first, last)),
                (None, None) => None,
                _ => return Err(IndexError::damaged(table, "keys do not ascend")),
            };
            Ok((raw.range::<&[u8]>((from, to)).map_err(storage)?, ends))
        });
        let (range, ends) = self.note(found)?;
        Ok(PlainRange::new(table, range, ends, Some(self.inner.health.clone())))
    }

    fn plain(&self, table: &str) -> Result<&RawTable, IndexError> {
        self.inner.plain.get(table).ok_or_else(|| IndexError::damaged(table, "the table is missing"))
    }

    /// Returns whether all plain tables are empty, as they are before the first flush.
    ///
    /// # Errors
    ///
    /// The errors of the storage engine.
    pub fn is_unwritten(&self) -> Result<bool, IndexError> {
        catch_redb_panic("counting rows", || {
            let mut rows = 0;
            for table in self.inner.plain.values() {
                rows += table.len().map_err(storage)?;
            }
            Ok(rows == 0)
        })
    }

    /// Returns the ids of the runs that have blocks, including those that are not in the list of runs.
    pub(super) fn stored_runs(&self, table: u8) -> Result<Vec<u64>, IndexError> {
        let table = usize::from(table);
        let blocks = &self.inner.run_tables[table].blocks;
        catch_redb_panic("looking for runs", || {
            let mut found = Vec::new();
            let mut next = Some(0_u64);
            while let Some(from) = next {
                let mut range = blocks.range::<&[u8]>(from.to_be_bytes().as_slice()..).map_err(storage)?;
                next = match range.next().transpose().map_err(storage)? {
                    None => None,
                    Some((key, _)) => {
                        let Some((run, _)) = key.value().split_first_chunk::<8>() else {
                            return Err(IndexError::damaged(TABLES[table], "a block's key is too short"));
                        };
                        let run = u64::from_be_bytes(*run);
                        // Damaged keys can mislead the search to an earlier run. Without this check, the loop would
                        // not end.
                        if run < from {
                            return Err(IndexError::damaged(TABLES[table], "keys do not ascend"));
                        }
                        found.push(run);
                        run.checked_add(1)
                    }
                };
            }
            Ok(found)
        })
    }
}

impl fmt::Debug for IndexSnapshot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("IndexSnapshot").finish_non_exhaustive()
    }
}
