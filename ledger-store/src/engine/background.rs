//! The threads behind the writer: the flusher and the merger.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ledger_index::{Fault, IndexError, IndexFile};
use ledger_journal::Position;
use parking_lot::MutexGuard;

use super::Engine;
use super::flush_requests::Failing;
use super::panics::StopOnPanic;
use super::retry::Backoff;
use crate::error::ReadError;
use crate::flush::{self, Watermark};
use crate::hashes::ChainId;
use crate::projection::Piece;
use crate::view::{LedgerHead, PieceSize, View};

/// Number of pieces of about one size that are merged in the background. It is large: each row is then copied seldom.
pub(super) const MERGE_FAN_IN: usize = 16;
/// So long the flusher waits for its turn to decide that a flush begins, before it looks whether one was begun.
const TURN_PATIENCE: Duration = Duration::from_millis(10);
/// The longest time that the journal's note of what was acknowledged is not durable: after a power cut nothing older
/// is ever taken for a torn write.
const TEND_INTERVAL: Duration = Duration::from_secs(1);
/// A piece of one part in so many of what gathers before a flush is large: the flush is near, and will merge it.
const LARGE_PIECE: usize = 4;

fn unwritten(error: &str) -> String {
    format!("the index cannot be written: {error}")
}

impl Engine {
    /// Runs the flusher thread until it is stopped.
    pub(crate) fn flush_loop(&self) {
        let mut patience = self.flush_interval;
        let mut failures = Backoff::new();
        loop {
            let mut flushes = self.flushes.lock();
            if flushes.requests.is_empty() {
                if flushes.stop {
                    return;
                }
                drop(flushes);
                if self.merge_pieces() {
                    continue;
                }
                flushes = self.flushes.lock();
                if flushes.requests.is_empty() && !flushes.stop {
                    let waited = self.flush_wanted.wait_for(&mut flushes, patience);
                    patience = self.flush_interval;
                    if waited.timed_out() {
                        drop(flushes);
                        // Who decides may have begun a flush meanwhile and wait for it: so this waits not for ever.
                        match self.decider.try_lock_for(TURN_PATIENCE) {
                            Some(mut state) => self.flush_gathered(&mut state),
                            None => patience = TURN_PATIENCE,
                        }
                    }
                }
                continue;
            }
            let request = flushes.requests.front().expect("there is a request");
            let (flush, through, heads) = (request.flush, request.through, request.heads.clone());
            drop(flushes);
            let Err(failure) = self.flush(flush, through, &heads) else {
                self.end_flush();
                failures.reset();
                continue;
            };
            if !self.try_flush_again(&failure, failures.after_failure()) {
                return;
            }
        }
    }

    /// Notes that the oldest flush is done.
    fn end_flush(&self) {
        let mut flushes = self.flushes.lock();
        let was_failing = flushes.failing.take().is_some();
        if let Some(done) = flushes.requests.pop_front()
            && done.is_full
            && !was_failing
        {
            flushes.pace.note(done.begun.elapsed());
        }
        drop(flushes);
        self.flush_done.notify_all();
        self.mending.note_available();
        self.want_merges();
    }

    /// Waits before a flush that failed is tried again; false if it is not. The journal has everything: what is not
    /// flushed the next opening replays.
    fn try_flush_again(&self, failure: &FlushFailure, wait: Duration) -> bool {
        let reason = failure.to_string();
        let may_pass = match failure {
            FlushFailure::Index(..) => self.home.is_some(),
            FlushFailure::Journal(error) => matches!(error, ReadError::Io { .. }),
        };
        if !may_pass {
            self.stop_writing(&unwritten(&reason));
        }
        let until = Instant::now() + wait;
        let is_full = matches!(failure, FlushFailure::Index(Some(Fault::Refused { is_full: true, .. }), _));
        self.mending.note_unavailable(&reason);
        let mut flushes = self.flushes.lock();
        flushes.failing = Some(Failing { reason: unwritten(&reason), is_full });
        self.flush_done.notify_all();
        // What gathers meanwhile is read from fewer pieces.
        MutexGuard::unlocked(&mut flushes, || while self.merge_pieces() {});
        loop {
            if flushes.stop || self.stopped().is_some() {
                flushes.failed = true;
                drop(flushes);
                self.flush_done.notify_all();
                return false;
            }
            if std::mem::take(&mut flushes.retry_now) {
                return true;
            }
            if self.flush_wanted.wait_until(&mut flushes, until).timed_out() {
                return true;
            }
        }
    }

    /// Has the merger look whether a merge is due.
    pub(crate) fn want_merges(&self) {
        *self.merge_lock.lock() = true;
        self.merge_wanted.notify_all();
    }

