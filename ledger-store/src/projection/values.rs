//! Values of entries as the index and readers have them.

use std::borrow::Cow;

use ledger_core::MetadataValue;
use ledger_journal::entry::ValueRef;

/// The key of a holding in the history tables.
pub(crate) fn holding_key(ledger: u32, holding: u32) -> u64 {
    u64::from(ledger) << 32 | u64::from(holding)
}

/// A stored metadata value as a value.
pub(crate) fn value_of(value: ValueRef<'_>) -> MetadataValue {
    match value {
        ValueRef::Text(text) => MetadataValue::Text(text.into()),
        ValueRef::Json(text) => MetadataValue::Json(text.into()),
    }
}

/// A stored metadata value as filters compare it.
pub(crate) fn shown(value: ValueRef<'_>) -> Cow<'_, str> {
    match value {
        ValueRef::Text(text) => Cow::Borrowed(text),
        ValueRef::Json(json) => MetadataValue::json_as_shown(json),
    }
}
