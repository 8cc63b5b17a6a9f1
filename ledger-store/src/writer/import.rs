//! Imports logs of another store: checks each log against the rules, and records its content unchanged.

use std::collections::BTreeMap;

use ledger_core::schema::{Schema, version_of};
use ledger_core::{
    AccountAddress, Command, CreateTransaction, Decision, Facts, Idempotency, LegacyLog, LogEntry,
    LogPayload, Memento, Metadata, Movement, NewTransaction, Overdraft, Rejection, Rules, SchemaVersion,
    Transaction, TransactionId, check_sizes, decide, needs,
};
use ledger_journal::SectionId;
use ledger_journal::entry::{Body, Event, IdempotencyRecord, LedgerBase, LogRecord, Record};

use super::batch::Batch;
use super::context::{LedgerContext, Stop};
use super::hints::Hints;
use super::load::Loaded;
use super::schema_cache::ReadSchema;
use super::size::is_too_large;
use super::state::State;
use super::written_entries::WrittenEntries;
use super::{apply, load, numbers, schema};
use crate::error::ReadError;
use crate::hashes::ChainId;
use crate::imported_log::{ImportRefusal, ImportedLog};

/// Largest id that an imported log or transaction may have. Other servers store ids in 63 bits, and the later entries of
/// the ledger need larger ids.
const IMPORTED_ID_MAX: u64 = i64::MAX as u64;

fn inconsistent(reason: impl Into<String>) -> Stop<ImportRefusal> {
    Stop::Refused(ImportRefusal::Inconsistent { reason: reason.into() })
}

/// The change to a ledger that a log records.
struct Imported<'a> {
    log: &'a ImportedLog,
    /// A command that makes the same change.
    command: Command,
    /// The id of its transaction, if it has one.
    transaction_id: Option<TransactionId>,
    /// The transaction that this one reverts.
    reverts: Option<TransactionId>,
}

/// Imports a log if it can follow the ones before it. Returns the refusal otherwise.
pub(crate) fn log(
    context: &mut LedgerContext<'_, impl WrittenEntries>,
    log: &ImportedLog,
) -> Result<Option<ImportRefusal>, ReadError> {
    Stop::refusal(import_log(context, log))
}

fn import_log(
    context: &mut LedgerContext<'_, impl WrittenEntries>,
    log: &ImportedLog,
) -> Result<(), Stop<ImportRefusal>> {
    check_follows(context, &log.entry)?;
    let (command, transaction_id, reverts) = match &log.entry.payload {
        LogPayload::NewTransaction { transaction, account_metadata, .. } => {
            let metadata = account_metadata.iter().cloned().collect();
            (creation(transaction, metadata), Some(transaction.id), None)
        }
        LogPayload::RevertedTransaction { reverted, transaction, .. } => {
            (creation(transaction, BTreeMap::new()), Some(transaction.id), Some(*reverted))
        }
        LogPayload::SetMetadata { target, metadata } => {
            let (target, metadata) = (target.clone(), metadata.clone());
            (Command::SetMetadata { target, metadata }, None, None)
        }
        LogPayload::DeleteMetadata { target, key } => {
            let (target, key) = (target.clone(), key.clone());
            (Command::DeleteMetadata { target, key }, None, None)
        }
        LogPayload::InsertedSchema { schema } => return import_schema(context, &log.entry, schema),
    };
    let imported = Imported { log, command, transaction_id, reverts };
    let mut loaded = Loaded { facts: Facts::default(), hints: Hints::default() };
    check_transaction(context, &imported, &mut loaded.hints)?;
    import_change(context, &imported, &mut loaded)
}

/// Checks whether a log may follow the last one of its ledger.
fn check_follows(
    context: &mut LedgerContext<'_, impl WrittenEntries>,
    entry: &LogEntry,
) -> Result<(), Stop<ImportRefusal>> {
    let counters = context.state.ledgers[context.ledger].counters();
    if counters.in_use {
        return Err(ImportRefusal::InUse.into());
    }
    if !counters.is_new() && entry.id.get() < counters.next_log {
        return Err(ImportRefusal::LogExists.into());
    }
    if entry.id.get() > IMPORTED_ID_MAX {
        return Err(inconsistent(format!("the id of a log is at most {IMPORTED_ID_MAX}")));
    }
    if let Some(idempotency) = &entry.idempotency
        && load::used_key(context, idempotency.key.as_str(), None)?.is_some()
    {
        return Err(inconsistent(format!("idempotency key {} is used twice", idempotency.key.as_str())));
    }
    Ok(())
}

