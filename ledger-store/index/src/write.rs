//! Changes of the index: the write transaction, and its plain tables.

use std::cell::Cell;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ledger_codec::{Output, put_varint};
use redb::{CursorError, ReadableTable, ReadableTableMetadata, WriteTransaction};

use super::error::{IndexError, catch_redb_panic, storage};
use super::open_file::OpenFile;
#[cfg(test)]
use super::range::PlainRange;
use super::run_list::{RunMeta, decode_list, encode_list};
use super::stored::{RawTableMut, checksum, definition, sealed, verified};
use super::tables::{self, COUNTS_KEY, LISTS};

/// The write transaction. Dropping it without [`commit`](Self::commit) undoes all of its changes.
pub struct IndexWrite {
    /// `None` once it is committed.
    txn: Option<WriteTransaction>,
    /// Keeps the file open until the transaction has ended.
    file: Arc<OpenFile>,
    /// True if an operation failed, so that the content of the transaction is unknown.
    broken: Cell<bool>,
    /// The buffer in which runs are built, one after the other.
    buffer: Cell<Output>,
}

impl IndexWrite {
    pub(super) fn new(txn: WriteTransaction, file: Arc<OpenFile>) -> Self {
        Self { txn: Some(txn), file, broken: Cell::new(false), buffer: Cell::default() }
    }

    /// Returns the redb transaction.
    pub(super) fn txn(&self) -> &WriteTransaction {
        self.txn.as_ref().expect("only `commit` takes the transaction, and consumes this value")
    }

    /// Returns an unused run id.
    pub(super) fn allocate_run(&self) -> u64 {
        self.file.allocate_run()
    }

    /// Returns an empty buffer with the capacity of the last one that was kept.
    pub(super) fn take_buffer(&self) -> Output {
        self.buffer.take()
    }

    /// Keeps an empty buffer for the next run.
    pub(super) fn keep_buffer(&self, buffer: Output) {
        self.buffer.set(buffer);
    }

    /// Makes all changes visible at once. [`Commit`](super::Commit) defines whether they are on disk then.
    ///
    /// # Errors
    ///
    /// The errors of the storage engine. The changes may still be visible after the file is reopened.
    pub fn commit(self) -> Result<(), IndexError> {
        if self.broken.get() {
            return Err(IndexError::Panicked { doing: "using a transaction after an error" });
        }
        self.count_rows()?;
        self.commit_uncounted()
    }

    /// Commits like [`commit`](Self::commit), without updating the row counts.
    pub(super) fn commit_uncounted(mut self) -> Result<(), IndexError> {
        let txn = self.txn.take().expect("only `commit` takes the transaction");
        catch_redb_panic("committing", || txn.commit().map_err(storage))
    }

    /// Writes the number of rows of each table, which redb knows without counting.
    fn count_rows(&self) -> Result<(), IndexError> {
        let mut counts = Vec::with_capacity(64);
        for name in tables::counted() {
            let table = self.raw_table(name)?;
            let rows = self.attempt("counting rows", || table.len().map_err(storage))?;
            put_varint(&mut counts, rows);
        }
        let sum = checksum(LISTS, COUNTS_KEY, &counts);
        counts.extend_from_slice(&sum);
        let mut lists = self.raw_table(LISTS)?;
        self.attempt("writing the counts of rows", || {
            lists.insert(COUNTS_KEY, counts.as_slice()).map_err(storage)?;
            Ok(())
        })
    }

    /// Opens a plain table. A table can be open only once at a time.
    ///
    /// # Errors
    ///
    /// The errors of the storage engine.
    pub fn table<'txn>(&'txn self, name: &'static str) -> Result<PlainTable<'txn>, IndexError> {
        debug_assert!(tables::PLAIN.contains(&name), "{name} is no plain table");
        Ok(PlainTable { name, table: self.raw_table(name)?, buffer: Vec::new(), broken: &self.broken })
    }

    /// Opens a table of any kind for direct use.
    pub(super) fn raw_table<'txn>(&'txn self, name: &'static str) -> Result<RawTableMut<'txn>, IndexError> {
        self.attempt("opening a table", || self.txn().open_table(definition(name)).map_err(storage))
    }

    /// Calls redb. Any error prevents the commit.
    pub(super) fn attempt<T>(
        &self,
        doing: &'static str,
        action: impl FnOnce() -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        attempt(&self.broken, doing, action)
    }

    /// Returns the table's runs in this transaction, oldest first.
    pub(super) fn runs(&self, table: u8) -> Result<Vec<RunMeta>, IndexError> {
        let lists = self.raw_table(LISTS)?;
        let found = self.attempt("reading a list of runs", || {
            let stored = lists.get([table].as_slice()).map_err(storage)?;
            let Some(stored) = stored else {
                return Err(IndexError::damaged(LISTS, "a list of runs is missing"));
            };
            let list = verified(LISTS, &[table], stored.value())?;
            decode_list(list).map_err(|corrupt| IndexError::corrupt(LISTS, corrupt))
        })?;
        Ok(found)
    }

    /// Replaces the table's list of runs, oldest first.
    pub(super) fn set_runs(&self, table: u8, runs: &[RunMeta]) -> Result<(), IndexError> {
        let mut list = Vec::new();
        encode_list(runs, &mut list);
        let sum = checksum(LISTS, &[table], &list);
        list.extend_from_slice(&sum);
        let mut lists = self.raw_table(LISTS)?;
        self.attempt("writing a list of runs", || {
            lists.insert([table].as_slice(), list.as_slice()).map_err(storage)?;
            Ok(())
        })
    }
}

impl Drop for IndexWrite {
    fn drop(&mut self) {
        let txn = self.txn.take();
        // After a panic over damaged pages, redb panics again when it drops the transaction. By then the caller has an
        // error from the first panic, and replaces the file.
        let _ = catch_unwind(AssertUnwindSafe(move || drop(txn)));
    }
}