    fn flush(&self, flush: u64, through: Position, heads: &[(u32, LedgerHead)]) -> Result<(), FlushFailure> {
        // The last batch of this flush may still be on its way to the disk.
        while self.view().next < through {
            if self.stopped().is_some() {
                return Ok(());
            }
            drop(self.committer.lock());
            std::thread::yield_now();
        }
        let last = Position::new(through.get() - 1);
        let last = last.map(|last| self.journal.read(last)).transpose().map_err(ReadError::from);
        let chain = match last.map_err(FlushFailure::Journal)?.flatten() {
            Some(chunk) => chunk.chain(),
            None => ledger_journal::ChainHash::genesis(self.identity.store),
        };
        let installing = self.install.lock();
        let view = self.view();
        if view.flushed >= flush {
            // A commit that seemed to fail had not.
            return Ok(());
        }
        let index = self.index();
        if index.is_spoilt() {
            let why = index.fault().map_or_else(String::new, |fault| fault.to_string());
            return Err(FlushFailure::Index(index.fault(), why));
        }
        let pieces: Vec<Arc<Piece>> = view
            .pieces
            .iter()
            .filter(|piece| piece.flush <= flush)
            .map(|piece| piece.piece.clone())
            .collect();
        // First how far, then what: so nothing is missing of what it says.
        let hashed = self.hashes.next();
        let mut hashes = self.hashes.pending();
        // Those of a removed ledger would stay behind.
        let heads_now = &view.heads;
        hashes.retain(|((chain, _), _)| {
            heads_now.get(ChainId::of_number(*chain).ledger()).is_none_or(|head| !head.is_removed)
        });
        let watermark = Watermark { store: self.identity.store, next: through, chain, hashed };
        drop(view);
        // Before `install` is let go of: a snapshot that has the rows of these pieces never stands beside them.
        let stopping = StopOnPanic::new(self);
        let written = flush::write(&index, &pieces, heads, &hashes, watermark);
        let snapshot = match written.and_then(|()| index.snapshot()) {
            Ok(snapshot) => snapshot,
            Err(error) => {
                // It may have been written all the same. So this file is not written again before it was opened anew,
                // which tells, or replaced.
                index.spoil();
                index.note(&error);
                return Err(FlushFailure::Index(index.fault(), error.to_string()));
            }
        };
        drop(pieces);
        let mut slot = self.view.write();
        let mut view = View::clone(&slot);
        view.take_flush(snapshot, flush, through);
        *slot = Arc::new(view);
        drop(slot);
        drop((stopping, installing));
        self.hashes.forget(&hashes);
        Ok(())
    }

    /// Makes one piece of several in memory, so that reads look into few; whether there was anything to do.
    fn merge_pieces(&self) -> bool {
        let view = self.view();
        let is_worth_it = |size: PieceSize| size.bytes <= self.shares.memtable / LARGE_PIECE;
        let Some((from, to)) = view.due_merge(MERGE_FAN_IN, is_worth_it) else { return false };
        let parts = view.pieces_between(from, to);
        drop(view);
        let merged = Piece::merge(&parts);
        let mut slot = self.view.write();
        let mut view = View::clone(&slot);
        let at = view.pieces.iter().position(|piece| Arc::ptr_eq(&piece.piece, &parts[0]));
        if let Some(at) = at
            && view.pieces.len() >= at + parts.len()
            && view.pieces[at..].iter().zip(&parts).all(|(piece, part)| Arc::ptr_eq(&piece.piece, part))
        {
            view.replace(at, at + parts.len(), merged);
            *slot = Arc::new(view);
        }
        true
    }

    /// Runs the merger thread until it is stopped.
    pub(crate) fn merge_loop(&self) {
        let stop = || self.is_stopping() || self.stopped().is_some();
        loop {
            let mut wanted = self.merge_lock.lock();
            while !*wanted && !stop() {
                self.merge_wanted.wait(&mut wanted);
            }
            *wanted = false;
            drop(wanted);
            loop {
                if stop() {
                    return;
                }
                let index = self.index();
                if index.fault().is_some() {
                    // It is being mended, and then there are merges again.
                    break;
                }
                let merged = ledger_index::maintain(&index, &stop);
                match merged.and_then(|merged| self.install_snapshot(&index).map(|()| merged)) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => {
                        index.note(&error);
                        if self.home.is_none() {
                            self.stop_writing(&format!("the index cannot be merged: {error}"));
                            return;
                        }
                    }
                }
            }
        }
    }

    /// Looks after the journal's space until it is stopped: the loop of a thread.
    pub(crate) fn space_loop(&self) {
        loop {
            let mut waiting = self.space_lock.lock();
            if self.is_stopping() {
                return;
            }
            self.space_wanted.wait_for(&mut waiting, TEND_INTERVAL);
            drop(waiting);
            // A failure is met again by the batch that needs the space, and told to those who wait for it.
            let _ = self.journal.tend();
        }
    }

    /// Makes an index as it is now part of the view, if it is the one in use and nothing is wrong with it.
    pub(crate) fn install_snapshot(&self, index: &IndexFile) -> Result<(), IndexError> {
        let _installing = self.install.lock();
        if self.stopped().is_some() || index.is_spoilt() || !self.index().is_same(index) {
            // A flush may have been written and not become part of the view.
            return Ok(());
        }
        let snapshot = index.snapshot()?;
        let mut slot = self.view.write();
        let mut view = View::clone(&slot);
        view.index = snapshot;
        *slot = Arc::new(view);
        Ok(())
    }
}

/// Why a flush failed.
enum FlushFailure {
    /// The index could not be written; what is wrong with it since, and what failed.
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
