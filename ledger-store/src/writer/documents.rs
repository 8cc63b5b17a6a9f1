//! Projects documents: their own rows, and those of their secondary keys.

use std::sync::Arc;

use ledger_journal::entry::DocumentRecord;

use super::hints::Prior;
use super::state::State;
use crate::documents::decode_value;
use crate::documents::keys::{StoredValue, document_key, index_key};
use crate::error::ReadError;
use crate::projection::{MemtableBuilder, StoredDocument};

/// Applies the entry of a document: writes its own row, and adds and removes the rows of its secondary keys.
pub(super) fn put(
    state: &mut State,
    position: u64,
    document: &DocumentRecord<'_>,
    stored: &Prior<Box<[u8]>>,
    rows: &mut MemtableBuilder,
) -> Result<(), ReadError> {
    let collection = document.collection;
    let full = document_key(collection, document.key);
    let before = stored.or_read(|| state.stored_document(&full))?;
    if let Some(before) = &before {
        for (index, _, further) in decode_value(before)?.keys {
            let kept = document.secondary.iter().any(|key| key.index == index && key.key == further);
            if !kept {
                put_row(state, index_key(collection, index, further, document.key), None, rows);
            }
        }
    }
    for key in &document.secondary {
        let entry = index_key(collection, key.index, key.key, document.key);
        put_row(state, entry, Some(Box::default()), rows);
    }
    let value = document.value.map(|bytes| {
        let keys = document.secondary.iter().map(|key| (key.index, key.unique, key.key)).collect();
        StoredValue { version: position, keys, bytes }.encode().into_boxed_slice()
    });
    put_row(state, full, value, rows);
    Ok(())
}

fn put_row(state: &mut State, key: Vec<u8>, value: Option<Box<[u8]>>, rows: &mut MemtableBuilder) {
    let key: Arc<[u8]> = key.into();
    rows.documents.push(StoredDocument { key: key.clone(), value: value.clone() });
    state.keep_document(key, value);
}
