//! The open database file of the index. The last owner closes it.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;
use redb::Database;

use super::error::{IndexError, storage};
use super::filter_cache::FilterCache;
use super::health::Health;

/// The open file and the state of its runs.
pub(super) struct OpenFile {
    /// Only taken when the file is closed.
    pub(super) database: Option<Database>,
    /// True if closing the file must not write to it.
    pub(super) abandoned: AtomicBool,
    pub(super) filters: Arc<FilterCache>,
    pub(super) health: Arc<Health>,
    pub(super) next_run: AtomicU64,
    /// Runs that no list refers to and no merge is writing: table number and run id.
    pub(super) garbage: Mutex<Vec<(u8, u64)>>,
    /// Held by the running merge.
    pub(super) merging: Mutex<()>,
}

impl OpenFile {
    /// Returns the redb database.
    pub(super) fn database(&self) -> Result<&Database, IndexError> {
        self.database.as_ref().ok_or_else(|| storage(redb::StorageError::DatabaseClosed))
    }

    /// Returns an unused run id.
    pub(super) fn allocate_run(&self) -> u64 {
        self.next_run.fetch_add(1, Relaxed)
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        let Some(database) = self.database.take() else {
            return;
        };
        // A normal close would write to the file.
        let abandoned = self.abandoned.load(Relaxed) || self.health.fault().is_some();
        // Ignore the result: reopening the file finds out the same.
        let _ = catch_unwind(AssertUnwindSafe(move || {
            let _database = database;
            if abandoned {
                // redb writes nothing when a thread drops it while unwinding.
                resume_unwind(Box::new(()));
            }
        }));
    }
}
