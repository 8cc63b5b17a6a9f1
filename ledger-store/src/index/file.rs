//! The redb file of the index: checked values, write transactions, snapshots.
//!
//! The storage engine checks its pages only in repair. Therefore every value
//! here ends with a checksum over the table's name, the key and the value,
//! which is verified by every read, and a panic of the engine over damaged
//! pages becomes an error.
//!
//! ```text
//! runs.list          table number (u8)                     -> list of runs (see `runs`)
//! runs.list          255 (u8)                              -> how many rows every other table has
//! runs.filters       run (u64), page (u32)                 -> filter page, or the fences (see `filter`)
//! runs.<rows>        run (u64), first key of the block     -> block (see `block`)
//! any other name     a plain table (see `tables`): any key -> any value
//! ```
//!
//! Integers in keys are big-endian.
//!
//! That something is not here must be proved too, for a flipped bit in a key hides the value under it:
//!
//! - A snapshot has exactly the tables that [`tables`] lists, each with as many rows as the last commit counted.
//! - A lookup that finds nothing reads the entries on both sides of the place where the key would be. Their values are
//!   checked with their keys, so a key that is not the one that was written is an error; see [`check_gap`].

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::io::ErrorKind;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;
use redb::{
    Builder, CursorError, Database, Durability, ReadOnlyTable, ReadableDatabase, ReadableTable,
    ReadableTableMetadata, StorageBackend, TableDefinition, TableError, TableHandle, WriteTransaction,
};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::codec::{Corrupt, Output, Reader, put_varint};

use super::filter::FilterCache;
use super::rows::TABLES;
use super::runs::{self, RunMeta};
use super::tables::{self, ABOUT};
pub(super) use super::tables::{FILTERS, LISTS};

/// Bytes of the checksum at the end of every stored value.
pub(crate) const CHECKSUM_BYTES: usize = 8;

/// The format of the index. Another one is not read: the index is built again from the journal.
pub(crate) const FORMAT: u32 = 11;
/// The key of the record that says what the index is. It begins with the format, 4 bytes, big-endian.
pub(crate) const ABOUT_KEY: &[u8] = b"projection";
/// The key of the row counts, among the lists of runs.
const COUNTS_KEY: &[u8] = &[u8::MAX];

type Bytes = &'static [u8];
pub(super) type RawTable = ReadOnlyTable<Bytes, Bytes>;
pub(super) type RawTableMut<'txn> = redb::Table<'txn, Bytes, Bytes>;
pub(super) type RawRange<'a> = redb::Range<'a, Bytes, Bytes>;

fn definition(name: &str) -> TableDefinition<'_, Bytes, Bytes> {
    TableDefinition::new(name)
}

/// Why the index did not answer.
///
/// The index can be rebuilt from the journal; none of these is a loss.
#[derive(Debug)]
pub(crate) enum IndexError {
    /// Stored bytes are not what was written.
    Damaged {
        /// The table they are in.
        table: String,
        /// What is wrong with them.
        what: &'static str,
    },
    /// It was written by another release. That is no damage.
    OtherFormat,
    /// The storage engine failed, or the disk below it.
    Storage(Box<redb::Error>),
    /// The storage engine panicked, as it does on damaged pages.
    Panicked {
        /// What it was asked to do.
        doing: &'static str,
    },
}

impl IndexError {
    pub(crate) fn damaged(table: &str, what: &'static str) -> Self {
        Self::Damaged { table: table.to_owned(), what }
    }

    pub(crate) fn corrupt(table: &str, corrupt: Corrupt) -> Self {
        Self::damaged(table, corrupt.what)
    }

    /// Whether the disk refused, such as one that is full: that says nothing of what is stored.
    ///
    /// A read behind the end of the file and a wrong magic number come as errors of the disk too. Both are damage.
    pub(crate) fn is_of_the_disk(&self) -> bool {
        let Self::Storage(error) = self else { return false };
        match &**error {
            redb::Error::Io(error) => {
                !matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::InvalidData)
            }
            error => matches!(error, redb::Error::PreviousIo),
        }
    }
}

