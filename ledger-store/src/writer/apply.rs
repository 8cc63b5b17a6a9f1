//! Applies entries: changes the state and creates rows.
//!
//! This is the only place for both. The writer applies the entries that it has just decided, recovery applies those
//! that it reads from the journal, and all rows that readers see are created here.

use ledger_codec::Corrupt;
use ledger_core::Timestamp;
use ledger_index::LogRow;
use ledger_journal::entry::{Body, DocumentRecord, Event, Record, TargetRecord, prior_request};
use smallvec::SmallVec;

use super::hints::Hints;
use super::key_rows::NewKey;
use super::state::State;
use super::touched::LogApplication;
use super::{documents, key_rows, schema, touched, transaction};
use crate::documents::{LEDGERS, MAPPINGS, decode_ledger, read_ledger_name};
use crate::fingerprint::KeyKind;
use crate::projection::MemtableBuilder;
use crate::view::Counters;

/// A date after all others, which never makes a first usage earlier.
const AFTER_ALL: Timestamp = Timestamp::from_micros(i64::MAX);

/// Applies an entry: changes the state to the one after the entry, and adds its rows to `rows`. It reads nothing: `hints`
/// and the memory hold all that the entry changes.
///
/// # Errors
///
/// [`Corrupt`] if the entry contradicts the state, because the journal or the index is damaged. The state is then
/// [half changed](State::is_half_changed) unless the change is undone.
pub(crate) fn entry(
    state: &mut State,
    record: &Record<'_>,
    hints: &Hints,
    rows: &mut MemtableBuilder,
) -> Result<(), Corrupt> {
    if record.position != state.next {
        return Err(Corrupt { what: "entries are not in order" });
    }
    state.next = state.next.next();
    let applied = match &record.body {
        Body::Log(log) => {
            let (position, touched) = (record.position.get(), SmallVec::new());
            apply_log(LogApplication { state, rows, position, log, hints, touched })
        }
        Body::Document(document) => apply_document(state, record.position.get(), document, hints, rows),
    };
    if applied.is_err() {
        state.half_changed = true;
    }
    applied
}

fn apply_document(
    state: &mut State,
    position: u64,
    document: &DocumentRecord<'_>,
    hints: &Hints,
    rows: &mut MemtableBuilder,
) -> Result<(), Corrupt> {
    if let (LEDGERS, Some(value)) = (document.collection, document.value) {
        let (info, section) = decode_ledger(document.key, value)?;
        if info.id == 0 || info.id > state.ledgers.len() + 1 {
            return Err(Corrupt { what: "number of a ledger" });
        }
        if info.id > state.ledgers.len() {
            state.used_numbers.take_ledger(info.id)?;
        }
        let first = info.first_id.get();
        state.ledgers.note_change(info.id);
        let counters = Counters { next_log: first, next_transaction: first, ..Counters::NEW };
        state.ledgers.put(info, section, || counters);
    }
    if let (LEDGERS, None) = (document.collection, document.value) {
        let number = state.ledgers.number_of(&read_ledger_name(document.key)?);
        let number = number.ok_or(Corrupt { what: "removal of a ledger that is not there" })?;
        if state.ledgers[number].head.info.deleted_at.is_none() {
            return Err(Corrupt { what: "removal of a ledger that is not deleted" });
        }
        state.ledgers.note_change(number);
        state.ledgers.remove(number);
        state.schemas.clear();
    }
    if let (MAPPINGS, Some(value)) = (document.collection, document.value) {
        state.ledgers.put_mapping(document.key, value)?;
    }
    documents::put(state, position, document, hints.stored.as_ref(), rows)
}

fn apply_log(mut application: LogApplication<'_, '_>) -> Result<(), Corrupt> {
    let date = append_log(&mut application)?;
    apply_event(&mut application, date)?;
    touched::write_documents(&mut application);
    Ok(())
}

/// Appends an entry to the log of its ledger. Returns the date of the log after it.
fn append_log(
    LogApplication { state, rows, position, log, hints, .. }: &mut LogApplication<'_, '_>,
) -> Result<Timestamp, Corrupt> {
    let (ledger, position) = (log.ledger, *position);
    if ledger == 0 || state.ledgers.len() < ledger {
        return Err(Corrupt { what: "entry of a ledger that was not created" });
    }
    state.used_numbers.admit(log)?;
    state.ledgers.note_change(ledger);
    let counters = state.ledgers[ledger].counters();
    // An import into an empty ledger may start below the ledger's first id.
    let begins = log.imported && counters.is_new();
    if (log.log < counters.next_log && !begins) || log.log == u64::MAX {
        return Err(Corrupt { what: "log id that does not ascend" });
    }
    counters.next_log = log.log + 1;
    counters.in_use |= !log.imported;
    counters.last_date = counters.last_date.max(log.date);
    let date = counters.last_date;
    rows.logs.push(LogRow { ledger, log: log.log, position, date: date.as_micros() });
    // A log without a key may still have the hash of its request.
    if let Some((text, request)) = prior_request(log).filter(|(text, _)| !text.is_empty()) {
        let fingerprint = hints.key_fingerprints.idempotency;
        let new = NewKey { text, fingerprint, value: position, request: Some(request) };
        key_rows::put_key(state, ledger, KeyKind::Idempotency, new, rows);
    }
    Ok(date)
}

/// Applies the change that an entry records. `date` is the date of the log after it.
fn apply_event(application: &mut LogApplication<'_, '_>, date: Timestamp) -> Result<(), Corrupt> {
    let LogApplication { log, hints, .. } = *application;
    let ledger = log.ledger;
    match &log.event {
        Event::Transaction(transaction) => transaction::apply(application, date, transaction)?,
        Event::SetMetadata { target: TargetRecord::Account(account), defaults, metadata } => {
            // Write the account once: the set values override the defaults.
            let names = &mut application.state.ledgers[ledger];
            let mut given = names.take_metadata(defaults)?;
            given.merge(&names.take_metadata(metadata)?);
            let slot = touched::touch(application, account, hints.located.first(), log.date)?;
            touched::edit_account_metadata(application, slot, log.date, |have| have.merge(&given));
        }
        Event::DeleteMetadata { target: TargetRecord::Account(account), key } => {
            let key = application.state.ledgers[ledger].take_key(key)?;
            // Removing metadata does not count as a use of the account, so its first usage does not change.
            let slot = touched::touch(application, account, hints.located.first(), AFTER_ALL)?;
            touched::edit_account_metadata(application, slot, log.date, |have| {
                have.remove(&key);
            });
        }
        Event::SetMetadata { target: TargetRecord::Transaction(id), metadata, .. } => {
            let set = application.state.ledgers[ledger].take_metadata(metadata)?;
            transaction::change(application, *id, |document| document.metadata.merge(&set));
        }
        Event::DeleteMetadata { target: TargetRecord::Transaction(id), key } => {
            let key = application.state.ledgers[ledger].take_key(key)?;
            transaction::change(application, *id, |document| {
                document.metadata.remove(&key);
            });
        }
        // An account that no entry ever named does not come into existence.
        Event::DeleteMetadata { target: TargetRecord::Unknown(_), key } => {
            application.state.ledgers[ledger].take_key(key)?;
        }
        Event::SetMetadata { target: TargetRecord::Unknown(_), .. } => {
            return Err(Corrupt { what: "metadata of an account without a number" });
        }
        Event::InsertedSchema { schema } => {
            let LogApplication { state, rows, position, .. } = application;
            schema::put(state, *position, ledger, schema, hints.stored.as_ref(), rows)?;
        }
    }
    Ok(())
}
