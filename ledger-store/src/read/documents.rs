//! Reads documents from a snapshot.

use super::Snapshot;
use super::document_reader::DocumentReader;
use crate::documents::{Collection, Document, DocumentRange};
use crate::error::ReadError;

impl Snapshot {
    /// Returns the document with this key, if it exists.
    ///
    /// # Errors
    ///
    /// [`ReadError::Damaged`] if stored bytes differ from those that were written.
    pub fn document(&self, collection: Collection, key: &[u8]) -> Result<Option<Document>, ReadError> {
        DocumentReader::new(self.view()).document(collection.number(), key)
    }

    /// Returns documents in key order.
    ///
    /// # Errors
    ///
    /// The errors of [`Snapshot::document`].
    pub fn documents(
        &self,
        collection: Collection,
        range: &DocumentRange,
    ) -> Result<Vec<Document>, ReadError> {
        DocumentReader::new(self.view()).documents(collection.number(), None, range)
    }

    /// Returns documents in the order of a secondary key. Documents with equal secondary keys follow in key order.
    ///
    /// # Errors
    ///
    /// The errors of [`Snapshot::document`].
    pub fn documents_by(
        &self,
        collection: Collection,
        index: u32,
        range: &DocumentRange,
    ) -> Result<Vec<Document>, ReadError> {
        DocumentReader::new(self.view()).documents(collection.number(), Some(index), range)
    }
}