/// Checks whether the transaction of a log may follow the last one. For a revert, also checks that the original exists
/// and is not reverted yet.
fn check_transaction(
    context: &mut LedgerContext<'_, impl WrittenEntries>,
    imported: &Imported<'_>,
    hints: &mut Hints,
) -> Result<(), Stop<ImportRefusal>> {
    let counters = context.state.ledgers[context.ledger].counters();
    if let Some(id) = imported.transaction_id {
        // Histories and dates are searched by id, so ids must ascend.
        if counters.transactions > 0 && id.get() < counters.next_transaction {
            let next = counters.next_transaction;
            return Err(inconsistent(format!("transaction {} comes when {next} is due", id.get())));
        }
        if id.get() > IMPORTED_ID_MAX {
            return Err(inconsistent(format!("the id of a transaction is at most {IMPORTED_ID_MAX}")));
        }
    }
    let Some(reverted) = imported.reverts else { return Ok(()) };
    // The log itself contains the postings of the revert.
    match load::find_original(context, Some(reverted), hints)? {
        None => Err(inconsistent(format!("transaction {} is reverted but does not exist", reverted.get()))),
        Some(original) if original.reverted => {
            Err(inconsistent(format!("transaction {} is reverted twice", reverted.get())))
        }
        Some(_) => Ok(()),
    }
}

/// Decides and records the change of a log.
fn import_change(
    context: &mut LedgerContext<'_, impl WrittenEntries>,
    imported: &Imported<'_>,
    loaded: &mut Loaded,
) -> Result<(), Stop<ImportRefusal>> {
    let Imported { log, command, reverts, .. } = imported;
    let entry = &log.entry;
    check_sizes(command).map_err(|rejection| inconsistent(rejection.to_string()))?;
    let original = load::find_original(context, command.transaction(), &mut loaded.hints)?;
    let mut wanted = needs(command, original.as_ref());
    load::find_holdings(context, &[], &wanted, entry.date, loaded)?;
    let too_many_assets = load::has_too_many_assets(context.state, context.ledger, &loaded.hints.located);
    load::find_rest(context, &wanted, loaded)?;
    let Loaded { facts, hints } = loaded;
    let LedgerContext { state, ledger, batch, .. } = context;
    let schema = imported_schema(state, *ledger, entry)?;
    let schema = schema.as_deref().and_then(|schema| schema.as_ref().ok());
    hints.defaults = load::defaults(schema, command, &wanted, &hints.located);
    if is_too_large(command, original.as_ref(), &facts.volumes, &hints.defaults) || too_many_assets {
        return Err(inconsistent("it has more than a log may have"));
    }
    let slots = std::mem::take(&mut wanted.slots);
    drop(wanted);
    facts.transaction = original;
    let decision = match decide(command, &slots, facts, entry.date) {
        Ok(Decision::Transaction(new)) => Decision::Transaction(NewTransaction { reverts: *reverts, ..new }),
        Ok(decision) => decision,
        // Other servers also record the removal of a key that does not exist.
        Err(Rejection::MetadataKeyNotFound { .. }) => match &entry.payload {
            LogPayload::DeleteMetadata { target, key } => Decision::DeleteMetadata { target, key },
            _ => return Err(inconsistent("a key is missing")),
        },
        Err(rejection) => return Err(inconsistent(rejection.to_string())),
    };
    let id = match imported.transaction_id {
        Some(id) => id.get(),
        None => state.ledgers[*ledger].counters().next_transaction,
    };
    let mut event = numbers::event(state, *ledger, id, &decision, facts, hints);
    if let (
        Event::Transaction(record),
        LogPayload::NewTransaction { transaction, .. } | LogPayload::RevertedTransaction { transaction, .. },
    ) = (&mut event, &entry.payload)
    {
        record.inserted_at = Some(transaction.inserted_at).filter(|inserted_at| *inserted_at != entry.date);
        record.volumes_omitted = !log.tells_volumes;
        record.original_updated_at =
            log.original_updated_at.filter(|updated_at| reverts.is_some() && *updated_at != entry.date);
    }
    enter_imported(state, *ledger, entry, event, hints, batch)?;
    Ok(())
}

