//! Changes of documents: all of them are checked first, then applied one by one.

use std::collections::{HashMap, HashSet};
use std::ops::Bound;

use ledger_index::SharedBytes;
use ledger_journal::entry::{Body, DocumentRecord, LedgerBase, Record, SecondaryKey};
use ledger_journal::{Position, SectionId};

use super::apply;
use super::batch::Batch;
use super::hints::Hints;
use super::state::State;
use crate::documents::keys::{self, Space, document_key, document_of};
use crate::documents::{
    DOCUMENT_BYTES_MAX, DOCUMENT_CHANGES_MAX, DOCUMENT_COMMIT_BYTES_MAX, DOCUMENT_KEY_BYTES_MAX,
    DOCUMENT_KEYS_MAX, DocumentAction, DocumentChange, DocumentRejection, DocumentVersion, Expected,
    decode_value,
};
use crate::error::ReadError;

/// The stored value before each change.
type PriorValues = Vec<Option<SharedBytes>>;

/// Applies all of the changes or none.
pub(crate) fn change(
    state: &mut State,
    changes: &[DocumentChange],
    batch: &mut Batch,
) -> Result<Result<Vec<DocumentVersion>, DocumentRejection>, ReadError> {
    if let Err(rejection) = check_sizes(changes) {
        return Ok(Err(rejection));
    }
    // Read everything before the first change, so that a failed read leaves no change half done.
    let before = match check_changes(state, changes)? {
        Ok(before) => before,
        Err(rejection) => return Ok(Err(rejection)),
    };
    let mut versions = Vec::with_capacity(changes.len());
    for (change, before) in changes.iter().zip(before) {
        let (value, secondary) = match &change.action {
            DocumentAction::Put { value, keys } => {
                let keys = keys.iter().map(|key| SecondaryKey {
                    index: key.index,
                    unique: key.unique,
                    key: &key.key,
                });
                (Some(value.as_slice()), keys.collect())
            }
            DocumentAction::Delete => (None, Vec::new()),
        };
        let collection = change.collection.number();
        let document = DocumentRecord { collection, key: &change.key, value, secondary };
        versions.push(DocumentVersion(enter(state, document, before, batch)?.get()));
    }
    Ok(Ok(versions))
}

/// Records a change of a document and returns its position. `before` is the current stored value. Callers that
/// make several changes read all of these first.
pub(crate) fn enter(
    state: &mut State,
    document: DocumentRecord<'_>,
    before: Option<SharedBytes>,
    batch: &mut Batch,
) -> Result<Position, ReadError> {
    let position = state.next;
    let record = Record { position, body: Body::Document(document) };
    let hints = Hints { stored: before, ..Hints::default() };
    apply::entry(state, &record, &hints, &mut batch.rows)?;
    let base = LedgerBase { ledger: 0, log: 0, transaction: 0, date: 0 };
    batch.chunks.push(&record, SectionId(0), base);
    Ok(position)
}

/// Returns the stored values before the changes, if every document is in the expected state and no unique key
/// would belong to two documents.
fn check_changes(
    state: &mut State,
    changes: &[DocumentChange],
) -> Result<Result<PriorValues, DocumentRejection>, ReadError> {
    let mut before = Vec::with_capacity(changes.len());
    let mut changed = HashSet::with_capacity(changes.len());
    for (at, change) in changes.iter().enumerate() {
        if !changed.insert((change.collection, change.key.as_slice())) {
            return Ok(Err(DocumentRejection::Repeated { change: at }));
        }
        let stored = state.stored_document(&document_key(change.collection.number(), &change.key))?;
        let version = match &stored {
            Some(stored) => Some(DocumentVersion(decode_value(stored)?.version)),
            None => None,
        };
        let holds = match change.expected {
            Expected::Anything => true,
            Expected::Absent => version.is_none(),
            Expected::Version(expected) => version == Some(expected),
        };
        if !holds {
            let expected = change.expected;
            return Ok(Err(DocumentRejection::Changed { change: at, expected, found: version }));
        }
        before.push(stored);
    }
    let mut given = HashMap::new();
    for (at, change) in changes.iter().enumerate() {
        let DocumentAction::Put { keys, .. } = &change.action else { continue };
        let collection = change.collection.number();
        for key in keys.iter().filter(|key| key.unique) {
            let taken = Ok(Err(DocumentRejection::KeyTaken { change: at, index: key.index }));
            let place = (collection, key.index, key.key.as_slice());
            if given.insert(place, at).is_some_and(|other| other != at) {
                return taken;
            }
            // The current holder of the key does not matter if it is among the changed documents: its new keys
            // were checked already.
            let all = Bound::Included(key.key.clone());
            let (from, to) = keys::range(collection, Space::Index(key.index), &all, &all);
            let mut holders = state.document_entries(&from, &to)?;
            while let Some((entry, _)) = holders.next()? {
                let holder = document_of(collection, key.index, &entry)?;
                if !changed.contains(&(change.collection, holder)) {
                    return taken;
                }
            }
        }
    }
    Ok(Ok(before))
}

fn check_sizes(changes: &[DocumentChange]) -> Result<(), DocumentRejection> {
    let all: usize = changes.iter().map(DocumentChange::bytes).sum();
    if changes.len() > DOCUMENT_CHANGES_MAX || all > DOCUMENT_COMMIT_BYTES_MAX {
        return Err(DocumentRejection::TooLarge { change: changes.len() });
    }
    for (at, change) in changes.iter().enumerate() {
        let fits = change.key.len() <= DOCUMENT_KEY_BYTES_MAX
            && match &change.action {
                DocumentAction::Put { value, keys } => {
                    value.len() <= DOCUMENT_BYTES_MAX
                        && keys.len() <= DOCUMENT_KEYS_MAX
                        && keys.iter().all(|key| key.key.len() <= DOCUMENT_KEY_BYTES_MAX)
                }
                DocumentAction::Delete => true,
            };
        if !fits {
            return Err(DocumentRejection::TooLarge { change: at });
        }
    }
    Ok(())
}
