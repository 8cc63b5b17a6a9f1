//! Converts values of journal entries to the forms of the index and the readers.

use std::borrow::Cow;

use ledger_core::MetadataValue;
use ledger_journal::entry::ValueRef;

/// Returns the key of a holding in the history tables.
pub(crate) fn holding_key(ledger: u32, holding: u32) -> u64 {
    u64::from(ledger) << 32 | u64::from(holding)
}

/// Returns the ledger and the number of the holding that a key in the history tables stands for.
#[expect(clippy::cast_possible_truncation, reason = "each of them is a half of the key")]
pub(crate) fn holding_of_key(key: u64) -> (u32, u32) {
    ((key >> 32) as u32, key as u32)
}

/// Converts a stored metadata value.
pub(crate) fn value_of(value: ValueRef<'_>) -> MetadataValue {
    match value {
        ValueRef::Text(text) => MetadataValue::Text(text.into()),
        ValueRef::Json(text) => MetadataValue::Json(text.into()),
    }
}

/// Returns a stored metadata value in the form that filters compare.
pub(crate) fn shown(value: ValueRef<'_>) -> Cow<'_, str> {
    match value {
        ValueRef::Text(text) => Cow::Borrowed(text),
        ValueRef::Json(json) => MetadataValue::json_as_shown(json),
    }
}
