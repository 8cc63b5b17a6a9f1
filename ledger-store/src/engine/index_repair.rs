//! The repair of an index file that fails while the store runs.
//!
//! The journal is the truth, so no failure of the index ends the writing:
//!
//! | Fault | Repair |
//! |---|---|
//! | the disk refused a read or a write | the file is reopened, since the storage engine refuses all accesses until then |
//! | a sync failed | the file loses its name, since its content on disk is unknown, and a new index is built |
//! | damage | a new index is built; the old file keeps its name until then, and is then kept as the damaged one |
//!
//! One thread builds the new index beside the running store. Reads of intact parts go on, and so do flushes into the
//! old file, unless a failed flush was the fault. The thread fills the new index up to the position of the last flush,
//! gives it the name of the index, and publishes it in one step, under the lock that every flush holds. Both files
//! then hold the same entries, so the memtables that wait for a flush remain valid. The writer adopts the new file
//! before its next batch ([`View::generation`]).
//!
//! Until the new file takes over the name, either the old file has it or no file does. So whenever the process ends,
//! the next opening finds an index of this history, or builds one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ledger_index::{Fault, IndexError, IndexFile};
use ledger_journal::Position;

use super::Engine;
use super::index_events::IndexEvent;
use super::retry::Backoff;
use super::{background, rebuild, retry};
use crate::error::OpenError;
use crate::flush::Watermark;
use crate::opening::{IndexHome, Unusable};
use crate::view::View;

/// Minimum time between two rebuilds, as a multiple of the time that the last one took. A disk that damages every
/// index must not keep the processor busy with rebuilding.
const REBUILD_SPACING: u32 = 10;
/// Maximum time to wait before checking whether the thread must end.
const WAIT: Duration = Duration::from_secs(1);
/// Minimum time between two reopenings of the file. Reads fail in between if the disk keeps refusing. The interval is
/// long compared to the cost of reopening.
const REOPEN_SPACING: Duration = Duration::from_millis(50);

/// The reason why a file could not be reopened.
enum ReopenError {
    /// The disk still refuses access.
    Refused(String),
    /// The file is damaged.
    Damaged(String),
}

impl From<IndexError> for ReopenError {
    fn from(error: IndexError) -> Self {
        if error.is_of_the_disk() {
            Self::Refused(error.to_string())
        } else {
            Self::Damaged(error.to_string())
        }
    }
}

impl From<Unusable> for ReopenError {
    fn from(unusable: Unusable) -> Self {
        match unusable {
            Unusable::Refused(error) => Self::Refused(error.to_string()),
            Unusable::Damaged(reason) => Self::Damaged(reason),
            Unusable::Other(reason) => Self::Damaged(reason.to_owned()),
        }
    }
}

/// Runs the thread that repairs the index, until it is stopped.
pub(crate) fn repair_loop(engine: &Engine) {
    let Some(home) = &engine.home else { return };
    let mut failures = Backoff::new();
    let (mut not_opened_before, mut not_built_before) = (Instant::now(), Instant::now());
    while !engine.is_stopping() && engine.stopped().is_none() {
        let mended = match engine.index().fault() {
            None => {
                engine.repair.wait(WAIT);
                continue;
            }
            Some(fault @ Fault::Refused { .. }) => {
                engine.repair.note_unavailable(&fault.to_string());
                if !retry::pause(engine, not_opened_before.saturating_duration_since(Instant::now())) {
                    return;
                }
                not_opened_before = Instant::now() + REOPEN_SPACING;
                reopen(engine, home)
            }
            Some(fault) => {
                if !retry::pause(engine, not_built_before.saturating_duration_since(Instant::now())) {
                    return;
                }
                let begun = Instant::now();
                let replaced = replace(engine, home, &fault);
                not_built_before = Instant::now() + begun.elapsed() * REBUILD_SPACING;
                replaced
            }
        };
        match mended {
            Ok(()) => failures.reset(),
            Err(()) if retry::pause(engine, failures.after_failure()) => {}
            Err(()) => return,
        }
    }
}

