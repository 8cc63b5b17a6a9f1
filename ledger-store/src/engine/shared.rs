//! The state that the threads of an open store share.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use ledger_index::{Fault, IndexFile};
use ledger_journal::{Identity, Journal, JournalReader};
use parking_lot::{Condvar, Mutex, RwLock};

use super::flush_requests::Flushes;
use super::handover::Handover;
use super::index_events::{IndexStatus, RepairState};
use super::queue::Queue;
use crate::commit_watch::Watchers;
use crate::error::ReadError;
use crate::fingerprint::Fingerprints;
use crate::free_space::FreeSpace;
use crate::hashes::Hashes;
use crate::opening::IndexHome;
use crate::options::{Options, Shares, TimeSource};
use crate::progress::ProgressWatcher;
use crate::read::{LedgerReader, Session};
use crate::recovery::Recovered;
use crate::scripts::Scripts;
use crate::view::{Directory, View};
#[cfg(any(test, feature = "testing"))]
use crate::writer::Miscount;
use crate::writer::State;

/// Everything behind an open store.
pub(crate) struct Engine {
    pub(crate) journal: Arc<dyn Journal>,
    pub(super) index: RwLock<IndexFile>,
    pub(crate) identity: Identity,
    pub(crate) fingerprints: Fingerprints,
    pub(crate) clock: Arc<dyn TimeSource>,
    /// Maps ledger names to numbers. The writer fills it.
    pub(crate) directory: Directory,
    pub(crate) shares: Shares,
    pub(crate) progress: ProgressWatcher,
    pub(super) flush_interval: Duration,
    pub(super) view: RwLock<Arc<View>>,
    pub(super) decider: Mutex<State>,
    pub(super) committer: Arc<Mutex<()>>,
    pub(super) handover: Handover,
    pub(super) queue: Queue,
    /// Held while a snapshot of the index is published, so that no snapshot replaces a newer one.
    pub(super) install: Mutex<()>,
    pub(super) flushes: Mutex<Flushes>,
    pub(super) flush_wanted: Condvar,
    pub(super) flush_done: Condvar,
    pub(super) merge_wanted: Condvar,
    pub(super) merge_lock: Mutex<bool>,
    pub(super) space_wanted: Condvar,
    pub(super) space_lock: Mutex<()>,
    pub(super) stopping: Arc<AtomicBool>,
    pub(super) stopped: Mutex<Option<String>>,
    /// Notified when `stopped` is set and when the threads must end.
    pub(super) stop_told: Condvar,
    pub(crate) scripts: Scripts,
    pub(crate) hashes: Arc<Hashes>,
    pub(crate) commits: AtomicU64,
    pub(crate) watchers: Arc<Watchers>,
    /// Watches the free space of the disk. `None` for a store in memory.
    pub(super) free_space: Option<FreeSpace>,
    /// The directory of the index, for reopening and replacing it. `None` for a store in memory.
    pub(super) home: Option<IndexHome>,
    pub(crate) repair: Arc<RepairState>,
    /// Held by work during which no section may be removed from the journal: a verification, a removal, and the
    /// building of a new index. At most one of them runs at a time.
    pub(crate) journal_lock: Mutex<()>,
}

impl Engine {
    pub(crate) fn new(
        journal: Arc<dyn Journal>,
        index: IndexFile,
        identity: Identity,
        options: &Options,
        recovered: Recovered,
    ) -> Self {
        let Recovered { mut state, view, hashed, .. } = recovered;
        state.enforcement = options.schema_enforcement;
        let hashes = Arc::new(Hashes::new(hashed, options.shares().hash_texts));
        Self {
            journal,
            index: RwLock::new(index),
            fingerprints: Fingerprints::new(&identity.secret),
            identity,
            clock: options.clock.clone(),
            directory: state.ledgers.directory().clone(),
            shares: options.shares(),
            progress: options.progress.clone(),
            flush_interval: options.flush_interval,
            view: RwLock::new(Arc::new(view)),
            decider: Mutex::new(state),
            committer: Arc::default(),
            handover: Handover::default(),
            queue: Queue::new(options.shares().queue),
            install: Mutex::new(()),
            flushes: Mutex::default(),
            flush_wanted: Condvar::new(),
            flush_done: Condvar::new(),
            merge_wanted: Condvar::new(),
            merge_lock: Mutex::new(false),
            space_wanted: Condvar::new(),
            space_lock: Mutex::new(()),
            stopping: Arc::default(),
            stopped: Mutex::new(None),
            stop_told: Condvar::new(),
            scripts: Scripts::new(options.shares().scripts),
            hashes,
            commits: AtomicU64::new(0),
            watchers: Arc::default(),
            free_space: None,
            home: None,
            repair: Arc::default(),
            journal_lock: Mutex::new(()),
        }
    }

