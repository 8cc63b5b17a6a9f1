//! Turns the documents of entries into rows of the index: one row for each document, and one for each of its secondary
//! keys.

use std::sync::Arc;

use ledger_codec::Corrupt;
use ledger_index::{DocumentRow, SharedBytes};
use ledger_journal::entry::DocumentRecord;

use super::state::State;
use crate::documents::decode_value;
use crate::documents::keys::{StoredValue, document_key, put_index_key};
use crate::projection::MemtableBuilder;

/// Applies a document of the entry at `position`: writes its own row, and adds and removes the rows of its secondary
/// keys. `before` is the stored value that it replaces.
pub(super) fn put(
    state: &mut State,
    position: u64,
    document: &DocumentRecord<'_>,
    before: Option<&SharedBytes>,
    rows: &mut MemtableBuilder,
) -> Result<(), Corrupt> {
    let collection = document.collection;
    let full = document_key(collection, document.key);
    let mut row_key = Vec::new();
    if let Some(before) = before {
        for (index, _, secondary) in decode_value(before)?.keys {
            let kept = document.secondary.iter().any(|key| key.index == index && key.key == secondary);
            if !kept {
                put_index_key(&mut row_key, collection, index, secondary, document.key);
                put_row(state, position, row_key.as_slice().into(), None, rows);
            }
        }
    }
    for key in &document.secondary {
        put_index_key(&mut row_key, collection, key.index, key.key, document.key);
        put_row(state, position, row_key.as_slice().into(), Some(SharedBytes::default()), rows);
    }
    let value = document.value.map(|bytes| {
        let keys = document.secondary.iter().map(|key| (key.index, key.unique, key.key)).collect();
        StoredValue { version: position, keys, bytes }.encode().into()
    });
    put_row(state, position, full.into(), value, rows);
    Ok(())
}

fn put_row(
    state: &mut State,
    version: u64,
    key: Arc<[u8]>,
    value: Option<SharedBytes>,
    rows: &mut MemtableBuilder,
) {
    rows.documents.push(DocumentRow { key: key.clone(), version, value: value.clone() });
    state.keep_document(key, value);
}
