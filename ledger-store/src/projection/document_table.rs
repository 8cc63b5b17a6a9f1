//! Finds documents of a memtable by their keys.
//!
//! A reader looks for a document in every memtable, and most memtables do not have it. With a binary search in each, the
//! search took a quarter of the processor time of a server that brings in payments (`load payments --only ingestion`).

#![allow(clippy::cast_possible_truncation, reason = "a memtable has fewer than 2^32 rows")]

use std::hash::BuildHasher;
use std::sync::LazyLock;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use ledger_index::DocumentRow;

use crate::documents::keys;

/// Seeded at random, so that nobody can choose keys that collide.
static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::default);

/// The hash of a document's full key. It is the same for all memtables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DocumentHash(u64);

impl DocumentHash {
    /// Hashes a full key.
    pub(crate) fn of(key: &[u8]) -> Self {
        Self(HASHER.hash_one(key))
    }
}

/// Positions of the documents among the changes of a memtable. Entries of indexes are not in it.
#[derive(Clone, Debug)]
pub(super) struct DocumentTable(HashTable<u32>);

impl DocumentTable {
    /// Collects the documents among changes.
    pub(super) fn of(changes: &[DocumentRow]) -> Self {
        let hash = |at: &u32| DocumentHash::of(&changes[*at as usize].key).0;
        let is_document = |at: &u32| keys::is_document(&changes[*at as usize].key);
        let positions: Vec<u32> = (0..changes.len() as u32).filter(is_document).collect();
        let mut table = HashTable::with_capacity(positions.len());
        for at in positions {
            table.insert_unique(hash(&at), at, hash);
        }
        Self(table)
    }

    /// Returns the position of a document's change, if it has one.
    pub(super) fn find(&self, changes: &[DocumentRow], key: &[u8], hash: DocumentHash) -> Option<usize> {
        let found = self.0.find(hash.0, |at| *changes[*at as usize].key == *key);
        found.map(|at| *at as usize)
    }

    /// Returns its size in memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.0.allocation_size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::keys::{document_key, index_key};

    #[test]
    fn finds_every_document_and_no_index_entry() {
        let full = |number: u32| document_key(20, &number.to_be_bytes());
        let entry = |number: u32| index_key(20, 0, b"secondary", &number.to_be_bytes());
        let change = |key: Vec<u8>| DocumentRow { key: key.into(), version: 1, value: None };
        let changes: Vec<_> =
            (0..500).flat_map(|number| [change(full(number)), change(entry(number))]).collect();
        let table = DocumentTable::of(&changes);
        let find = |key: &[u8]| table.find(&changes, key, DocumentHash::of(key));
        for number in 0..500 {
            assert_eq!(find(&full(number)), Some(2 * number as usize));
            assert_eq!(find(&entry(number)), None);
        }
        assert_eq!(find(&full(500)), None);
    }
}
