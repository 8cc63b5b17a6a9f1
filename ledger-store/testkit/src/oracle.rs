//! The oracle: compares a store with the reference model.

use std::cell::Cell;
use std::collections::BTreeMap;

use ledger_core::model::{Model, ModelAnswer, ModelSavepoint};
use ledger_core::schema::Enforcement;
use ledger_core::{
    Features, HashChain, HashLogs, LedgerName, LogEntry, LogPayload, Rejection, RequestOptions, Timestamp,
    WireHash,
};
use ledger_store::testing::miscounted_bytes;
use ledger_store::{
    Atomicity, FeedPosition, ImportError, ImportRefusal, ImportedLog, Mode, Outcome, Reclaimed, Store,
    Submission, WriteError,
};

use crate::counters::Counters;
use crate::document_model::DocumentModel;
use crate::failure::Failure;
use crate::ledger_model::LedgerModel;
use crate::workload::ImportStep;
use crate::{Step, logs};

/// The expected store: the model of its ledgers, its documents, and the number of journal entries.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    pub(crate) model: Model,
    pub(crate) documents: DocumentModel,
    pub(crate) ledgers: LedgerModel,
    pub(crate) counters: Counters,
    entries: u64,
}

/// The state of an [`Oracle`] right before a step, for returning to it.
#[derive(Clone, Debug)]
pub(crate) struct OracleSnapshot {
    model: ModelSnapshot,
    documents: DocumentModel,
    ledgers: LedgerModel,
    entries: u64,
}

/// The state of a model before a step.
#[derive(Clone, Debug)]
enum ModelSnapshot {
    /// The model only grows in this step, so the lengths of its logs are enough.
    Shorter(ModelSavepoint),
    /// The step may remove ledgers, so this is a copy of the model.
    Whole(Model),
}

/// The result of a step: `None` if the store answered as expected, or the error because of which there is no answer.
type StepResult = Result<Option<WriteError>, Failure>;

impl Oracle {
    /// Creates the expected state of an empty store with this enforcement of schemas.
    pub fn enforcing(enforcement: Enforcement) -> Self {
        Self { model: Model::enforcing(enforcement), ..Self::default() }
    }

    pub(crate) fn snapshot_before(&self, step: &Step) -> OracleSnapshot {
        let model = match step {
            Step::RemoveDeleted(_) => ModelSnapshot::Whole(self.model.clone()),
            _ => ModelSnapshot::Shorter(self.model.savepoint()),
        };
        let (documents, ledgers) = (self.documents.clone(), self.ledgers.clone());
        OracleSnapshot { model, documents, ledgers, entries: self.entries }
    }

    pub(crate) fn return_to(&mut self, snapshot: OracleSnapshot) {
        match snapshot.model {
            ModelSnapshot::Shorter(savepoint) => self.model.return_to(&savepoint),
            ModelSnapshot::Whole(model) => self.model = model,
        }
        self.documents = snapshot.documents;
        self.ledgers = snapshot.ledgers;
        self.entries = snapshot.entries;
    }

    /// Forgets the ledgers that are removed in a later state. An older snapshot need not answer for them any more.
    pub fn forget_removed(&mut self, later: &Self) {
        for name in self.ledgers.removed_since(&later.ledgers) {
            self.model.remove(name);
        }
    }

