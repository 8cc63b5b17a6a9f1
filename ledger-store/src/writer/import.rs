//! Imports logs of another store: checks each log against the rules, and records its content unchanged.

use std::collections::BTreeMap;

use ledger_core::schema::{Schema, version_of};
use ledger_core::{
    AccountAddress, Command, CreateTransaction, Decision, Facts, Idempotency, LegacyLog, LogEntry,
    LogPayload, Memento, Metadata, Movement, Needs, NewTransaction, Overdraft, Rejection, Rules,
    SchemaVersion, Transaction, TransactionId, check_sizes, decide,
};
use ledger_journal::SectionId;
use ledger_journal::entry::{Body, Event, IdempotencyRecord, LedgerBase, LogRecord, Record};

use super::batch::Batch;
use super::context::{LedgerContext, Stop};
use super::hints::Hints;
use super::load::Loaded;
use super::state::State;
use super::written_entries::WrittenEntries;
use super::{apply, load, numbers, settled};
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
    let version = match &log.entry.schema_version {
        Some(name) => Some(SchemaVersion::parse(name).map_err(|_| missing_version(name))?),
        None => None,
    };
    let wanted = Needs {
        // Its chart has the default metadata of new accounts, which neither the text of a log nor the exports of other
        // servers contain.
        named_schema: version.as_ref(),
        transaction: reverts.or(imported.command.transaction()),
        ..Needs::default()
    };
    let mut loaded = load_with_key(context, &log.entry, wanted)?;
    check_transaction(context, &imported, &loaded.facts)?;
    import_change(context, &imported, &mut loaded)
}

/// Loads what `wanted` names, unless the idempotency key of the log was used before.
fn load_with_key<'a>(
    context: &mut LedgerContext<'_, impl WrittenEntries>,
    entry: &'a LogEntry,
    wanted: Needs<'a>,
) -> Result<Loaded, Stop<ImportRefusal>> {
    let mut loaded = Loaded::default();
    let wanted =
        Needs { idempotency_key: entry.idempotency.as_ref().map(|idempotency| &idempotency.key), ..wanted };
    load::load(context, &wanted, &[], entry.date, &mut loaded)?;
    if let (Some(key), Some(_)) = (wanted.idempotency_key, &loaded.facts.prior) {
        return Err(inconsistent(format!("idempotency key {} is used twice", key.as_str())));
    }
    Ok(loaded)
}

fn missing_version(name: &str) -> Stop<ImportRefusal> {
    inconsistent(format!("there is no schema version '{name}'"))
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
    Ok(())
}

/// Checks whether the transaction of a log may follow the last one. For a revert, also checks that the original exists
/// and is not reverted yet.
fn check_transaction(
    context: &mut LedgerContext<'_, impl WrittenEntries>,
    imported: &Imported<'_>,
    facts: &Facts,
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
    match &facts.transaction {
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
    if let Some(name) = &entry.schema_version
        && !matches!(loaded.facts.named_schema.as_deref(), Some(Ok(_)))
    {
        return Err(missing_version(name));
    }
    let slots = match settled::load_facts(context, command, &[], entry.date, loaded) {
        Ok(slots) => slots,
        Err(Stop::Refused(_)) => return Err(inconsistent("it has more than a log may have")),
        Err(Stop::Failed(error)) => return Err(error.into()),
    };
    let Loaded { facts, hints } = loaded;
    let LedgerContext { state, ledger, batch, .. } = context;
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
    context: &mut LedgerContext<'_, impl WrittenEntries>,
    entry: &LogEntry,
    schema: &str,
) -> Result<(), Stop<ImportRefusal>> {
    let version = match Schema::parse_recorded(schema) {
        Ok(_) => version_of(schema),
        Err(error) => return Err(inconsistent(format!("invalid schema: {error}"))),
    };
    let Some(version) = version else { return Err(inconsistent("the schema has no version")) };
    let wanted = Needs { new_schema: Some(&version), ..Needs::default() };
    let loaded = load_with_key(context, entry, wanted)?;
    if loaded.facts.schema_exists {
        return Err(inconsistent(format!("schema version '{version}' already exists")));
    }
    let LedgerContext { state, ledger, batch, .. } = context;
    enter_imported(state, *ledger, entry, Event::InsertedSchema { schema }, &loaded.hints, batch)?;
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
