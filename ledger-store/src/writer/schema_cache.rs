//! A cache of recently used schemas.

use std::collections::BTreeMap;
use std::sync::Arc;

use ledger_core::SmolStr;
use ledger_core::schema::{Schema, SchemaError};

/// A parsed schema. Recorded schemas are valid. If a later release refuses one, it refuses the requests that name it,
/// and everything else works. If it refuses only the script of a template, it refuses the transactions of that template.
pub(super) type ReadSchema = Arc<Result<Schema, SchemaError>>;

/// A cache of parsed schemas. Versions never change, so the cache is never out of date.
#[derive(Default)]
pub(crate) struct SchemaCache {
    bytes_max: usize,
    bytes: usize,
    kept: BTreeMap<(u32, SmolStr), ReadSchema>,
}

impl SchemaCache {
    /// Creates an empty cache of up to `bytes_max` bytes, or of one schema of any size.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, ..Self::default() }
    }

    /// Removes all schemas.
    pub(crate) fn clear(&mut self) {
        self.kept.clear();
        self.bytes = 0;
    }

    /// Returns a schema if it is cached.
    pub(super) fn get(&self, ledger: u32, version: &str) -> Option<ReadSchema> {
        self.kept.get(&(ledger, version.into())).cloned()
    }

    /// Adds a schema.
    pub(super) fn keep(&mut self, ledger: u32, version: &str, schema: &ReadSchema) {
        let bytes = 256 + version.len() + schema.as_ref().as_ref().map_or(0, Schema::memory);
        if self.bytes + bytes > self.bytes_max {
            self.clear();
        }
        self.bytes += bytes;
        self.kept.insert((ledger, version.into()), schema.clone());
    }
}
