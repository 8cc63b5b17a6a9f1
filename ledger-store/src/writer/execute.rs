//! Executes one command: loads its facts, decides it, and applies its entry.

use ledger_core::enforcement::check;
use ledger_core::settle;
use ledger_core::{
    Admission, Command, Decision, Facts, Idempotency, LegacyLog, LogEntry, LogId, Memento, Movement,
    Rejection, RequestOptions, SchemaVersion, Timestamp, TransactionId, admission_needs, admit, check_sizes,
    decide,
};
use ledger_journal::SectionId;
use ledger_journal::entry::{Body, IdempotencyRecord, LedgerBase, LogRecord, Record};

use super::batch::Batch;
use super::command::{Decided, Prepared, SubmissionParams};
use super::context::{LedgerContext, Stop};
use super::hints::Hints;
use super::load::Loaded;
use super::payload::{EntryContent, complete_payload};
use super::script_reads::ScriptReads;
use super::state::State;
use super::written_entries::WrittenEntries;
use super::{apply, load, numbers, settled};
use crate::error::ReadError;
use crate::hashes::ChainId;
use crate::scripts::Compiled;
use crate::submission::{Detail, Receipt, Request};

/// A decision with the other content of its log entry.
struct NewEntry<'a, 'd> {
    decision: &'a Decision<'d>,
    /// The ledger's next ids, which the entry will use, and its date.
    base: LedgerBase,
    date: Timestamp,
    idempotency: Option<&'a Idempotency>,
    schema_version: Option<&'a str>,
}

impl NewEntry<'_, '_> {
    /// Returns the id that the transaction gets, if the decision creates one.
    const fn transaction_id(&self) -> TransactionId {
        TransactionId::new(self.base.transaction)
    }
}

/// Decides a command and, if it is accepted, applies its entry.
pub(crate) fn command(
    context: &mut LedgerContext<'_, impl WrittenEntries>,
    params: SubmissionParams,
    prepared: Prepared<'_>,
) -> Result<Decided, ReadError> {
    match execute(context, params, prepared) {
        Ok(decided) => Ok(decided),
        Err(Stop::Refused(rejection)) => Ok(Decided::Refused(rejection)),
        Err(Stop::Failed(error)) => Err(error),
    }
}

/// Executes a command, unless its request was executed before.
fn execute(
    context: &mut LedgerContext<'_, impl WrittenEntries>,
    params: SubmissionParams,
    prepared: Prepared<'_>,
) -> Result<Decided, Stop<Rejection>> {
    let ledger = context.ledger;
    let SubmissionParams { now, detail } = params;
    let Prepared { request, at, program, several, key_fingerprints, prefetched_accounts } = prepared;
    let Request { command, idempotency, schema_version, preconditions } = request;
    let options = RequestOptions {
        idempotency: idempotency.as_deref(),
        schema_version: schema_version.as_deref(),
        preconditions: preconditions.as_deref(),
        several,
    };
    options.check_size()?;
    check_sizes(command)?;
    let date = next_date(context.state, ledger, now);
    let mut loaded = Loaded::nothing(key_fingerprints);
    load::load(context, &admission_needs(command, options), &[], date, &mut loaded)?;
    let enforcement = context.state.enforcement;
    let mut violation = match admit(command, options, &loaded.facts, enforcement, date)? {
        Admission::Replay => {
            let position = loaded.hints.prior.expect("the earlier request was found with its entry");
            return Ok(Decided::Replay { position, offset: 0 });
        }
        Admission::Execute { violation } => violation,
    };
    run_script(context, command, program)?;
    let slots = settled::load_facts(context, command, prefetched_accounts, date, &mut loaded)?;
    let Loaded { facts, hints } = &mut loaded;
    let decision = decide(command, &slots, facts, date)?;
    if let Some(version) = options.schema_version
        && let Some(Ok(schema)) = facts.named_schema.as_deref()
    {
        let outside = check(&decision, version, schema, enforcement)?;
        violation = violation.or(outside);
    }
    let base = next_base(context.state, ledger, date);
    let schema_version = options.schema_version.map(SchemaVersion::as_str);
    let new_entry =
        NewEntry { decision: &decision, base, date, idempotency: options.idempotency, schema_version };
    enter(context.state, &new_entry, facts, hints, context.batch)?;
    let is_creation = matches!(command, Command::CreateTransaction(_));
    let creation = (is_creation && detail == Detail::Ids).then_some(at);
    queue_for_hashing(context.state, &new_entry, creation, context.batch);
    let id = TransactionId::new(base.transaction);
    let log = LogId::new(base.log);
    let transaction = matches!(decision, Decision::Transaction(_)).then_some(id);
    let entry = if detail == Detail::Entry {
        Some(Box::new(LogEntry {
            id: log,
            date,
            request_hash: None,
            schema_version: schema_version.map(Into::into),
            defaults: std::mem::take(&mut hints.defaults),
            payload: match EntryContent::of(decision, std::mem::take(&mut facts.volumes), id, date) {
                EntryContent::Created(transaction) => complete_payload(transaction, command),
                EntryContent::Payload(payload) => payload,
            },
            idempotency: idempotency.take().map(|idempotency| *idempotency),
        }))
    } else {
        None
    };
    let violation = violation.map(Box::new);
    Ok(Decided::Done(Receipt { log, transaction, date, replayed: false, entry, violation }))
}

