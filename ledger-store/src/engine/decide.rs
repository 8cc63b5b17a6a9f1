//! Decides work: each kind of it changes the writer's state and adds entries to the batch.

use ledger_core::Timestamp;

use super::Engine;
use super::atomic::decide_atomic;
use super::engine_entries::EngineEntries;
use super::ledger_work::{change_bucket, create_ledger, edit_ledger, import_logs, live, remove_deleted};
use super::pending::{DecidedCommands, Pending, PendingOutcomes, answer_replays};
use super::work::WorkItem;
use crate::error::{ReadError, WriteError};
use crate::scripts::Programs;
use crate::submission::{Atomicity, Mode, Request, Submission};
use crate::writer::{
    Batch, COMMANDS_PREFETCHED, Decided, LedgerContext, Prefetched, Prepared, State, SubmissionParams,
    document_changes, execute, prefetch, undo,
};

/// Decides one piece of work. Changes the state and adds the resulting entries to the batch.
pub(super) fn decide_work(
    engine: &Engine,
    state: &mut State,
    work: WorkItem,
    now: Timestamp,
    batch: &mut Batch,
    has_committer_lock: bool,
) -> Pending {
    let written = EngineEntries { engine, has_committer_lock };
    match work {
        WorkItem::Apply(submission, programs, callback) => {
            let decided = decide_submission(state, submission, &programs, now, batch, &written);
            Pending::outcomes(callback, checked(engine, state, decided))
        }
        WorkItem::WriteAtomically(write, programs, callback) => {
            let decided = decide_atomic(state, write, &programs, now, batch, &written);
            Pending::outcomes(callback, checked(engine, state, decided))
        }
        WorkItem::CreateLedger(name, options, callback) => {
            let created = create_ledger(state, name, options, now, batch);
            Pending::complete(callback, checked(engine, state, created))
        }
        WorkItem::EditLedger(name, edit, callback) => {
            let edited = edit_ledger(state, &name, edit, batch);
            Pending::complete(callback, checked(engine, state, edited))
        }
        WorkItem::ChangeBucket(change, callback) => {
            let changed = change_bucket(state, &change, now, batch);
            Pending::complete(callback, checked(engine, state, changed))
        }
        WorkItem::RemoveDeleted(retention, callback) => {
            let removed = remove_deleted(state, retention, now, batch);
            Pending::complete(callback, checked(engine, state, removed))
        }
        WorkItem::ChangeDocuments(changes, callback) => {
            let changed = document_changes::change(state, &changes, batch).map_err(WriteError::from);
            let changed = changed.and_then(|changed| changed.map_err(WriteError::Document));
            Pending::complete(callback, checked(engine, state, changed))
        }
        WorkItem::Import(name, logs, callback) => {
            let imported = import_logs(state, &name, &logs, batch, &written);
            Pending::complete(callback, checked(engine, state, imported))
        }
    }
}

/// Stops all writing if a read failed halfway through applying an entry: no entry of the batch may reach the
/// journal then, and the store must be reopened. A read that fails before anything changed only fails its own
/// command.
fn checked<T>(engine: &Engine, state: &State, decided: Result<T, WriteError>) -> Result<T, WriteError> {
    if let Err(WriteError::Read(error)) = &decided
        && state.is_half_changed()
    {
        engine.stop_writing(&error.to_string());
    }
    decided
}

fn decide_submission(
    state: &mut State,
    submission: Submission,
    programs: &Programs,
    now: Timestamp,
    batch: &mut Batch,
    written: &EngineEntries<'_>,
) -> Result<PendingOutcomes, WriteError> {
    let Submission { ledger, mut requests, atomicity, mode, detail } = submission;
    let ledger = live(state, &ledger)?;
    let first = state.next;
    let whole = matches!(atomicity, Atomicity::AllOrNothing | Atomicity::AsOne);
    let mark = (mode == Mode::DryRun || whole).then(|| {
        undo::begin(state, ledger);
        batch.mark()
    });
    let mut commands = Commands {
        params: SubmissionParams { now, detail },
        atomicity,
        may_fail_alone: mark.is_none() && requests.len() > 1,
        outcomes: Vec::with_capacity(requests.len()),
        requests: &mut requests,
        programs,
    };
    let refused = commands.decide(LedgerContext { state, ledger, batch, written });
    let mut outcomes = commands.outcomes;
    if mode == Mode::DryRun {
        answer_replays(&mut outcomes, first);
    }
    let undone = match mark {
        Some(mark) if mode == Mode::DryRun || !matches!(refused, Ok(false)) => {
            undo::roll_back(state);
            batch.reset(mark);
            true
        }
        _ => {
            undo::commit(state);
            batch.touch(ledger);
            false
        }
    };
    refused?;
    if undone && mode == Mode::Commit {
        for outcome in &mut outcomes {
            if !matches!(outcome, Decided::Refused(_)) {
                *outcome = Decided::Cancelled;
            }
        }
    }
    let spent = batch.unhashed.keep(requests);
    let decided = DecidedCommands::OfLedger { ledger, mode, detail, outcomes };
    Ok(PendingOutcomes { decided, spent })
}

/// The commands of a submission while they are decided.
struct Commands<'a> {
    params: SubmissionParams,
    atomicity: Atomicity,
    /// True if a failed read fails only its own command, as for several commands that are not undone together.
    may_fail_alone: bool,
    requests: &'a mut [Request],
    programs: &'a Programs,
    outcomes: Vec<Decided>,
}

impl Commands<'_> {
    /// Decides the commands in order. Returns whether one of them was refused or failed.
    fn decide(&mut self, mut context: LedgerContext<'_, EngineEntries<'_>>) -> Result<bool, ReadError> {
        let Self { requests, outcomes, atomicity, .. } = self;
        let several = *atomicity == Atomicity::AsOne && requests.len() > 1;
        let mut refused = false;
        let mut prefetched = Prefetched::default();
        for at in 0..requests.len() {
            if prefetched.is_taken() {
                let end = requests.len().min(at + COMMANDS_PREFETCHED);
                prefetch::commands(context.state, context.ledger, &requests[at..end], &mut prefetched);
            }
            let (key_fingerprints, prefetched_accounts) = prefetched.take();
            if refused && *atomicity != Atomicity::Independent {
                outcomes.push(Decided::Cancelled);
                continue;
            }
            if *atomicity == Atomicity::AsOne
                && let Some(Decided::Replay { position, .. }) = outcomes.first()
            {
                // The entries of these commands have consecutive positions.
                let replay = Decided::Replay { position: *position, offset: at as u64 };
                outcomes.push(replay);
                continue;
            }
            let program = self.programs.get(at).and_then(Option::as_ref);
            let prepared = Prepared {
                request: &mut requests[at],
                at,
                program,
                several,
                key_fingerprints,
                prefetched_accounts,
            };
            let decided = match execute::command(&mut context, self.params, prepared) {
                Ok(decided) => decided,
                Err(error) if self.may_fail_alone && !context.state.is_half_changed() => {
                    Decided::Failed(error)
                }
                Err(error) => return Err(error),
            };
            refused |= matches!(decided, Decided::Refused(_) | Decided::Failed(_));
            outcomes.push(decided);
        }
        Ok(refused)
    }
}
