//! Executes one command: loads its facts, decides it, and applies its entry.

use ledger_core::enforcement::{check, resolve};
use ledger_core::settle;
use ledger_core::{
    Command, Decision, Facts, Idempotency, LegacyLog, LogEntry, LogId, Memento, Movement, Rejection, Rules,
    SchemaVersion, Timestamp, TransactionId, check_before_script, decide, needs,
};
use ledger_journal::SectionId;
use ledger_journal::entry::{Body, Event, IdempotencyRecord, LedgerBase, LogRecord, Record};

use super::batch::Batch;
use super::command::{Decided, Prepared, Setting};
use super::hints::Hints;
use super::load::Loaded;
use super::payload::{Told, created};
use super::schema_cache::ReadSchema;
use super::script::ScriptReads;
use super::state::State;
use super::written::WrittenEntries;
use super::{apply, load, numbers, schema};
use crate::error::ReadError;
use crate::hashes::ChainId;
use crate::scripts::Compiled;
use crate::submission::{Detail, Receipt, Request};

/// A decision with the other content of its log entry.
struct Entering<'a, 'd> {
    decision: &'a Decision<'d>,
    /// The ledger's next ids, which the entry will use, and its date.
    base: LedgerBase,
    date: Timestamp,
    idempotency: Option<&'a Idempotency>,
    schema_version: Option<&'a str>,
}

impl Entering<'_, '_> {
    /// Returns the id of the transaction, if the decision creates one.
    const fn transaction_id(&self) -> TransactionId {
        TransactionId::new(self.base.transaction)
    }
}

/// Decides a command and, if it is accepted, applies its entry. Returns `None` if the command was recorded.
/// `receipt`, which must be empty, is then filled in place: copying data that was just written would stall the
/// processor until earlier writes have completed.
pub(crate) fn command(
    state: &mut State,
    setting: Setting,
    prepared: Prepared<'_>,
    batch: &mut Batch,
    written: &impl WrittenEntries,
    receipt: &mut Receipt,
) -> Result<Option<Decided>, ReadError> {
    if let Some(prior) = find_prior(state, setting.ledger, &prepared, batch, written)? {
        return Ok(Some(prior));
    }
    let executed = execute_new(state, setting, prepared, batch, written, receipt)?;
    Ok(executed.err().map(Decided::Refused))
}

/// Returns the answer to a command whose idempotency key was used before.
fn find_prior(
    state: &State,
    ledger: u32,
    prepared: &Prepared<'_>,
    batch: &mut Batch,
    written: &impl WrittenEntries,
) -> Result<Option<Decided>, ReadError> {
    let Some(have) = &prepared.request.idempotency else { return Ok(None) };
    let used = load::used_key(state, ledger, have.key.as_str(), prepared.prints.idempotency, batch, written)?;
    let Some((position, first)) = used else { return Ok(None) };
    if first.admits(&have.hash, &prepared.request.command, prepared.several) {
        return Ok(Some(Decided::Replay { position, offset: 0 }));
    }
    Ok(Some(Decided::Refused(Rejection::IdempotencyMismatch {
        key: have.key.as_str().into(),
        computed: have.hash.clone(),
        stored: first.hash,
    })))
}

/// Executes a command that was not executed before.
fn execute_new(
    state: &mut State,
    setting: Setting,
    prepared: Prepared<'_>,
    batch: &mut Batch,
    written: &impl WrittenEntries,
    receipt: &mut Receipt,
) -> Result<Result<(), Rejection>, ReadError> {
    let Setting { ledger, now, detail } = setting;
    let Prepared { request, at, program, prints, hint, .. } = prepared;
    let Request { command, idempotency, schema_version } = request;
    let schema = match requested_schema(state, ledger, schema_version.as_deref())? {
        Ok(schema) => schema,
        Err(rejection) => return Ok(Err(rejection)),
    };
    let schema = schema.as_deref().and_then(|schema| schema.as_ref().ok());
    let named = schema_version.as_deref().zip(schema);
    let schemas = state.ledgers[ledger].counters().schemas;
    let mut violation = match resolve(command, named, schemas > 0, state.enforcement) {
        Ok(violation) => violation,
        Err(rejection) => return Ok(Err(rejection)),
    };
    if let Err(rejection) = run_script(state, (ledger, now), command, program, batch, written)? {
        return Ok(Err(rejection));
    }
    let mut loaded = Loaded { hints: Hints { prints, ..Hints::default() }, facts: Facts::default() };
    let slots = match load::facts(state, (ledger, hint), command, schema, &mut loaded, batch, written)? {
        Ok(slots) => slots,
        Err(rejection) => return Ok(Err(rejection)),
    };
    let Loaded { facts, hints } = &mut loaded;
    let date = date(state, ledger, now);
    let decision = match decide(command, &slots, facts, date) {
        Ok(decision) => decision,
        Err(rejection) => return Ok(Err(rejection)),
    };
    if let Some((version, schema)) = named {
        match check(&decision, version, schema, state.enforcement) {
            Ok(outside) => violation = violation.or(outside),
            Err(rejection) => return Ok(Err(rejection)),
        }
    }
    let base = next_base(state, ledger, date);
    let schema_version = schema_version.as_deref().map(SchemaVersion::as_str);
    let key = idempotency.as_deref();
    let entering = Entering { decision: &decision, base, date, idempotency: key, schema_version };
    enter(state, &entering, facts, hints, batch)?;
    let is_creation = matches!(command, Command::CreateTransaction(_));
    feed_hashes(state, &entering, (is_creation && detail == Detail::Ids).then_some(at), batch);
    let id = TransactionId::new(base.transaction);
    receipt.log = LogId::new(base.log);
    receipt.transaction = matches!(decision, Decision::Transaction(_)).then_some(id);
    receipt.date = date;
    receipt.violation = violation.map(Box::new);
    if detail == Detail::Entry {
        receipt.entry = Some(Box::new(LogEntry {
            id: receipt.log,
            date,
            request_hash: None,
            schema_version: schema_version.map(Into::into),
            defaults: std::mem::take(&mut hints.defaults),
            payload: match Told::of(decision, std::mem::take(&mut facts.volumes), id, date) {
                Told::Created(transaction) => created(transaction, command),
                Told::Payload(payload) => payload,
            },
            idempotency: idempotency.take().map(|idempotency| *idempotency),
        }));
    }
    Ok(Ok(()))
}

