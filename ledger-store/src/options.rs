//! How a store is opened.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ledger_core::Timestamp;
use ledger_core::schema::Enforcement;

/// Tells the time of insertion dates.
///
/// A clock may step back: the dates of a ledger's log do not.
pub trait TimeSource: Send + Sync {
    /// The time now.
    fn now(&self) -> Timestamp;
}

/// The clock of the operating system.
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

/// How a store uses memory, files and time.
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// Bytes that the store may use for its caches, tables and queues; default 512 MiB. It is divided by
    /// fixed shares. Transient buffers of a flush or a merge are within it as long as no single entry is
    /// larger than a few megabytes.
    pub memory_budget: usize,
    /// Tells insertion dates; default the system's clock.
    pub clock: Arc<dyn TimeSource>,
    /// A file of the journal is sealed when it has this many bytes; default 1 GiB. It bounds what is checked
    /// when a store is opened after a crash.
    pub segment_bytes: u64,
    /// The index is flushed at the latest this long after a write; default 30 s. It bounds what is replayed
    /// when a store is opened after a crash.
    pub flush_interval: Duration,
    /// The treatment of commands that break the rules of their ledger's schemas; default [`Enforcement::Audit`].
    pub schema_enforcement: Enforcement,
    /// With fewer bytes free on the disk, writes are turned away as [`WriteError::DiskNearlyFull`](crate::WriteError::DiskNearlyFull);
    /// default a twentieth of the disk, from 4 to 256 MiB. 0 lets the disk fill up: the journal, and an index that
    /// cannot be flushed, then refuse writes until there is room.
    pub free_space_floor: Option<u64>,
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
            .finish_non_exhaustive()
    }
}

/// How the memory budget is divided. The rest is for the caches of reads and for buffers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shares {
    /// Accounts in the writer.
    pub(crate) accounts: usize,
    /// Rows, and keys to find them by, that gather before a flush begins; up to twice as much may be in memory.
    pub(crate) memtable: usize,
    /// Pages of the index.
    pub(crate) index_cache: usize,
    /// Filters of runs. The writer holds those of keys whole within this, and reads cache pages of all within as
    /// much again.
    pub(crate) filters: usize,
    /// The newest chunks of the journal.
    pub(crate) journal_cache: usize,
    /// Commands that wait.
    pub(crate) queue: usize,
    /// Entries that wait to be hashed, or their texts.
    pub(crate) hash_texts: usize,
    /// Addresses that readers looked up.
    pub(crate) addresses: usize,
    /// Compiled scripts.
    pub(crate) scripts: usize,
    /// Schemas that the writer holds, but for one of any size.
    pub(crate) schemas: usize,
}

impl Shares {
    /// The shares of a budget that is so many times smaller.
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
    /// The shares of the budget.
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
