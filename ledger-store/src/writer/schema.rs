//! Schemas in the writer: finds the version that a request names, and projects new versions.

use std::sync::Arc;

use ledger_codec::Corrupt;
use ledger_core::SchemaVersion;
use ledger_core::schema::{Schema, version_of};
use ledger_index::SharedBytes;
use ledger_journal::entry::{DocumentRecord, SecondaryKey};

use super::documents;
use super::schema_cache::ReadSchema;
use super::state::State;
use crate::documents::keys::document_key;
use crate::documents::{SCHEMAS, SCHEMAS_BY_POSITION, decode_value, schema_key, schema_position_key};
use crate::error::ReadError;
use crate::projection::MemtableBuilder;

/// Returns the schema version with a name, if the ledger has one.
pub(super) fn named(
    state: &mut State,
    ledger: u32,
    version: &SchemaVersion,
) -> Result<Option<ReadSchema>, ReadError> {
    if let Some(kept) = state.schemas.get(ledger, version.as_str()) {
        return Ok(Some(kept));
    }
    let Some(stored) = stored(state, ledger, version)? else { return Ok(None) };
    let text = String::from_utf8_lossy(decode_value(&stored)?.bytes).into_owned();
    let schema = Arc::new(Schema::parse_recorded(&text));
    state.schemas.keep(ledger, version.as_str(), &schema);
    Ok(Some(schema))
}

/// Returns the stored document of a schema version, if the ledger has one of this name.
pub(super) fn stored(
    state: &State,
    ledger: u32,
    version: &SchemaVersion,
) -> Result<Option<SharedBytes>, ReadError> {
    state.stored_document(&schema_place(ledger, version))
}

/// Projects a schema that an entry adds, unless its version is stored already. Ignores a text without a version name,
/// which was never a schema.
pub(super) fn put(
    state: &mut State,
    position: u64,
    ledger: u32,
    text: &str,
    stored: Option<&SharedBytes>,
    rows: &mut MemtableBuilder,
) -> Result<(), Corrupt> {
    let Some(version) = version_of(text) else { return Ok(()) };
    if stored.is_some() {
        return Ok(());
    }
    state.ledgers[ledger].counters().schemas += 1;
    let by_position = schema_position_key(ledger, position);
    let document = DocumentRecord {
        collection: SCHEMAS,
        key: &schema_key(ledger, version.as_str()),
        value: Some(text.as_bytes()),
        secondary: vec![SecondaryKey { index: SCHEMAS_BY_POSITION, unique: false, key: &by_position }],
    };
    documents::put(state, position, &document, None, rows)
}

fn schema_place(ledger: u32, version: &SchemaVersion) -> Vec<u8> {
    document_key(SCHEMAS, &schema_key(ledger, version.as_str()))
}
