//! The redb file of the index.
//!
//! redb verifies its pages only during repair. So every value here ends with a checksum over the table's name, the key
//! and the value. Every read verifies it, and a panic of redb over damaged pages becomes an error.
//!
//! ```text
//! runs.list          table number (u8)                     -> list of runs (see `runs`)
//! runs.list          255 (u8)                              -> row counts of all other tables
//! runs.filters       run (u64), page (u32)                 -> filter page, or the fences (see `filter`)
//! runs.<rows>        run (u64), first key of the block     -> block (see `block`)
//! any other name     a plain table (see `tables`): any key -> any value
//! ```
//!
//! Integers in keys are big-endian.
//!
//! A read must also prove that a value is absent, because a flipped bit in a key hides its value:
//!
//! - A snapshot has exactly the tables that [`tables`] lists, each with as many rows as the last commit counted.
//! - A lookup that finds nothing reads the entries on both sides of the missing key. Their values are verified
//!   together with their keys, so a changed key is an error (`stored.rs`).

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use ledger_codec::{Corrupt, Reader};
use parking_lot::Mutex;
use redb::backends::InMemoryBackend;
use redb::{Builder, Durability, ReadableDatabase, StorageBackend, TableError, TableHandle};

use super::error::{IndexError, catch_redb_panic, storage};
use super::filter_cache::FilterCache;
use super::gate::Gated;
use super::health::{Fault, Health};
use super::open_file::OpenFile;
use super::rows::{TABLES, numbered_tables};
use super::run_list::decode_list;
use super::snapshot::{IndexSnapshot, RunTable, Snapshot};
use super::stored::{RawTable, counted, definition, read};
use super::tables::{self, ABOUT, COUNTS_KEY, FILTERS, LISTS};
use super::write::IndexWrite;

/// The format of the index. A file with another format is not read: the index is rebuilt from the journal.
pub const FORMAT: u32 = 13;
/// The key of the record that describes the index. It begins with the format, 4 bytes, big-endian.
pub const ABOUT_KEY: &[u8] = b"projection";
/// How much memory the file may use.
#[derive(Debug, Clone, Copy)]
pub struct IndexOptions {
    /// Size of redb's page cache in bytes.
    pub cache_bytes: usize,
    /// Size of the cache of filter pages in bytes.
    pub filter_bytes: usize,
}

/// The guarantee of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commit {
    /// The commit is visible to readers. A crash may undo it, together with all later ones.
    Visible,
    /// The commit and all earlier ones are on disk when the commit returns.
    Durable,
}

/// An open index file. Cheap to clone; all clones are the same file.
#[derive(Clone)]
pub struct IndexFile {
    inner: Arc<OpenFile>,
}

impl IndexFile {
    /// Creates an index in an empty backend. It is on disk when this returns.
    ///
    /// # Errors
    ///
    /// [`IndexError::Damaged`] if the backend is not empty; else as the storage engine fails.
    pub fn create(backend: impl StorageBackend, options: IndexOptions) -> Result<Self, IndexError> {
        if backend.len().map_err(|error| storage(redb::StorageError::Io(error)))? != 0 {
            return Err(IndexError::damaged(LISTS, "a new index needs an empty file"));
        }
        let file = Self::start(backend, options)?;
        file.create_tables()?;
        Ok(file)
    }

    /// Creates an index in memory.
    ///
    /// # Errors
    ///
    /// The errors of the storage engine.
    pub fn in_memory(options: IndexOptions) -> Result<Self, IndexError> {
        Self::create(InMemoryBackend::new(), options)
    }

    fn create_tables(&self) -> Result<(), IndexError> {
        let write = self.begin_write(Commit::Durable)?;
        catch_redb_panic("creating the tables", || {
            for name in tables::counted().chain([LISTS]) {
                write.txn().open_table(definition(name)).map_err(storage)?;
            }
            Ok(())
        })?;
        // Write empty lists, so that a missing list means damage.
        for (table, _) in numbered_tables() {
            write.set_runs(table, &[])?;
        }
        write.commit()
    }

