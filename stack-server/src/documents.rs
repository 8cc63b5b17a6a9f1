//! Helpers for services that keep their state as documents of the store.

use std::ops::Bound;

use ledger_core::Timestamp;
use ledger_store::{
    Collection, DOCUMENTS_PAGE_MAX, Document, DocumentAction, DocumentChange, DocumentKey, DocumentRange,
    DocumentRejection, DocumentVersion, Expected, ReadError, Snapshot, WriteError,
};

use crate::http::error::ApiError;

/// Maximum number of attempts at a change that another change came before.
const ATTEMPTS: usize = 16;

/// A value with the version of its document.
#[derive(Clone, Debug)]
pub(crate) struct Versioned<T> {
    pub(crate) value: T,
    pub(crate) version: DocumentVersion,
}

/// The error for a stored document that does not read as the service wrote it.
pub(crate) fn damaged(what: &str) -> ReadError {
    ReadError::Damaged { reason: format!("{what} is not what was written") }
}

/// Repeats a change while other changes of the same documents come before it.
///
/// # Errors
///
/// Those of the attempt; 503 if every attempt came too late.
pub(crate) fn again<T>(
    mut attempt: impl FnMut() -> Result<Result<T, WriteError>, ApiError>,
) -> Result<Result<T, WriteError>, ApiError> {
    for _ in 0..ATTEMPTS {
        match attempt()? {
            Err(WriteError::Document(DocumentRejection::Changed { .. })) => {}
            outcome => return Ok(outcome),
        }
    }
    Err(ApiError::busy("others change the same at this moment"))
}

/// The change that puts a document.
pub(crate) fn put(
    collection: Collection,
    key: &[u8],
    value: Vec<u8>,
    keys: Vec<DocumentKey>,
    expected: Expected,
) -> DocumentChange {
    DocumentChange { collection, key: key.to_vec(), expected, action: DocumentAction::Put { value, keys } }
}

/// The change that deletes a document.
pub(crate) fn delete(collection: Collection, key: &[u8], expected: Expected) -> DocumentChange {
    DocumentChange { collection, key: key.to_vec(), expected, action: DocumentAction::Delete }
}

/// A further key that sorts documents by a date.
pub(crate) fn date_key(index: u32, at: Timestamp) -> DocumentKey {
    // The bit that holds the sign is turned around, so that bytes sort as dates do.
    let bytes = (at.as_micros() ^ i64::MIN).to_be_bytes();
    DocumentKey { index, key: bytes.to_vec(), unique: false }
}

/// Every document of a collection in the order of an index.
///
/// # Errors
///
/// Those of any read.
pub(crate) fn all_by(
    snapshot: &Snapshot,
    collection: Collection,
    index: u32,
) -> Result<Vec<Document>, ReadError> {
    let mut all: Vec<Document> = Vec::new();
    let mut range = DocumentRange::default();
    loop {
        let page = snapshot.documents_by(collection, index, &range)?;
        let is_last = page.len() < DOCUMENTS_PAGE_MAX;
        if let Some(last) = page.last() {
            let further = last.keys.iter().find(|key| key.index == index);
            range.beyond = further.map(|further| (further.key.clone(), last.key.clone()));
        }
        all.extend(page);
        if is_last || range.beyond.is_none() {
            return Ok(all);
        }
    }
}

/// The documents whose further key is exactly this.
///
/// # Errors
///
/// Those of any read.
pub(crate) fn with_key(
    snapshot: &Snapshot,
    collection: Collection,
    index: u32,
    key: &[u8],
) -> Result<Vec<Document>, ReadError> {
    let bound = || Bound::Included(key.to_vec());
    let range = DocumentRange { from: bound(), to: bound(), ..DocumentRange::default() };
    snapshot.documents_by(collection, index, &range)
}
