//! Documents of a snapshot.

use super::Snapshot;
use crate::documents::keys::{self, Space, document_key, document_of, index_key};
use crate::documents::overlay::{Changes, Merged, stored};
use crate::documents::{Collection, DOCUMENTS_PAGE_MAX, Document, DocumentRange, decode_value};
use crate::error::ReadError;
use crate::index::Way;
use crate::lookup::{missing, tables};
use crate::projection::StoredDocument;
use crate::query::Direction;
use crate::view::View;

impl Snapshot {
    /// The document with a key.
    ///
    /// # Errors
    ///
    /// [`ReadError::Damaged`] if stored bytes are not what was written.
    pub fn document(&self, collection: Collection, key: &[u8]) -> Result<Option<Document>, ReadError> {
        DocumentReader::new(self.view()).document(collection.number(), key)
    }

    /// Documents in the order of their keys.
    ///
    /// # Errors
    ///
    /// As [`Snapshot::document`].
    pub fn documents(
        &self,
        collection: Collection,
        range: &DocumentRange,
    ) -> Result<Vec<Document>, ReadError> {
        DocumentReader::new(self.view()).documents(collection.number(), None, range)
    }

    /// Documents in the order of a further key, those with one and the same in the order of their own.
    ///
    /// # Errors
    ///
    /// As [`Snapshot::document`].
    pub fn documents_by(
        &self,
        collection: Collection,
        index: u32,
        range: &DocumentRange,
    ) -> Result<Vec<Document>, ReadError> {
        DocumentReader::new(self.view()).documents(collection.number(), Some(index), range)
    }
}

/// What reads documents of any collection, the store's own among them.
pub(super) struct DocumentReader<'a> {
    view: &'a View,
}

impl<'a> DocumentReader<'a> {
    /// Of one moment.
    pub(super) fn new(view: &'a View) -> Self {
        Self { view }
    }

    /// Documents of a collection; with an index, in the order of that further key.
    pub(super) fn documents(
        &self,
        number: u32,
        index: Option<u32>,
        range: &DocumentRange,
    ) -> Result<Vec<Document>, ReadError> {
        let start = keys::prefix(number, Space::Documents).len();
        match index {
            None => self.collect(number, Space::Documents, range, |full, value| {
                Ok(Some(decode_value(value)?.document(&full[start..])))
            }),
            Some(index) => self.collect(number, Space::Index(index), range, |full, _| {
                self.document(number, document_of(number, index, full)?)
            }),
        }
    }

    /// The document with a key.
    pub(super) fn document(&self, number: u32, key: &[u8]) -> Result<Option<Document>, ReadError> {
        let found = self.standing(&document_key(number, key))?;
        Ok(found.map(|found| decode_value(&found).map(|value| value.document(key))).transpose()?)
    }

    fn collect(
        &self,
        collection: u32,
        space: Space,
        range: &DocumentRange,
        document: impl Fn(&[u8], &[u8]) -> Result<Option<Document>, ReadError>,
    ) -> Result<Vec<Document>, ReadError> {
        let way = match range.direction {
            Direction::Ascending => Way::Ascending,
            Direction::Descending => Way::Descending,
        };
        let (mut from, mut to) = keys::range(collection, space, &range.from, &range.to);
        if let Some((further, key)) = &range.beyond {
            let mut at = match space {
                Space::Documents => document_key(collection, key),
                Space::Index(index) => index_key(collection, index, further, key),
            };
            match way {
                Way::Ascending => {
                    at.push(0);
                    from = from.max(at);
                }
                Way::Descending => to = to.min(at),
            }
        }
        let limit = range.limit.min(DOCUMENTS_PAGE_MAX);
        let mut found = Vec::new();
        if from >= to {
            return Ok(found);
        }
        let mut standing = self.standing_between(&from, &to, way)?;
        while found.len() < limit
            && let Some((full, value)) = standing.next()?
        {
            found.push(document(&full, &value)?.ok_or_else(|| missing("a document"))?);
        }
        Ok(found)
    }

    /// What stands under a key of the documents.
    fn standing(&self, key: &[u8]) -> Result<Option<Box<[u8]>>, ReadError> {
        let view = self.view;
        match view.pieces.iter().rev().find_map(|piece| piece.piece.document(key)) {
            Some(found) => Ok(found.value.clone()),
            None => Ok(view.index.get(tables::DOCUMENTS, key)?.map(Into::into)),
        }
    }

    fn standing_between<'b>(
        &'b self,
        from: &'b [u8],
        to: &'b [u8],
        way: Way,
    ) -> Result<Merged<'b>, ReadError> {
        let view = self.view;
        let change = |document: &StoredDocument| Ok((document.key.clone(), document.value.clone()));
        let mut sources: Vec<Changes<'b>> = Vec::new();
        for piece in view.pieces.iter().rev() {
            let documents = piece.piece.documents_between(from, to);
            match way {
                _ if documents.is_empty() => {}
                Way::Ascending => sources.push(Box::new(documents.iter().map(change))),
                Way::Descending => sources.push(Box::new(documents.iter().rev().map(change))),
            }
        }
        sources.push(stored(&view.index, from, to, way)?);
        Merged::new(sources, way)
    }
}