/// Imports a schema version.
fn import_schema(
    LedgerContext { state, ledger, batch, .. }: &mut LedgerContext<'_, impl WrittenEntries>,
    entry: &LogEntry,
    schema: &str,
) -> Result<(), Stop<ImportRefusal>> {
    let version = match Schema::parse_recorded(schema) {
        Ok(_) => version_of(schema),
        Err(error) => return Err(inconsistent(format!("invalid schema: {error}"))),
    };
    let Some(version) = version else { return Err(inconsistent("the schema has no version")) };
    if schema::stored(state, *ledger, &version)?.is_some() {
        return Err(inconsistent(format!("schema version '{version}' already exists")));
    }
    enter_imported(state, *ledger, entry, Event::InsertedSchema { schema }, &Hints::default(), batch)?;
    Ok(())
}

/// Applies an imported entry and adds it to the batch.
fn enter_imported<'a>(
    state: &mut State,
    ledger: u32,
    entry: &'a LogEntry,
    event: Event<'a>,
    hints: &Hints,
    batch: &mut Batch,
) -> Result<(), ReadError> {
    let head = &state.ledgers[ledger].head;
    let (section, features) = (SectionId(head.section), head.info.features);
    let base = LedgerBase {
        ledger,
        log: head.counters.next_log.min(entry.id.get()),
        transaction: head.counters.next_transaction,
        date: entry.date.as_micros(),
    };
    let log = LogRecord {
        ledger,
        log: entry.id.get(),
        date: entry.date,
        idempotency: idempotency_record(entry),
        schema_version: entry.schema_version.as_deref(),
        imported: true,
        event,
    };
    let record = Record { position: state.next, body: Body::Log(log) };
    apply::entry(state, &record, hints, &mut batch.rows)?;
    batch.chunks.push(&record, section, base);
    if ChainId::wire(ledger).is_kept(features) {
        batch.unhashed.push(ledger, entry.id.get(), &Memento::from(entry));
    }
    if ChainId::legacy(ledger).is_kept(features) {
        batch.unhashed.push_legacy(ledger, entry.id.get(), &LegacyLog::from(entry));
    }
    Ok(())
}

/// Returns the schema version of a log. Its chart has the default metadata of new accounts, which neither the text of a
/// log nor the exports of other servers contain.
fn imported_schema(
    state: &mut State,
    ledger: u32,
    entry: &LogEntry,
) -> Result<Option<ReadSchema>, Stop<ImportRefusal>> {
    let Some(name) = &entry.schema_version else { return Ok(None) };
    let missing = || inconsistent(format!("there is no schema version '{name}'"));
    let version = SchemaVersion::parse(name).map_err(|_| missing())?;
    match schema::named(state, ledger, &version) {
        Ok(schema) => Ok(Some(schema)),
        Err(Stop::Refused(_)) => Err(missing()),
        Err(Stop::Failed(error)) => Err(error.into()),
    }
}

/// Returns the idempotency key of a log and the hash of its request. The key is empty if the log has only a hash.
fn idempotency_record(entry: &LogEntry) -> Option<IdempotencyRecord<'_>> {
    match (&entry.idempotency, &entry.request_hash) {
        (Some(Idempotency { key, hash }), _) => Some(IdempotencyRecord { key: key.as_str(), hash }),
        (None, Some(hash)) => Some(IdempotencyRecord { key: "", hash }),
        (None, None) => None,
    }
}

/// Returns a command that creates the transaction unchanged.
fn creation(transaction: &Transaction, account_metadata: BTreeMap<AccountAddress, Metadata>) -> Command {
    Command::CreateTransaction(CreateTransaction {
        movement: Movement::Postings(transaction.postings.clone()),
        metadata: transaction.metadata.clone(),
        account_metadata,
        timestamp: Some(transaction.timestamp),
        reference: transaction.reference.clone(),
        overdraft: Overdraft::Allow,
        rules: Rules::default(),
        template: transaction.template.as_deref().map(Into::into),
    })
}
