//! Creates the index rows by which transactions and accounts are found: rows of keys and of terms of metadata. Keys are
//! references and idempotency keys.

use ledger_core::{Metadata, MetadataValue, PriorRequest};
use ledger_index::{KeyRow, TermRow};

use super::state::State;
use crate::fingerprint::{KeyKind, key_space};
use crate::projection::MemtableBuilder;

/// Adds rows for the terms of metadata that an entry adds or removes.
pub(super) fn put_terms(
    state: &State,
    space: u64,
    id: u64,
    position: u64,
    before: &Metadata,
    after: &Metadata,
    rows: &mut MemtableBuilder,
) {
    let mut push = |key: &str, value: &MetadataValue, present| {
        let term = state.fingerprints.term(space, key, &value.as_shown());
        rows.terms.push(TermRow::new(space, term, id, position, present));
    };
    // A text and a JSON value that are shown alike have the same term. A change from one to the other neither removes
    // nor adds it.
    for (key, value) in before.iter() {
        if after.get(key).is_none_or(|now| now.as_shown() != value.as_shown()) {
            push(key, value, false);
        }
    }
    for (key, value) in after.iter() {
        if before.get(key).is_none_or(|then| then.as_shown() != value.as_shown()) {
            push(key, value, true);
        }
    }
}

/// A key that an entry adds.
pub(super) struct NewKey<'a> {
    pub(super) text: &'a str,
    /// The fingerprint of the text, if it was computed before.
    pub(super) fingerprint: Option<u64>,
    /// The id of the transaction with this reference, or the position of the entry with this idempotency key.
    pub(super) value: u64,
    /// The request with this idempotency key.
    pub(super) request: Option<PriorRequest>,
}

/// Adds a key of a ledger.
pub(super) fn put_key(
    state: &mut State,
    ledger: u32,
    kind: KeyKind,
    NewKey { text, fingerprint, value, request }: NewKey<'_>,
    rows: &mut MemtableBuilder,
) {
    let space = key_space(ledger, kind);
    let fingerprint = fingerprint.unwrap_or_else(|| state.fingerprints.of(space, text));
    debug_assert_eq!(fingerprint, state.fingerprints.of(space, text), "of this key");
    rows.keys.push(KeyRow { space, fingerprint, value });
    state.known.add((space, fingerprint));
    let key = state.keys.put(ledger, fingerprint, text, value, request);
    if let Some(undo) = &mut state.undo {
        undo.keys.push(key.clone());
    }
}
