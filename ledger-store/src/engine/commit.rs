//! The second stage of a write: makes a batch durable, publishes it, and answers its callers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ledger_journal::JournalError;

use super::answers::Resolver;
use super::handover::DecidedBatch;
use super::panics;
use super::panics::StopOnPanic;
use super::work::RejectedWork;
use super::{Engine, background};
use crate::cause::Cause;
use crate::error::WriteError;
use crate::view::{LedgerHead, View};
use crate::writer::Batch;

/// Answers work that was turned away because disk or memory is short.
pub(super) fn refuse(turned_away: Vec<RejectedWork>) {
    for (work, why) in turned_away {
        work.refuse(why);
    }
}

/// Hands a batch over to the committer thread, or commits it here if that thread has ended.
pub(super) fn hand_over(engine: &Engine, decided: DecidedBatch) {
    if let Some(decided) = engine.handover.put(decided) {
        finish(engine, decided);
    }
}

/// Runs the committer thread until the handover is closed and empty.
pub(crate) fn commit_loop(engine: &Engine) {
    while let Some(decided) = engine.handover.take() {
        panics::catch_panic(engine, |engine| finish(engine, decided));
    }
}

/// Makes a batch durable, publishes it, and answers its callers.
pub(super) fn finish(engine: &Engine, decided: DecidedBatch) {
    let DecidedBatch { turn, batch, heads, answers, turned_away } = decided;
    // Dropped before the turn: after a panic, nothing may be committed on top of a half-finished commit.
    let stopping = StopOnPanic::new(engine);
    let committed = commit(engine, batch, heads);
    drop((stopping, turn));
    match committed {
        Ok(()) => {
            let mut resolver = Resolver::new(engine, engine.view());
            for answer in answers {
                resolver.answer(answer);
            }
        }
        Err(error) => {
            for answer in answers {
                answer.fail(error.clone());
            }
        }
    }
    refuse(turned_away);
}

/// Appends a batch to the journal, then publishes it.
fn commit(engine: &Engine, batch: Batch, heads: Vec<(u32, LedgerHead)>) -> Result<(), WriteError> {
    // The previous batch may have failed after this one was decided on top of it.
    if let Some(reason) = engine.stopped() {
        return Err(WriteError::Stopped { reason });
    }
    let Batch { first, flush, chunks, rows, unhashed, queued_bytes: submitted, .. } = batch;
    if chunks.is_empty() {
        engine.hashes.feed.give_back(unhashed);
        return Ok(());
    }
    let chunks = chunks.finish();
    let memtable = rows.seal();
    let head = match engine.journal.append(first, &chunks) {
        Ok(head) => head,
        Err(error) => {
            let reason = error.to_string();
            // Whatever the error, the writer's state is now ahead of the journal.
            engine.stop_writing(&reason);
            return Err(match error {
                JournalError::OutcomeUnknown { .. } => {
                    WriteError::OutcomeUnknown(Cause::new(reason, Some(error)))
                }
                _ => WriteError::Stopped { reason },
            });
        }
    };
    engine.commits.fetch_add(1, Ordering::Relaxed);
    engine.hashes.feed.put(head.next, unhashed, submitted);
    let mut slot = engine.view.write();
    let mut view = View::clone(&slot);
    view.next = head.next;
    view.push(flush, memtable);
    for (ledger, head) in heads {
        view.heads.set(ledger, head);
    }
    let crowded = view.memtables.len() > background::MERGE_FAN_IN;
    *slot = Arc::new(view);
    drop(slot);
    engine.watchers.wake();
    if crowded {
        engine.flush_wanted.notify_all();
    }
    if engine.journal.needs_space() {
        engine.space_wanted.notify_one();
    }
    Ok(())
}
