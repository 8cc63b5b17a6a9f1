//! A cache of parsed schemas.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use ledger_core::SchemaVersion;
use ledger_core::schema::{Schema, SchemaError};
use ledger_store::LedgerView;

use crate::http::error::ApiError;
use crate::limits::SCHEMA_CACHE_BYTES_MAX;

/// Caches recently used schemas, so that requests do not parse them again. A version of a schema never changes.
#[derive(Default)]
pub(crate) struct KnownSchemas(Mutex<Known>);

#[derive(Default)]
struct Known {
    bytes: usize,
    kept: HashMap<(u32, SchemaVersion), Arc<Schema>>,
}

impl KnownSchemas {
    /// Returns a version of a ledger's schema, or `None` if there is no such version.
    ///
    /// # Errors
    ///
    /// Returns `VALIDATION` if this release cannot parse a schema that another release recorded. Fails if the read
    /// fails.
    pub(crate) fn of(
        &self,
        ledger: &LedgerView,
        version: &SchemaVersion,
    ) -> Result<Option<Arc<Schema>>, ApiError> {
        let key = (ledger.info().id, version.clone());
        // A panic cannot leave the cache half changed, because each entry is inserted in one step.
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(schema) = lock().kept.get(&key) {
            return Ok(Some(schema.clone()));
        }
        let Some(stored) = ledger.schema(version)? else { return Ok(None) };
        let unreadable = |error: SchemaError| ApiError::validation(format!("invalid schema: {error}"));
        let schema = Arc::new(Schema::parse_recorded(&stored.text).map_err(unreadable)?);
        let bytes = schema.memory();
        let mut known = lock();
        if known.bytes + bytes > SCHEMA_CACHE_BYTES_MAX {
            *known = Known::default();
        }
        known.bytes += bytes;
        known.kept.insert(key, schema.clone());
        Ok(Some(schema))
    }
}
