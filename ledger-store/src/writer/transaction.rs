//! Applies transactions.

use std::collections::BTreeMap;

use ledger_codec::Corrupt;
use ledger_core::{Amount, Metadata, Timestamp, Volumes};
use ledger_index::{BackdatedRow, EffectiveRow, HistoryRow, Quantity, TermRow, TransactionRow, VersionRow};
use ledger_journal::entry::{HoldingRecord, NameRef, TransactionRecord};

use super::accounts::SlotId;
use super::hints::PriorTransaction;
use super::holding::HoldingState;
use super::key_rows::NewKey;
use super::state::State;
use super::touched::{LogApplication, recorded_at};
use super::{key_rows, replay, touched, undo};
use crate::documents::TransactionDocument;
use crate::fingerprint::{KeyKind, Subject, subject_space};
use crate::projection::{MemtableBuilder, NewHolding, holding_key, shown};
use crate::quantity::quantity_of;
use crate::violation::ViolationCode;

/// Applies the entry of a transaction. `date` is the date of the log after it.
pub(super) fn apply(
    application: &mut LogApplication<'_, '_>,
    date: Timestamp,
    transaction: &TransactionRecord<'_>,
) -> Result<(), Corrupt> {
    let LogApplication { position, log, hints, .. } = *application;
    let (ledger, id) = (log.ledger, transaction.id);
    if id == u64::MAX {
        return Err(Corrupt { what: "transaction id" });
    }
    let counters = application.state.ledgers[ledger].counters();
    counters.next_transaction = counters.next_transaction.max(id + 1);
    counters.transactions += 1;
    let timestamp = transaction.timestamp;
    let backdated = timestamp != date;
    if timestamp > date || log.date != date || transaction.inserted_at.is_some() {
        counters.ahead += 1;
    }
    let rows = &mut *application.rows;
    rows.transactions.push(TransactionRow {
        ledger,
        transaction: id,
        position,
        log: log.log,
        timestamp: timestamp.as_micros(),
        date: date.as_micros(),
    });
    if backdated {
        rows.effective.push(EffectiveRow { ledger, timestamp: timestamp.as_micros(), transaction: id });
    }
    for at in 0..transaction.holdings.len() {
        move_holding(application, transaction, at, backdated)?;
    }
    if !transaction.metadata.is_empty() {
        put_transaction_terms(application, transaction)?;
    }
    give_account_metadata(application, transaction)?;
    // Do this last: it writes to memory that is not cached, and copies right after it would stall.
    if let Some(reference) = transaction.reference {
        let new = NewKey {
            text: reference,
            fingerprint: hints.key_fingerprints.reference,
            value: id,
            request: None,
        };
        key_rows::put_key(application.state, ledger, KeyKind::Reference, new, application.rows);
    }
    if let Some(reverted) = transaction.reverts {
        let mut before = None;
        change(application, reverted, |document| before = document.reverted.replace((id, log.date)));
        if let Some((by, _)) = before {
            let detail = format!("transaction {reverted} was reverted by {by} already");
            replay::report(application.state, ViolationCode::RevertRule, ledger, position, detail);
        }
    }
    Ok(())
}

/// Updates a holding of a transaction to its volumes after it, and adds its history row.
fn move_holding(
    application: &mut LogApplication<'_, '_>,
    transaction: &TransactionRecord<'_>,
    at: usize,
    backdated: bool,
) -> Result<(), Corrupt> {
    let LogApplication { position, log, hints, .. } = *application;
    let (ledger, id, timestamp) = (log.ledger, transaction.id, transaction.timestamp);
    let holding = &transaction.holdings[at];
    let slot = touched::touch(application, &holding.account, hints.located.get(at), timestamp)?;
    let LogApplication { state, rows, .. } = application;
    let asset = state.ledgers[ledger].take_asset(&holding.asset)?;
    undo::note_change(state, slot);
    if holding.is_new {
        add_holding(state, ledger, holding, slot, asset, rows)?;
    }
    let account = state.accounts.change(slot, state.flush);
    let found = account.holdings.binary_search_by_key(&asset, |have| have.asset);
    let current = &mut account.holdings[found.map_err(|_| Corrupt { what: "holding that was not made" })?];
    if current.holding != holding.holding {
        return Err(Corrupt { what: "number of a holding" });
    }
    let before = state.replay.is_some().then(|| current.totals());
    let (mut is_source, mut is_destination) = (false, false);
    for posting in &transaction.moves {
        is_source |= posting.source as usize == at;
        is_destination |= posting.destination as usize == at;
    }
    if backdated {
        let before = current.totals();
        let input = difference(&holding.after.input, &before.input)?;
        let output = difference(&holding.after.output, &before.output)?;
        current.add_backdated(&input, &output);
        rows.backdated.push(BackdatedRow::new(
            holding_key(ledger, holding.holding),
            timestamp.as_micros(),
            id,
            input,
            output,
        ));
    }
    current.transaction_count += 1;
    current.set_totals(&holding.after);
    rows.history.push(HistoryRow {
        holding: holding_key(ledger, holding.holding),
        transaction: id,
        input: quantity_of(&holding.after.input),
        output: quantity_of(&holding.after.output),
        backdated: current.backdated(),
        ordinal: current.transaction_count,
        is_backdated: backdated,
        is_source,
        is_destination,
    });
    if let Some(before) = before
        && let Some(wrong) = wrong_volumes(before, transaction, at)
    {
        replay::report(state, ViolationCode::VolumeMismatch, ledger, position, wrong);
    }
    Ok(())
}