    /// Opens an index that [`create`](Self::create) created.
    ///
    /// Finds runs that were being written when the process ended. The next merge steps delete them.
    ///
    /// # Errors
    ///
    /// [`IndexError::Damaged`] if the backend holds no index or the index is visibly damaged;
    /// [`IndexError::OtherFormat`] if another release wrote it; otherwise the errors of the storage engine.
    pub fn open(backend: impl StorageBackend, options: IndexOptions) -> Result<Self, IndexError> {
        if backend.len().map_err(|error| storage(redb::StorageError::Io(error)))? == 0 {
            return Err(IndexError::damaged(LISTS, "the file is empty"));
        }
        let file = Self::start(backend, options)?;
        // Closing a damaged file normally would write to it.
        file.check_format().and_then(|()| file.find_runs()).inspect_err(|_| file.abandon())?;
        Ok(file)
    }

    /// Refuses a file that another release wrote. It may have other tables, which is not damage.
    fn check_format(&self) -> Result<(), IndexError> {
        catch_redb_panic("reading the format", || {
            let txn = self.inner.database()?.begin_read().map_err(storage)?;
            let about = match txn.open_table(definition(ABOUT)) {
                Ok(about) => about,
                Err(TableError::TableDoesNotExist(_)) => {
                    // Before format 11 a table was created with its first value.
                    let mut names = txn.list_tables().map_err(storage)?;
                    let is_unwritten = names.all(|table| table.name().starts_with("runs."));
                    return if is_unwritten { Err(IndexError::OtherFormat) } else { Ok(()) };
                }
                Err(error) => return Err(storage(error)),
            };
            // Other formats may have other checksums, so only look at the number.
            match about.get(ABOUT_KEY).map_err(storage)? {
                Some(stored) if !stored.value().starts_with(&FORMAT.to_be_bytes()) => {
                    Err(IndexError::OtherFormat)
                }
                _ => Ok(()),
            }
        })
    }

