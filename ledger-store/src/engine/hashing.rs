//! The hashing thread, which continues the wire hash chains behind the writer.

use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use ledger_core::HashLogs;
use ledger_journal::entry::{Body, read_chunk};
use ledger_journal::{JournalReader, Position};

use super::Engine;
use super::chains::Chains;
use super::retry;
use super::retry::Backoff;
use crate::error::ReadError;
use crate::hashes::{Hashes, QueuedBatch, Scratch};
use crate::read::{LedgerReader, chain_before};
use crate::view::View;

/// Number of bytes of the journal that are read at a time.
const JOURNAL_BYTES: usize = 1 << 20;
/// The thread asks the writer for the texts of new entries once it has fewer than this many entries left to read from
/// the journal.
const CAUGHT_UP_ENTRIES: u64 = 16_384;
/// Time for which commits accumulate before they are hashed. Waking up for each commit would take processor time from
/// the writers, and no caller waits for these hashes.
const GATHER: Duration = Duration::from_millis(5);
/// Maximum time to wait before checking whether the thread must end.
const WAIT: Duration = Duration::from_millis(200);

/// Runs the hashing thread until it is stopped.
///
/// The hashes are not urgent. When a read fails, the thread tries again later. Until then the writer does not wait
/// for it, and the thread will read the missed entries from the journal.
pub(crate) fn hash_loop(engine: &Engine) {
    let mut failures = Backoff::new();
    loop {
        // Start with fresh chains: after a failure, those in memory may be ahead of the recorded position.
        let mut chains = Chains::default();
        let generation = engine.view().generation;
        let hashed = match hash_journal(engine, &mut chains, &mut failures) {
            Ok(true) => hash_feed(engine, &mut chains),
            Ok(false) => Ok(()),
            Err(error) => Err(error),
        };
        let Err(error) = hashed else { return };
        if !may_pass(engine, &error, generation) {
            return engine.stop_writing(&format!("the log cannot be hashed: {error}"));
        }
        engine.hashes.set_failing(true);
        engine.hashes.feed.close();
        if !retry::pause(engine, failures.after_failure()) {
            return;
        }
    }
}

/// Returns whether a failed read may succeed later. It may if the disk refused it, if the damaged index is being
/// rebuilt, or if it was replaced since `generation` was in use. Damage of the journal is permanent.
fn may_pass(engine: &Engine, error: &ReadError, generation: u64) -> bool {
    match error {
        ReadError::Io { .. } | ReadError::LedgerRemoved => true,
        ReadError::Damaged { .. } => {
            engine.home.is_some()
                && (engine.index().fault().is_some() || engine.view().generation != generation)
        }
        ReadError::TooExpensive { .. } | ReadError::MissingFeature { .. } => false,
    }
}

/// Hashes the committed entries from the journal until the thread has caught up, and opens the feed. Returns
/// `false` if the thread must end first.
fn hash_journal(engine: &Engine, chains: &mut Chains, failures: &mut Backoff) -> Result<bool, ReadError> {
    let mut until = engine.view().next;
    let mut is_open = false;
    loop {
        let next = engine.hashes.next();
        if !is_open && until.get().saturating_sub(next.get()) < CAUGHT_UP_ENTRIES {
            // From here on, the feed delivers new commits.
            let turn = engine.committer.lock();
            engine.hashes.feed.open();
            until = engine.view().next;
            drop(turn);
            is_open = true;
        }
        if next >= until {
            engine.hashes.set_failing(false);
            failures.reset();
            return Ok(true);
        }
        if engine.is_stopping() {
            return Ok(false);
        }
        hash_range(&engine.reader(), &engine.view(), &engine.hashes, next, until, chains)?;
        engine.hashes.set_failing(false);
        if !is_open {
            until = engine.view().next;
        }
    }
}

/// Hashes the entries that the writer hands over, once they are published, because a chain starts from the
/// published state. When the thread must end, it first hashes the entries that are waiting.
fn hash_feed(engine: &Engine, chains: &mut Chains) -> Result<(), ReadError> {
    let feed = &engine.hashes.feed;
    let mut scratch = Scratch::default();
    loop {
        let stopping = engine.is_stopping();
        if !stopping {
            feed.wait(GATHER, WAIT);
        }
        let view = engine.view();
        while let Some(batch) = feed.take(view.next) {
            let QueuedBatch { next, mut unhashed, .. } = batch;
            unhashed.drain(&mut scratch, |chain, log, text| {
                // A ledger that was removed meanwhile has no readable entries to start a chain from, and needs no
                // hashes.
                if view.heads.get(chain.ledger()).is_some_and(|head| head.is_removed) {
                    return Ok(());
                }
                chains.append_text(&engine.hashes, chain, log, text, || {
                    let reader = LedgerReader::new(engine.journal.clone(), view.clone(), chain.ledger());
                    chain_before(&reader, &engine.hashes, chain, log, || Ok(()))
                })
            })?;
            engine.hashes.advance(next);
            feed.give_back(unhashed);
        }
        if stopping {
            return Ok(());
        }
    }
}

/// Hashes the next entries of the journal, at most up to `until`.
pub(super) fn hash_range(
    journal: &Arc<dyn JournalReader>,
    view: &Arc<View>,
    hashes: &Hashes,
    next: Position,
    until: Position,
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
