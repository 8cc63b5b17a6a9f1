//! The repair of an index file that fails while the store runs.
//!
//! The journal is the truth, so no failure of the index ends the writing:
//!
//! | What was met | What happens |
//! |---|---|
//! | the disk refused a read or a write | the same file is opened anew: the storage engine refuses everything until then |
//! | a sync failed | the file loses its name, since nobody knows what the disk has of it, and a new one is built |
//! | damage | a new one is built; the old one keeps its name until then, and is kept as damaged |
//!
//! A new index is built by one thread, beside the store: reads of good parts go on, and so do flushes into the old file
//! unless it was a flush that failed. It is brought to where the last flush ended, takes the name, and becomes part of
//! the view in one step, under the lock that every flush holds: then the two hold the same entries, and the memtables
//! that wait for a flush stay what they are. The writer takes it over before its next batch ([`View::generation`]).
//!
//! Until the new file has its name the old one has it, or none has. So whenever the process ends, the next opening
//! finds an index of this history, or builds one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ledger_index::{Fault, IndexError, IndexFile, IndexSnapshot};
use ledger_journal::Position;
use parking_lot::{Condvar, Mutex};

use super::Engine;
use super::retry::Backoff;
use crate::error::OpenError;
use crate::flush::Watermark;
use crate::opening::{IndexHome, Unusable};
use crate::view::View;

/// Between two new indexes there is this many times the time that the last one took: a disk that damages each of them
/// must not keep the processor busy with nothing else.
const REBUILD_SPACING: u32 = 10;
/// The most events that are kept for who has not asked for them yet.
const EVENTS_KEPT: usize = 32;
/// How long the thread waits before it looks whether it is to end.
const WAIT: Duration = Duration::from_secs(1);
/// Between two openings of a file passes at least this time, in which reads fail if the disk goes on refusing: what one
/// costs is then little beside it.
const REOPEN_SPACING: Duration = Duration::from_millis(50);

/// An event of the index of an open store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IndexEvent {
    /// A new index is being built beside the one in use. Reads that meet damage fail until it is done.
    Rebuilding {
        /// The defect of the one in use.
        reason: String,
    },
    /// A new index has taken the place of the old one.
    Rebuilt {
        /// The defect of the old one.
        reason: String,
        /// How long it took to build.
        took: Duration,
    },
    /// No new index could be built. It is tried again.
    RebuildFailed {
        /// The failure.
        reason: String,
    },
    /// The disk refused an access to the index. It is tried again.
    Unavailable {
        /// The refused access.
        reason: String,
    },
    /// The index can be written again.
    Available,
}

/// How the index of an open store stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexStatus {
    /// Why a new one is being built, if so.
    pub rebuilding: Option<String>,
    /// Why others were built since the store was opened, oldest first; the last ones, if there were many.
    pub rebuilt: Vec<String>,
    /// Why the index cannot be written, if so. Writes go on until memory is full, and then wait to be tried again.
    pub unavailable: Option<String>,
}

type Watcher = Box<dyn Fn(&IndexEvent) + Send>;

/// The state shared by the threads that notice a fault and the thread that mends it.
#[derive(Default)]
pub(crate) struct Mending {
    wanted: Mutex<bool>,
    told: Condvar,
    report: Mutex<Report>,
}

#[derive(Default)]
struct Report {
    status: IndexStatus,
    events: VecDeque<IndexEvent>,
    watcher: Option<Watcher>,
}

impl Mending {
    /// Has the thread look at the index.
    pub(crate) fn want(&self) {
        *self.wanted.lock() = true;
        self.told.notify_all();
    }

    fn wait(&self) {
        let mut wanted = self.wanted.lock();
        if !*wanted {
            self.told.wait_for(&mut wanted, WAIT);
        }
        *wanted = false;
    }

    fn status(&self) -> IndexStatus {
        self.report.lock().status.clone()
    }

    /// Calls `watcher` for each event, those of before first.
    pub(crate) fn watch(&self, watcher: impl Fn(&IndexEvent) + Send + 'static) {
        let mut report = self.report.lock();
        for event in report.events.drain(..) {
            watcher(&event);
        }
        report.watcher = Some(Box::new(watcher));
    }

