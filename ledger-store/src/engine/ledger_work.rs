//! Decides work on whole ledgers: creating, editing, deleting, restoring, removing, and importing.

use std::time::Duration;

use ledger_core::{LedgerName, LedgerOptions, Timestamp};
use ledger_index::SharedBytes;
use ledger_journal::entry::DocumentRecord;

use super::engine_entries::EngineEntries;
use super::work::{BucketChange, BucketState, LedgerEdit, NextLogs};
use crate::documents::keys::document_key;
use crate::documents::{LEDGERS, MAPPINGS, encode_ledger};
use crate::error::WriteError;
use crate::imported_log::Imported;
use crate::query::LedgerInfo;
use crate::writer::{Batch, LedgerContext, State, document_changes, import, undo};

/// Maximum number of ledgers that one piece of work visits or removes. Keeps a batch small, however many ledgers there
/// are.
const LEDGERS_VISITED: usize = 10_000;

pub(super) fn create_ledger(
    state: &mut State,
    name: LedgerName,
    options: LedgerOptions,
    now: Timestamp,
    batch: &mut Batch,
) -> Result<LedgerInfo, WriteError> {
    if state.ledgers.number_of(&name).is_some() {
        return Err(WriteError::LedgerExists);
    }
    let section = state.ledgers.section_for(&options.bucket);
    let info = LedgerInfo {
        id: state.ledgers.len() + 1,
        name,
        bucket: options.bucket,
        added_at: now,
        metadata: options.metadata,
        features: options.features,
        first_id: options.first_id,
        deleted_at: None,
    };
    put_ledger(state, &info, section, batch)?;
    Ok(info)
}

pub(super) fn edit_ledger(
    state: &mut State,
    name: &LedgerName,
    edit: LedgerEdit,
    batch: &mut Batch,
) -> Result<LedgerInfo, WriteError> {
    let ledger = live(state, name)?;
    let head = &state.ledgers[ledger].head;
    let (mut info, section) = (LedgerInfo::clone(&head.info), head.section);
    match edit {
        LedgerEdit::Mapping(text) => {
            let key = info.name.as_str().as_bytes();
            let before = state.stored_document(&document_key(MAPPINGS, key))?;
            let value = Some(text.as_bytes());
            let document = DocumentRecord { collection: MAPPINGS, key, value, secondary: Vec::new() };
            document_changes::enter(state, document, before, batch)?;
            batch.touch(info.id);
            return Ok(info);
        }
        LedgerEdit::Set(metadata) => info.metadata.merge(&metadata),
        LedgerEdit::Delete(key) => {
            info.metadata.remove(&key);
        }
    }
    put_ledger(state, &info, section, batch)?;
    Ok(info)
}

/// Imports logs, up to the first refused one.
pub(super) fn import_logs(
    state: &mut State,
    name: &LedgerName,
    logs: &NextLogs,
    batch: &mut Batch,
    written: &EngineEntries<'_>,
) -> Result<Imported, WriteError> {
    let ledger = live(state, name)?;
    if state.ledgers[ledger].counters().next_log != logs.next {
        return Ok(Imported::Overtaken);
    }
    undo::begin(state, ledger);
    let mark = batch.mark();
    let mut imported = Imported::All;
    for log in &logs.logs {
        match import::log(&mut LedgerContext { state, ledger, batch, written }, log) {
            Ok(None) => batch.touch(ledger),
            Ok(Some(refusal)) => {
                imported = Imported::Refused(log.entry.id, refusal);
                break;
            }
            Err(error) => {
                undo::roll_back(state);
                batch.reset(mark);
                return Err(error.into());
            }
        }
    }
    undo::commit(state);
    Ok(imported)
}