    /// Finds the runs that no list refers to, and the next free run id.
    fn find_runs(&self) -> Result<(), IndexError> {
        let snapshot = self.snapshot()?;
        let mut next_run = 0;
        let mut garbage = Vec::new();
        for (table, _) in numbered_tables() {
            let listed = snapshot.runs(table);
            for run in snapshot.stored_runs(table)? {
                next_run = next_run.max(run.saturating_add(1));
                if listed.iter().all(|meta| meta.id != run) {
                    garbage.push((table, run));
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
    /// For a damaged file that will be rebuilt: redb's normal closing commit can panic twice on damaged pages, which
    /// would abort the process. Commits that are not durable are lost.
    pub fn abandon(&self) {
        self.inner.abandoned.store(true, Relaxed);
    }

    /// Returns the defect of the file, if one was noticed.
    pub fn fault(&self) -> Option<Fault> {
        self.inner.health.fault()
    }

    /// Records what an error of an access to this file reveals about it.
    pub fn note(&self, error: &IndexError) {
        self.inner.health.note_error(error);
    }

    /// Records that the file must be replaced.
    pub fn mark_for_replacement(&self, reason: String) {
        self.inner.health.note_fault(Fault::Damaged(reason));
    }

    /// Calls `tell` whenever a fault is recorded from now on. Only the first call of this function counts.
    pub fn on_fault(&self, tell: impl Fn() + Send + Sync + 'static) {
        self.inner.health.tell(tell);
    }

    /// Records that a flush failed halfway. Nothing more may be flushed into this opened file, and no snapshot of it
    /// may be published: it may hold more than the last successful flush.
    pub fn record_failed_flush(&self) {
        self.inner.health.record_failed_flush();
    }

    /// Returns whether a flush failed halfway.
    pub fn has_failed_flush(&self) -> bool {
        self.inner.health.has_failed_flush()
    }

    /// Cuts off this opened file, and all of its snapshots, from the disk, so that the file can be opened anew.
    pub fn retire(&self) {
        self.abandon();
        self.inner.health.gate.shut();
    }

    /// Returns whether both are the same opened file.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    fn start(backend: impl StorageBackend, options: IndexOptions) -> Result<Self, IndexError> {
        let health = Arc::new(Health::default());
        let backend = Gated::new(backend, health.gate.clone());
        let database = catch_redb_panic("opening the file", || {
            Builder::new().set_cache_size(options.cache_bytes).create_with_backend(backend).map_err(storage)
        })?;
        Ok(Self {
            inner: Arc::new(OpenFile {
                database: Some(database),
                abandoned: AtomicBool::new(false),
                filters: Arc::new(FilterCache::new(options.filter_bytes)),
                health,
                next_run: AtomicU64::new(0),
                garbage: Mutex::default(),
                merging: Mutex::default(),
            }),
        })
    }

    /// Begins the write transaction. Waits while another one is open.
    ///
    /// # Errors
    ///
    /// The errors of the storage engine.
    pub fn begin_write(&self, commit: Commit) -> Result<IndexWrite, IndexError> {
        let txn = catch_redb_panic("starting a transaction", || {
            let mut txn = self.inner.database()?.begin_write().map_err(storage)?;
            match commit {
                Commit::Visible => txn.set_durability(Durability::None).map_err(storage)?,
                // Reopening after a crash then need not walk the trees.
                Commit::Durable => txn.set_quick_repair(true),
            }
            Ok(txn)
        })?;
        Ok(IndexWrite::new(txn, self.inner.clone()))
    }

    /// Returns a snapshot of the last commit, durable or not. Costs some microseconds.
    ///
    /// # Errors
    ///
    /// [`IndexError::Damaged`] if a table is missing, unknown, or has another number of rows than was committed, or if
    /// a list of runs is missing or damaged; otherwise the errors of the storage engine.
    pub fn snapshot(&self) -> Result<IndexSnapshot, IndexError> {
        self.inner.health.note(self.take_snapshot())
    }

    fn take_snapshot(&self) -> Result<IndexSnapshot, IndexError> {
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
        for (number, name) in numbered_tables() {
            let blocks = take(name)?;
            let key = [number];
            let runs = read(&lists, LISTS, &key, |list| {
                decode_list(list).map_err(|corrupt| IndexError::corrupt(LISTS, corrupt))
            })?;
            let runs = runs.ok_or_else(|| IndexError::damaged(LISTS, "a list of runs is missing"))?;
            run_tables.push(RunTable { blocks, runs: runs.into() });
        }
        let filter_pages = take(FILTERS)?;
        let plain = tables::PLAIN.iter().map(|name| Ok((*name, take(name)?))).collect::<Result<_, _>>()?;
        let filters = self.inner.filters.clone();
        let health = self.inner.health.clone();
        Ok(IndexSnapshot { inner: Arc::new(Snapshot { run_tables, filter_pages, plain, filters, health }) })
    }

    /// Returns the committed tables by name. All of them are known ones.
    fn committed_tables(&self) -> Result<HashMap<&'static str, RawTable>, IndexError> {
        catch_redb_panic("opening a snapshot", || {
            let txn = self.inner.database()?.begin_read().map_err(storage)?;
            let mut tables = HashMap::new();
            for handle in txn.list_tables().map_err(storage)? {
                let name = tables::known(handle.name())
                    .ok_or_else(|| IndexError::damaged(handle.name(), "nobody knows the table"))?;
                tables.insert(name, txn.open_table(definition(name)).map_err(storage)?);
            }
            Ok(tables)
        })
    }

    /// Returns an unused run id.
    pub(super) fn allocate_run(&self) -> u64 {
        self.inner.allocate_run()
    }

    /// Schedules an unlisted run for deletion.
    pub(super) fn discard_run(&self, table: u8, run: u64) {
        self.inner.garbage.lock().push((table, run));
    }

    /// Returns the run to delete next.
    pub(super) fn next_garbage(&self) -> Option<(u8, u64)> {
        self.inner.garbage.lock().last().copied()
    }

    /// Records that an unlisted run was deleted.
    pub(super) fn forget_garbage(&self, table: u8, run: u64) {
        self.inner.garbage.lock().retain(|entry| *entry != (table, run));
    }

    /// Returns the lock that the running merge holds.
    pub(super) fn merging(&self) -> &Mutex<()> {
        &self.inner.merging
    }
}

impl fmt::Debug for IndexFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("IndexFile").finish_non_exhaustive()
    }
}

/// Decodes the row counts, in the order of the tables.
fn decode_counts(bytes: &[u8]) -> Result<Vec<u64>, Corrupt> {
    let mut reader = Reader::new(bytes);
    let mut counts = Vec::new();
    while !reader.is_empty() {
        counts.push(reader.varint()?);
    }
    Ok(counts)
}