    fn tell(&self, event: IndexEvent) {
        let mut report = self.report.lock();
        let status = &mut report.status;
        match &event {
            IndexEvent::Rebuilding { reason } => status.rebuilding = Some(reason.clone()),
            IndexEvent::Rebuilt { reason, .. } => {
                status.rebuilding = None;
                status.unavailable = None;
                if status.rebuilt.len() == EVENTS_KEPT {
                    status.rebuilt.remove(0);
                }
                status.rebuilt.push(reason.clone());
            }
            IndexEvent::RebuildFailed { .. } => status.rebuilding = None,
            IndexEvent::Unavailable { reason } => status.unavailable = Some(reason.clone()),
            IndexEvent::Available => status.unavailable = None,
        }
        if let Some(watcher) = &report.watcher {
            watcher(&event);
        } else {
            if report.events.len() == EVENTS_KEPT {
                report.events.pop_front();
            }
            report.events.push_back(event);
        }
    }

    /// Notes that the index cannot be written, unless that is known.
    pub(super) fn note_unavailable(&self, reason: &str) {
        if self.report.lock().status.unavailable.is_none() {
            self.tell(IndexEvent::Unavailable { reason: reason.to_owned() });
        }
    }

    /// Notes that the index can be written.
    pub(super) fn note_available(&self) {
        if self.report.lock().status.unavailable.is_some() {
            self.tell(IndexEvent::Available);
        }
    }
}

/// Why a file was not opened anew.
enum Unopened {
    /// The disk refuses still.
    Refused(String),
    /// It is damaged.
    Damaged(String),
}

impl From<IndexError> for Unopened {
    fn from(error: IndexError) -> Self {
        if error.is_of_the_disk() {
            Self::Refused(error.to_string())
        } else {
            Self::Damaged(error.to_string())
        }
    }
}

impl From<Unusable> for Unopened {
    fn from(unusable: Unusable) -> Self {
        match unusable {
            Unusable::Refused(error) => Self::Refused(error.to_string()),
            Unusable::Damaged(reason) => Self::Damaged(reason),
            Unusable::Other(reason) => Self::Damaged(reason.to_owned()),
        }
    }
}

impl Engine {
    /// The index as it is written now.
    pub(crate) fn index(&self) -> IndexFile {
        self.index.read().clone()
    }

    /// How the index stands, also where the thread that mends it has not looked yet.
    pub(crate) fn index_status(&self) -> IndexStatus {
        let mut status = self.mending.status();
        if status.unavailable.is_none()
            && let Some(Fault::Refused { reason, .. }) = self.index().fault()
        {
            status.unavailable = Some(reason);
        }
        status
    }

    /// Runs the thread that mends the index until it is stopped.
    pub(crate) fn mend_loop(&self) {
        let Some(home) = &self.home else { return };
        let mut failures = Backoff::new();
        let (mut not_opened_before, mut not_built_before) = (Instant::now(), Instant::now());
        while !self.is_stopping() && self.stopped().is_none() {
            let mended = match self.index().fault() {
                None => {
                    self.mending.wait();
                    continue;
                }
                Some(fault @ Fault::Refused { .. }) => {
                    self.mending.note_unavailable(&fault.to_string());
                    if !self.pause(not_opened_before.saturating_duration_since(Instant::now())) {
                        return;
                    }
                    not_opened_before = Instant::now() + REOPEN_SPACING;
                    self.reopen(home)
                }
                Some(fault) => {
                    if !self.pause(not_built_before.saturating_duration_since(Instant::now())) {
                        return;
                    }
                    let begun = Instant::now();
                    let replaced = self.replace(home, &fault);
                    not_built_before = Instant::now() + begun.elapsed() * REBUILD_SPACING;
                    replaced
                }
            };
            match mended {
                Ok(()) => failures.reset(),
                Err(()) if self.pause(failures.after_failure()) => {}
                Err(()) => return,
            }
        }
    }

    /// Opens the file anew after the disk refused an access to it.
    fn reopen(&self, home: &IndexHome) -> Result<(), ()> {
        // No flush is under way, and none begins.
        let _installing = self.install.lock();
        let old = self.index();
        // Before another has it open: what is written through this one would spoil it.
        old.retire();
        let opened = home.open().map_err(Unopened::from).and_then(|index| {
            let found = self.view_of(&index).inspect_err(|_| index.abandon())?;
            Ok((index, found))
        });
        match opened {
            Ok((index, view)) => {
                self.install_file(index, &view);
                self.wake_after_mending();
                if self.flushes.lock().failing.is_none() {
                    self.mending.note_available();
                }
                Ok(())
            }
            Err(Unopened::Refused(reason)) => {
                self.mending.note_unavailable(&reason);
                Err(())
            }
            Err(Unopened::Damaged(reason)) => {
                // The one that is retired is still the index: it must be replaced.
                old.condemn(reason);
                Ok(())
            }
        }
    }

