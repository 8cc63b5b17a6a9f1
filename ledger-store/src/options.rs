//! Options for opening a store.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ledger_core::Timestamp;
use ledger_core::schema::Enforcement;

use crate::progress::{Progress, ProgressWatcher};

/// The clock for insertion dates.
///
/// It may step back. The store then repeats the last date of a ledger, so the dates in a ledger's log never decrease.
pub trait TimeSource: Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Timestamp;
}

/// A closure that returns the current time, for tests.
///
/// ```
/// use ledger_store::prelude::*;
/// let noon: Timestamp = "2024-05-01T12:00:00Z".parse()?;
/// let store = Store::in_memory_with(&Options::new().clock(move || noon));
/// let paid = store.ledger("main")?.transaction().posting("world", "users:1", 5, "USD").commit()?;
/// assert_eq!(paid.inserted_at, noon);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<F: Fn() -> Timestamp + Send + Sync> TimeSource for F {
    fn now(&self) -> Timestamp {
        self()
    }
}

/// A shared clock, which a test sets while the store reads it.
impl<T: TimeSource + ?Sized> TimeSource for Arc<T> {
    fn now(&self) -> Timestamp {
        T::now(self)
    }
}

/// The clock of the operating system.
///
/// ```
/// use ledger_store::{Options, Store, SystemClock, TimeSource};
/// let before = SystemClock.now();
/// let ledger = Store::in_memory_with(&Options::new().clock(SystemClock)).ledger("main")?;
/// let payment = ledger.transaction().posting("world", "users:1", 5, "USD").commit()?;
/// assert!(before <= payment.inserted_at && payment.inserted_at <= SystemClock.now());
/// # Ok::<(), ledger_store::LedgerError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl TimeSource for SystemClock {
    fn now(&self) -> Timestamp {
        let micros = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_micros()).map_or(i64::MIN, |micros| -micros),
        };
        Timestamp::from_micros(micros)
    }
}

/// How a store uses memory, files and time. Each option has a method that sets it.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = std::env::temp_dir().join(format!("ledger-options-{}", std::process::id()));
/// use ledger_store::prelude::*;
/// use std::time::Duration;
///
/// let options = Options::new().memory_budget(64 << 20).flush_interval(Duration::from_secs(5));
/// let options = options.segment_bytes(256 << 20).free_space_floor(1 << 30);
/// let store = Store::open_with(&directory, &options)?;
/// # drop(store);
/// # std::fs::remove_dir_all(&directory)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// Memory for the store's caches, tables and queues, in bytes. The default is 512 MiB. Each use has a fixed share.
    /// Temporary buffers of a flush or a merge stay within the budget as long as no single entry is larger than a few
    /// megabytes.
    pub memory_budget: usize,
    /// The clock for insertion dates, and for the effective dates of transactions that state none. The default is the
    /// clock of the operating system.
    pub clock: Arc<dyn TimeSource>,
    /// Size in bytes at which a file of the journal is sealed. The default is 1 GiB. Bounds how much is checked when a
    /// store is opened after a crash.
    pub segment_bytes: u64,
    /// Maximum time between a write and its flush to the index. The default is 30 s. Bounds how much is replayed when
    /// a store is opened after a crash.
    pub flush_interval: Duration,
    /// How to treat commands that break the rules of their ledger's schemas. The default is [`Enforcement::Audit`].
    pub schema_enforcement: Enforcement,
    /// Minimum free space on the disk, in bytes. With less, writes are refused as
    /// [`WriteError::DiskNearlyFull`](crate::WriteError::DiskNearlyFull). The default is a twentieth of the disk, but
    /// at least 4 and at most 256 MiB. With 0 the disk may fill up; writes are then refused once the journal cannot
    /// grow, or memory is full because the index cannot be flushed.
    pub free_space_floor: Option<u64>,
    /// Receives the progress of recoveries, rebuilds of the index, verifications and backups. The default is no watcher.
    pub progress: ProgressWatcher,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            memory_budget: 512 << 20,
            clock: Arc::new(SystemClock),
            segment_bytes: 1 << 30,
            flush_interval: Duration::from_secs(30),
            schema_enforcement: Enforcement::default(),
            free_space_floor: None,
            progress: ProgressWatcher::default(),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("memory_budget", &self.memory_budget)
            .field("segment_bytes", &self.segment_bytes)
            .field("flush_interval", &self.flush_interval)
            .field("schema_enforcement", &self.schema_enforcement)
            .field("free_space_floor", &self.free_space_floor)
            .field("progress", &self.progress)
            .finish_non_exhaustive()
    }
}