/// Deletes or restores ledgers of a bucket, up to a limit. Returns the number of the next ledger to visit if there are
/// more.
pub(super) fn change_bucket(
    state: &mut State,
    BucketChange { bucket, first, to }: &BucketChange,
    now: Timestamp,
    batch: &mut Batch,
) -> Result<Option<u32>, WriteError> {
    if *to == BucketState::Restored && *first == 1 && state.ledgers.is_bucket_removed(bucket) {
        return Err(WriteError::BucketRemoved);
    }
    let mut next = Some(*first);
    let mut changed = Vec::new();
    for _ in 0..LEDGERS_VISITED {
        let ledger = next.and_then(|next| state.ledgers.get(next));
        let Some(ledger) = ledger else {
            next = None;
            break;
        };
        next = next.map(|next| next + 1);
        let (info, section) = (&ledger.head.info, ledger.head.section);
        if info.bucket != *bucket || ledger.head.is_removed {
            continue;
        }
        // A section whose removal has begun cannot be restored.
        if *to == BucketState::Restored && state.ledgers.section(section).removal_has_begun() {
            continue;
        }
        let deleted_at = match to {
            BucketState::Deleted => info.deleted_at.or(Some(now)),
            BucketState::Restored => None,
        };
        if info.deleted_at != deleted_at {
            let before = state.stored_document(&ledger_key(info))?;
            changed.push((LedgerInfo { deleted_at, ..LedgerInfo::clone(info) }, section, before));
        }
    }
    for (info, section, before) in changed {
        put_ledger_over(state, &info, section, before, batch)?;
    }
    Ok(next)
}

/// Removes ledgers that were deleted at least `retention` ago, up to a limit. Returns them.
pub(super) fn remove_deleted(
    state: &mut State,
    retention: Duration,
    now: Timestamp,
    batch: &mut Batch,
) -> Result<Vec<LedgerInfo>, WriteError> {
    let retention = i64::try_from(retention.as_micros()).unwrap_or(i64::MAX);
    let until = Timestamp::from_micros(now.as_micros().saturating_sub(retention));
    let mut due = Vec::new();
    for number in state.ledgers.removable(until, LEDGERS_VISITED) {
        let info = LedgerInfo::clone(&state.ledgers[number].head.info);
        let stored =
            |collection| state.stored_document(&document_key(collection, info.name.as_str().as_bytes()));
        let before = [(MAPPINGS, stored(MAPPINGS)?), (LEDGERS, stored(LEDGERS)?)];
        due.push((info, before));
    }
    let mut removed = Vec::with_capacity(due.len());
    for (info, before) in due {
        let key = info.name.as_str().as_bytes();
        for (collection, before) in before {
            if before.is_some() {
                let document = DocumentRecord { collection, key, value: None, secondary: Vec::new() };
                document_changes::enter(state, document, before, batch)?;
            }
        }
        batch.touch(info.id);
        removed.push(info);
    }
    Ok(removed)
}

/// Returns the number of an existing ledger.
pub(super) fn live(state: &State, name: &LedgerName) -> Result<u32, WriteError> {
    state.ledgers.live_number_of(name).ok_or_else(|| WriteError::LedgerNotFound { ledger: name.clone() })
}

/// Returns the key of the document that describes a ledger.
fn ledger_key(info: &LedgerInfo) -> Vec<u8> {
    document_key(LEDGERS, info.name.as_str().as_bytes())
}

fn put_ledger(
    state: &mut State,
    info: &LedgerInfo,
    section: u32,
    batch: &mut Batch,
) -> Result<(), WriteError> {
    let before = state.stored_document(&ledger_key(info))?;
    put_ledger_over(state, info, section, before, batch)
}

/// Writes the document of a ledger, which replaces the version `before`.
fn put_ledger_over(
    state: &mut State,
    info: &LedgerInfo,
    section: u32,
    before: Option<SharedBytes>,
    batch: &mut Batch,
) -> Result<(), WriteError> {
    let value = encode_ledger(info, section);
    let key = info.name.as_str().as_bytes();
    let document = DocumentRecord { collection: LEDGERS, key, value: Some(&value), secondary: Vec::new() };
    document_changes::enter(state, document, before, batch)?;
    batch.touch(info.id);
    Ok(())
}