    /// The view with a file that was opened anew, if that holds what the view says, or a flush more.
    ///
    /// A flush whose commit failed may be in it all the same: then its memtables are let go of here.
    fn view_of(&self, index: &IndexFile) -> Result<View, Unopened> {
        let snapshot = index.snapshot()?;
        let next = Watermark::read(&snapshot)?.map_or(Position::FIRST, |watermark| watermark.next);
        let mut view = View::clone(&self.view());
        if next == view.indexed {
            view.index = snapshot;
            return Ok(view);
        }
        let flushes = self.flushes.lock();
        let request = flushes.requests.front().filter(|request| request.through == next);
        let flush = request.map(|request| request.flush);
        drop(flushes);
        let Some(flush) = flush else {
            let reason = format!("the index holds entries before {next}, not before {}", view.indexed);
            return Err(Unopened::Damaged(reason));
        };
        view.take_flush(snapshot, flush, next);
        Ok(view)
    }

    /// Makes a file the index. The caller holds the lock of those who install.
    fn install_file(&self, index: IndexFile, view: &View) {
        let mending = self.mending.clone();
        index.tell_faults(move || mending.want());
        let mut current = self.index.write();
        let mut slot = self.view.write();
        // Entries may have been published since.
        let mut now = View::clone(&slot);
        now.take_file(view);
        *slot = Arc::new(now);
        *current = index;
    }

    fn wake_after_mending(&self) {
        self.flushes.lock().retry_now = true;
        self.flush_wanted.notify_all();
        self.want_merges();
    }

    /// Builds a new index, and puts it in the place of one that is no good.
    fn replace(&self, home: &IndexHome, fault: &Fault) -> Result<(), ()> {
        let reason = fault.to_string();
        self.mending.tell(IndexEvent::Rebuilding { reason: reason.clone() });
        let begun = Instant::now();
        match self.build_and_swap(home, fault) {
            Ok(()) => {
                self.wake_after_mending();
                self.mending.tell(IndexEvent::Rebuilt { reason, took: begun.elapsed() });
                Ok(())
            }
            Err(error) => {
                self.mending.tell(IndexEvent::RebuildFailed { reason: error.to_string() });
                Err(())
            }
        }
    }

    fn build_and_swap(&self, home: &IndexHome, fault: &Fault) -> Result<(), OpenError> {
        // Removing sections from the journal would disturb it, and a verification would compare with what is replaced.
        let _journal = loop {
            if let Some(lock) = self.journal_lock.try_lock_for(WAIT) {
                break lock;
            }
            self.go_on()?;
        };
        if matches!(fault, Fault::Unsynced(_)) {
            // An opening would trust what the page cache shows of it.
            home.set_aside()?;
            home.sync_names()?;
        }
        let index = home.create()?;
        let swapped = self.build(&index).and_then(|(installing, snapshot)| {
            home.set_aside()?;
            home.put_in_place().inspect_err(|_| {
                if matches!(fault, Fault::Damaged(_)) {
                    home.put_back();
                }
            })?;
            // After a power cut either name may be there: both are indexes of this history.
            let _ = home.sync_names();
            let mut view = View::clone(&self.view());
            view.index = snapshot;
            self.install_file(index.clone(), &view);
            self.hashes.restore();
            drop(installing);
            Ok(())
        });
        swapped.inspect_err(|_| {
            index.abandon();
            let _ = home.discard_new();
        })
    }

    /// The part of a new index that was built must still be wanted.
    pub(super) fn go_on(&self) -> Result<(), OpenError> {
        if self.is_stopping() || self.stopped().is_some() {
            return Err(OpenError::Io { reason: "the store is closing".to_owned() });
        }
        Ok(())
    }
}

impl View {
    /// Takes the index after a flush, whose memtables are in it.
    pub(super) fn take_flush(&mut self, index: IndexSnapshot, flush: u64, next: Position) {
        self.index = index;
        self.flushed = flush;
        self.indexed = next;
        self.pieces.retain(|piece| piece.flush > flush);
    }

    /// Takes the index of another view, which is another file.
    fn take_file(&mut self, other: &Self) {
        self.take_flush(other.index.clone(), other.flushed, other.indexed);
        self.generation += 1;
    }
}
