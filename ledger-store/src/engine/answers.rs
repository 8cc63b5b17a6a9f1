//! Turns the decided outcomes of a batch into the answers that callers receive.

use std::sync::Arc;

use super::Engine;
use super::pending::{DecidedCommands, Pending, PendingOutcomes};
use crate::cause::Cause;
use crate::error::{ReadError, WriteError};
use crate::read::{DryRunMoves, LaterTransactions, Session, effective, logs};
use crate::submission::{Detail, Mode, Outcome, Receipt};
use crate::view::View;
use crate::writer::Decided;

/// Turns the outcomes of a published batch into answers.
pub(super) struct Resolver<'a> {
    engine: &'a Engine,
    view: Arc<View>,
    /// The session of the last ledger that an answer needed. Most batches concern a single ledger.
    session: Option<Session>,
}

impl<'a> Resolver<'a> {
    pub(super) fn new(engine: &'a Engine, view: Arc<View>) -> Self {
        Self { engine, view, session: None }
    }

    /// Completes an answer and gives it to its caller.
    pub(super) fn answer(&mut self, pending: Pending) {
        match pending {
            Pending::Complete(answer) => answer(Ok(())),
            Pending::Outcomes(pending, callback) => {
                let is_dry_run = pending.is_dry_run();
                callback.call(self.outcomes(pending).map_err(|error| match error {
                    // The write is durable, but its answer cannot be completed. A read error would say that the write
                    // had no effect.
                    WriteError::Read(error) if !is_dry_run => WriteError::OutcomeUnknown(Cause::of(error)),
                    other => other,
                }));
            }
        }
    }

    fn outcomes(&mut self, pending: PendingOutcomes) -> Result<Vec<Outcome>, WriteError> {
        let PendingOutcomes { decided, spent } = pending;
        // The requests are freed here, outside the decider lock.
        drop(spent);
        match decided {
            DecidedCommands::OfLedgers(outcomes) => outcomes
                .into_iter()
                .map(|(ledger, decided)| self.outcome(ledger, Detail::Ids, decided))
                .collect(),
            DecidedCommands::OfLedger { ledger, mode: Mode::DryRun, detail, outcomes } => {
                self.dry_run_outcomes(ledger, detail, outcomes)
            }
            DecidedCommands::OfLedger { ledger, mode: Mode::Commit, detail, outcomes } => {
                outcomes.into_iter().map(|outcome| self.outcome(ledger, detail, outcome)).collect()
            }
        }
    }

    /// Builds the answers of a dry run. Each includes the effects of the commands before it, although nothing is
    /// recorded.
    fn dry_run_outcomes(
        &mut self,
        ledger: u32,
        detail: Detail,
        outcomes: Vec<Decided>,
    ) -> Result<Vec<Outcome>, WriteError> {
        let mut moves = DryRunMoves::default();
        let mut answers: Vec<Outcome> = Vec::with_capacity(outcomes.len());
        for decided in outcomes {
            let answer = match decided {
                Decided::Done(receipt) if receipt.replayed => {
                    // A replay within the dry run repeats the entry of the command that used the key first.
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
                        effective::add_dry_run_volumes(
                            self.session(ledger)?,
                            &mut entry.payload,
                            &mut moves,
                        )?;
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
                // Computed here, after the commit: the writer only has volumes in insertion order.
                if let Some(entry) = &mut receipt.entry {
                    effective::add_effective_volumes(
                        self.session(ledger)?,
                        &mut entry.payload,
                        LaterTransactions::InMemory,
                    )?;
                }
                Outcome::Done(receipt)
            }
            Decided::Refused(rejection) => Outcome::Refused(rejection),
            Decided::Cancelled => Outcome::Cancelled,
            Decided::Failed(error) => Outcome::Failed(error),
            Decided::Replay { position, offset } => {
                let session = self.session(ledger)?;
                let mut entry = session.reader.entry(position)?;
                if offset > 0 {
                    entry = logs::entry_of(session, entry.id.get() + offset)?;
                }
                effective::add_effective_volumes(session, &mut entry.payload, LaterTransactions::Anywhere)?;
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

    /// Returns the session for a ledger. Its meter starts anew, because the limits of a read hold for each answer.
    fn session(&mut self, ledger: u32) -> Result<&Session, ReadError> {
        let kept = self.session.take().filter(|session| session.ledger() == ledger);
        let session = kept.map_or_else(|| self.engine.session(ledger, &self.view), Ok)?;
        session.meter.restart();
        Ok(self.session.insert(session))
    }
}
