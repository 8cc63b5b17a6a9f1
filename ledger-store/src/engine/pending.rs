//! Answers that wait until their batch is durable.
//!
//! `Engine::decide` turns each piece of work into a [`Pending`] answer. After the commit, a [`Resolver`] completes it:
//! it reads the entries of idempotent replays, and computes effective volumes.

use std::sync::Arc;

use ledger_journal::Position;

use super::{Answer, Engine};
use crate::documents::DocumentVersion;
use crate::error::{ReadError, WriteError};
use crate::imported::Imported;
use crate::query::LedgerInfo;
use crate::read::{Later, Session, TriedMoves};
use crate::submission::{Detail, Mode, Outcome, Receipt, Request};
use crate::view::View;
use crate::writer::Decided;

/// Answers commands of a dry run that repeat the idempotency key of an earlier command of the same dry run. A dry run
/// records no entry that [`Resolver`] could read, so the earlier receipt is the answer. The accepted commands have
/// consecutive positions from `first`.
pub(super) fn answer_from_within(outcomes: &mut [Decided], first: Position) {
    let mut receipts: Vec<Receipt> = Vec::new();
    for outcome in outcomes {
        match outcome {
            Decided::Done(receipt) => receipts.push(receipt.clone()),
            Decided::Replay { position, .. } => {
                let offset = position.get().checked_sub(first.get());
                if let Some(receipt) = offset.and_then(|offset| receipts.get(offset as usize)) {
                    // A replay repeats the entry, but not the violation of the schema.
                    let receipt = Receipt { replayed: true, violation: None, ..receipt.clone() };
                    *outcome = Decided::Done(receipt);
                }
            }
            Decided::Refused(_) | Decided::Cancelled | Decided::Failed(_) => {}
        }
    }
}

/// An answer that waits until its batch is durable. Each variant becomes the [`Answer`] of the same name.
pub(super) enum Pending {
    /// Outcomes of commands on one ledger. They become [`Answer::Outcomes`].
    Outcomes {
        ledger: u32,
        mode: Mode,
        detail: Detail,
        outcomes: Vec<Decided>,
        /// Requests that nobody needs any more. The resolver frees them after the commit, outside the decider lock.
        spent: Vec<Request>,
    },
    /// Outcomes of commands on several ledgers, each with the number of its ledger. They become [`Answer::Outcomes`].
    Atomic {
        outcomes: Vec<(u32, Decided)>,
        spent: Vec<Request>,
    },
    /// The ledger that was created or edited.
    Ledger(LedgerInfo),
    /// The new versions of the changed documents.
    Documents(Vec<DocumentVersion>),
    Imported(Imported),
    /// The ledger at which to continue marking a bucket as deleted or restored, if there are more.
    Marked(Option<u32>),
    /// The ledgers that were removed for good.
    Removed(Vec<LedgerInfo>),
}

/// Completes the pending answers of a batch after the batch is published.
pub(super) struct Resolver<'a> {
    engine: &'a Engine,
    view: Arc<View>,
    /// The session of the last ledger. Kept because most batches are on one ledger.
    session: Option<Session>,
}

impl<'a> Resolver<'a> {
    pub(super) fn new(engine: &'a Engine, view: Arc<View>) -> Self {
        Self { engine, view, session: None }
    }

    /// Completes an answer.
    pub(super) fn resolve(&mut self, pending: Pending) -> Result<Answer, WriteError> {
        match pending {
            Pending::Ledger(info) => Ok(Answer::Ledger(info)),
            Pending::Documents(versions) => Ok(Answer::Documents(versions)),
            Pending::Imported(imported) => Ok(Answer::Imported(imported)),
            Pending::Marked(next) => Ok(Answer::Marked(next)),
            Pending::Removed(removed) => Ok(Answer::Removed(removed)),
            Pending::Atomic { outcomes, spent } => {
                drop(spent);
                let outcomes = outcomes.into_iter();
                let answers = outcomes.map(|(ledger, decided)| self.outcome(ledger, Detail::Ids, decided));
                answers.collect::<Result<_, _>>().map(Answer::Outcomes)
            }
            Pending::Outcomes { ledger, mode, detail, outcomes, spent } => {
                drop(spent);
                if mode == Mode::DryRun {
                    return self.tried(ledger, detail, outcomes).map(Answer::Outcomes);
                }
                let answers = outcomes.into_iter().map(|outcome| self.outcome(ledger, detail, outcome));
                answers.collect::<Result<_, _>>().map(Answer::Outcomes)
            }
        }
    }