    /// Executes a step on the store, except for [`Step::Reopen`], and compares the answers with those of the model.
    /// The store's clock must return `now`.
    ///
    /// If the store gives no answer (the outcome is unknown, it accepts no writes, or it cannot read), returns that
    /// error after executing the step on the model.
    ///
    /// # Errors
    ///
    /// Returns the difference between the answers.
    pub fn step(
        &mut self,
        store: &Store,
        step: &Step,
        now: Timestamp,
    ) -> Result<Option<WriteError>, Failure> {
        let judged = match step {
            Step::Create(name, options) => {
                let expected = self.ledgers.create(name, options, now);
                if expected.is_ok() {
                    self.counters.names_reused += u64::from(self.ledgers.was_removed(name));
                    self.counters.without_features += u64::from(options.features != Features::default());
                    self.model.create(name, options.clone());
                    self.entries += 1;
                }
                same(&expected, store.create_ledger(name.clone(), options.clone()))
            }
            Step::Describe(name, metadata) => {
                let expected = self.edited(|ledgers| ledgers.set_metadata(name, metadata));
                same(&expected, store.set_ledger_metadata(name, metadata.clone()))
            }
            Step::Undescribe(name, key) => {
                let expected = self.edited(|ledgers| ledgers.delete_metadata(name, key));
                same(&expected, store.delete_ledger_metadata(name, key))
            }
            Step::Map(name, mapping) => {
                let expected = self.edited(|ledgers| ledgers.set_mapping(name, mapping));
                same(&expected, store.set_mapping(name, mapping.clone()))
            }
            Step::DeleteBucket(bucket) => {
                self.entries += self.ledgers.delete(bucket, now);
                same(&Ok(()), store.delete_bucket(bucket))
            }
            Step::RestoreBucket(bucket) => {
                let expected = self.ledgers.restore(bucket).map(|restored| self.entries += restored);
                same(&expected, store.restore_bucket(bucket))
            }
            Step::RemoveDeleted(retention) => {
                let (removed, documents) = self.ledgers.remove(*retention, now);
                for info in &removed {
                    self.model.remove(&info.name);
                }
                self.entries += documents;
                self.counters.removed += removed.len() as u64;
                same(&Ok(removed), store.remove_deleted(*retention))
            }
            Step::Reclaim(stops_after) => reclaim(store, *stops_after),
            Step::Submit(submission) => self.submission(store, submission, now),
            Step::Documents(steps) => {
                let changes = self.documents.to_changes(steps);
                let expected = self.documents.apply(&changes, self.entries + 1).map_err(WriteError::Document);
                self.entries += expected.as_ref().map_or(0, |versions| versions.len() as u64);
                same(&expected, store.change_documents(changes))
            }
            Step::Import(import) => self.import(store, import),
            Step::Flush => {
                store.flush();
                Ok(None)
            }
            Step::Reopen => Ok(None),
        };
        let judged = judged
            .and_then(|judged| miscounted_bytes(store).map_or(Ok(judged), |differs| Err(differs.into())));
        judged.map_err(|failure| failure.during(format!("by {step:?}")))
    }

    /// Executes an edit that takes one journal entry, if it succeeds.
    fn edited(
        &mut self,
        edit: impl FnOnce(&mut LedgerModel) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        edit(&mut self.ledgers)?;
        self.entries += 1;
        Ok(())
    }

    fn submission(&mut self, store: &Store, submission: &Submission, now: Timestamp) -> StepResult {
        self.counters.submissions += 1;
        let found = store.apply(submission.clone());
        if self.ledgers.info(&submission.ledger).is_none() {
            self.counters.not_found += 1;
            return same(&Err(WriteError::LedgerNotFound { ledger: submission.ledger.clone() }), found);
        }
        let expected = self.submit(submission, found.as_deref().unwrap_or_default(), now);
        let found = match found {
            Ok(found) => found,
            Err(error) if is_no_answer(&error) => return Ok(Some(error)),
            Err(error) => return Err(format!("{error:?}, expected {expected:?}").into()),
        };
        if expected.len() != found.len() {
            return Err(format!("{} answers, expected {}", found.len(), expected.len()).into());
        }
        match expected.iter().zip(&found).find(|(expected, found)| !expected.is(found)) {
            None => Ok(None),
            Some((expected, found)) => Err(format!("{found:?}, expected {expected:?}").into()),
        }
    }

    /// Executes a submission on the model. Commands of `found` whose reads failed have no effect.
    pub(crate) fn simulate(&mut self, submission: &Submission, found: &[Outcome], now: Timestamp) {
        self.submit(submission, found, now);
    }

