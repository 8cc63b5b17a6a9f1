//! The background threads: the flusher, the merger, and the thread that prepares space in the journal.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ledger_index::{Fault, IndexError, IndexFile};
use ledger_journal::Position;

use super::Engine;
use super::flush_requests::Failing;
use super::flushes;
use super::panics::StopOnPanic;
use super::retry::Backoff;
use crate::error::ReadError;
use crate::flush::{self, Watermark};
use crate::hashes::ChainId;
use crate::projection::Memtable;
use crate::view::{LedgerHead, MemtableSize, View};

/// Number of memtables of similar size that one background merge combines. A large number means that each row is
/// copied seldom.
pub(super) const MERGE_FAN_IN: usize = 16;
/// Maximum time that the flusher waits for the decider lock. The thread that holds the lock may be waiting for a
/// flush, so the flusher must look at its requests again.
const TURN_TIMEOUT: Duration = Duration::from_millis(10);
/// Longest interval between two updates of `HEAD`, the journal's record of the acknowledged entries. After a power
/// cut, an opening never takes an entry that is older than this for a torn write.
const TEND_INTERVAL: Duration = Duration::from_secs(1);
/// The background leaves memtables alone that are larger than this fraction of the memtable share (1/4): the coming
/// flush merges them.
const LARGE_MEMTABLE: usize = 4;

fn unwritten(error: &str) -> String {
    format!("the index cannot be written: {error}")
}

/// Runs the flusher thread until it is stopped.
pub(crate) fn flush_loop(engine: &Engine) {
    let mut timeout = engine.flush_interval;
    let mut failures = Backoff::new();
    loop {
        let mut flushes = engine.flushes.lock();
        if flushes.requests.is_empty() {
            if flushes.stop {
                return;
            }
            drop(flushes);
            if merge_memtables(engine) {
                continue;
            }
            flushes = engine.flushes.lock();
            if flushes.requests.is_empty() && !flushes.stop {
                let waited = engine.flush_wanted.wait_for(&mut flushes, timeout);
                timeout = engine.flush_interval;
                if waited.timed_out() {
                    drop(flushes);
                    // The thread that holds the lock may itself wait for a flush that it has just requested. So do
                    // not wait for the lock without a limit.
                    match engine.decider.try_lock_for(TURN_TIMEOUT) {
                        Some(mut state) => flushes::flush_pending_of(engine, &mut state),
                        None => timeout = TURN_TIMEOUT,
                    }
                }
            }
            continue;
        }
        flushes.retry_now = false;
        let request = flushes.requests.front().expect("the requests were not empty above");
        let (flush, end, heads) = (request.flush, request.end, request.heads.clone());
        drop(flushes);
        let Err(failure) = write_flush(engine, flush, end, &heads) else {
            end_flush(engine);
            failures.reset();
            continue;
        };
        if !try_flush_again(engine, &failure, failures.after_failure()) {
            return;
        }
    }
}

/// Removes the oldest request, whose flush is done, and wakes the threads that wait for it.
fn end_flush(engine: &Engine) {
    let mut flushes = engine.flushes.lock();
    let was_failing = flushes.failing.take().is_some();
    if let Some(done) = flushes.requests.pop_front()
        && done.is_full
        && !was_failing
    {
        flushes.pace.note(done.begun.elapsed());
    }
    drop(flushes);
    engine.flush_done.notify_all();
    engine.repair.note_available();
    want_merges(engine);
}

/// Waits before a failed flush is tried again. Returns `false` if there will be no other attempt; the next opening
/// then replays the entries from the journal.
fn try_flush_again(engine: &Engine, failure: &FlushFailure, wait: Duration) -> bool {
    let reason = failure.to_string();
    let may_pass = match failure {
        FlushFailure::Index(..) => engine.home.is_some(),
        FlushFailure::Journal(error) => matches!(error, ReadError::Io { .. }),
    };
    if !may_pass {
        engine.stop_writing(&unwritten(&reason));
    }
    let until = Instant::now() + wait;
    let is_disk_full = matches!(failure, FlushFailure::Index(Some(Fault::Refused { is_full: true, .. }), _));
    let mut flushes = engine.flushes.lock();
    if std::mem::take(&mut flushes.retry_now) {
        // The index was repaired while this attempt ran.
        return true;
    }
    flushes.failing = Some(Failing { reason: unwritten(&reason), is_disk_full });
    drop(flushes);
    engine.flush_done.notify_all();
    engine.repair.note_unavailable(&reason);
    // Merge the memtables that accumulate meanwhile, so that reads search few of them.
    while merge_memtables(engine) {}
    let mut flushes = engine.flushes.lock();
    loop {
        if flushes.stop || engine.stopped().is_some() {
            flushes.failed = true;
            drop(flushes);
            engine.flush_done.notify_all();
            return false;
        }
        if std::mem::take(&mut flushes.retry_now) {
            return true;
        }
        if engine.flush_wanted.wait_until(&mut flushes, until).timed_out() {
            return true;
        }
    }
}

/// Asks the merger to check whether a merge is due.
pub(crate) fn want_merges(engine: &Engine) {
    *engine.merge_lock.lock() = true;
    engine.merge_wanted.notify_all();
}

