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

use std::sync::Arc;
use std::time::{Duration, Instant};

use ledger_index::{Fault, IndexError, IndexFile};
use ledger_journal::Position;

use super::Engine;
use super::index_events::{IndexEvent, IndexStatus};
use super::retry::Backoff;
use crate::error::OpenError;
use crate::flush::Watermark;
use crate::opening::{IndexHome, Unusable};
use crate::view::View;

/// Between two new indexes there is this many times the time that the last one took: a disk that damages each of them
/// must not keep the processor busy with nothing else.
const REBUILD_SPACING: u32 = 10;
/// How long the thread waits before it looks whether it is to end.
const WAIT: Duration = Duration::from_secs(1);
/// Between two openings of a file passes at least this time, in which reads fail if the disk goes on refusing: what one
/// costs is then little beside it.
const REOPEN_SPACING: Duration = Duration::from_millis(50);

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
                    self.mending.wait(WAIT);
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