impl fmt::Display for IndexError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged { table, what } => write!(formatter, "the index is damaged in {table}: {what}"),
            Self::OtherFormat => formatter.write_str("the index is of another format"),
            Self::Storage(error) => write!(formatter, "the index cannot be accessed: {error}"),
            Self::Panicked { doing } => write!(formatter, "the index is damaged: panic while {doing}"),
        }
    }
}

impl std::error::Error for IndexError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Storage(error) => Some(error),
            Self::Damaged { .. } | Self::OtherFormat | Self::Panicked { .. } => None,
        }
    }
}

/// An error of the storage engine as one of the index.
pub(super) fn storage(error: impl Into<redb::Error>) -> IndexError {
    IndexError::Storage(Box::new(error.into()))
}

/// Runs what calls into the storage engine; its panic becomes an error.
pub(super) fn shield<T>(
    doing: &'static str,
    action: impl FnOnce() -> Result<T, IndexError>,
) -> Result<T, IndexError> {
    // The engine's shared state survives a panic: its locks latch it and refuse from then on.
    catch_unwind(AssertUnwindSafe(action)).unwrap_or(Err(IndexError::Panicked { doing }))
}

/// The checksum that a value is stored with.
pub(super) fn checksum(table: &str, key: &[u8], value: &[u8]) -> [u8; CHECKSUM_BYTES] {
    // Where the value stands seeds the hash of the value, so that a value in a wrong place is found too.
    let place = xxh3_64_with_seed(key, xxh3_64_with_seed(table.as_bytes(), 0));
    xxh3_64_with_seed(value, place).to_le_bytes()
}

/// The value within stored bytes, once its checksum is verified.
pub(super) fn verified<'a>(table: &str, key: &[u8], stored: &'a [u8]) -> Result<&'a [u8], IndexError> {
    let Some((value, sum)) = stored.split_last_chunk::<CHECKSUM_BYTES>() else {
        return Err(IndexError::damaged(table, "a value is too short for its checksum"));
    };
    if checksum(table, key, value) != *sum {
        return Err(IndexError::damaged(table, "the checksum of a value is wrong"));
    }
    Ok(value)
}

/// How much memory the file may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IndexOptions {
    /// Bytes of the storage engine's page cache.
    pub(crate) cache_bytes: usize,
    /// Bytes of the cache of filter pages.
    pub(crate) filter_bytes: usize,
}

/// What a commit promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Commit {
    /// Readers see it; a crash may undo it, together with all later ones.
    Visible,
    /// It is on disk, with all commits before it, when the commit returns.
    Durable,
}

/// The open index file. Cheap to clone; all clones are the same file.
#[derive(Clone)]
pub(crate) struct IndexFile {
    inner: Arc<Inner>,
}

struct Inner {
    /// Taken only when the file is closed.
    database: Option<Database>,
    /// Closing writes nothing.
    abandoned: AtomicBool,
    filters: Arc<FilterCache>,
    next_run: AtomicU64,
    /// Runs that no list names and no merge is writing: (table number, run).
    garbage: Mutex<Vec<(u8, u64)>>,
    /// Held by the one merge at work.
    merging: Mutex<()>,
}

impl IndexFile {
    /// Makes a new index in an empty backend, and returns once it is on disk.
    ///
    /// # Errors
    ///
    /// [`IndexError::Damaged`] if the backend is not empty; else as the storage engine fails.
    pub(crate) fn create(backend: impl StorageBackend, options: IndexOptions) -> Result<Self, IndexError> {
        if backend.len().map_err(|error| storage(redb::StorageError::Io(error)))? != 0 {
            return Err(IndexError::damaged(LISTS, "a new index needs an empty file"));
        }
        let file = Self::start(backend, options)?;
        let write = file.begin_write(Commit::Durable)?;
        shield("creating the tables", || {
            for name in tables::counted().chain([LISTS]) {
                write.txn.open_table(definition(name)).map_err(storage)?;
            }
            Ok(())
        })?;
        // An empty list is written, so that a list that is not found is damage.
        for table in 0..TABLES.len() {
            write.set_runs(table as u8, &[])?;
        }
        write.commit()?;
        Ok(file)
    }