    /// Executes a submission on the model and returns its answer. Commands of `found` whose reads failed have no
    /// effect.
    fn submit(&mut self, submission: &Submission, found: &[Outcome], now: Timestamp) -> Vec<Expected> {
        let before = self.model.savepoint();
        let log = |model: &Model| model.log(&submission.ledger).len() as u64;
        let length = log(&self.model);
        let mut refused = false;
        let mut expected = Vec::new();
        let whole = matches!(submission.atomicity, Atomicity::AllOrNothing | Atomicity::AsOne);
        let stand_alone = !whole && submission.mode == Mode::Commit && submission.requests.len() > 1;
        for (at, request) in submission.requests.iter().enumerate() {
            if refused && submission.atomicity != Atomicity::Independent {
                expected.push(Expected::Cancelled);
                continue;
            }
            if stand_alone && matches!(found.get(at), Some(Outcome::Failed(_))) {
                refused = true;
                expected.push(Expected::Failed);
                continue;
            }
            if submission.atomicity == Atomicity::AsOne
                && let Some(Expected::Done(first)) = expected.first()
                && first.replayed
            {
                // The entries were recorded in sequence, and all of them are replayed.
                let log = self.model.log(&submission.ledger);
                let replayed = log.iter().skip_while(|entry| entry.id != first.entry.id).nth(expected.len());
                let entry = replayed.expect("the model has recorded the replayed entry").clone();
                expected.push(Expected::Done(ModelAnswer { entry, replayed: true, violation: None }));
                continue;
            }
            let options = RequestOptions {
                idempotency: request.idempotency.as_deref(),
                schema_version: request.schema_version.as_deref(),
                preconditions: request.preconditions.as_deref(),
                several: submission.atomicity == Atomicity::AsOne && submission.requests.len() > 1,
            };
            let (ledger, command) = (&submission.ledger, &request.command);
            expected.push(match self.model.execute_request(ledger, command, options, false, now) {
                Ok(answer) => Expected::Done(answer),
                Err(rejection) => {
                    refused = true;
                    Expected::Refused(rejection)
                }
            });
        }
        if submission.atomicity == Atomicity::AsOne && expected.len() > 1 {
            let is_replayed = matches!(&expected[0], Expected::Done(answer) if answer.replayed);
            let count = match (refused, is_replayed) {
                (true, _) => &mut self.counters.joined_undone,
                (false, true) => &mut self.counters.joined_replayed,
                (false, false) => &mut self.counters.joined,
            };
            *count += 1;
        }
        let undone = refused && whole;
        if undone || submission.mode == Mode::DryRun {
            self.model.return_to(&before);
        } else if log(&self.model) > length {
            self.entries += log(&self.model) - length;
            self.ledgers.mark_in_use(&submission.ledger);
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

    fn import(&mut self, store: &Store, step: &ImportStep) -> StepResult {
        let had = self.model.log(&step.to).len();
        let first = if step.again { 0 } else { had };
        let mut chain = HashChain::after(None);
        let mut logs = Vec::new();
        for (at, entry) in self.model.log(&step.from).iter().enumerate() {
            let hash = chain.append(entry);
            if (first..first + step.count).contains(&at) {
                logs.push((entry.clone(), hash));
            }
        }
        // A ledger without hashes compares none: its log must be complete and the imported logs must continue it.
        let info = self.ledgers.info(&step.to);
        let hashed = info.is_some_and(|info| info.features.hash_logs == HashLogs::Sync);
        if !hashed && !self.follows(&step.to, &step.from) {
            logs.clear();
        }
        let damaged = step.damaged.filter(|damaged| hashed && *damaged < logs.len());
        let given: Vec<ImportedLog> =
            logs.iter().enumerate().map(|(at, log)| imported(log, damaged == Some(at))).collect();
        let refusal = match logs.first() {
            _ if info.is_none() => Some(Err(WriteError::LedgerNotFound { ledger: step.to.clone() })),
            Some((entry, _)) if self.ledgers.is_in_use(&step.to) => Some(Ok((entry.id, "in use"))),
            Some((entry, _)) if self.model.log(&step.to).last().is_some_and(|last| entry.id <= last.id) => {
                Some(Ok((entry.id, "log exists")))
            }
            // The imported logs continue those of an earlier ledger with the same name.
            Some((entry, _)) if !self.follows(&step.to, &step.from) => Some(Ok((entry.id, "wrong hash"))),
            _ => None,
        };
        let expected = match (refusal, damaged) {
            (Some(refusal), _) => Some(refusal),
            (None, damaged) => {
                let taken = damaged.unwrap_or(logs.len());
                for (entry, _) in &logs[..taken] {
                    self.model.import(&step.to, entry.clone());
                }
                self.entries += taken as u64;
                damaged.map(|damaged| Ok((logs[damaged].0.id, "wrong hash")))
            }
        };
        let found = match store.import_new(&step.to, &given) {
            Ok(()) => None,
            Err(ImportError::Write(error)) if is_no_answer(&error) => return Ok(Some(error)),
            Err(ImportError::Write(error)) => Some(Err(error)),
            Err(ImportError::Refused { log, refusal }) => Some(Ok((log, refusal_name(&refusal)))),
            Err(error) => return Err(format!("{error:?}: the model has no such error").into()),
        };
        if found == expected { Ok(None) } else { Err(format!("{found:?}, expected {expected:?}").into()) }
    }

    /// Returns whether the log of a ledger is the beginning of another's, apart from values that each computes itself.
    fn follows(&self, to: &LedgerName, from: &LedgerName) -> bool {
        let (to, from) = (self.model.log(to), self.model.log(from));
        to.len() <= from.len() && to.iter().zip(from).all(|(to, from)| as_recorded(to) == as_recorded(from))
    }

    /// Compares every log of the store with the model's, and the list of ledgers.
    ///
    /// # Errors
    ///
    /// Returns the difference.
    pub fn compare(&self, store: &Store) -> Result<(), Failure> {
        let found = logs(store)?;
        let names: Vec<&LedgerName> = self.model.ledgers().collect();
        if names != found.keys().collect::<Vec<_>>() {
            return Err(format!("ledgers {:?}, expected {names:?}", found.keys()).into());
        }
        for (name, found) in &found {
            self.compare_log(name, found)?;
        }
        let entries = store.status().entries;
        if entries != self.entries {
            return Err(format!("{entries} entries, expected {}", self.entries).into());
        }
        self.ledgers.compare(&store.snapshot())?;
        self.compare_feed(store)
    }

    fn compare_log(&self, name: &LedgerName, found: &[LogEntry]) -> Result<(), Failure> {
        let expected: Vec<LogEntry> = self.model.log(name).iter().map(as_recorded).collect();
        let found: Vec<LogEntry> = found.iter().map(as_recorded).collect();
        if found == expected {
            return Ok(());
        }
        let at = found.iter().zip(&expected).take_while(|(found, expected)| found == expected).count();
        Err(format!(
            "the log of {name} has {} entries, expected {}; the first that differs is {:?}, expected {:?}",
            found.len(),
            expected.len(),
            found.get(at),
            expected.get(at)
        )
        .into())
    }

    /// Checks that the feed of all ledgers contains the logs of each ledger, in order.
    fn compare_feed(&self, store: &Store) -> Result<(), Failure> {
        let snapshot = store.snapshot();
        let mut fed: BTreeMap<LedgerName, Vec<LogEntry>> = BTreeMap::new();
        let mut at = FeedPosition::FIRST;
        while at < snapshot.feed_end() {
            let part = snapshot.feed(at)?;
            if part.next <= at {
                return Err(format!("the feed stands still at {}", at.get()).into());
            }
            for log in part.logs {
                if Some(log.number) != self.ledgers.number(&log.ledger) {
                    return Err(
                        format!("the feed has a log of {}, as ledger {}", log.ledger, log.number).into()
                    );
                }
                fed.entry(log.ledger).or_default().push(log.log.entry);
            }
            at = part.next;
        }
        for name in self.model.ledgers() {
            self.compare_log(name, fed.get(name).map_or(&[], Vec::as_slice))
                .map_err(|failure| failure.during("by the feed"))?;
        }
        Ok(())
    }
}

/// Frees space, which changes no answer. Checks that after a complete run nothing is left to free.
fn reclaim(store: &Store, stops_after: Option<u64>) -> StepResult {
    let asked = Cell::new(0);
    let should_stop = || {
        asked.set(asked.get() + 1);
        stops_after.is_some_and(|stops_after| asked.get() > stops_after)
    };
    let reclaimed = match store.reclaim(&should_stop) {
        Ok(reclaimed) => reclaimed,
        Err(error) => return Ok(Some(error.into())),
    };
    if !reclaimed.is_done {
        let was_told = stops_after.is_some_and(|stops_after| asked.get() > stops_after);
        return if was_told { Ok(None) } else { Err("space was not given back to the end".into()) };
    }
    match store.reclaim(&|| false) {
        Ok(again) if again == (Reclaimed { is_done: true, ..Reclaimed::default() }) => Ok(None),
        Ok(again) => Err(format!("{again:?} after {reclaimed:?}").into()),
        Err(error) => Ok(Some(error.into())),
    }
}

/// Compares an answer.
fn same<T: PartialEq + std::fmt::Debug>(
    expected: &Result<T, WriteError>,
    found: Result<T, WriteError>,
) -> StepResult {
    match found {
        Err(error) if is_no_answer(&error) => Ok(Some(error)),
        found if found == *expected => Ok(None),
        found => Err(format!("{found:?}, expected {expected:?}").into()),
    }
}

fn is_no_answer(error: &WriteError) -> bool {
    matches!(
        error,
        WriteError::OutcomeUnknown { .. }
            | WriteError::Stopped { .. }
            | WriteError::Storage { .. }
            | WriteError::DiskNearlyFull
            | WriteError::Read(_)
    )
}

fn imported((entry, hash): &(LogEntry, WireHash), is_damaged: bool) -> ImportedLog {
    // An export does not contain the defaults from the chart.
    let mut entry = LogEntry { defaults: Vec::new(), ..entry.clone() };
    if is_damaged {
        entry.date = Timestamp::from_micros(entry.date.as_micros() + 1);
    }
    ImportedLog { entry, hash: Some(*hash), original_updated_at: None, tells_volumes: true }
}

fn refusal_name(refusal: &ImportRefusal) -> &'static str {
    match refusal {
        ImportRefusal::InUse => "in use",
        ImportRefusal::LogExists => "log exists",
        ImportRefusal::WrongHash { .. } => "wrong hash",
        ImportRefusal::Inconsistent { .. } => "inconsistent",
        _ => "a refusal that the model does not have",
    }
}

/// The model's answer to one request.
#[derive(Debug)]
enum Expected {
    Done(ModelAnswer),
    Refused(Rejection),
    Cancelled,
    /// A read failed. Only one of several independent requests may have this answer.
    Failed,
}

impl Expected {
    /// Returns whether the answer equals an outcome.
    fn is(&self, outcome: &Outcome) -> bool {
        match (self, outcome) {
            (Self::Done(expected), Outcome::Done(found)) => {
                found.entry.as_deref() == Some(&expected.entry)
                    && expected.replayed == found.replayed
                    && expected.entry.id == found.log
                    && expected.entry.date == found.date
                    && expected.violation.as_ref() == found.violation.as_deref()
            }
            (Self::Refused(expected), Outcome::Refused(found)) => expected == found,
            (Self::Cancelled, Outcome::Cancelled) | (Self::Failed, Outcome::Failed(_)) => true,
            _ => false,
        }
    }
}

/// Returns an entry as the journal stores it. Volumes in effective order are computed on request.
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
