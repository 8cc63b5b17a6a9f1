//! The parts of an open store that its threads share.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use ledger_index::IndexFile;
use ledger_journal::{Identity, Journal, JournalReader};
use parking_lot::{Condvar, Mutex, RwLock};

use super::flush_requests::Flushes;
use super::handover::Handover;
use super::index_events::Mending;
use super::queue::Queue;
use crate::error::ReadError;
use crate::fingerprint::Fingerprints;
use crate::hashes::Hashes;
use crate::opening::IndexHome;
use crate::options::{Options, Shares, TimeSource};
use crate::progress::ProgressWatcher;
use crate::read::{LedgerReader, Session};
use crate::recovery::Recovered;
use crate::room::Room;
use crate::scripts::Scripts;
use crate::view::{Directory, View};
use crate::watch::Watchers;
#[cfg(any(test, feature = "testing"))]
use crate::writer::Miscount;
use crate::writer::State;

/// Everything behind a store.
pub(crate) struct Engine {
    pub(crate) journal: Arc<dyn Journal>,
    pub(super) index: RwLock<IndexFile>,
    pub(crate) identity: Identity,
    pub(crate) fingerprints: Fingerprints,
    pub(crate) clock: Arc<dyn TimeSource>,
    /// The numbers of ledgers by name, which the writer fills.
    pub(crate) directory: Directory,
    pub(crate) shares: Shares,
    pub(crate) progress: ProgressWatcher,
    pub(super) flush_interval: Duration,
    pub(super) view: RwLock<Arc<View>>,
    pub(super) decider: Mutex<State>,
    pub(super) committer: Arc<Mutex<()>>,
    pub(super) handover: Handover,
    pub(super) queue: Queue,
    /// Held while a snapshot of the index becomes part of the view, so that none replaces a newer one.
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
    /// Told when `stopped` is set, and when the threads are to end.
    pub(super) stop_told: Condvar,
    pub(crate) scripts: Scripts,
    pub(crate) hashes: Arc<Hashes>,
    pub(crate) commits: AtomicU64,
    pub(crate) watchers: Arc<Watchers>,
    /// `None` without a disk.
    pub(super) disk_room: Option<Room>,
    /// Where the index is, so that it can be opened anew and replaced; `None` without a disk.
    pub(super) home: Option<IndexHome>,
    pub(crate) mending: Arc<Mending>,
    /// Held by those who need the journal to stay whole, as it does but for the removal of sections: the one
    /// verification at work, who removes sections, and who builds a new index.
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
            directory: state.directory.clone(),
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
            disk_room: None,
            home: None,
            mending: Arc::default(),
            journal_lock: Mutex::new(()),
        }
    }

    /// The same on a disk: with an eye on the room there, and with an index that is mended there.
    pub(crate) fn on_disk(self, room: Room, home: IndexHome) -> Self {
        let mending = self.mending.clone();
        self.index().tell_faults(move || mending.want());
        Self { disk_room: Some(room), home: Some(home), ..self }
    }

    /// The journal, for those who only read it.
    pub(crate) fn reader(&self) -> Arc<dyn JournalReader> {
        self.journal.clone()
    }

    /// The view that is acknowledged now.
    pub(crate) fn view(&self) -> Arc<View> {
        self.view.read().clone()
    }

    /// Why no more is written, if so.
    pub(crate) fn stopped(&self) -> Option<String> {
        self.stopped.lock().clone()
    }

    /// Whether the threads behind the writer are to end, or have ended.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    pub(crate) fn stop_writing(&self, reason: &str) {
        self.stopped.lock().get_or_insert_with(|| reason.to_owned());
        self.stop_told.notify_all();
    }

    /// Waits until no more is written: why, or `None` if that is since the store is closing.
    pub(crate) fn wait_until_stopped(&self) -> Option<String> {
        let mut stopped = self.stopped.lock();
        while stopped.is_none() && !self.is_stopping() {
            self.stop_told.wait(&mut stopped);
        }
        stopped.clone()
    }

    /// The sections of the journal all of whose ledgers are removed.
    pub(crate) fn removed_sections(&self) -> BTreeSet<u32> {
        self.decider.lock().removed_sections()
    }

    /// Fails one of the next reads on which the writer decides, counted from 1; none for 0. Says whether the one that
    /// was to fail before is still to come.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn fail_decision_read(&self, nth: u64) -> bool {
        self.decider.lock().fail_read.replace(nth) > 0
    }

    /// Compares the writer's counts of bytes with what it holds.
    ///
    /// # Errors
    ///
    /// The difference.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn check_bytes(&self) -> Result<(), Miscount> {
        self.decider.lock().check_bytes()
    }

    /// Takes no more work.
    pub(crate) fn close_queue(&self) {
        self.queue.close();
    }

    /// Ends the flusher, after what it was asked for, and the merger.
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
        self.mending.want();
    }

    /// The reader for questions about a ledger at a moment.
    pub(super) fn session(&self, ledger: u32, view: &Arc<View>) -> Result<Session, ReadError> {
        let reader = LedgerReader::new(self.journal.clone(), view.clone(), ledger);
        let head = reader.head()?.clone();
        Ok(Session::new(reader, head, self.fingerprints.clone(), self.hashes.clone()))
    }
}
