//! Storage of the payments API's records. Each kind of record is a collection of documents.

use std::ops::Bound;

use ledger_core::Timestamp;
use ledger_store::{
    Collection, Direction, Document, DocumentAction, DocumentChange, DocumentKey, DocumentRange,
    DocumentRejection, DocumentVersion, Expected, ReadError, Snapshot, Store, WriteError,
};

use crate::http::error::ApiError;
use crate::payments::codec::{Decoder, Encoder, date_key};

/// Maximum number of attempts for a change when other changes conflict with it.
const ATTEMPTS: usize = 64;

/// Maximum number of changes in one commit, somewhat below the limit of the store.
pub(crate) const CHANGES_MAX: usize = 900;

/// A kind of record.
pub(crate) trait Record: Sized {
    /// The collection of the records' documents.
    const COLLECTION: Collection;
    /// The name of the kind in errors about damaged data.
    const NAME: &'static str;

    /// Returns the key of the record's document.
    fn key(&self) -> Vec<u8>;

    /// Returns the secondary keys for sorted lists and for lookups.
    fn keys(&self) -> Vec<DocumentKey>;

    /// Writes the fields that are not in the key.
    fn encode(&self, out: &mut Encoder);

    /// Reads the fields that [`Record::encode`] wrote. Returns `None` if the bytes do not have this form.
    fn decode(key: &[u8], input: &mut Decoder<'_>) -> Option<Self>;
}

/// A record with the version of its document.
#[derive(Clone, Debug)]
pub(crate) struct Versioned<T> {
    pub(crate) value: T,
    pub(crate) version: DocumentVersion,
}

/// Returns a secondary key for sorted lists.
pub(crate) fn ordered(index: u32, key: impl Into<Vec<u8>>) -> DocumentKey {
    DocumentKey { index, key: key.into(), unique: false }
}

/// The number of the first dated index. A key of a dated index is a value followed by a date.
pub(crate) const DATED: u32 = 64;

/// Returns a secondary key of a dated index.
pub(crate) fn dated(index: u32, value: &[u8], at: Timestamp) -> DocumentKey {
    debug_assert!(index >= DATED, "index {index} is not dated");
    ordered(index, [value, &date_key(at)].concat())
}

/// Returns a secondary key that only one document may have.
pub(crate) fn unique(index: u32, key: impl Into<Vec<u8>>) -> DocumentKey {
    DocumentKey { index, key: key.into(), unique: true }
}

/// Returns the content of a record's document.
pub(crate) fn content<R: Record>(record: &R) -> Vec<u8> {
    let mut out = Encoder::default();
    record.encode(&mut out);
    out.into_bytes()
}

/// Returns the change that stores a record.
pub(crate) fn put<R: Record>(record: &R, expected: Expected) -> DocumentChange {
    put_content(record, content(record), expected)
}

/// Returns the change that stores a record with its [`content`].
pub(crate) fn put_content<R: Record>(record: &R, content: Vec<u8>, expected: Expected) -> DocumentChange {
    let action = DocumentAction::Put { value: content, keys: record.keys() };
    DocumentChange { collection: R::COLLECTION, key: record.key(), expected, action }
}

/// Returns the change that deletes the record with this key.
pub(crate) fn delete<R: Record>(key: Vec<u8>, expected: Expected) -> DocumentChange {
    DocumentChange { collection: R::COLLECTION, key, expected, action: DocumentAction::Delete }
}

/// Decodes the record in a document.
pub(crate) fn of<R: Record>(document: &Document) -> Result<Versioned<R>, ReadError> {
    let mut input = Decoder::new(&document.value);
    let value = R::decode(&document.key, &mut input).filter(|_| input.is_empty());
    let value =
        value.ok_or_else(|| ReadError::Damaged(format!("{} is not what was written", R::NAME).into()))?;
    Ok(Versioned { value, version: document.version })
}

/// Returns the record with this key.
pub(crate) fn find<R: Record>(snapshot: &Snapshot, key: &[u8]) -> Result<Option<Versioned<R>>, ReadError> {
    snapshot.document(R::COLLECTION, key)?.as_ref().map(of).transpose()
}

/// Returns the records whose key begins with `prefix`, in ascending order. The key is that of the document, or its
/// secondary key in an index.
pub(crate) fn with_prefix<R: Record>(
    snapshot: &Snapshot,
    index: Option<u32>,
    prefix: &[u8],
) -> Result<Vec<Versioned<R>>, ReadError> {
    let mut found = Vec::new();
    let mut range = prefixed(prefix, Direction::Ascending);
    loop {
        let documents = match index {
            None => snapshot.documents(R::COLLECTION, &range)?,
            Some(index) => snapshot.documents_by(R::COLLECTION, index, &range)?,
        };
        for document in &documents {
            found.push(of(document)?);
        }
        match documents.last() {
            Some(last) if documents.len() == range.limit => {
                let secondary = index.and_then(|index| secondary_key(last, index)).unwrap_or_default();
                range.beyond = Some((secondary, last.key.clone()));
            }
            _ => return Ok(found),
        }
    }
}

/// Returns the secondary key of a document in an index.
pub(crate) fn secondary_key(document: &Document, index: u32) -> Option<Vec<u8>> {
    document.keys.iter().find(|key| key.index == index).map(|key| key.key.clone())
}

/// Returns the range of all keys that begin with a prefix.
pub(crate) fn prefixed(prefix: &[u8], direction: Direction) -> DocumentRange {
    DocumentRange {
        from: Bound::Included(prefix.to_vec()),
        to: after(prefix).map_or(Bound::Unbounded, Bound::Excluded),
        direction,
        ..DocumentRange::default()
    }
}

/// Returns the first key after all keys that begin with a prefix, or `None` if no key comes after them.
fn after(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut key = prefix.to_vec();
    while let Some(last) = key.pop() {
        if last < u8::MAX {
            key.push(last + 1);
            return Some(key);
        }
    }
    None
}

/// Commits changes that depend on the current state. If another write conflicts with them, calls `changes` again with
/// the new state.
///
/// # Errors
///
/// Returns errors of `changes`. Also fails if the store cannot be written, or if too many writes conflict.
pub(crate) fn change<T>(
    store: &Store,
    mut changes: impl FnMut(&Snapshot) -> Result<(Vec<DocumentChange>, T), ApiError>,
) -> Result<T, ApiError> {
    for _ in 0..ATTEMPTS {
        let (changes, answer) = changes(&store.snapshot())?;
        if changes.is_empty() {
            return Ok(answer);
        }
        match store.change_documents(changes) {
            Ok(_) => return Ok(answer),
            Err(WriteError::Document(DocumentRejection::Changed { .. })) => {}
            Err(error) => return Err(refused(error)),
        }
    }
    Err(ApiError::busy("others change the same at this moment"))
}

/// Converts the error of a write to an error for clients of the payments API.
pub(crate) fn refused(error: WriteError) -> ApiError {
    match error {
        WriteError::Document(DocumentRejection::KeyTaken { .. }) => ApiError::validation("the name is taken"),
        WriteError::Document(rejection) => ApiError::validation(rejection.to_string()),
        other => other.into(),
    }
}

/// Deletes all records whose keys begin with a prefix, in several commits if there are many. Returns their number.
pub(crate) fn delete_all<R: Record>(store: &Store, prefix: &[u8]) -> Result<usize, ApiError> {
    let mut range = DocumentRange { limit: CHANGES_MAX, ..prefixed(prefix, Direction::Ascending) };
    let mut deleted = 0;
    loop {
        let found = store.snapshot().documents(R::COLLECTION, &range)?;
        let Some(last) = found.last() else { return Ok(deleted) };
        // Without this, each read would pass over the documents that were deleted before.
        range.beyond = Some((Vec::new(), last.key.clone()));
        deleted += found.len();
        let changes = found.into_iter().map(|document| delete::<R>(document.key, Expected::Anything));
        store.change_documents(changes.collect())?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_before_the_next_one() {
        assert_eq!(after(b"a"), Some(b"b".to_vec()));
        assert_eq!(after(&[1, 0xff, 0xff]), Some(vec![2]));
        assert_eq!(after(&[0xff]), None);
        assert_eq!(after(b""), None);
    }
}
