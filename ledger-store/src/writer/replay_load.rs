//! Loads what replayed entries change.

use ledger_core::schema::version_of;
use ledger_index::SharedBytes;
use ledger_journal::entry::{AddressRef, Body, Event, LogRecord, Record, TargetRecord};

use super::hints::{Hints, PriorTransaction};
use super::locate::{self, Located, NO_HASH};
use super::schema;
use super::state::State;
use crate::documents::keys::document_key;
use crate::error::ReadError;

/// Finds the state that an entry of the journal changes, so that applying the entry reads nothing. Leaves
/// [`Hints::transaction`] to the caller if nothing has changed the transaction, because earlier entries hold it then.
pub(crate) fn hints(state: &mut State, record: &Record<'_>) -> Result<Hints, ReadError> {
    let mut hints = Hints::default();
    match &record.body {
        Body::Document(document) => {
            hints.stored = state.stored_document(&document_key(document.collection, document.key))?;
        }
        // Applying the entry reports a ledger that does not exist.
        Body::Log(log) if state.ledgers.get(log.ledger).is_none() => {}
        Body::Log(log) => load_log(state, log, &mut hints)?,
    }
    Ok(hints)
}

fn load_log(state: &mut State, log: &LogRecord<'_>, hints: &mut Hints) -> Result<(), ReadError> {
    let ledger = log.ledger;
    match &log.event {
        Event::Transaction(transaction) => {
            for holding in &transaction.holdings {
                let located = locate_account(state, ledger, &holding.account)?;
                locate::load_document_if_earlier(state, &located, transaction.timestamp)?;
                hints.located.push(located);
            }
            for (account, _) in transaction.account_metadata.iter().skip(transaction.defaults) {
                hints.located.push(locate_with_document(state, ledger, account)?);
            }
            if let Some(reverted) = transaction.reverts {
                hints.transaction = changed_transaction(state, ledger, reverted)?;
            }
        }
        Event::SetMetadata { target: TargetRecord::Account(account), .. }
        | Event::DeleteMetadata { target: TargetRecord::Account(account), .. } => {
            hints.located.push(locate_with_document(state, ledger, account)?);
        }
        Event::SetMetadata { target: TargetRecord::Transaction(id), .. }
        | Event::DeleteMetadata { target: TargetRecord::Transaction(id), .. } => {
            hints.transaction = changed_transaction(state, ledger, *id)?;
        }
        Event::SetMetadata { target: TargetRecord::Unknown(_), .. }
        | Event::DeleteMetadata { target: TargetRecord::Unknown(_), .. } => {}
        Event::InsertedSchema { schema } => hints.stored = stored_schema(state, ledger, schema)?,
    }
    Ok(())
}

/// Finds an account that an entry names. The entry itself creates those whose numbers no account has yet.
fn locate_account(state: &mut State, ledger: u32, account: &AddressRef<'_>) -> Result<Located, ReadError> {
    let number = account.account;
    if let Some(address) = account.new {
        return Ok(Located::account(state.accounts.hash(ledger, address), None));
    }
    let is_known = number < state.ledgers[ledger].head.counters.accounts;
    let slot = if is_known { Some(locate::by_number(state, ledger, number)?) } else { None };
    Ok(Located::account(NO_HASH, slot.map(|slot| (slot, number))))
}

/// Finds an account whose metadata an entry changes, and loads its document.
fn locate_with_document(
    state: &mut State,
    ledger: u32,
    account: &AddressRef<'_>,
) -> Result<Located, ReadError> {
    let located = locate_account(state, ledger, account)?;
    if let Some(slot) = located.slot() {
        locate::load_document(state, slot)?;
    }
    Ok(located)
}

/// Returns the current state of a transaction, unless nothing has changed it.
fn changed_transaction(
    state: &State,
    ledger: u32,
    transaction: u64,
) -> Result<Option<PriorTransaction>, ReadError> {
    let document = state.transaction_document(ledger, transaction)?;
    Ok(document.map(|document| PriorTransaction::Changed(Box::new(document))))
}

/// Returns the stored document of the schema version that a text names.
fn stored_schema(state: &State, ledger: u32, text: &str) -> Result<Option<SharedBytes>, ReadError> {
    match version_of(text) {
        Some(version) => schema::stored(state, ledger, &version),
        None => Ok(None),
    }
}
