//! Judges a store by the reference model.

use ledger_core::model::{Model, ModelAnswer};
use ledger_core::{LedgerName, LogEntry, LogPayload, Rejection, Timestamp};

use super::{Step, logs};
use crate::error::WriteError;
use crate::store::Store;
use crate::submission::{Atomicity, Mode, Outcome, Submission};

/// What a store must be like: the model, and how many entries its journal has.
#[derive(Clone, Debug, Default)]
pub struct Judge {
    model: Model,
    entries: u64,
}

impl Judge {
    /// Does a step at the time `now` and says what the store must answer; `None` where it is not asked.
    fn expect(&mut self, step: &Step, now: Timestamp) -> Option<Result<Vec<Expected>, WriteError>> {
        match step {
            Step::Create(name, options) => {
                if !self.model.create(name, options.clone()) {
                    return Some(Err(WriteError::LedgerExists));
                }
                self.entries += 1;
                Some(Ok(Vec::new()))
            }
            Step::Submit(submission) => {
                if !self.model.ledgers().any(|name| *name == submission.ledger) {
                    return Some(Err(WriteError::LedgerNotFound));
                }
                Some(Ok(self.submit(submission, now)))
            }
            Step::Flush | Step::Reopen => None,
        }
    }

    fn submit(&mut self, submission: &Submission, now: Timestamp) -> Vec<Expected> {
        let before = self.model.clone();
        let mut refused = false;
        let mut expected = Vec::new();
        for request in &submission.requests {
            if refused && submission.atomicity != Atomicity::Independent {
                expected.push(Expected::Cancelled);
                continue;
            }
            let idempotency = request.idempotency.as_deref();
            let answer = self.model.execute(&submission.ledger, &request.command, idempotency, false, now);
            expected.push(match answer {
                Ok(answer) => Expected::Done(answer),
                Err(rejection) => {
                    refused = true;
                    Expected::Refused(rejection)
                }
            });
        }
        let undone = refused && submission.atomicity == Atomicity::AllOrNothing;
        if undone || submission.mode == Mode::DryRun {
            self.model = before;
        } else {
            let log = |model: &Model| model.log(&submission.ledger).len() as u64;
            self.entries += log(&self.model) - log(&before);
        }
        if undone && submission.mode == Mode::Commit {
            for expected in &mut expected {
                if !matches!(expected, Expected::Refused(_)) {
                    *expected = Expected::Cancelled;
                }
            }
        }
        expected
    }

    /// Lets the store do a step, except for [`Step::Reopen`], and compares the answers with the model's. The
    /// store's clock must tell `now`.
    ///
    /// If the store's answer is no answer (the outcome is unknown, it takes no writes, or it cannot read),
    /// that is returned, and the judge has done the step.
    ///
    /// # Errors
    ///
    /// What differs.
    pub fn step(&mut self, store: &Store, step: &Step, now: Timestamp) -> Result<Option<WriteError>, String> {
        let expected = self.expect(step, now);
        let found = match step {
            Step::Create(name, options) => {
                store.create_ledger(name.clone(), options.clone()).map(|_| Vec::new())
            }
            Step::Submit(submission) => store.apply(submission.clone()),
            Step::Flush => {
                store.flush();
                return Ok(None);
            }
            Step::Reopen => return Ok(None),
        };
        match (expected, found) {
            (
                _,
                Err(
                    error @ (WriteError::OutcomeUnknown { .. }
                    | WriteError::Stopped { .. }
                    | WriteError::Read(_)),
                ),
            ) => Ok(Some(error)),
            (Some(Err(expected)), Err(found)) if expected == found => Ok(None),
            (Some(Ok(expected)), Ok(found)) => {
                // Of the commands of a dry run none sees the others in effective order.
                let exactly = match step {
                    Step::Submit(submission) => {
                        submission.mode == Mode::Commit || submission.requests.len() == 1
                    }
                    Step::Create(..) | Step::Flush | Step::Reopen => true,
                };
                if expected.len() != found.len() {
                    return Err(format!("{} answers, expected {}", found.len(), expected.len()));
                }
                match expected.iter().zip(&found).find(|(expected, found)| !expected.is(found, exactly)) {
                    None => Ok(None),
                    Some((expected, found)) => Err(format!("{step:?}: {found:?}, expected {expected:?}")),
                }
            }
            (expected, found) => Err(format!("{step:?}: {found:?}, expected {expected:?}")),
        }
    }

    /// Compares every log of the store with the model's.
    ///
    /// # Errors
    ///
    /// What differs.
    pub fn compare(&self, store: &Store) -> Result<(), String> {
        let found = logs(store).map_err(|error| error.to_string())?;
        let names: Vec<&LedgerName> = self.model.ledgers().collect();
        if names != found.keys().collect::<Vec<_>>() {
            return Err(format!("ledgers {:?}, expected {names:?}", found.keys()));
        }
        for (name, found) in &found {
            let expected: Vec<LogEntry> = self.model.log(name).iter().map(as_recorded).collect();
            let found: Vec<LogEntry> = found.iter().map(as_recorded).collect();
            if found != expected {
                let at =
                    found.iter().zip(&expected).take_while(|(found, expected)| found == expected).count();
                return Err(format!(
                    "the log of {name} has {} entries, expected {}; the first that differs is {:?}, expected {:?}",
                    found.len(),
                    expected.len(),
                    found.get(at),
                    expected.get(at)
                ));
            }
        }
        let entries = store.status().entries;
        if entries != self.entries {
            return Err(format!("{entries} entries, expected {}", self.entries));
        }
        Ok(())
    }
}

/// The model's answer to one request.
#[derive(Debug)]
enum Expected {
    Done(ModelAnswer),
    Refused(Rejection),
    Cancelled,
}

impl Expected {
    /// Whether it is this outcome; `exactly`: with volumes in effective order.
    fn is(&self, outcome: &Outcome, exactly: bool) -> bool {
        match (self, outcome) {
            (Self::Done(expected), Outcome::Done(found)) => {
                let entry = match found.entry.as_deref() {
                    Some(entry) if exactly => *entry == expected.entry,
                    Some(entry) => as_recorded(entry) == as_recorded(&expected.entry),
                    None => false,
                };
                entry
                    && expected.replayed == found.replayed
                    && expected.entry.id == found.log
                    && expected.entry.date == found.date
            }
            (Self::Refused(expected), Outcome::Refused(found)) => expected == found,
            (Self::Cancelled, Outcome::Cancelled) => true,
            _ => false,
        }
    }
}

/// An entry as the journal has it: volumes in effective order are computed when they are asked for.
fn as_recorded(entry: &LogEntry) -> LogEntry {
    let mut entry = entry.clone();
    match &mut entry.payload {
        LogPayload::NewTransaction { effective_volumes, .. }
        | LogPayload::RevertedTransaction { effective_volumes, .. } => *effective_volumes = None,
        LogPayload::SetMetadata { .. }
        | LogPayload::DeleteMetadata { .. }
        | LogPayload::InsertedSchema { .. } => {}
    }
    entry
}