/// Reopens the index file after the disk refused an access to it.
fn reopen(engine: &Engine, home: &IndexHome) -> Result<(), ()> {
    // Excludes flushes.
    let _installing = engine.install.lock();
    let old = engine.index();
    // Retire the old handle before the file is opened again: a write through it would corrupt the file.
    old.retire();
    let opened = home.open().map_err(ReopenError::from).and_then(|index| {
        let found = view_of(engine, &index).inspect_err(|_| index.abandon())?;
        Ok((index, found))
    });
    match opened {
        Ok((index, view)) => {
            install_file(engine, index, &view);
            wake_after_repair(engine);
            if engine.flushes.lock().failing.is_none() {
                engine.repair.note_available();
            }
            Ok(())
        }
        Err(ReopenError::Refused(reason)) => {
            engine.repair.note_unavailable(&reason);
            Err(())
        }
        Err(ReopenError::Damaged(reason)) => {
            // The retired file is still the store's index, and must be replaced.
            old.mark_for_replacement(reason);
            Ok(())
        }
    }
}

/// Returns the view with a reopened file. The file must hold the entries that the view says it holds, or those of
/// one more flush. That flush reported a failure but took effect, so the view drops its memtables.
fn view_of(engine: &Engine, index: &IndexFile) -> Result<View, ReopenError> {
    let snapshot = index.snapshot()?;
    let next = Watermark::read(&snapshot)?.map_or(Position::FIRST, |watermark| watermark.next);
    let mut view = View::clone(&engine.view());
    if next == view.indexed {
        view.index = snapshot;
        return Ok(view);
    }
    let flushes = engine.flushes.lock();
    let request = flushes.requests.front().filter(|request| request.end == next);
    let flush = request.map(|request| request.flush);
    drop(flushes);
    let Some(flush) = flush else {
        let reason = format!("the index holds entries before {next}, not before {}", view.indexed);
        return Err(ReopenError::Damaged(reason));
    };
    view.take_flush(snapshot, flush, next);
    Ok(view)
}

/// Makes a file the store's index. The caller holds the `install` lock.
fn install_file(engine: &Engine, index: IndexFile, view: &View) {
    let repair = engine.repair.clone();
    index.on_fault(move || repair.request_check());
    let mut current = engine.index.write();
    let mut slot = engine.view.write();
    // More entries may have been published since the caller took its view.
    let mut now = View::clone(&slot);
    now.take_file(view);
    *slot = Arc::new(now);
    *current = index;
}

fn wake_after_repair(engine: &Engine) {
    engine.flushes.lock().retry_now = true;
    engine.flush_wanted.notify_all();
    background::want_merges(engine);
}

/// Builds a new index and replaces the faulty one.
fn replace(engine: &Engine, home: &IndexHome, fault: &Fault) -> Result<(), ()> {
    let reason = fault.to_string();
    engine.repair.emit(IndexEvent::Rebuilding { reason: reason.clone() });
    let begun = Instant::now();
    match build_and_swap(engine, home, fault) {
        Ok(()) => {
            engine.flushes.lock().restart();
            wake_after_repair(engine);
            engine.repair.emit(IndexEvent::Rebuilt { reason, took: begun.elapsed() });
            Ok(())
        }
        Err(error) => {
            engine.repair.emit(IndexEvent::RebuildFailed { reason: error.to_string() });
            Err(())
        }
    }
}

fn build_and_swap(engine: &Engine, home: &IndexHome, fault: &Fault) -> Result<(), OpenError> {
    // Exclude the removal of sections, which would change the journal during the build, and verification, which
    // would compare against the replaced index.
    let _journal = loop {
        if let Some(lock) = engine.journal_lock.try_lock_for(WAIT) {
            break lock;
        }
        rebuild::check_still_needed(engine)?;
    };
    if matches!(fault, Fault::Unsynced(_)) {
        // After a failed sync, an opening would see the page cache and not the disk, and would trust it.
        home.set_aside()?;
        home.sync_names()?;
    }
    let index = home.create()?;
    let swapped = rebuild::build(engine, &index).and_then(|(installing, snapshot)| {
        home.set_aside()?;
        home.put_in_place().inspect_err(|_| {
            if matches!(fault, Fault::Damaged(_)) {
                home.put_back();
            }
        })?;
        // If this sync fails, a power cut may leave either file under the name. Both are indexes of this history.
        let _ = home.sync_names();
        let mut view = View::clone(&engine.view());
        view.index = snapshot;
        install_file(engine, index.clone(), &view);
        engine.hashes.restore();
        drop(installing);
        Ok(())
    });
    swapped.inspect_err(|_| {
        index.abandon();
        let _ = home.discard_new();
    })
}
