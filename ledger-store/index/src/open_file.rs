//! The open database file of the index. The last owner closes it.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;
use redb::Database;

use super::error::{IndexError, storage};
use super::filter_cache::FilterCache;
use super::health::Health;

/// The open file, with the numbers of its runs.
pub(super) struct OpenFile {
    /// Taken only when the file is closed.
    pub(super) database: Option<Database>,
    /// Closing writes nothing.
    pub(super) abandoned: AtomicBool,
    pub(super) filters: Arc<FilterCache>,
    pub(super) health: Arc<Health>,
    pub(super) next_run: AtomicU64,
    /// Runs that no list names and no merge is writing: (table number, run).
    pub(super) garbage: Mutex<Vec<(u8, u64)>>,
    /// Held by the one merge at work.
    pub(super) merging: Mutex<()>,
}

impl OpenFile {
    /// The database of the storage engine.
    pub(super) fn database(&self) -> Result<&Database, IndexError> {
        self.database.as_ref().ok_or_else(|| storage(redb::StorageError::DatabaseClosed))
    }

    /// A run id that no run has.
    pub(super) fn allocate_run(&self) -> u64 {
        self.next_run.fetch_add(1, Relaxed)
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        let Some(database) = self.database.take() else {
            return;
        };
        // The usual closing would write.
        let abandoned = self.abandoned.load(Relaxed) || self.health.fault().is_some();
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
