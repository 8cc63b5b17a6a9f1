//! Helpers for services that store their state as documents.

use std::ops::Bound;

use ledger_core::Timestamp;
use ledger_store::{
    Collection, DOCUMENTS_PAGE_MAX, Document, DocumentAction, DocumentChange, DocumentKey, DocumentRange,
    DocumentRejection, DocumentVersion, Expected, ReadError, Snapshot, WriteError,
};

use crate::http::error::ApiError;

/// Maximum number of attempts when other changes of the same documents come first.
const ATTEMPTS: usize = 16;

/// A value with the version of its document.
#[derive(Clone, Debug)]
pub(crate) struct Versioned<T> {
    pub(crate) value: T,
    pub(crate) version: DocumentVersion,
}

/// Returns the error for a stored document that the service cannot parse.
pub(crate) fn damaged(what: &str) -> ReadError {
    ReadError::Damaged(format!("{what} is not what was written").into())
}

/// Repeats a change as long as concurrent changes of the same documents come first.
///
/// # Errors
///
/// Returns errors of the attempt; 503 if concurrent changes came first in every attempt.
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

/// Returns the change that stores a document.
pub(crate) fn put(
    collection: Collection,
    key: &[u8],
    value: Vec<u8>,
    keys: Vec<DocumentKey>,
    expected: Expected,
) -> DocumentChange {
    DocumentChange { collection, key: key.to_vec(), expected, action: DocumentAction::Put { value, keys } }
}

/// Returns the change that deletes a document.
pub(crate) fn delete(collection: Collection, key: &[u8], expected: Expected) -> DocumentChange {
    DocumentChange { collection, key: key.to_vec(), expected, action: DocumentAction::Delete }
}

/// Returns a secondary key that sorts documents by date.
pub(crate) fn date_key(index: u32, at: Timestamp) -> DocumentKey {
    // Invert the sign bit, so that the order of the bytes is the order of the dates.
    let bytes = (at.as_micros() ^ i64::MIN).to_be_bytes();
    DocumentKey { index, key: bytes.to_vec(), unique: false }
}

/// Returns all documents of a collection in the order of an index.
///
/// # Errors
///
/// Fails if the store cannot be read.
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
            let secondary = last.keys.iter().find(|key| key.index == index);
            range.beyond = secondary.map(|secondary| (secondary.key.clone(), last.key.clone()));
        }
        all.extend(page);
        if is_last || range.beyond.is_none() {
            return Ok(all);
        }
    }
}

/// Returns the documents whose secondary key equals this key.
///
/// # Errors
///
/// Fails if the store cannot be read.
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