    /// Adds what an engine on a disk needs: the watch on free space, and the repair of the index.
    pub(crate) fn on_disk(self, free_space: FreeSpace, home: IndexHome) -> Self {
        let repair = self.repair.clone();
        self.index().on_fault(move || repair.request_check());
        Self { free_space: Some(free_space), home: Some(home), ..self }
    }

    /// Returns the journal for reading only.
    pub(crate) fn reader(&self) -> Arc<dyn JournalReader> {
        self.journal.clone()
    }

    /// Returns the current published view.
    pub(crate) fn view(&self) -> Arc<View> {
        self.view.read().clone()
    }

    /// Returns the index file that flushes currently write to.
    pub(crate) fn index(&self) -> IndexFile {
        self.index.read().clone()
    }

    /// Returns the health of the index, including a fault that the repair thread has not examined yet.
    pub(crate) fn index_status(&self) -> IndexStatus {
        let mut status = self.repair.status();
        if status.unavailable.is_none()
            && let Some(Fault::Refused { reason, .. }) = self.index().fault()
        {
            status.unavailable = Some(reason);
        }
        status
    }

    /// Returns why the store has stopped writing, if it has.
    pub(crate) fn stopped(&self) -> Option<String> {
        self.stopped.lock().clone()
    }

    /// Returns whether the background threads must end or have ended.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    pub(crate) fn stop_writing(&self, reason: &str) {
        self.stopped.lock().get_or_insert_with(|| reason.to_owned());
        self.stop_told.notify_all();
    }

    /// Waits until the store stops writing, and returns the reason. Returns `None` if the store is closing.
    pub(crate) fn wait_until_stopped(&self) -> Option<String> {
        let mut stopped = self.stopped.lock();
        while stopped.is_none() && !self.is_stopping() {
            self.stop_told.wait(&mut stopped);
        }
        stopped.clone()
    }

    /// Returns the sections of the journal of which every ledger is removed.
    pub(crate) fn removed_sections(&self) -> BTreeSet<u32> {
        self.decider.lock().ledgers.removed_sections()
    }

    /// Makes the `nth` of the writer's next reads fail, counted from 1. 0 cancels it. Returns whether an earlier
    /// request of this kind was still pending.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn fail_decision_read(&self, nth: u64) -> bool {
        self.decider.lock().fail_read.replace(nth) > 0
    }

    /// Compares the writer's byte counters with the data that it holds.
    ///
    /// # Errors
    ///
    /// The counter that differs.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn check_bytes(&self) -> Result<(), Miscount> {
        self.decider.lock().check_bytes()
    }

    /// Closes the queue: it accepts no more work.
    pub(crate) fn close_queue(&self) {
        self.queue.close();
    }

    /// Stops handing batches over to the committer.
    pub(crate) fn close_handover(&self) {
        self.handover.close();
    }

    /// Stops the flusher, once it has handled all requests, and the merger.
    pub(crate) fn stop_background(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        drop(self.stopped.lock());
        self.stop_told.notify_all();
        self.flushes.lock().stop = true;
        self.flush_wanted.notify_all();
        drop(self.merge_lock.lock());
        self.merge_wanted.notify_all();
        drop(self.space_lock.lock());
        self.space_wanted.notify_all();
        self.hashes.feed.wake();
        self.repair.request_check();
    }

    /// Marks flushing as ended for good, and wakes the threads that wait for a flush.
    pub(super) fn fail_flushes(&self) {
        self.flushes.lock().failed = true;
        self.flush_done.notify_all();
    }

    /// Returns a session that reads one ledger in a view.
    pub(super) fn session(&self, ledger: u32, view: &Arc<View>) -> Result<Session, ReadError> {
        let reader = LedgerReader::new(self.journal.clone(), view.clone(), ledger);
        let head = reader.head()?.clone();
        Ok(Session::new(reader, head, self.fingerprints.clone(), self.hashes.clone()))
    }
}
