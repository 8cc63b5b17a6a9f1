//! The hashing thread.

use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use ledger_core::HashLogs;
use ledger_journal::entry::{Body, read_chunk};
use ledger_journal::{JournalReader, Position};

use super::Engine;
use super::chains::Chains;
use super::retry::Backoff;
use crate::error::ReadError;
use crate::hashes::{FedBatch, Hashes, Scratch};
use crate::read::{LedgerReader, chain_before};
use crate::view::View;

/// How much of the journal is hashed at once.
const JOURNAL_BYTES: usize = 1 << 20;
/// With fewer entries than this to be read from the journal the writer is asked for the texts of the next.
const CAUGHT_UP_ENTRIES: u64 = 16_384;
/// How long what is committed gathers before it is hashed. To wake for every commit would take the processor
/// from those who commit, and nobody waits for what is hashed now.
const GATHER: Duration = Duration::from_millis(5);
/// How long the thread waits before it looks whether it is to end.
const WAIT: Duration = Duration::from_millis(200);

impl Engine {
    /// Runs the hashing thread until it is stopped.
    ///
    /// Nobody needs its work at once. So a read that fails is tried again; meanwhile what is committed is left to be
    /// read from the journal, and the writer does not wait.
    pub(crate) fn hash_loop(&self) {
        let mut failures = Backoff::new();
        loop {
            // After a failure chains may have grown past what counts as hashed.
            let mut chains = Chains::default();
            let generation = self.view().generation;
            let hashed = match self.hash_journal(&mut chains, &mut failures) {
                Ok(true) => self.hash_feed(&mut chains),
                Ok(false) => Ok(()),
                Err(error) => Err(error),
            };
            let Err(error) = hashed else { return };
            if !self.may_pass(&error, generation) {
                return self.stop_writing(&format!("the log cannot be hashed: {error}"));
            }
            self.hashes.set_failing(true);
            self.hashes.feed.close();
            if !self.pause(failures.after_failure()) {
                return;
            }
        }
    }

    /// Whether what could not be read may be read later: the disk refused it, or an index is damaged that is built
    /// again, or was since that `generation` was in use. Damage of the journal stays.
    fn may_pass(&self, error: &ReadError, generation: u64) -> bool {
        match error {
            ReadError::Io { .. } | ReadError::LedgerRemoved => true,
            ReadError::Damaged { .. } => {
                self.home.is_some()
                    && (self.index().fault().is_some() || self.view().generation != generation)
            }
            ReadError::TooExpensive { .. } | ReadError::MissingFeature { .. } => false,
        }
    }

    /// Hashes what was committed before this store was opened, and since then, and opens the feed. Says whether
    /// the feed goes on right there: it does not if the thread is to end first.
    fn hash_journal(&self, chains: &mut Chains, failures: &mut Backoff) -> Result<bool, ReadError> {
        let mut until = self.view().next;
        let mut is_open = false;
        loop {
            let next = self.hashes.next();
            if !is_open && until.get().saturating_sub(next.get()) < CAUGHT_UP_ENTRIES {
                // What is committed from here on comes by the feed.
                let turn = self.committer.lock();
                self.hashes.feed.open();
                until = self.view().next;
                drop(turn);
                is_open = true;
            }
            if next >= until {
                self.hashes.set_failing(false);
                failures.reset();
                return Ok(true);
            }
            if self.is_stopping() {
                return Ok(false);
            }
            hash_stretch(&self.reader(), &self.view(), &self.hashes, (next, until), chains)?;
            self.hashes.set_failing(false);
            if !is_open {
                until = self.view().next;
            }
        }
    }

    /// Hashes what the writer hands over, once it is published: a chain is begun from what readers can see. When
    /// the thread is to end, it first hashes what waits.
    fn hash_feed(&self, chains: &mut Chains) -> Result<(), ReadError> {
        let feed = &self.hashes.feed;
        let mut scratch = Scratch::default();
        loop {
            let stopping = self.is_stopping();
            if !stopping {
                feed.wait(GATHER, WAIT);
            }
            let view = self.view();
            while let Some(batch) = feed.take(view.next) {
                let FedBatch { next, mut unhashed, .. } = batch;
                unhashed.drain(&mut scratch, |chain, log, text| {
                    // Of what was removed meanwhile readers see nothing to begin a chain from, and nobody asks for it.
                    if view.heads.get(chain.ledger()).is_some_and(|head| head.is_removed) {
                        return Ok(());
                    }
                    chains.append_text(&self.hashes, (chain, log, text), || {
                        let reader = LedgerReader::new(self.journal.clone(), view.clone(), chain.ledger());
                        chain_before(&reader, &self.hashes, (chain, log), || Ok(()))
                    })
                })?;
                self.hashes.advance(next);
                feed.give_back(unhashed);
            }
            if stopping {
                return Ok(());
            }
        }
    }
}

/// Hashes the next stretch of the journal, at most up to `until`.
pub(super) fn hash_stretch(
    journal: &Arc<dyn JournalReader>,
    view: &Arc<View>,
    hashes: &Hashes,
    (next, until): (Position, Position),
    chains: &mut Chains,
) -> Result<(), ReadError> {
    if !view.heads.iter().any(|head| head.info.features.hash_logs != HashLogs::Disabled) {
        hashes.advance(until);
        return Ok(());
    }
    let mut readers: HashMap<u32, LedgerReader, RandomState> = HashMap::default();
    let mut hashed = next;
    for chunk in journal.scan(next, JOURNAL_BYTES)? {
        if chunk.next() > until {
            break;
        }
        let mut failed = None;
        read_chunk(&chunk, |record| {
            if let Body::Log(log) = &record.body
                && failed.is_none()
                && view.heads.get(log.ledger).is_none_or(|head| !head.is_removed)
            {
                let reader = readers
                    .entry(log.ledger)
                    .or_insert_with(|| LedgerReader::new(journal.clone(), view.clone(), log.ledger));
                failed = chains.append_record(hashes, reader, &record).err();
            }
            Ok(())
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        hashed = chunk.next();
    }
    hashes.advance(hashed);
    Ok(())
}