    /// Opens an index that [`create`](Self::create) made.
    ///
    /// Runs that were being written when the process ended are found here and
    /// removed by the next merge steps.
    ///
    /// # Errors
    ///
    /// [`IndexError::Damaged`] if there is no index in the backend or it is
    /// visibly damaged; [`IndexError::OtherFormat`] if another release wrote
    /// it; else as the storage engine fails.
    pub(crate) fn open(backend: impl StorageBackend, options: IndexOptions) -> Result<Self, IndexError> {
        if backend.len().map_err(|error| storage(redb::StorageError::Io(error)))? == 0 {
            return Err(IndexError::damaged(LISTS, "the file is empty"));
        }
        let file = Self::start(backend, options)?;
        // Closing a damaged file would write to it.
        file.check_format().and_then(|()| file.find_runs()).inspect_err(|_| file.abandon())?;
        Ok(file)
    }

    /// Refuses a file that another release wrote: its tables may be others, and that is no damage.
    fn check_format(&self) -> Result<(), IndexError> {
        shield("reading the format", || {
            let txn = self.database()?.begin_read().map_err(storage)?;
            let about = match txn.open_table(definition(ABOUT)) {
                Ok(about) => about,
                Err(TableError::TableDoesNotExist(_)) => {
                    // Before format 11 a table was created when it was first written.
                    let mut names = txn.list_tables().map_err(storage)?;
                    let is_unwritten = names.all(|table| table.name().starts_with("runs."));
                    return if is_unwritten { Err(IndexError::OtherFormat) } else { Ok(()) };
                }
                Err(error) => return Err(storage(error)),
            };
            // The checksums of other formats are others, too: only the number counts.
            match about.get(ABOUT_KEY).map_err(storage)? {
                Some(stored) if !stored.value().starts_with(&FORMAT.to_be_bytes()) => {
                    Err(IndexError::OtherFormat)
                }
                _ => Ok(()),
            }
        })
    }

    /// Finds the runs that no list names, and the ids that are free.
    fn find_runs(&self) -> Result<(), IndexError> {
        let snapshot = self.snapshot()?;
        let mut next_run = 0;
        let mut garbage = Vec::new();
        for table in 0..TABLES.len() {
            let listed = snapshot.runs(table as u8);
            for run in snapshot.stored_runs(table)? {
                next_run = next_run.max(run.saturating_add(1));
                if listed.iter().all(|meta| meta.id != run) {
                    garbage.push((table as u8, run));
                }
            }
            let after = listed.iter().map(|meta| meta.id.saturating_add(1)).max();
            next_run = next_run.max(after.unwrap_or(0));
        }
        self.inner.next_run.store(next_run, Relaxed);
        *self.inner.garbage.lock() = garbage;
        Ok(())
    }

    /// Makes the last owner close the file without writing to it.
    ///
    /// For a file that has shown damage and is to be rebuilt: the engine's
    /// usual closing commit can panic twice on damaged pages, which would
    /// abort the process. What was not committed durably is lost.
    pub(crate) fn abandon(&self) {
        self.inner.abandoned.store(true, Relaxed);
    }

    fn database(&self) -> Result<&Database, IndexError> {
        self.inner.database.as_ref().ok_or_else(|| storage(redb::StorageError::DatabaseClosed))
    }

    fn start(backend: impl StorageBackend, options: IndexOptions) -> Result<Self, IndexError> {
        let database = shield("opening the file", || {
            Builder::new().set_cache_size(options.cache_bytes).create_with_backend(backend).map_err(storage)
        })?;
        Ok(Self {
            inner: Arc::new(Inner {
                database: Some(database),
                abandoned: AtomicBool::new(false),
                filters: Arc::new(FilterCache::new(options.filter_bytes)),
                next_run: AtomicU64::new(0),
                garbage: Mutex::default(),
                merging: Mutex::default(),
            }),
        })
    }