fn attempt<T>(
    broken: &Cell<bool>,
    doing: &'static str,
    action: impl FnOnce() -> Result<T, IndexError>,
) -> Result<T, IndexError> {
    let result = catch_redb_panic(doing, action);
    if result.is_err() {
        broken.set(true);
    }
    result
}

/// Minimum number of adjacent new keys for which a cursor is faster than single writes.
const NEIGHBOURS_MIN: usize = 8;
/// Number of keys that are then written one by one before a cursor is tried again.
const ONE_BY_ONE: usize = 64;

/// A plain table in a write transaction. Any error prevents the commit.
pub struct PlainTable<'txn> {
    name: &'static str,
    table: RawTableMut<'txn>,
    buffer: Vec<u8>,
    broken: &'txn Cell<bool>,
}

impl PlainTable<'_> {
    /// Returns the value of `key`.
    ///
    /// # Errors
    ///
    /// [`IndexError::Damaged`] if its checksum is wrong; otherwise the errors of the storage engine.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, IndexError> {
        attempt(self.broken, "reading a value", || {
            let stored = self.table.get(key).map_err(storage)?;
            stored.map(|stored| Ok(verified(self.name, key, stored.value())?.to_vec())).transpose()
        })
    }

    /// Sets the value of `key`.
    ///
    /// # Errors
    ///
    /// The errors of the storage engine.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), IndexError> {
        sealed(self.name, key, value, &mut self.buffer);
        attempt(self.broken, "writing a value", || {
            self.table.insert(key, self.buffer.as_slice()).map_err(storage)?;
            Ok(())
        })
    }

    /// Sets the values of ascending keys. If several of them are new and adjacent in the table, this costs much less
    /// than single calls of [`put`](Self::put).
    ///
    /// # Errors
    ///
    /// The errors of the storage engine.
    pub fn put_ascending<'e>(
        &mut self,
        entries: impl IntoIterator<Item = (&'e [u8], &'e [u8])>,
    ) -> Result<(), IndexError> {
        self.put_all(&mut entries.into_iter())
    }

    /// Does the work of [`put_ascending`](Self::put_ascending). Not generic, so that its callers do not compile the
    /// trees of redb again.
    fn put_all<'e>(
        &mut self,
        entries: &mut dyn Iterator<Item = (&'e [u8], &'e [u8])>,
    ) -> Result<(), IndexError> {
        let Self { name, table, buffer, broken } = self;
        attempt(broken, "writing values", || {
            let mut entries = entries.peekable();
            let mut one_by_one = 0;
            while let Some((first, _)) = entries.peek() {
                let mut neighbours = 0;
                if one_by_one == 0 {
                    let mut cursor = table.lower_bound_mut(Bound::Included(*first)).map_err(storage)?;
                    while let Some((key, value)) = entries.peek() {
                        sealed(name, key, value, buffer);
                        match cursor.insert_before(*key, buffer.as_slice()) {
                            Ok(()) => neighbours += 1,
                            // The key exists, or another key is before it.
                            Err(CursorError::UnorderedKey) => break,
                            Err(error) => return Err(storage(error)),
                        }
                        entries.next();
                    }
                    cursor.close().map_err(storage)?;
                    one_by_one = if neighbours < NEIGHBOURS_MIN { ONE_BY_ONE } else { 0 };
                }
                if neighbours == 0
                    && let Some((key, value)) = entries.next()
                {
                    sealed(name, key, value, buffer);
                    table.insert(key, buffer.as_slice()).map_err(storage)?;
                    one_by_one = one_by_one.saturating_sub(1);
                }
            }
            Ok(())
        })
    }

    /// Removes `key`. Returns whether it existed.
    ///
    /// # Errors
    ///
    /// The errors of the storage engine.
    pub fn delete(&mut self, key: &[u8]) -> Result<bool, IndexError> {
        attempt(self.broken, "removing a value", || Ok(self.table.remove(key).map_err(storage)?.is_some()))
    }

    /// Removes at most `limit` entries from one key (inclusive) to another (exclusive). Returns how many it removed.
    ///
    /// # Errors
    ///
    /// The errors of the storage engine.
    pub(crate) fn delete_between(
        &mut self,
        from: Bound<&[u8]>,
        to: &[u8],
        limit: usize,
    ) -> Result<usize, IndexError> {
        attempt(self.broken, "removing values", || {
            let mut cursor = self.table.lower_bound_mut(from).map_err(storage)?;
            let mut removed = 0;
            while removed < limit {
                match cursor.peek_next().map_err(storage)? {
                    Some((key, _)) if key.value() < to => {}
                    _ => break,
                }
                cursor.remove_next().map_err(storage)?;
                removed += 1;
            }
            cursor.close().map_err(storage)?;
            Ok(removed)
        })
    }

    /// Returns the entries between two keys, in order, from either end.
    ///
    /// # Errors
    ///
    /// The errors of the storage engine.
    #[cfg(test)]
    pub(crate) fn range(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Result<PlainRange<'_>, IndexError> {
        let (range, ends) = attempt(self.broken, "reading a range", || {
            let mut ends = self.table.range::<&[u8]>((from, to)).map_err(storage)?;
            let first = ends.next().transpose().map_err(storage)?.map(|(key, _)| key.value().to_vec());
            let last = ends.next_back().transpose().map_err(storage)?.map(|(key, _)| key.value().to_vec());
            let ends = first.map(|first| (first.clone(), last.unwrap_or(first)));
            Ok((self.table.range::<&[u8]>((from, to)).map_err(storage)?, ends))
        })?;
        Ok(PlainRange::new(self.name, range, ends, None))
    }
}
