//! Decides atomic writes, which record changes of documents and commands on ledgers together.

use super::engine_entries::EngineEntries;
use super::ledger_work::live;
use super::pending::{DecidedCommands, PendingOutcomes};
use crate::atomic::{AtomicWrite, LedgerCommand};
use crate::error::{ReadError, WriteError};
use crate::scripts::Programs;
use crate::submission::{Detail, Request};
use crate::writer::{
    Batch, Decided, KeyFingerprints, LedgerContext, Prepared, State, SubmissionParams, document_changes,
    execute, undo,
};

/// Decides an atomic write. All of its entries go into this batch, which one append makes durable, or none do.
pub(super) fn decide_atomic(
    state: &mut State,
    write: AtomicWrite,
    programs: &Programs,
    now: ledger_core::Timestamp,
    batch: &mut Batch,
    written: &EngineEntries<'_>,
) -> Result<PendingOutcomes, WriteError> {
    let AtomicWrite { documents, commands } = write;
    let mut ledgers = Vec::with_capacity(commands.len());
    let mut requests = Vec::with_capacity(commands.len());
    for LedgerCommand { ledger, request } in commands {
        ledgers.push(live(state, &ledger)?);
        requests.push(request);
    }
    undo::begin_for_documents(state);
    let mark = batch.mark();
    let decided = match document_changes::change(state, &documents, batch) {
        Ok(Ok(_)) => decide_commands(state, &ledgers, &mut requests, programs, now, batch, written)
            .map_err(WriteError::from),
        Ok(Err(rejection)) => Err(WriteError::Document(rejection)),
        Err(error) => Err(error.into()),
    };
    let is_recorded = decided.as_ref().is_ok_and(|outcomes| outcomes.iter().all(is_accepted));
    if is_recorded {
        undo::commit(state);
        for ledger in &ledgers {
            batch.touch(*ledger);
        }
    } else {
        undo::roll_back(state);
        batch.reset(mark);
    }
    let mut outcomes = decided?;
    if !is_recorded {
        for outcome in outcomes.iter_mut().filter(|outcome| is_accepted(outcome)) {
            *outcome = Decided::Cancelled;
        }
    }
    let spent = batch.unhashed.keep(requests);
    let decided = DecidedCommands::OfLedgers(ledgers.into_iter().zip(outcomes).collect());
    Ok(PendingOutcomes { decided, spent })
}

/// Decides every command, even after a refusal, so that the caller learns of all refusals at once.
fn decide_commands(
    state: &mut State,
    ledgers: &[u32],
    requests: &mut [Request],
    programs: &Programs,
    now: ledger_core::Timestamp,
    batch: &mut Batch,
    written: &EngineEntries<'_>,
) -> Result<Vec<Decided>, ReadError> {
    let mut outcomes = Vec::with_capacity(requests.len());
    for (at, (ledger, request)) in ledgers.iter().zip(requests).enumerate() {
        undo::include(state, *ledger);
        let params = SubmissionParams { now, detail: Detail::Ids };
        let program = programs.get(at).and_then(Option::as_ref);
        let key_fingerprints = KeyFingerprints::default();
        let prepared =
            Prepared { request, at, program, several: false, key_fingerprints, prefetched_accounts: &[] };
        let mut context = LedgerContext { state, ledger: *ledger, batch, written };
        outcomes.push(execute::command(&mut context, params, prepared)?);
    }
    Ok(outcomes)
}

/// Returns whether a command is recorded, by this write or by an earlier one with the same idempotency key.
const fn is_accepted(outcome: &Decided) -> bool {
    matches!(outcome, Decided::Done(_) | Decided::Replay { .. })
}