    /// Starts the write transaction; waits while another one is open.
    ///
    /// # Errors
    ///
    /// As the storage engine fails.
    pub(crate) fn begin_write(&self, commit: Commit) -> Result<IndexWrite, IndexError> {
        let txn = shield("starting a transaction", || {
            let mut txn = self.database()?.begin_write().map_err(storage)?;
            match commit {
                Commit::Visible => txn.set_durability(Durability::None).map_err(storage)?,
                // Reopening after a crash then walks no tree.
                Commit::Durable => txn.set_quick_repair(true),
            }
            Ok(txn)
        })?;
        Ok(IndexWrite { txn, file: self.clone(), broken: Cell::new(false), buffer: Cell::default() })
    }

    /// What is committed now, durable or not, for reading. Costs some microseconds.
    ///
    /// # Errors
    ///
    /// [`IndexError::Damaged`] if a table is missing, unknown, or has not as many rows as were committed, or if a list of
    /// runs is missing or damaged; else as the storage engine fails.
    pub(crate) fn snapshot(&self) -> Result<IndexSnapshot, IndexError> {
        let mut tables = self.committed_tables()?;
        let mut take =
            |name: &str| tables.remove(name).ok_or_else(|| IndexError::damaged(name, "the table is missing"));
        let lists = take(LISTS)?;
        let counts = read(&lists, LISTS, COUNTS_KEY, |counts| {
            decode_counts(counts).map_err(|corrupt| IndexError::corrupt(LISTS, corrupt))
        })?;
        let counts = counts.ok_or_else(|| IndexError::damaged(LISTS, "the counts of rows are missing"))?;
        let mut counts = counts.into_iter();
        let mut take = |name| counted(take(name)?, name, counts.next());
        let mut run_tables = Vec::with_capacity(TABLES.len());
        for (number, name) in TABLES.iter().enumerate() {
            let blocks = take(name)?;
            let key = [number as u8];
            let runs = read(&lists, LISTS, &key, |list| {
                runs::decode_list(list).map_err(|corrupt| IndexError::corrupt(LISTS, corrupt))
            })?;
            let runs = runs.ok_or_else(|| IndexError::damaged(LISTS, "a list of runs is missing"))?;
            run_tables.push(RunTable { blocks, runs: runs.into() });
        }
        let filter_pages = take(FILTERS)?;
        let plain = tables::PLAIN.iter().map(|name| Ok((*name, take(name)?))).collect::<Result<_, _>>()?;
        let filters = self.inner.filters.clone();
        Ok(IndexSnapshot { inner: Arc::new(Snapshot { run_tables, filter_pages, plain, filters }) })
    }

    /// The tables that are committed now, by name; all of them are known.
    fn committed_tables(&self) -> Result<HashMap<&'static str, RawTable>, IndexError> {
        shield("opening a snapshot", || {
            let txn = self.database()?.begin_read().map_err(storage)?;
            let mut tables = HashMap::new();
            for handle in txn.list_tables().map_err(storage)? {
                let name = tables::known(handle.name())
                    .ok_or_else(|| IndexError::damaged(handle.name(), "nobody knows the table"))?;
                tables.insert(name, txn.open_table(definition(name)).map_err(storage)?);
            }
            Ok(tables)
        })
    }

    /// A run id that no run has.
    pub(super) fn allocate_run(&self) -> u64 {
        self.inner.next_run.fetch_add(1, Relaxed)
    }

    /// Leaves an unlisted run to be deleted.
    pub(super) fn discard_run(&self, table: u8, run: u64) {
        self.inner.garbage.lock().push((table, run));
    }

    /// The run to be deleted next.
    pub(super) fn next_garbage(&self) -> Option<(u8, u64)> {
        self.inner.garbage.lock().last().copied()
    }

    /// Notes that an unlisted run is deleted.
    pub(super) fn forget_garbage(&self, table: u8, run: u64) {
        self.inner.garbage.lock().retain(|entry| *entry != (table, run));
    }

    /// The lock of the one merge at work.
    pub(super) fn merging(&self) -> &Mutex<()> {
        &self.inner.merging
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let Some(database) = self.database.take() else {
            return;
        };
        let abandoned = self.abandoned.load(Relaxed);
        // The result of closing says nothing that reopening does not find out.
        let _ = catch_unwind(AssertUnwindSafe(move || {
            let _database = database;
            if abandoned {
                // The engine writes nothing when it is dropped by an unwinding thread.
                resume_unwind(Box::new(()));
            }
        }));
    }
}