fn write_flush(
    engine: &Engine,
    flush: u64,
    end: Position,
    heads: &[(u32, LedgerHead)],
) -> Result<(), FlushFailure> {
    // The last batch of this flush may not be durable yet. It is committed under this lock.
    while engine.view().next < end {
        if engine.stopped().is_some() {
            return Ok(());
        }
        drop(engine.committer.lock());
        std::thread::yield_now();
    }
    let last = Position::new(end.get() - 1);
    let last = last.map(|last| engine.journal.read(last)).transpose().map_err(ReadError::from);
    let chain = match last.map_err(FlushFailure::Journal)?.flatten() {
        Some(chunk) => chunk.chain(),
        None => ledger_journal::ChainHash::genesis(engine.identity.store),
    };
    let installing = engine.install.lock();
    let view = engine.view();
    if view.flushed >= flush {
        // An earlier commit of this flush reported a failure but took effect.
        return Ok(());
    }
    let index = engine.index();
    if index.has_failed_flush() {
        let why = index.fault().map_or_else(String::new, |fault| fault.to_string());
        return Err(FlushFailure::Index(index.fault(), why));
    }
    let memtables: Vec<Arc<Memtable>> = view
        .memtables
        .iter()
        .filter(|memtable| memtable.flush <= flush)
        .map(|memtable| memtable.memtable.clone())
        .collect();
    // Read the position before the checkpoints, so that no checkpoint below that position is missing.
    let hashed = engine.hashes.next();
    let mut hashes = engine.hashes.pending();
    // Leave out checkpoints of removed ledgers: nothing would delete them from the index.
    hashes.retain(|((chain, _), _)| {
        view.heads.get(ChainId::of_number(*chain).ledger()).is_none_or(|head| !head.is_removed)
    });
    let watermark = Watermark { store: engine.identity.store, next: end, chain, hashed };
    drop(view);
    // Declared after `install`, so that writing stops before the lock is released. No snapshot may show these rows
    // while the view still has their memtables.
    let stopping = StopOnPanic::new(engine);
    let written = flush::write(&index, &memtables, heads, &hashes, watermark);
    let snapshot = match written.and_then(|()| index.snapshot()) {
        Ok(snapshot) => snapshot,
        Err(error) => {
            // The commit may have taken effect all the same. Do not write to this file again until it was
            // reopened, which shows what it holds, or was replaced.
            index.record_failed_flush();
            index.note(&error);
            return Err(FlushFailure::Index(index.fault(), error.to_string()));
        }
    };
    drop(memtables);
    let mut slot = engine.view.write();
    let mut view = View::clone(&slot);
    view.take_flush(snapshot, flush, end);
    *slot = Arc::new(view);
    drop(slot);
    drop((stopping, installing));
    engine.hashes.forget(&hashes);
    Ok(())
}

/// Merges several memtables into one, so that reads search few of them. Returns whether a merge was due.
fn merge_memtables(engine: &Engine) -> bool {
    let view = engine.view();
    let is_worth_it = |size: MemtableSize| size.bytes <= engine.shares.memtable / LARGE_MEMTABLE;
    let Some((from, to)) = view.due_merge(MERGE_FAN_IN, is_worth_it) else { return false };
    let parts = view.memtables_between(from, to);
    drop(view);
    let merged = Memtable::merge(&parts);
    let mut slot = engine.view.write();
    let mut view = View::clone(&slot);
    let at = view.memtables.iter().position(|memtable| Arc::ptr_eq(&memtable.memtable, &parts[0]));
    if let Some(at) = at
        && view.memtables.len() >= at + parts.len()
        && view.memtables[at..]
            .iter()
            .zip(&parts)
            .all(|(memtable, part)| Arc::ptr_eq(&memtable.memtable, part))
    {
        view.replace(at, at + parts.len(), merged);
        *slot = Arc::new(view);
    }
    true
}

/// Runs the merger thread until it is stopped.
pub(crate) fn merge_loop(engine: &Engine) {
    let stop = || engine.is_stopping() || engine.stopped().is_some();
    loop {
        let mut wanted = engine.merge_lock.lock();
        while !*wanted && !stop() {
            engine.merge_wanted.wait(&mut wanted);
        }
        *wanted = false;
        drop(wanted);
        loop {
            if stop() {
                return;
            }
            let index = engine.index();
            if index.fault().is_some() {
                // The repair thread repairs the index and then requests merges again.
                break;
            }
            let merged = ledger_index::maintain(&index, &stop);
            match merged.and_then(|merged| install_snapshot(engine, &index).map(|()| merged)) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    index.note(&error);
                    if engine.home.is_none() {
                        engine.stop_writing(&format!("the index cannot be merged: {error}"));
                        return;
                    }
                }
            }
        }
    }
}

/// Runs the thread that keeps the journal's space prepared and its `HEAD` current, until it is stopped.
pub(crate) fn space_loop(engine: &Engine) {
    loop {
        let mut waiting = engine.space_lock.lock();
        if engine.is_stopping() {
            return;
        }
        engine.space_wanted.wait_for(&mut waiting, TEND_INTERVAL);
        drop(waiting);
        // Ignore the error: the next batch that needs the space meets it too and reports it to its callers.
        let _ = engine.journal.prepare_space();
    }
}

/// Publishes a new snapshot of an index, if this index is still the one in use and has no failed flush.
pub(crate) fn install_snapshot(engine: &Engine, index: &IndexFile) -> Result<(), IndexError> {
    let _installing = engine.install.lock();
    if engine.stopped().is_some() || index.has_failed_flush() || !engine.index().is_same(index) {
        // A flush may have been written to the file without being published.
        return Ok(());
    }
    let snapshot = index.snapshot()?;
    let mut slot = engine.view.write();
    let mut view = View::clone(&slot);
    view.index = snapshot;
    *slot = Arc::new(view);
    Ok(())
}

/// The reason why a flush failed.
enum FlushFailure {
    /// The index could not be written: its fault after the failure, and the error as text.
    Index(Option<Fault>, String),
    /// The journal could not be read.
    Journal(ReadError),
}

impl fmt::Display for FlushFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(_, reason) => formatter.write_str(reason),
            Self::Journal(error) => error.fmt(formatter),
        }
    }
}
