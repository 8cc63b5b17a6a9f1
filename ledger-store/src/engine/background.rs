//! The threads behind the writer: the flusher and the merger.

use std::sync::Arc;
use std::time::Duration;

use super::Engine;
use super::panics::StopOnPanic;
use crate::error::ReadError;
use crate::flush::{self, Watermark};
use crate::hashes::ChainId;
use crate::journal::Position;
use crate::projection::Piece;
use crate::view::{LedgerHead, PieceSize, View};

/// So many pieces of about one size are merged in the background. Many at once: each row is then copied seldom.
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
    /// What the flusher thread does until it is stopped.
    pub(crate) fn flush_loop(&self) {
        let mut patience = self.flush_interval;
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
            let result = self.flush(flush, through, &heads);
            let mut flushes = self.flushes.lock();
            if let Some(done) = flushes.requests.pop_front()
                && done.is_full
            {
                flushes.pace.note(done.begun.elapsed());
            }
            if let Err(error) = result {
                // The journal has everything: the next opening replays it.
                flushes.failed = true;
                self.stop_writing(&unwritten(&error.to_string()));
            }
            drop(flushes);
            self.flush_done.notify_all();
            self.want_merges();
        }
    }

    /// Has the merger look whether a merge is due.
    pub(crate) fn want_merges(&self) {
        *self.merge_lock.lock() = true;
        self.merge_wanted.notify_all();
    }

    fn flush(&self, flush: u64, through: Position, heads: &[(u32, LedgerHead)]) -> Result<(), ReadError> {
        // The last batch of this flush may still be on its way to the disk.
        while self.view().next < through {
            if self.stopped().is_some() {
                return Ok(());
            }
            drop(self.committer.lock());
            std::thread::yield_now();
        }
        let view = self.view();
        let pieces: Vec<Arc<Piece>> = view
            .pieces
            .iter()
            .filter(|piece| piece.flush <= flush)
            .map(|piece| piece.piece.clone())
            .collect();
        drop(view);
        let last = Position::new(through.get() - 1);
        let chain = match last.map(|last| self.journal.read(last)).transpose()?.flatten() {
            Some(chunk) => chunk.chain(),
            None => crate::journal::ChainHash::genesis(self.identity.store),
        };
        // First how far, then what: so nothing is missing of what it says.
        let hashed = self.hashes.next();
        let mut hashes = self.hashes.pending();
        // Those of a removed ledger would stay behind.
        let heads_now = &self.view().heads;
        hashes.retain(|((chain, _), _)| {
            heads_now.get(ChainId::of_number(*chain).ledger()).is_none_or(|head| !head.is_removed)
        });
        let watermark = Watermark { store: self.identity.store, next: through, chain, hashed };
        let installing = self.install.lock();
        // Before `install` is let go of: a snapshot that has the rows of these pieces never stands beside them.
        let stopping = StopOnPanic::new(self);
        let written = flush::write(&self.index, &pieces, heads, &hashes, watermark);
        let snapshot = match written.and_then(|()| self.index.snapshot()) {
            Ok(snapshot) => snapshot,
            Err(error) => {
                self.stop_writing(&unwritten(&error.to_string()));
                return Err(error.into());
            }
        };
        drop(pieces);
        let mut slot = self.view.write();
        let mut view = View::clone(&slot);
        view.index = snapshot;
        view.flushed = flush;
        view.pieces.retain(|piece| piece.flush > flush);
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

    /// What the merger thread does until it is stopped.
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
                match crate::index::maintain(&self.index, &stop) {
                    Ok(true) => {
                        if let Err(error) = self.install_snapshot() {
                            self.stop_writing(&format!("the index cannot be read: {error}"));
                            return;
                        }
                    }
                    Ok(false) => break,
                    Err(error) => {
                        self.stop_writing(&format!("the index cannot be merged: {error}"));
                        return;
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

    /// Makes the index as it is now part of the view.
    pub(crate) fn install_snapshot(&self) -> Result<(), ReadError> {
        let _installing = self.install.lock();
        if self.stopped().is_some() {
            // A flush may have been written and not become part of the view.
            return Ok(());
        }
        let snapshot = self.index.snapshot()?;
        let mut slot = self.view.write();
        let mut view = View::clone(&slot);
        view.index = snapshot;
        *slot = Arc::new(view);
        Ok(())
    }
}