impl fmt::Debug for IndexFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("IndexFile").finish_non_exhaustive()
    }
}

/// The write transaction. Dropped without [`commit`](Self::commit) it leaves no trace.
pub(crate) struct IndexWrite {
    pub(super) txn: WriteTransaction,
    pub(super) file: IndexFile,
    /// An operation failed: what the transaction holds is not known any more.
    broken: Cell<bool>,
    /// In which one run is built after the other.
    buffer: Cell<Output>,
}

impl IndexWrite {
    /// An empty buffer, of the size that the last one had when it was kept.
    pub(super) fn take_buffer(&self) -> Output {
        self.buffer.take()
    }

    /// Keeps a buffer, which is empty again, for the next run.
    pub(super) fn keep_buffer(&self, buffer: Output) {
        self.buffer.set(buffer);
    }

    /// Makes all changes visible at once; see [`Commit`] for what is on disk then.
    ///
    /// # Errors
    ///
    /// As the storage engine fails; then the changes may still show after the file is reopened.
    pub(crate) fn commit(self) -> Result<(), IndexError> {
        if self.broken.get() {
            return Err(IndexError::Panicked { doing: "using a transaction after an error" });
        }
        self.count_rows()?;
        shield("committing", || self.txn.commit().map_err(storage))
    }

    /// Writes how many rows each table has. The engine knows that without counting.
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
    /// As the storage engine fails.
    pub(crate) fn table<'txn>(&'txn self, name: &'static str) -> Result<PlainTable<'txn>, IndexError> {
        debug_assert!(tables::PLAIN.contains(&name), "{name} is no plain table");
        Ok(PlainTable { name, table: self.raw_table(name)?, buffer: Vec::new(), broken: &self.broken })
    }

    /// Opens a table of any kind for direct use.
    pub(super) fn raw_table<'txn>(&'txn self, name: &'static str) -> Result<RawTableMut<'txn>, IndexError> {
        self.attempt("opening a table", || self.txn.open_table(definition(name)).map_err(storage))
    }

    /// Calls the storage engine; any error forbids the commit.
    pub(super) fn attempt<T>(
        &self,
        doing: &'static str,
        action: impl FnOnce() -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        attempt(&self.broken, doing, action)
    }

    /// The table's runs as this transaction has them, oldest first.
    pub(super) fn runs(&self, table: u8) -> Result<Vec<RunMeta>, IndexError> {
        let lists = self.raw_table(LISTS)?;
        let found = self.attempt("reading a list of runs", || {
            let stored = lists.get([table].as_slice()).map_err(storage)?;
            let Some(stored) = stored else {
                return Err(IndexError::damaged(LISTS, "a list of runs is missing"));
            };
            let list = verified(LISTS, &[table], stored.value())?;
            runs::decode_list(list).map_err(|corrupt| IndexError::corrupt(LISTS, corrupt))
        })?;
        Ok(found)
    }

    /// Replaces the table's list of runs, oldest first.
    pub(super) fn set_runs(&self, table: u8, runs: &[RunMeta]) -> Result<(), IndexError> {
        let mut list = Vec::new();
        runs::encode_list(runs, &mut list);
        let sum = checksum(LISTS, &[table], &list);
        list.extend_from_slice(&sum);
        let mut lists = self.raw_table(LISTS)?;
        self.attempt("writing a list of runs", || {
            lists.insert([table].as_slice(), list.as_slice()).map_err(storage)?;
            Ok(())
        })
    }
}

fn attempt<T>(
    broken: &Cell<bool>,
    doing: &'static str,
    action: impl FnOnce() -> Result<T, IndexError>,
) -> Result<T, IndexError> {
    let result = shield(doing, action);
    if result.is_err() {
        broken.set(true);
    }
    result
}

/// Puts a value and its checksum into a buffer, in the place of what it holds.
fn sealed(table: &str, key: &[u8], value: &[u8], buffer: &mut Vec<u8>) {
    buffer.clear();
    buffer.extend_from_slice(value);
    buffer.extend_from_slice(&checksum(table, key, value));
}