/// Applies the entry of a decision and adds it to the batch.
fn enter(
    state: &mut State,
    new_entry: &NewEntry<'_, '_>,
    facts: &Facts,
    hints: &Hints,
    batch: &mut Batch,
) -> Result<(), ReadError> {
    let base = new_entry.base;
    let section = SectionId(state.ledgers[base.ledger].head.section);
    let log = LogRecord {
        ledger: base.ledger,
        log: base.log,
        date: new_entry.date,
        idempotency: new_entry
            .idempotency
            .map(|have| IdempotencyRecord { key: have.key.as_str(), hash: &have.hash }),
        schema_version: new_entry.schema_version,
        imported: false,
        event: numbers::event(state, base.ledger, base.transaction, new_entry.decision, facts, hints),
    };
    let record = Record { position: state.next, body: Body::Log(log) };
    apply::entry(state, &record, hints, &mut batch.rows)?;
    batch.chunks.push(&record, section, base);
    Ok(())
}

/// Queues the entry for the hashing thread. If `creation` is given, that thread takes the content from the request at this
/// index of the submission; otherwise it is copied here.
fn queue_for_hashing(
    state: &mut State,
    new_entry: &NewEntry<'_, '_>,
    creation: Option<usize>,
    batch: &mut Batch,
) {
    let LedgerBase { ledger, log, .. } = new_entry.base;
    let (id, date) = (new_entry.transaction_id(), new_entry.date);
    let features = state.ledgers[ledger].head.info.features;
    if ChainId::legacy(ledger).is_kept(features) {
        batch.unhashed.push_legacy(ledger, log, &LegacyLog::of_decision(new_entry.decision, log, id, date));
    }
    if ChainId::wire(ledger).is_kept(features) {
        if let Some(at) = creation {
            batch.unhashed.push_create(ledger, log, at, id, date);
        } else {
            let key = new_entry.idempotency.map(|have| &have.key);
            let memento = Memento::of_decision(new_entry.decision, id, date, key, new_entry.schema_version);
            batch.unhashed.push(ledger, log, &memento);
        }
    }
}

/// Returns the ids and the date for the next entry of a ledger.
fn next_base(state: &mut State, ledger: u32, date: Timestamp) -> LedgerBase {
    let counters = state.ledgers[ledger].counters();
    LedgerBase {
        ledger,
        log: counters.next_log,
        transaction: counters.next_transaction,
        date: date.as_micros(),
    }
}

/// Returns the date for the next entry. The dates of a log never decrease.
fn next_date(state: &mut State, ledger: u32, now: Timestamp) -> Timestamp {
    state.ledgers[ledger].head.counters.last_date.max(now)
}

/// Runs the script of a command and replaces it by its postings, unless the command is refused. A template's script is
/// known only after admission, so it is compiled here, once.
fn run_script(
    LedgerContext { state, ledger, written, .. }: &mut LedgerContext<'_, impl WrittenEntries>,
    command: &mut Command,
    program: Option<&Compiled>,
) -> Result<(), Stop<Rejection>> {
    let Command::CreateTransaction(create) = &mut *command else { return Ok(()) };
    let Movement::Script(script) = &create.movement else { return Ok(()) };
    let of_template = if program.is_none() { Some(written.compile(script)) } else { None };
    let program =
        program.or(of_template.as_ref()).expect("a script comes with the request or from its template");
    settle(create, program, &mut ScriptReads { state, ledger: *ledger })??;
    Ok(check_sizes(command)?)
}