    /// Completes the outcomes of a dry run. The effective volumes of each include the moves of the commands before it.
    fn tried(
        &mut self,
        ledger: u32,
        detail: Detail,
        outcomes: Vec<Decided>,
    ) -> Result<Vec<Outcome>, WriteError> {
        let mut moves = TriedMoves::default();
        let mut answers: Vec<Outcome> = Vec::with_capacity(outcomes.len());
        for decided in outcomes {
            let answer = match decided {
                Decided::Done(receipt) if receipt.replayed => {
                    // The first answer already has its effective volumes: repeat its entry.
                    let is_first = |answer: &&Outcome| matches!(answer, Outcome::Done(have) if have.log == receipt.log && !have.replayed);
                    match answers.iter().find(is_first) {
                        Some(Outcome::Done(first)) => {
                            Outcome::Done(Receipt { entry: first.entry.clone(), ..receipt })
                        }
                        _ => Outcome::Done(receipt),
                    }
                }
                Decided::Done(mut receipt) => {
                    if let Some(entry) = &mut receipt.entry {
                        self.session(ledger)?.add_tried_volumes(&mut entry.payload, &mut moves)?;
                    }
                    Outcome::Done(receipt)
                }
                other => self.outcome(ledger, detail, other)?,
            };
            answers.push(answer);
        }
        Ok(answers)
    }

    /// Completes one recorded outcome: adds effective volumes to its entry, or reads the entry of a replay.
    fn outcome(&mut self, ledger: u32, detail: Detail, decided: Decided) -> Result<Outcome, WriteError> {
        Ok(match decided {
            Decided::Done(mut receipt) => {
                // The writer only has volumes by insertion date. Compute effective volumes here, after the commit.
                if let Some(entry) = &mut receipt.entry {
                    self.session(ledger)?.add_effective_volumes(&mut entry.payload, Later::InMemory)?;
                }
                Outcome::Done(receipt)
            }
            Decided::Refused(rejection) => Outcome::Refused(rejection),
            Decided::Cancelled => Outcome::Cancelled,
            Decided::Failed(error) => Outcome::Failed(error),
            Decided::Replay { position, later } => {
                let session = self.session(ledger)?;
                let mut entry = session.reader.entry(position)?;
                if later > 0 {
                    entry = session.entry_of(entry.id.get() + later)?;
                }
                session.add_effective_volumes(&mut entry.payload, Later::Anywhere)?;
                let transaction = match &entry.payload {
                    ledger_core::LogPayload::NewTransaction { transaction, .. }
                    | ledger_core::LogPayload::RevertedTransaction { transaction, .. } => {
                        Some(transaction.id)
                    }
                    ledger_core::LogPayload::SetMetadata { .. }
                    | ledger_core::LogPayload::DeleteMetadata { .. }
                    | ledger_core::LogPayload::InsertedSchema { .. } => None,
                };
                Outcome::Done(Receipt {
                    log: entry.id,
                    transaction,
                    date: entry.date,
                    replayed: true,
                    entry: (detail == Detail::Entry).then(|| Box::new(entry)),
                    violation: None,
                })
            }
        })
    }

    /// Returns the session of a ledger. Restarts its meter, so that each answer may use the full limits of one read.
    fn session(&mut self, ledger: u32) -> Result<&Session, ReadError> {
        let cached = self.session.take().filter(|session| session.ledger() == ledger);
        let session = cached.map_or_else(|| self.engine.session(ledger, &self.view), Ok)?;
        session.meter.restart();
        Ok(self.session.insert(session))
    }
}
