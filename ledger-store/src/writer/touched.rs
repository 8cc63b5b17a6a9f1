//! The accounts that an entry touches: new accounts, first usages and metadata.

use ledger_codec::Corrupt;
use ledger_core::{Metadata, Timestamp};
use ledger_index::{KeyRow, VersionRow};
use ledger_journal::entry::{AddressRef, Event, LogRecord};
use smallvec::SmallVec;

use super::accounts::{DocumentState, NewState, SlotId};
use super::hints::Hints;
use super::holding::Holdings;
use super::locate::Located;
use super::state::State;
use super::{key_rows, locate, undo};
use crate::fingerprint::{KeyKind, Subject, subject_space};
use crate::projection::{MemtableBuilder, NewAccount};

/// A log entry that is being applied, with the state that it changes and the rows that it creates.
pub(super) struct LogApplication<'a, 'r> {
    pub(super) state: &'a mut State,
    pub(super) rows: &'a mut MemtableBuilder,
    pub(super) position: u64,
    pub(super) log: &'a LogRecord<'r>,
    pub(super) hints: &'a Hints,
    /// The accounts that it touches and whose documents may need a new version.
    pub(super) touched: SmallVec<[TouchedAccount; 4]>,
}

/// An account that the entry touches.
pub(super) struct TouchedAccount {
    slot: SlotId,
    /// True if a version of its document must be written.
    document_changed: bool,
}

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
    application: &mut LogApplication<'_, '_>,
    account: &AddressRef<'_>,
    hint: Option<&Located>,
    used_at: Timestamp,
) -> Result<SlotId, Corrupt> {
    // The common case: the account is where it was found, and was used before.
    if account.new.is_none()
        && let Some(slot) = hint.and_then(Located::slot)
        && used_at >= application.state.accounts.get(slot).first_usage
    {
        return Ok(slot);
    }
    match account.new {
        Some(address) => add_account(application, account.account, address, hint, used_at),
        None => touch_earlier(application, account.account, hint, used_at),
    }
}

/// Returns the slot of an existing account, and makes its first usage `used_at` if that is earlier.
#[cold]
fn touch_earlier(
    application: &mut LogApplication<'_, '_>,
    account: u32,
    hint: Option<&Located>,
    used_at: Timestamp,
) -> Result<SlotId, Corrupt> {
    let LogApplication { state, log, touched, .. } = application;
    let slot = match hint.and_then(Located::slot) {
        Some(slot) => slot,
        None => created_by_entry(state, log.ledger, account, touched)
            .ok_or(Corrupt { what: "account that does not exist" })?,
    };
    if used_at < state.accounts.get(slot).first_usage {
        undo::note_change(state, slot);
        let flush = state.flush;
        state.accounts.change(slot, flush).first_usage = used_at;
        let recorded = recorded_at(log);
        state.accounts.edit_document(slot, |document| {
            document.first_usage = used_at;
            document.updated_at = recorded;
        });
        mark(touched, slot);
    }
    Ok(slot)
}

/// Adds an account that the entry creates.
#[cold]
fn add_account(
    LogApplication { state, rows, log, touched, .. }: &mut LogApplication<'_, '_>,
    account: u32,
    address: &str,
    hint: Option<&Located>,
    used_at: Timestamp,
) -> Result<SlotId, Corrupt> {
    let ledger = log.ledger;
    let counters = state.ledgers[ledger].counters();
    if account != counters.accounts {
        return Err(Corrupt { what: "number of a new account" });
    }
    counters.accounts += 1;
    let hash = hint.map_or_else(|| state.accounts.hash(ledger, address), |hint| hint.hash);
    let (space, fingerprint) = state.probe_key(ledger, KeyKind::Address, address);
    state.known.add((space, fingerprint));
    rows.keys.push(KeyRow { space, fingerprint, value: u64::from(account) });
    rows.accounts.push(NewAccount { ledger, account, address: address.into() });
    let recorded = recorded_at(log);
    let new = NewState {
        ledger,
        account,
        address: address.into(),
        first_usage: used_at,
        holdings: Holdings::NONE,
        document: DocumentState::Plain { inserted_at: recorded, updated_at: recorded },
    };
    let slot = locate::put_account(state, hash, new, state.flush);
    undo::note_new(state, slot);
    touched.push(TouchedAccount { slot, document_changed: true });
    Ok(slot)
}

fn created_by_entry(state: &State, ledger: u32, account: u32, touched: &[TouchedAccount]) -> Option<SlotId> {
    touched.iter().map(|touched| touched.slot).find(|slot| {
        let have = state.accounts.get(*slot);
        (have.ledger, have.account) == (ledger, account)
    })
}

/// Writes a version of each document that the entry changed: one version, however many changes there were.
pub(super) fn write_documents(application: &mut LogApplication<'_, '_>) {
    let LogApplication { state, rows, position, touched, .. } = application;
    for touched in touched.iter().filter(|touched| touched.document_changed) {
        let account = state.accounts.get(touched.slot);
        let bytes = account.document().encode();
        let space = subject_space(account.ledger, Subject::Account);
        rows.versions.push(VersionRow { space, id: u64::from(account.account), position: *position, bytes });
    }
}

/// Changes the metadata of an account by `edit`, at this date.
pub(super) fn edit_account_metadata(
    application: &mut LogApplication<'_, '_>,
    slot: SlotId,
    date: Timestamp,
    edit: impl FnOnce(&mut Metadata),
) {
    let LogApplication { state, rows, position, touched, .. } = application;
    undo::note_change(state, slot);
    let flush = state.flush;
    let account = state.accounts.change(slot, flush);
    let (ledger, number) = (account.ledger, account.account);
    let mut change = None;
    state.accounts.edit_document(slot, |document| {
        let before = document.metadata.clone();
        edit(&mut document.metadata);
        if document.metadata != before {
            document.updated_at = date;
            change = Some((before, document.metadata.clone()));
        }
    });
    let Some((before, after)) = change else { return };
    let space = subject_space(ledger, Subject::Account);
    key_rows::put_terms(state, space, u64::from(number), *position, &before, &after, rows);
    mark(touched, slot);
}

fn mark(touched: &mut SmallVec<[TouchedAccount; 4]>, slot: SlotId) {
    match touched.iter_mut().find(|touched| touched.slot == slot) {
        Some(touched) => touched.document_changed = true,
        None => touched.push(TouchedAccount { slot, document_changed: true }),
    }
}
