//! The accounts that an entry touches: new accounts, first usages and metadata.

use ledger_codec::Corrupt;
use ledger_core::{Metadata, Timestamp};
use ledger_index::{KeyRow, VersionRow};
use ledger_journal::entry::{AddressRef, Event, LogRecord};
use smallvec::SmallVec;

use super::accounts::{DocumentState, NewState, Place};
use super::hints::Hints;
use super::holding::Holdings;
use super::locate::Located;
use super::state::State;
use super::{keys, locate, undo};
use crate::error::ReadError;
use crate::fingerprint::{KeyKind, Subject, subject_space};
use crate::projection::{MemtableBuilder, NewAccount};

/// A log entry that is being applied.
#[derive(Clone, Copy)]
pub(super) struct AppliedLog<'a, 'r> {
    pub(super) position: u64,
    pub(super) log: &'a LogRecord<'r>,
    pub(super) hints: &'a Hints,
}

/// An account that the entry touches.
pub(super) struct Touched {
    place: Place,
    /// Whether a version of its document must be written.
    document_changed: bool,
}

/// The accounts that one entry touches and whose documents may need a new version.
pub(super) type TouchedAccounts = SmallVec<[Touched; 4]>;

/// Returns the date when a log's content was first recorded. Imported transactions state it if it differs from the
/// date of their log.
pub(super) fn recorded_at(log: &LogRecord<'_>) -> Timestamp {
    match &log.event {
        Event::Transaction(transaction) => transaction.inserted_at.unwrap_or(log.date),
        _ => log.date,
    }
}

/// Returns the slot of an account that the entry names. Adds a new account to the table.
#[inline]
pub(super) fn touch(
    state: &mut State,
    log: &LogRecord<'_>,
    account: &AddressRef<'_>,
    hint: Option<&Located>,
    used_at: Timestamp,
    touched: &mut TouchedAccounts,
    rows: &mut MemtableBuilder,
) -> Result<Place, ReadError> {
    // The common case: the account is where it was found, and was used before.
    if account.new.is_none()
        && let Some(place) = hint.and_then(Located::place)
        && used_at >= state.accounts.get(place).first_usage
    {
        return Ok(place);
    }
    touch_first(state, log, account, hint, used_at, touched, rows)
}

#[cold]
fn touch_first(
    state: &mut State,
    log: &LogRecord<'_>,
    account: &AddressRef<'_>,
    hint: Option<&Located>,
    used_at: Timestamp,
    touched: &mut TouchedAccounts,
    rows: &mut MemtableBuilder,
) -> Result<Place, ReadError> {
    let ledger = log.ledger;
    let recorded = recorded_at(log);
    let Some(address) = account.new else {
        let place = match hint.and_then(Located::place) {
            Some(place) => place,
            // The account was created by this entry, or is found by number during a replay.
            None => match made_here(state, ledger, account.account, touched) {
                Some(place) => place,
                None => locate::by_number(state, ledger, account.account)?,
            },
        };
        if used_at < state.accounts.get(place).first_usage {
            undo::note_change(state, place);
            let flush = state.flush;
            state.accounts.change(place, flush).first_usage = used_at;
            locate::load_document(state, place)?;
            state.accounts.edit_document(place, |document| {
                document.first_usage = used_at;
                document.updated_at = recorded;
            });
            mark(touched, place);
        }
        return Ok(place);
    };
    let counters = state.ledgers[ledger].counters();
    if account.account != counters.accounts {
        return Err(Corrupt { what: "number of a new account" }.into());
    }
    counters.accounts += 1;
    let hash = hint.map_or_else(|| state.accounts.hash(ledger, address), |hint| hint.hash);
    let (space, fingerprint) = state.probe_key(ledger, KeyKind::Address, address);
    state.known.add((space, fingerprint));
    rows.keys.push(KeyRow { space, fingerprint, value: u64::from(account.account) });
    rows.accounts.push(NewAccount { ledger, account: account.account, address: address.into() });
    let new = NewState {
        ledger,
        account: account.account,
        address: address.into(),
        first_usage: used_at,
        holdings: Holdings::NONE,
        document: DocumentState::Plain { inserted_at: recorded, updated_at: recorded },
    };
    let place = locate::put_account(state, hash, new, state.flush);
    undo::note_new(state, place);
    touched.push(Touched { place, document_changed: true });
    Ok(place)
}

fn made_here(state: &State, ledger: u32, account: u32, touched: &[Touched]) -> Option<Place> {
    touched.iter().map(|touched| touched.place).find(|place| {
        let have = state.accounts.get(*place);
        (have.ledger, have.account) == (ledger, account)
    })
}

/// Writes a version of each document that the entry changed: one version, however many changes there were.
pub(super) fn write_documents(
    state: &mut State,
    position: u64,
    touched: &[Touched],
    rows: &mut MemtableBuilder,
) {
    for touched in touched.iter().filter(|touched| touched.document_changed) {
        let account = state.accounts.get(touched.place);
        let Some(bytes) = account.document().map(|document| document.encode()) else { continue };
        let space = subject_space(account.ledger, Subject::Account);
        rows.versions.push(VersionRow { space, id: u64::from(account.account), position, bytes });
    }
}

pub(super) fn merge_account_metadata(
    state: &mut State,
    place: Place,
    date: Timestamp,
    metadata: &Metadata,
    touched: &mut TouchedAccounts,
    (position, rows): (u64, &mut MemtableBuilder),
) -> Result<(), ReadError> {
    edit_account_metadata(state, place, date, touched, (position, rows), |have| have.merge(metadata))
}

pub(super) fn delete_account_key(
    state: &mut State,
    place: Place,
    date: Timestamp,
    key: &str,
    touched: &mut TouchedAccounts,
    (position, rows): (u64, &mut MemtableBuilder),
) -> Result<(), ReadError> {
    edit_account_metadata(state, place, date, touched, (position, rows), |have| {
        have.remove(key);
    })
}

fn edit_account_metadata(
    state: &mut State,
    place: Place,
    date: Timestamp,
    touched: &mut TouchedAccounts,
    (position, rows): (u64, &mut MemtableBuilder),
    edit: impl FnOnce(&mut Metadata),
) -> Result<(), ReadError> {
    undo::note_change(state, place);
    locate::load_document(state, place)?;
    let flush = state.flush;
    let account = state.accounts.change(place, flush);
    let (ledger, number) = (account.ledger, account.account);
    let mut change = None;
    state.accounts.edit_document(place, |document| {
        let before = document.metadata.clone();
        edit(&mut document.metadata);
        if document.metadata != before {
            document.updated_at = date;
            change = Some((before, document.metadata.clone()));
        }
    });
    let Some((before, after)) = change else { return Ok(()) };
    let space = subject_space(ledger, Subject::Account);
    keys::put_terms(state, space, u64::from(number), position, &before, &after, rows);
    mark(touched, place);
    Ok(())
}

fn mark(touched: &mut TouchedAccounts, place: Place) {
    match touched.iter_mut().find(|touched| touched.place == place) {
        Some(touched) => touched.document_changed = true,
        None => touched.push(Touched { place, document_changed: true }),
    }
}
