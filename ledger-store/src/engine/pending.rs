//! Answers that wait for the flush of their batch.

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

/// Answers repetitions of what the same dry run did, of which no entry will be left to read: those from
/// position `first` on, which its accepted commands have one after the other.
pub(super) fn answer_from_within(outcomes: &mut [Decided], first: Position) {
    let mut done: Vec<Receipt> = Vec::new();
    for outcome in outcomes {
        match outcome {
            Decided::Done(receipt) => done.push(receipt.clone()),
            Decided::Replay { position, .. } => {
                let within = position.get().checked_sub(first.get());
                if let Some(receipt) = within.and_then(|at| done.get(at as usize)) {
                    // The entry is told again, not what was wrong with it.
                    let receipt = Receipt { replayed: true, violation: None, ..receipt.clone() };
                    *outcome = Decided::Done(receipt);
                }
            }
            Decided::Refused(_) | Decided::Cancelled | Decided::Failed(_) => {}
        }
    }
}

/// An answer that waits for its flush.
pub(super) enum Pending {
    Outcomes {
        ledger: u32,
        mode: Mode,
        detail: Detail,
        outcomes: Vec<Decided>,
        /// Requests to be dropped beside the writer.
        spent: Vec<Request>,
    },
    /// Outcomes of commands on several ledgers, each with its ledger.
    Atomic {
        outcomes: Vec<(u32, Decided)>,
        spent: Vec<Request>,
    },
    Ledger(LedgerInfo),
    Documents(Vec<DocumentVersion>),
    Imported(Imported),
    Marked(Option<u32>),
    Removed(Vec<LedgerInfo>),
}

/// Turns what a batch decided into answers, once it is published.
pub(super) struct Resolver<'a> {
    engine: &'a Engine,
    view: Arc<View>,
    /// The session of the ledger that was asked last: most batches are of one.
    session: Option<Session>,
}

impl<'a> Resolver<'a> {
    pub(super) fn new(engine: &'a Engine, view: Arc<View>) -> Self {
        Self { engine, view, session: None }
    }

    /// The answer to be given.
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

    /// The answers of a dry run, each as if those before it had happened.
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

    fn outcome(&mut self, ledger: u32, detail: Detail, decided: Decided) -> Result<Outcome, WriteError> {
        Ok(match decided {
            Decided::Done(mut receipt) => {
                // Computed here, behind the commit: the writer has the totals by insertion only.
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

    /// The reader for a question about a ledger, within the limits of one question.
    fn session(&mut self, ledger: u32) -> Result<&Session, ReadError> {
        let kept = self.session.take().filter(|session| session.ledger() == ledger);
        let session = kept.map_or_else(|| self.engine.session(ledger, &self.view), Ok)?;
        session.meter.restart();
        Ok(self.session.insert(session))
    }
}
