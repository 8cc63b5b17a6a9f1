//! Records of tokens, sessions and assertions that are refused before they expire: revoked tokens, ended sessions and
//! used assertions.
//!
//! Each record is a document, which the sweep deletes after the token itself has expired. The journal makes the records
//! durable.

use std::ops::Bound;

use ledger_store::{
    Collection, DocumentChange, DocumentKey, DocumentRange, Expected, ReadError, Snapshot, Store, WriteError,
};
use sha2::{Digest as _, Sha256};

use crate::auth::guard::token::Token;
use crate::collections::{AUTH_PENDING, AUTH_REFUSED, AUTH_SESSIONS};
use crate::documents::{delete, put};
use crate::limits::SWEEP_DOCUMENTS;

/// The index by expiry. Every collection with expiring documents has it.
pub(crate) const BY_EXPIRY: u32 = 1;

/// A token, session or assertion to refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denied<'a> {
    /// One token, identified by its `jti`.
    Token(&'a str),
    /// Every token of a session, identified by its `sid`.
    Session(&'a str),
    /// A used assertion, identified by its issuer and its `jti`, or by its whole text if it has no `jti`.
    Assertion { issuer: &'a str, id: &'a str },
}

impl Denied<'_> {
    /// Returns the key of the record. The key has a fixed length, so that callers do not control it.
    fn key(self) -> Vec<u8> {
        let (sort, parts) = match self {
            Self::Token(id) => (b't', vec![id]),
            Self::Session(id) => (b's', vec![id]),
            Self::Assertion { issuer, id } => (b'a', vec![issuer, id]),
        };
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        [&[sort][..], hash.finalize().as_slice()].concat()
    }
}

/// Returns the secondary key that finds a document by its expiry, in seconds since the epoch.
pub(crate) fn expiry_key(expires: u64) -> DocumentKey {
    DocumentKey { index: BY_EXPIRY, key: expires.to_be_bytes().to_vec(), unique: false }
}

/// Returns the change that stores a refusal until `expires`. `expected` says whether the refusal may exist already.
pub(crate) fn deny(what: Denied<'_>, expires: u64, expected: Expected) -> DocumentChange {
    put(AUTH_REFUSED, &what.key(), vec![], vec![expiry_key(expires)], expected)
}

/// Returns whether a refusal is stored.
///
/// # Errors
///
/// Fails if the store cannot be read.
pub(crate) fn is_denied(snapshot: &Snapshot, what: Denied<'_>) -> Result<bool, ReadError> {
    Ok(snapshot.document(AUTH_REFUSED, &what.key())?.is_some())
}

/// Returns whether a token of this server is revoked, by itself or with its session. A token without an id is refused,
/// because nobody could revoke it.
///
/// # Errors
///
/// Fails if the store cannot be read.
pub(crate) fn is_revoked(snapshot: &Snapshot, token: &Token<'_>) -> Result<bool, ReadError> {
    let Some(id) = token.claim("jti") else { return Ok(true) };
    if is_denied(snapshot, Denied::Token(id))? {
        return Ok(true);
    }
    token.claim("sid").map_or(Ok(false), |session| is_denied(snapshot, Denied::Session(session)))
}

/// Deletes the expired documents of all collections with expiring documents. Returns the number of deleted documents.
///
/// # Errors
///
/// Fails if the store cannot be read or written.
pub(crate) fn sweep(store: &Store, now: u64) -> Result<usize, WriteError> {
    let mut removed = 0;
    for collection in [AUTH_REFUSED, AUTH_PENDING, AUTH_SESSIONS] {
        loop {
            let count = sweep_some(store, collection, now)?;
            removed += count;
            if count < SWEEP_DOCUMENTS {
                break;
            }
        }
    }
    Ok(removed)
}

fn sweep_some(store: &Store, collection: Collection, now: u64) -> Result<usize, WriteError> {
    let to = Bound::Excluded(now.to_be_bytes().to_vec());
    let range = DocumentRange { to, limit: SWEEP_DOCUMENTS, ..DocumentRange::default() };
    let expired = store.snapshot().documents_by(collection, BY_EXPIRY, &range).map_err(WriteError::Read)?;
    let changes: Vec<DocumentChange> = expired
        .iter()
        .map(|document| delete(collection, &document.key, Expected::Version(document.version)))
        .collect();
    let count = changes.len();
    if count > 0 {
        store.change_documents(changes)?;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_each_thing_until_it_is_swept() {
        let store = Store::in_memory();
        let things = [
            Denied::Token("a"),
            Denied::Session("a"),
            Denied::Assertion { issuer: "a", id: "b" },
            Denied::Assertion { issuer: "ab", id: "" },
        ];
        let is_there = |what| is_denied(&store.snapshot(), what).expect("the store can be read");
        for (at, what) in things.into_iter().enumerate() {
            assert!(!is_there(what), "{what:?}");
            let change = deny(what, 100 + at as u64, Expected::Absent);
            store.change_documents(vec![change.clone()]).expect("the store takes the change");
            assert!(is_there(what), "{what:?}");
            assert!(store.change_documents(vec![change]).is_err(), "a second time");
        }
        assert_eq!(sweep(&store, 100).expect("the sweep finishes"), 0, "what expires now is not over yet");
        assert_eq!(sweep(&store, 102).expect("the sweep finishes"), 2);
        assert_eq!(things.map(is_there), [false, false, true, true]);
    }

    #[test]
    fn sweeps_more_than_one_page() {
        let store = Store::in_memory();
        for part in 0..3 {
            let names: Vec<String> = (0..SWEEP_DOCUMENTS).map(|number| format!("{part}-{number}")).collect();
            let refused = names.iter().map(|name| deny(Denied::Token(name), 7, Expected::Anything));
            store.change_documents(refused.collect()).expect("the store takes the change");
        }
        assert_eq!(sweep(&store, 8).expect("the sweep finishes"), 3 * SWEEP_DOCUMENTS);
        assert_eq!(sweep(&store, 8).expect("the sweep finishes"), 0);
    }
}
