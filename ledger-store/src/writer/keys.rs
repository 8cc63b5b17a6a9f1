//! Creates the rows that find transactions and accounts: keys, and terms of metadata.

use ledger_core::{Metadata, MetadataValue};
use ledger_index::{KeyRow, TermRow};
use ledger_journal::entry::Recognition;

use super::state::State;
use crate::fingerprint::{KeyKind, key_space};
use crate::projection::MemtableBuilder;

/// Adds the terms of metadata that an entry changes.
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
    // Values that differ only in kind are the same term, which is then neither removed nor added.
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

/// Adds a key with its value and, for an idempotency key, its request. `known` is its fingerprint, if it was
/// computed before.
pub(super) fn put_key(
    state: &mut State,
    ledger: u32,
    kind: KeyKind,
    known: Option<u64>,
    (text, value, request): (&str, u64, Option<Recognition>),
    rows: &mut MemtableBuilder,
) {
    let space = key_space(ledger, kind);
    let fingerprint = known.unwrap_or_else(|| state.fingerprints.of(space, text));
    debug_assert_eq!(fingerprint, state.fingerprints.of(space, text), "of this key");
    rows.keys.push(KeyRow { space, fingerprint, value });
    state.known.add((space, fingerprint));
    let key = state.keys.put(ledger, fingerprint, text, value, request);
    if let Some(undo) = &mut state.undo {
        undo.keys.push(key.clone());
    }
}