/// With fewer new keys next to each other than this, a cursor costs more than it saves.
const NEIGHBOURS_MIN: usize = 8;
/// So many keys are then written one by one, before a cursor is tried again.
const ONE_BY_ONE: usize = 64;

/// A plain table in a write transaction. Any error forbids the commit.
pub(crate) struct PlainTable<'txn> {
    name: &'static str,
    table: RawTableMut<'txn>,
    buffer: Vec<u8>,
    broken: &'txn Cell<bool>,
}

impl PlainTable<'_> {
    /// The value of `key`.
    ///
    /// # Errors
    ///
    /// [`IndexError::Damaged`] if its checksum is wrong; else as the storage engine fails.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, IndexError> {
        attempt(self.broken, "reading a value", || {
            let stored = self.table.get(key).map_err(storage)?;
            stored.map(|stored| Ok(verified(self.name, key, stored.value())?.to_vec())).transpose()
        })
    }

    /// Sets the value of `key`.
    ///
    /// # Errors
    ///
    /// As the storage engine fails.
    pub(crate) fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), IndexError> {
        sealed(self.name, key, value, &mut self.buffer);
        attempt(self.broken, "writing a value", || {
            self.table.insert(key, self.buffer.as_slice()).map_err(storage)?;
            Ok(())
        })
    }

    /// Sets the values of keys that ascend. Where several are new and next to each other in the table, this costs much
    /// less than one after the other.
    ///
    /// # Errors
    ///
    /// As the storage engine fails.
    pub(crate) fn put_ascending<'e>(
        &mut self,
        entries: impl IntoIterator<Item = (&'e [u8], &'e [u8])>,
    ) -> Result<(), IndexError> {
        let Self { name, table, buffer, broken } = self;
        attempt(broken, "writing values", || {
            let mut entries = entries.into_iter().peekable();
            let mut one_by_one = 0;
            while let Some((first, _)) = entries.peek() {
                let mut neighbours = 0;
                if one_by_one == 0 {
                    let mut cursor = table.lower_bound_mut(Bound::Included(*first)).map_err(storage)?;
                    while let Some((key, value)) = entries.peek() {
                        sealed(name, key, value, buffer);
                        match cursor.insert_before(*key, buffer.as_slice()) {
                            Ok(()) => neighbours += 1,
                            // It is there, or another key stands before it.
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

    /// Removes `key`; whether it was there.
    ///
    /// # Errors
    ///
    /// As the storage engine fails.
    pub(crate) fn delete(&mut self, key: &[u8]) -> Result<bool, IndexError> {
        attempt(self.broken, "removing a value", || Ok(self.table.remove(key).map_err(storage)?.is_some()))
    }

    /// Removes at most `limit` entries from one key on and before another; how many it removed.
    ///
    /// # Errors
    ///
    /// As the storage engine fails.
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

    /// The entries between two keys, in order, from either end.
    ///
    /// # Errors
    ///
    /// As the storage engine fails.
    #[cfg(test)]
    pub(crate) fn range(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Result<PlainRange<'_>, IndexError> {
        let (range, ends) = attempt(self.broken, "reading a range", || {
            let mut ends = self.table.range::<&[u8]>((from, to)).map_err(storage)?;
            let first = ends.next().transpose().map_err(storage)?.map(|(key, _)| key.value().to_vec());
            let last = ends.next_back().transpose().map_err(storage)?.map(|(key, _)| key.value().to_vec());
            let ends = first.map(|first| (first.clone(), last.unwrap_or(first)));
            Ok((self.table.range::<&[u8]>((from, to)).map_err(storage)?, ends))
        })?;
        Ok(PlainRange::new(self.name, range, ends))
    }
}

/// A key and its value.
pub(crate) type Entry = (Vec<u8>, Vec<u8>);

/// Entries of a plain table in key order, from either end.
pub(crate) struct PlainRange<'a> {
    name: &'a str,
    range: RawRange<'a>,
    /// The first and the last key that are there: a walk that ends elsewhere was misled by a changed key.
    ends: Option<(Vec<u8>, Vec<u8>)>,
    /// The last key that came from the front, and the last that came from the back: keys that do not ascend are damage.
    front: Option<Vec<u8>>,
    back: Option<Vec<u8>>,
}

impl<'a> PlainRange<'a> {
    fn new(name: &'a str, range: RawRange<'a>, ends: Option<(Vec<u8>, Vec<u8>)>) -> Self {
        Self { name, range, ends, front: None, back: None }
    }

    /// Whether a walk may end: it came to the last key, or to the first.
    fn is_complete(&self) -> bool {
        let (first, last) = self.ends.as_ref().map(|(first, last)| (first, last)).unzip();
        match (&self.front, &self.back) {
            (front, None) => front.as_ref() == last,
            (None, back) => back.as_ref() == first,
            // From both ends: each key was checked, and they have met.
            (Some(_), Some(_)) => true,
        }
    }

    fn step(&mut self, back: bool) -> Option<Result<Entry, IndexError>> {
        let entry = shield("reading a range", || {
            let entry = if back { self.range.next_back() } else { self.range.next() };
            let Some((key, stored)) = entry.transpose().map_err(storage)? else {
                return if self.is_complete() {
                    Ok(None)
                } else {
                    Err(IndexError::damaged(self.name, "a range ends too early"))
                };
            };
            let (key, value) = (key.value(), verified(self.name, key.value(), stored.value())?);
            let ascends = self.front.as_deref().is_none_or(|front| front < key)
                && self.back.as_deref().is_none_or(|back| key < back);
            if !ascends {
                return Err(IndexError::damaged(self.name, "keys do not ascend"));
            }
            let last = if back { &mut self.back } else { &mut self.front }.get_or_insert_default();
            last.clear();
            last.extend_from_slice(key);
            Ok(Some((key.to_vec(), value.to_vec())))
        });
        entry.transpose()
    }
}

impl Iterator for PlainRange<'_> {
    type Item = Result<Entry, IndexError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(false)
    }
}

impl DoubleEndedIterator for PlainRange<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(true)
    }
}

/// The index as it was at one commit. Cheap to clone.
///
/// As long as it lives, the space of what is deleted meanwhile is not reused.
#[derive(Clone)]
pub(crate) struct IndexSnapshot {
    inner: Arc<Snapshot>,
}

struct Snapshot {
    run_tables: Vec<RunTable>,
    filter_pages: RawTable,
    plain: HashMap<&'static str, RawTable>,
    filters: Arc<FilterCache>,
}

struct RunTable {
    blocks: RawTable,
    runs: Arc<[RunMeta]>,
}

impl IndexSnapshot {
    /// The runs of a table, oldest first.
    pub(crate) fn runs(&self, table: u8) -> &Arc<[RunMeta]> {
        &self.inner.run_tables[usize::from(table)].runs
    }

    /// The blocks of a table.
    pub(super) fn blocks(&self, table: u8) -> &RawTable {
        &self.inner.run_tables[usize::from(table)].blocks
    }

    /// The pages of all filters.
    pub(super) fn filter_pages(&self) -> &RawTable {
        &self.inner.filter_pages
    }

    /// The cache of filter pages.
    pub(super) fn filters(&self) -> &FilterCache {
        &self.inner.filters
    }

    /// The value of `key` in a plain table; none if it is proved that there is none.
    ///
    /// # Errors
    ///
    /// [`IndexError::Damaged`] if its checksum is wrong, or an entry beside its place is damaged; else as the storage
    /// engine fails.
    pub(crate) fn get(&self, table: &str, key: &[u8]) -> Result<Option<Vec<u8>>, IndexError> {
        self.read(table, key, |value| Ok(value.to_vec()))
    }

    /// Like [`get`](Self::get), but lends the value to `use_value` instead of copying it.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get), and what `use_value` returns.
    pub(crate) fn read<T>(
        &self,
        table: &str,
        key: &[u8],
        use_value: impl FnOnce(&[u8]) -> Result<T, IndexError>,
    ) -> Result<Option<T>, IndexError> {
        read(self.plain(table)?, table, key, use_value)
    }

    /// The entries of a plain table between two keys, in order, from either end.
    ///
    /// # Errors
    ///
    /// [`IndexError::Damaged`] if an entry at one of its ends is damaged, which could hide others; else as the storage
    /// engine fails.
    pub(crate) fn range<'a>(
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
        let (range, ends) = shield("reading a range", || {
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
        })?;
        Ok(PlainRange::new(table, range, ends))
    }

    fn plain(&self, table: &str) -> Result<&RawTable, IndexError> {
        self.inner.plain.get(table).ok_or_else(|| IndexError::damaged(table, "the table is missing"))
    }

    /// Whether nothing was ever written into the plain tables.
    ///
    /// # Errors
    ///
    /// As the storage engine fails.
    pub(crate) fn is_unwritten(&self) -> Result<bool, IndexError> {
        shield("counting rows", || {
            let mut rows = 0;
            for table in self.inner.plain.values() {
                rows += table.len().map_err(storage)?;
            }
            Ok(rows == 0)
        })
    }

    /// The ids of the runs that have blocks, listed or not.
    fn stored_runs(&self, table: usize) -> Result<Vec<u64>, IndexError> {
        let blocks = &self.inner.run_tables[table].blocks;
        shield("looking for runs", || {
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
                        // A search that a changed key misleads would lead here again, for ever.
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

/// Lends the checked value of `key` to `use_value`. None is proved by the entries beside its place.
pub(super) fn read<T>(
    table: &RawTable,
    name: &str,
    key: &[u8],
    use_value: impl FnOnce(&[u8]) -> Result<T, IndexError>,
) -> Result<Option<T>, IndexError> {
    shield("reading a value", || match table.get(key).map_err(storage)? {
        Some(stored) => Ok(Some(use_value(verified(name, key, stored.value())?)?)),
        None => check_gap(table, name, table.lower_bound(Bound::Included(key)), |stored| stored.cmp(key))
            .map(|_| None),
    })
}

/// The keys before and after a gap.
type Beside = (Option<Vec<u8>>, Option<Vec<u8>>);

/// Proves that no entry is missing at a cursor's gap: the entries on both sides are those that were written, and their
/// keys are on their sides of it. `side` says where a key belongs; none is equal. Returns the two keys.
///
/// A search by halves that meets one changed key ends beside that key, in a leaf as in a branch. So a changed key
/// cannot hide an entry without being looked at here.
fn check_gap(
    table: &RawTable,
    name: &str,
    cursor: Result<redb::Cursor<'_, Bytes, Bytes>, redb::StorageError>,
    side: impl Fn(&[u8]) -> Ordering,
) -> Result<Beside, IndexError> {
    let mut cursor = cursor.map_err(storage)?;
    let before = cursor.peek_prev().map_err(storage)?;
    let after = cursor.peek_next().map_err(storage)?;
    if before.is_none() && after.is_none() && table.len().map_err(storage)? > 0 {
        return Err(IndexError::damaged(name, "the rows are missing"));
    }
    let check = |entry: Option<(redb::AccessGuard<'_, Bytes>, redb::AccessGuard<'_, Bytes>)>, expected| {
        let Some((key, stored)) = entry else { return Ok(None) };
        let key = key.value();
        verified(name, key, stored.value())?;
        if side(key) != expected {
            return Err(IndexError::damaged(name, "keys do not ascend"));
        }
        Ok(Some(key.to_vec()))
    };
    Ok((check(before, Ordering::Less)?, check(after, Ordering::Greater)?))
}

/// A table, if it has as many rows as were counted when it was committed.
fn counted(table: RawTable, name: &str, counted: Option<u64>) -> Result<RawTable, IndexError> {
    let rows = shield("counting rows", || table.len().map_err(storage))?;
    if counted == Some(rows) {
        Ok(table)
    } else {
        Err(IndexError::damaged(name, "it has lost rows, or has others"))
    }
}

/// The row counts, in the order of the tables.
fn decode_counts(bytes: &[u8]) -> Result<Vec<u64>, Corrupt> {
    let mut reader = Reader::new(bytes);
    let mut counts = Vec::new();
    while !reader.is_empty() {
        counts.push(reader.varint()?);
    }
    Ok(counts)
}