/// The parts of the memory budget, in bytes. The remainder is for the caches of reads and for buffers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shares {
    /// The writer's table of accounts.
    pub(crate) accounts: usize,
    /// Unflushed rows and recent keys. A flush begins when they fill the share. Up to twice the share may be in memory
    /// while a flush is running.
    pub(crate) memtable: usize,
    /// The page cache of the index.
    pub(crate) index_cache: usize,
    /// Filters, which tell whether a run of the index may contain a key. Counts twice: once for the writer's filters,
    /// which stay in memory, and once for the readers' cache of filter pages.
    pub(crate) filters: usize,
    /// The newest chunks of the journal.
    pub(crate) journal_cache: usize,
    /// Queued commands.
    pub(crate) queue: usize,
    /// Entries, as requests or as canonical texts, that wait for the hashing thread.
    pub(crate) hash_texts: usize,
    /// The cache of account addresses for readers.
    pub(crate) addresses: usize,
    /// Compiled scripts.
    pub(crate) scripts: usize,
    /// The writer's cache of schemas. It may exceed its share by one schema of any size.
    pub(crate) schemas: usize,
}

impl Shares {
    /// Returns shares for work beside the open store, such as a verification: these shares divided by `by`, except that
    /// the journal cache keeps its size.
    pub(crate) fn divided(self, by: usize) -> Self {
        Self {
            accounts: self.accounts / by,
            memtable: self.memtable / by,
            index_cache: self.index_cache / by,
            filters: self.filters / by,
            journal_cache: self.journal_cache,
            queue: self.queue / by,
            hash_texts: self.hash_texts / by,
            addresses: self.addresses / by,
            scripts: self.scripts / by,
            schemas: self.schemas / by,
        }
    }
}

impl Options {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`Options::memory_budget`].
    #[must_use]
    pub fn memory_budget(self, bytes: usize) -> Self {
        Self { memory_budget: bytes, ..self }
    }

    /// Sets [`Options::clock`]. A test can pass a closure.
    #[must_use]
    pub fn clock(self, clock: impl TimeSource + 'static) -> Self {
        Self { clock: Arc::new(clock), ..self }
    }

    /// Sets [`Options::segment_bytes`].
    #[must_use]
    pub fn segment_bytes(self, bytes: u64) -> Self {
        Self { segment_bytes: bytes, ..self }
    }

    /// Sets [`Options::flush_interval`].
    #[must_use]
    pub fn flush_interval(self, interval: Duration) -> Self {
        Self { flush_interval: interval, ..self }
    }

    /// Sets [`Options::schema_enforcement`].
    #[must_use]
    pub fn schema_enforcement(self, enforcement: Enforcement) -> Self {
        Self { schema_enforcement: enforcement, ..self }
    }

    /// Sets [`Options::free_space_floor`].
    #[must_use]
    pub fn free_space_floor(self, bytes: u64) -> Self {
        Self { free_space_floor: Some(bytes), ..self }
    }

    /// Sets [`Options::progress`].
    #[must_use]
    pub fn progress(self, watcher: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        Self { progress: ProgressWatcher::new(watcher), ..self }
    }

    /// Divides the memory budget.
    pub(crate) fn shares(&self) -> Shares {
        let part = |percent: usize| self.memory_budget / 100 * percent;
        Shares {
            accounts: part(31),
            memtable: part(7),
            index_cache: part(6),
            filters: part(8),
            journal_cache: part(1).clamp(1 << 20, 16 << 20),
            queue: part(4),
            hash_texts: part(3),
            addresses: part(2),
            scripts: part(2),
            schemas: part(1),
        }
    }
}
