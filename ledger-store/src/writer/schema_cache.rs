//! Schemas that were named lately.

use std::collections::BTreeMap;
use std::sync::Arc;

use ledger_core::CompactString;
use ledger_core::schema::{Schema, SchemaError};

/// A schema as it was read back. One that was recorded is valid; should a later release read it differently, the
/// requests that name it are refused, and all else goes on.
pub(super) type ReadSchema = Arc<Result<Schema, SchemaError>>;

/// Schemas that were named lately, parsed. Versions do not change, so nothing here is ever out of date.
#[derive(Default)]
pub(crate) struct SchemaCache {
    bytes_max: usize,
    bytes: usize,
    kept: BTreeMap<(u32, CompactString), ReadSchema>,
}

impl SchemaCache {
    /// Keeps up to so many bytes, and one schema of any size.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, ..Self::default() }
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.kept.clear();
        self.bytes = 0;
    }

    /// Returns a schema that is kept.
    pub(super) fn get(&self, ledger: u32, version: &str) -> Option<ReadSchema> {
        self.kept.get(&(ledger, version.into())).cloned()
    }

    /// Keeps a schema.
    pub(super) fn keep(&mut self, ledger: u32, version: &str, schema: &ReadSchema) {
        let bytes = 256 + version.len() + schema.as_ref().as_ref().map_or(0, Schema::memory);
        if self.bytes + bytes > self.bytes_max {
            self.clear();
        }
        self.bytes += bytes;
        self.kept.insert((ledger, version.into()), schema.clone());
    }
}