/// Creates a holding that no transaction touched before.
fn add_holding(
    state: &mut State,
    ledger: u32,
    holding: &HoldingRecord<'_>,
    slot: SlotId,
    asset: u32,
    rows: &mut MemtableBuilder,
) -> Result<(), Corrupt> {
    let counters = state.ledgers[ledger].counters();
    if holding.holding != counters.holdings {
        return Err(Corrupt { what: "number of a new holding" });
    }
    counters.holdings += 1;
    rows.holdings.push(NewHolding {
        ledger,
        holding: holding.holding,
        account: holding.account.account,
        asset,
    });
    if !state.accounts.add_holding(slot, HoldingState::new(asset, holding.holding), state.flush) {
        return Err(Corrupt { what: "holding that was made before" });
    }
    Ok(())
}

/// Adds the terms of a new transaction's metadata.
fn put_transaction_terms(
    LogApplication { state, rows, position, log, .. }: &mut LogApplication<'_, '_>,
    transaction: &TransactionRecord<'_>,
) -> Result<(), Corrupt> {
    let ledger = log.ledger;
    let space = subject_space(ledger, Subject::Transaction);
    for (at, (key, value)) in transaction.metadata.iter().enumerate() {
        let known = match key {
            NameRef::Known(id) => state.ledgers[ledger].last_print(at, *id),
            NameRef::New(..) | NameRef::Inline(_) => None,
        };
        let key = match known {
            Some(key) => key,
            None => state.ledgers[ledger].with_key(key, |key| state.fingerprints.key(space, key))?,
        };
        let term = state.fingerprints.term_of(key, &shown(*value));
        rows.terms.push(TermRow::new(space, term, transaction.id, *position, true));
    }
    Ok(())
}

/// Sets the account metadata of a transaction.
fn give_account_metadata(
    application: &mut LogApplication<'_, '_>,
    transaction: &TransactionRecord<'_>,
) -> Result<(), Corrupt> {
    let LogApplication { log, hints, .. } = *application;
    let (ledger, timestamp) = (log.ledger, transaction.timestamp);
    // Write each account once. The set values override the defaults.
    let mut given: Vec<(SlotId, Metadata)> = Vec::with_capacity(transaction.account_metadata.len());
    let mut begun: BTreeMap<u32, usize> = BTreeMap::new();
    for (at, (account, metadata)) in transaction.account_metadata.iter().enumerate() {
        let metadata = application.state.ledgers[ledger].take_metadata(metadata)?;
        // Accounts with defaults are new: this entry creates them.
        let hint = at.checked_sub(transaction.defaults);
        let hint = hint.and_then(|at| hints.located.get(transaction.holdings.len() + at));
        let slot = touched::touch(application, account, hint, timestamp)?;
        if at < transaction.defaults {
            begun.insert(account.account, at);
        } else if let Some(begun) = begun.get(&account.account) {
            given[*begun].1.merge(&metadata);
            continue;
        }
        given.push((slot, metadata));
    }
    for (slot, metadata) in given {
        touched::edit_account_metadata(application, slot, recorded_at(log), |have| have.merge(&metadata));
    }
    Ok(())
}

/// Changes the document of a recorded transaction.
pub(super) fn change(
    LogApplication { state, rows, position, log, hints, .. }: &mut LogApplication<'_, '_>,
    id: u64,
    change: impl FnOnce(&mut TransactionDocument),
) {
    let (ledger, date) = (log.ledger, log.date);
    let before = hints.transaction.as_ref().expect("the transaction was read before its change is applied");
    let mut document = match before {
        PriorTransaction::Changed(document) => TransactionDocument::clone(document),
        PriorTransaction::AsRecorded(metadata) => {
            TransactionDocument { updated_at: date, reverted: None, metadata: metadata.clone() }
        }
    };
    let (before, reverted) = (document.metadata.clone(), document.reverted);
    change(&mut document);
    if document.metadata == before && document.reverted == reverted {
        return;
    }
    document.updated_at = date;
    let space = subject_space(ledger, Subject::Transaction);
    key_rows::put_terms(state, space, id, *position, &before, &document.metadata, rows);
    rows.versions.push(VersionRow { space, id, position: *position, bytes: document.encode() });
    let previous = state.documents.insert((ledger, id), document);
    if let Some(undo) = &mut state.undo {
        undo.documents.push(((ledger, id), previous));
    }
}

/// Returns the defect in the volumes that a transaction states for the holding at this index, if any.
fn wrong_volumes(before: Volumes, transaction: &TransactionRecord<'_>, at: usize) -> Option<String> {
    let mut expected = before;
    for posting in &transaction.moves {
        if posting.source as usize == at {
            expected.output += &posting.amount;
        }
        if posting.destination as usize == at {
            expected.input += &posting.amount;
        }
    }
    let found = &transaction.holdings[at].after;
    (expected != *found).then(|| {
        format!(
            "transaction {} leaves a holding at input {} output {}, not {} {}",
            transaction.id, expected.input, expected.output, found.input, found.output
        )
    })
}

fn difference(after: &Amount, before: &Amount) -> Result<Quantity, Corrupt> {
    let moved = after.checked_sub(before).ok_or(Corrupt { what: "volumes that shrink" })?;
    Ok(quantity_of(&moved))
}