/// Returns the schema version that a request names, if it names one.
fn requested_schema(
    state: &mut State,
    ledger: u32,
    version: Option<&SchemaVersion>,
) -> Result<Result<Option<ReadSchema>, Rejection>, ReadError> {
    match version {
        None => Ok(Ok(None)),
        Some(version) => Ok(schema::named(state, ledger, version)?.map(Some)),
    }
}

/// Applies the entry of a decision and adds it to the batch.
fn enter(
    state: &mut State,
    entering: &Entering<'_, '_>,
    facts: &Facts,
    hints: &Hints,
    batch: &mut Batch,
) -> Result<(), ReadError> {
    let base = entering.base;
    let section = SectionId(state.ledgers[base.ledger].head.section);
    let mut record = Record {
        position: state.next,
        body: Body::Log(LogRecord {
            ledger: base.ledger,
            log: base.log,
            date: entering.date,
            idempotency: entering
                .idempotency
                .map(|have| IdempotencyRecord { key: have.key.as_str(), hash: &have.hash }),
            schema_version: entering.schema_version,
            imported: false,
            event: Event::blank(),
        }),
    };
    if let Body::Log(log) = &mut record.body {
        numbers::put_event(
            state,
            (base.ledger, base.transaction),
            entering.decision,
            facts,
            hints,
            &mut log.event,
        );
        apply::load_changed(state, log, hints)?;
    }
    apply::entry(state, &record, hints, &mut batch.rows)?;
    batch.chunks.push(&record, section, base);
    Ok(())
}

/// Hands a decision to the hashing thread. For the creation of a transaction, this is the request at index
/// `creation`.
fn feed_hashes(state: &mut State, entering: &Entering<'_, '_>, creation: Option<usize>, batch: &mut Batch) {
    let LedgerBase { ledger, log, .. } = entering.base;
    let (id, date) = (entering.transaction_id(), entering.date);
    let features = state.ledgers[ledger].head.info.features;
    if ChainId::legacy(ledger).is_kept(features) {
        batch.unhashed.push_legacy(ledger, log, &LegacyLog::of_decision(entering.decision, log, id, date));
    }
    if ChainId::wire(ledger).is_kept(features) {
        if let Some(at) = creation {
            batch.unhashed.push_create(ledger, log, at, id, date);
        } else {
            let key = entering.idempotency.map(|have| &have.key);
            let memento = Memento::of_decision(entering.decision, id, date, key, entering.schema_version);
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
fn date(state: &mut State, ledger: u32, now: Timestamp) -> Timestamp {
    state.ledgers[ledger].head.counters.last_date.max(now)
}

/// Runs the script of a command and replaces it by its postings, unless the command is refused first. The script
/// of a template only becomes known here; it is compiled once.
fn run_script(
    state: &mut State,
    (ledger, now): (u32, Timestamp),
    command: &mut Command,
    program: Option<&Compiled>,
    batch: &mut Batch,
    written: &impl WrittenEntries,
) -> Result<Result<(), Rejection>, ReadError> {
    let Command::CreateTransaction(create) = &*command else { return Ok(Ok(())) };
    let Movement::Script(script) = &create.movement else { return Ok(Ok(())) };
    let of_template = if program.is_none() { Some(written.compile(&script.plain)) } else { None };
    let program =
        program.or(of_template.as_ref()).expect("a script comes with the request or from its template");
    if matches!(create.rules, Rules::Legacy(_)) {
        let wanted = needs(command, None);
        let (mut facts, mut hints) = (Facts::default(), Hints::default());
        load::find_holdings(state, (ledger, &[]), &wanted, &mut facts, &mut hints, batch, written)?;
        load::find_rest(state, ledger, &wanted, &mut facts, &mut hints, batch, written)?;
        let checked = check_before_script(create, &facts, date(state, ledger, now));
        if checked.is_err() {
            return Ok(checked);
        }
    }
    let Command::CreateTransaction(create) = command else { return Ok(Ok(())) };
    let mut scratch = std::mem::take(&mut state.scratch);
    let settled = settle(create, program, &mut scratch, &mut ScriptReads { state, ledger });
    // Do not keep the memory of an unusually large script.
    if scratch.is_small() {
        state.scratch = scratch;
    }
    settled
}
