//! Reads documents from a view, also those of the store itself.

use ledger_index::{DocumentRow, SharedBytes, Way};

use crate::documents::keys::{self, Space, document_key, document_of, index_key};
use crate::documents::merged::{Changes, Merged};
use crate::documents::{DOCUMENTS_PAGE_MAX, Document, DocumentRange, decode_value, indexed};
use crate::error::ReadError;
use crate::lookup::missing;
use crate::projection::DocumentHash;
use crate::query::Direction;
use crate::view::View;

/// Reads documents of any collection, including the collections of the store itself.
pub(super) struct DocumentReader<'a> {
    view: &'a View,
}

impl<'a> DocumentReader<'a> {
    /// Creates a reader of one view.
    pub(super) fn new(view: &'a View) -> Self {
        Self { view }
    }

    /// Returns documents of a collection: in key order, or in the order of a secondary key if `index` names its index.
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

    /// Returns the document with this key, if it exists.
    pub(super) fn document(&self, number: u32, key: &[u8]) -> Result<Option<Document>, ReadError> {
        let found = self.value_at(&document_key(number, key))?;
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
        if let Some((secondary, key)) = &range.beyond {
            let mut at = match space {
                Space::Documents => document_key(collection, key),
                Space::Index(index) => index_key(collection, index, secondary, key),
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
        let mut values = self.values_between(&from, &to, way)?;
        while found.len() < limit
            && let Some((full, value)) = values.next()?
        {
            found.push(document(&full, &value)?.ok_or_else(|| missing("a document"))?);
        }
        Ok(found)
    }

    /// Returns the current value of a document's full key.
    fn value_at(&self, key: &[u8]) -> Result<Option<SharedBytes>, ReadError> {
        let (view, hash) = (self.view, DocumentHash::of(key));
        match view.memtables.iter().rev().find_map(|memtable| memtable.memtable.document(key, hash)) {
            Some(found) => Ok(found.value.clone()),
            None => indexed::value(&view.index, key),
        }
    }

    fn values_between<'b>(&'b self, from: &'b [u8], to: &'b [u8], way: Way) -> Result<Merged<'b>, ReadError> {
        let view = self.view;
        let change = |document: &DocumentRow| Ok((document.key.clone(), document.value.clone()));
        let mut sources: Vec<Changes<'b>> = Vec::new();
        for memtable in view.memtables.iter().rev() {
            let documents = memtable.memtable.documents_between(from, to);
            match way {
                _ if documents.is_empty() => {}
                Way::Ascending => sources.push(Box::new(documents.iter().map(change))),
                Way::Descending => sources.push(Box::new(documents.iter().rev().map(change))),
            }
        }
        sources.push(indexed::between(&view.index, from, to, way)?);
        Ok(Merged::new(sources, way))
    }
}
