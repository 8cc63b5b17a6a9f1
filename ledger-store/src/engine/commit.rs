//! The second stage of a write: what was decided is made durable and published, and who waits for it is answered.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ledger_journal::JournalError;
use parking_lot::{ArcMutexGuard, Condvar, Mutex, RawMutex};

use super::panics::StopOnPanic;
use super::pending::{Pending, Resolver};
use super::{Done, Engine, TurnedAway, background};
use crate::error::WriteError;
use crate::view::{LedgerHead, View};
use crate::writer::Batch;

/// A batch that was decided.
pub(super) struct DecidedBatch {
    /// Held until the batch is on disk: batches get there in the order in which they were decided.
    pub(super) turn: ArcMutexGuard<RawMutex, ()>,
    pub(super) batch: Batch,
    /// The heads of the ledgers that it changed, as they are after it.
    pub(super) heads: Vec<(u32, LedgerHead)>,
    pub(super) answers: Vec<(Done, Result<Pending, WriteError>)>,
    /// Work that was not decided, since the disk has no room for it.
    pub(super) turned_away: Vec<TurnedAway>,
}

/// Where the writer puts a batch and the committer takes it. There is one at most, since there is one turn.
#[derive(Default)]
pub(super) struct Handover {
    slot: Mutex<Slot>,
    filled: Condvar,
}

#[derive(Default)]
struct Slot {
    batch: Option<DecidedBatch>,
    closed: bool,
}

/// Answers work that the disk has no room for.
pub(super) fn refuse(jobs: Vec<TurnedAway>) {
    for (job, why) in jobs {
        job.done.tell(Err(why));
    }
}

impl Engine {
    /// Leaves a batch to the committer.
    pub(super) fn hand_over(&self, decided: DecidedBatch) {
        let mut slot = self.handover.slot.lock();
        if slot.closed {
            drop(slot);
            return self.finish(decided);
        }
        debug_assert!(slot.batch.is_none(), "only who has the turn hands over");
        slot.batch = Some(decided);
        drop(slot);
        self.handover.filled.notify_one();
    }

    /// No more batches are taken over.
    pub(crate) fn close_handover(&self) {
        self.handover.slot.lock().closed = true;
        self.handover.filled.notify_one();
    }

    /// Runs the committer thread until no more batches come.
    pub(crate) fn commit_loop(&self) {
        loop {
            let decided = {
                let mut slot = self.handover.slot.lock();
                loop {
                    match slot.batch.take() {
                        Some(decided) => break decided,
                        None if slot.closed => return,
                        None => self.handover.filled.wait(&mut slot),
                    }
                }
            };
            self.outlive(|engine| engine.finish(decided));
        }
    }

    /// Makes a batch durable, publishes it, answers.
    pub(super) fn finish(&self, decided: DecidedBatch) {
        let DecidedBatch { turn, batch, heads, answers, turned_away } = decided;
        // Before the turn is let go of: nothing is committed behind what a panic left half done.
        let stopping = StopOnPanic::new(self);
        let committed = self.commit(batch, heads);
        drop((stopping, turn));
        match committed {
            Ok(()) => {
                let mut resolver = Resolver::new(self, self.view());
                for (done, answer) in answers {
                    done.tell(answer.and_then(|answer| {
                        // What was to be recorded is; only what is to be told of it cannot be read.
                        resolver.resolve(answer).map_err(|error| match error {
                            WriteError::Read(error) => {
                                WriteError::OutcomeUnknown { reason: error.to_string() }
                            }
                            other => other,
                        })
                    }));
                }
            }
            Err(error) => {
                for (done, _) in answers {
                    done.tell(Err(error.clone()));
                }
            }
        }
        refuse(turned_away);
    }

    /// Makes a batch durable and then visible.
    fn commit(&self, batch: Batch, heads: Vec<(u32, LedgerHead)>) -> Result<(), WriteError> {
        // The batch before this one may have failed after this one was decided upon it.
        if let Some(reason) = self.stopped() {
            return Err(WriteError::Stopped { reason });
        }
        let Batch { first, flush, chunks, rows, unhashed, submitted, .. } = batch;
        if chunks.is_empty() {
            self.hashes.feed.give_back(unhashed);
            return Ok(());
        }
        let chunks = chunks.finish();
        let piece = rows.seal();
        let head = match self.journal.append(first, &chunks) {
            Ok(head) => head,
            Err(error) => {
                let reason = error.to_string();
                // The state is ahead of the journal now, whatever the reason.
                self.stop_writing(&reason);
                return Err(match error {
                    JournalError::OutcomeUnknown { .. } => WriteError::OutcomeUnknown { reason },
                    _ => WriteError::Stopped { reason },
                });
            }
        };
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.hashes.feed.put(head.next, unhashed, submitted);
        let mut slot = self.view.write();
        let mut view = View::clone(&slot);
        view.next = head.next;
        view.push(flush, piece);
        for (ledger, head) in heads {
            view.heads.set(ledger, head);
        }
        let crowded = view.pieces.len() > background::MERGE_FAN_IN;
        *slot = Arc::new(view);
        drop(slot);
        self.watchers.wake();
        if crowded {
            self.flush_wanted.notify_all();
        }
        if self.journal.wants_space() {
            self.space_wanted.notify_one();
        }
        Ok(())
    }
}
