//! The records of the payments API: each kind is a collection of documents.

use std::ops::Bound;

use ledger_core::Timestamp;
use ledger_store::{
    Collection, Direction, Document, DocumentAction, DocumentChange, DocumentKey, DocumentRange,
    DocumentRejection, DocumentVersion, Expected, ReadError, Snapshot, Store, WriteError,
};

use crate::http::error::ApiError;
use crate::payments::codec::{Decoder, Encoder, date_key};

/// How often a change is tried again that another one came before.
const ATTEMPTS: usize = 64;

/// Changes of one commit, at most, so that some room is left below the store's own limit.
pub(crate) const CHANGES_MAX: usize = 900;

/// A kind of record.
pub(crate) trait Record: Sized {
    /// The documents that hold it.
    const COLLECTION: Collection;
    /// The name of the kind in reports of damage.
    const NAME: &'static str;

    /// The key of its document.
    fn key(&self) -> Vec<u8>;

    /// The further keys, by which lists are sorted and things are found.
    fn keys(&self) -> Vec<DocumentKey>;

    /// Writes the fields that are not in the key.
    fn encode(&self, out: &mut Encoder);

    /// Reads what [`Record::encode`] wrote; `None` if it is something else.
    fn decode(key: &[u8], input: &mut Decoder<'_>) -> Option<Self>;
}

/// A record with the version of its document.
#[derive(Clone, Debug)]
pub(crate) struct Versioned<T> {
    pub(crate) value: T,
    pub(crate) version: DocumentVersion,
}

/// A further key by which a list is sorted.
pub(crate) fn ordered(index: u32, key: impl Into<Vec<u8>>) -> DocumentKey {
    DocumentKey { index, key: key.into(), unique: false }
}

/// The number of the first dated index. A key of a dated index is a value followed by a date.
pub(crate) const DATED: u32 = 64;

/// A further key of a dated index.
pub(crate) fn dated(index: u32, value: &[u8], at: Timestamp) -> DocumentKey {
    debug_assert!(index >= DATED, "index {index} is not dated");
    ordered(index, [value, &date_key(at)].concat())
}

/// A further key that one document has.
pub(crate) fn unique(index: u32, key: impl Into<Vec<u8>>) -> DocumentKey {
    DocumentKey { index, key: key.into(), unique: true }
}

/// Writes a record.
pub(crate) fn put<R: Record>(record: &R, expected: Expected) -> DocumentChange {
    let mut out = Encoder::default();
    record.encode(&mut out);
    let action = DocumentAction::Put { value: out.into_bytes(), keys: record.keys() };
    DocumentChange { collection: R::COLLECTION, key: record.key(), expected, action }
}

/// Deletes the record with a key.
pub(crate) fn delete<R: Record>(key: Vec<u8>, expected: Expected) -> DocumentChange {
    DocumentChange { collection: R::COLLECTION, key, expected, action: DocumentAction::Delete }
}

/// Reads the record of a document.
pub(crate) fn of<R: Record>(document: &Document) -> Result<Versioned<R>, ReadError> {
    let mut input = Decoder::new(&document.value);
    let value = R::decode(&document.key, &mut input).filter(|_| input.is_empty());
    let value =
        value.ok_or_else(|| ReadError::Damaged { reason: format!("{} is not what was written", R::NAME) })?;
    Ok(Versioned { value, version: document.version })
}

/// The record with a key.
pub(crate) fn find<R: Record>(snapshot: &Snapshot, key: &[u8]) -> Result<Option<Versioned<R>>, ReadError> {
    snapshot.document(R::COLLECTION, key)?.as_ref().map(of).transpose()
}

/// The records of a range of keys that begin with `prefix`, by key or by a further key, in ascending order.
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
                let further = index.and_then(|index| further_key(last, index)).unwrap_or_default();
                range.beyond = Some((further, last.key.clone()));
            }
            _ => return Ok(found),
        }
    }
}

/// The key that a document has in an index.
pub(crate) fn further_key(document: &Document, index: u32) -> Option<Vec<u8>> {
    document.keys.iter().find(|key| key.index == index).map(|key| key.key.clone())
}

/// All keys that begin with a prefix.
pub(crate) fn prefixed(prefix: &[u8], direction: Direction) -> DocumentRange {
    DocumentRange {
        from: Bound::Included(prefix.to_vec()),
        to: after(prefix).map_or(Bound::Unbounded, Bound::Excluded),
        direction,
        ..DocumentRange::default()
    }
}

/// The first key behind all that begin with a prefix.
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

/// Makes changes that depend on what is read, and reads and makes them again while others come before them.
///
/// # Errors
///
/// Those of `changes`, and what any write may meet.
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

/// The refusal of a write, with the words that clients of this API know.
pub(crate) fn refused(error: WriteError) -> ApiError {
    match error {
        WriteError::Document(DocumentRejection::KeyTaken { .. }) => ApiError::validation("the name is taken"),
        WriteError::Document(rejection) => ApiError::validation(rejection.to_string()),
        other => other.into(),
    }
}

/// Deletes every record whose key begins with a prefix, some at a time.
pub(crate) fn delete_all<R: Record>(store: &Store, prefix: &[u8]) -> Result<(), ApiError> {
    loop {
        let range = DocumentRange { limit: CHANGES_MAX, ..prefixed(prefix, Direction::Ascending) };
        let found = store.snapshot().documents(R::COLLECTION, &range)?;
        if found.is_empty() {
            return Ok(());
        }
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
