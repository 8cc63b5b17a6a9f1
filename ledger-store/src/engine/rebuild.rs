//! Builds a new index from the journal while the store runs. Each round reads up to the position of the last flush.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ledger_index::{IndexFile, IndexSnapshot};
use ledger_journal::{Chunk, Head, JournalError, JournalReader, Position};
use parking_lot::MutexGuard;

use super::Engine;
use super::chains::Chains;
use super::hashing::hash_range;
use crate::error::{OpenError, ReadError};
use crate::flush::{self, Watermark};
use crate::hashes::Hashes;
use crate::progress::LongWork;
use crate::recovery;
use crate::view::View;

/// The rebuild gets 1/10 of the store's memory budget for its memtables and caches, in addition to that budget.
const BUDGET_PART: usize = 10;
/// Number of rounds after which flushes wait for the last round to end. Each round only reads what was written during
/// the previous one, so a few are enough unless the disk is far too slow.
const ROUNDS_MAX: usize = 6;
/// Number of checkpoints of hash chains that are written at a time.
const CHECKPOINTS: usize = 1 << 16;

/// Fills a new index with everything that the current one holds. Returns its snapshot together with the `install`
/// lock. While the caller holds that lock, both indexes hold the same entries.
///
/// # Errors
///
/// [`OpenError`] if the journal cannot be read or the new file cannot be written, or the store is closing.
pub(super) fn build<'a>(
    engine: &'a Engine,
    index: &IndexFile,
) -> Result<(MutexGuard<'a, ()>, IndexSnapshot), OpenError> {
    let mut build = IndexBuild {
        engine,
        index,
        next: Position::FIRST,
        hashes: Hashes::new(Position::FIRST, 0),
        chains: Chains::default(),
    };
    for _ in 0..ROUNDS_MAX {
        build.fill(engine.view().indexed)?;
        let installing = engine.install.lock();
        if engine.view().indexed == build.next {
            return Ok((installing, index.snapshot()?));
        }
    }
    let installing = engine.install.lock();
    build.fill(engine.view().indexed)?;
    Ok((installing, index.snapshot()?))
}

/// A new index while it is being filled.
struct IndexBuild<'a> {
    engine: &'a Engine,
    index: &'a IndexFile,
    /// The new index durably holds the entries before this position.
    next: Position,
    hashes: Hashes,
    chains: Chains,
}

impl IndexBuild<'_> {
    /// Adds the entries up to `until` that the new index lacks.
    fn fill(&mut self, until: Position) -> Result<(), OpenError> {
        check_still_needed(self.engine)?;
        if until == self.next {
            return Ok(());
        }
        let engine = self.engine;
        let journal: Arc<dyn JournalReader> = Arc::new(JournalPrefix {
            journal: engine.journal.clone(),
            until,
            is_closing: engine.stopping.clone(),
        });
        let journal = engine.progress.watch(journal, LongWork::IndexRebuild);
        let shares = engine.shares.divided(BUDGET_PART);
        let mut recovered = recovery::recover(&journal, self.index, &engine.identity, shares, self.next)?;
        let hashed = recovered.hashed;
        if recovered.view.indexed < until {
            let (state, view) = (&mut recovered.state, &mut recovered.view);
            recovery::flush_now(state, view, self.index, &engine.identity, &*journal, hashed)?;
        }
        self.hash(&journal, recovered.view, until)?;
        self.next = until;
        Ok(())
    }

    /// Writes the checkpoints of the hash chains for all entries up to `until`.
    fn hash(
        &mut self,
        journal: &Arc<dyn JournalReader>,
        mut view: View,
        until: Position,
    ) -> Result<(), OpenError> {
        loop {
            let shared = Arc::new(view);
            while self.hashes.next() < until && self.hashes.pending_count() < CHECKPOINTS {
                let next = self.hashes.next();
                hash_range(journal, &shared, &self.hashes, next, until, &mut self.chains)?;
            }
            let hashed = self.hashes.next();
            let pending = self.hashes.pending();
            let last = Position::new(until.get() - 1);
            let chunk = last.map(|last| journal.read(last)).transpose().map_err(ReadError::from)?.flatten();
            let chain = chunk
                .map(|chunk| chunk.chain())
                .ok_or_else(|| OpenError::Damaged("journal: an entry is missing".into()))?;
            let watermark = Watermark { store: self.engine.identity.store, next: until, chain, hashed };
            flush::write(self.index, &[], &[], &pending, watermark)?;
            self.hashes.forget(&pending);
            if hashed >= until {
                return Ok(());
            }
            // The next chains resume from the checkpoints that were just written.
            view = View::clone(&shared);
            view.index = self.index.snapshot()?;
        }
    }
}

/// The part of the journal before a position, readable until the store closes.
struct JournalPrefix {
    journal: Arc<dyn JournalReader>,
    until: Position,
    is_closing: Arc<AtomicBool>,
}

impl JournalReader for JournalPrefix {
    fn head(&self) -> Head {
        // No caller uses the chain of this head.
        Head { next: self.until, ..self.journal.head() }
    }

    fn read(&self, at: Position) -> Result<Option<Chunk>, JournalError> {
        if at < self.until { self.journal.read(at) } else { Ok(None) }
    }

    fn scan(&self, from: Position, max_bytes: usize) -> Result<Vec<Chunk>, JournalError> {
        if self.is_closing.load(Ordering::Relaxed) {
            let cause = io::Error::new(io::ErrorKind::Interrupted, "the store is closing");
            return Err(JournalError::Storage { path: PathBuf::new(), action: "read", cause });
        }
        if from >= self.until {
            return Ok(Vec::new());
        }
        let mut chunks = self.journal.scan(from, max_bytes)?;
        chunks.retain(|chunk| chunk.first() < self.until);
        Ok(chunks)
    }
}

/// Returns an error if the new index is no longer needed because the store is closing.
pub(super) fn check_still_needed(engine: &Engine) -> Result<(), OpenError> {
    if engine.is_stopping() || engine.stopped().is_some() {
        return Err(OpenError::Io("the store is closing".into()));
    }
    Ok(())
}
