//! The overlay of documents: changes since the last flush, on top of the values in the index.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use ledger_index::{IndexSnapshot, SharedBytes, Way};
use smallvec::SmallVec;

use super::indexed;
use super::keys::{self, Prefix};
use super::merged::{Changes, Merged};
use crate::error::ReadError;

/// The state before a change, which [`Overlay::undo`] needs to take the change back.
pub(crate) enum UndoRecord {
    /// The current flush had no change of the document, so the value of older flushes applied.
    Unchanged,
    /// The current flush had this change of the document.
    Changed(Option<SharedBytes>),
    /// The change is of an index entry, for which the overlay keeps all changes of the current flush.
    Entry,
}

/// Document changes by the writer, grouped by the flush that will write them.
pub(crate) struct Overlay(VecDeque<(u64, FlushChanges)>);

/// The changes that one flush will write.
#[derive(Default)]
struct FlushChanges {
    /// New values by the full keys of documents.
    documents: HashMap<Arc<[u8]>, Option<SharedBytes>, RandomState>,
    /// Changed entries of each index, by the prefix of its keys.
    indexes: HashMap<Prefix, EntryChanges, RandomState>,
}

/// Changes of the entries of one index. Each says whether the entry is there.
enum EntryChanges {
    /// In order of age. The writer reads entries only to check unique keys, and most indexes have none.
    Unordered(Vec<(Arc<[u8]>, bool)>),
    /// By key, and for each key in order of age.
    Ordered(BTreeMap<Arc<[u8]>, SmallVec<[bool; 2]>>),
}

impl EntryChanges {
    fn push(&mut self, key: Arc<[u8]>, is_there: bool) {
        match self {
            Self::Unordered(changes) => changes.push((key, is_there)),
            Self::Ordered(changes) => changes.entry(key).or_default().push(is_there),
        }
    }

    /// Takes back the newest change, which must be of this key.
    fn pop(&mut self, key: &[u8]) {
        match self {
            Self::Unordered(changes) => {
                let undone = changes.pop();
                debug_assert!(
                    undone.is_some_and(|(newest, _)| *newest == *key),
                    "changes are undone in order"
                );
            }
            Self::Ordered(changes) => {
                if let Some(ages) = changes.get_mut(key) {
                    ages.pop();
                    if ages.is_empty() {
                        changes.remove(key);
                    }
                }
            }
        }
    }

    /// Sorts the changes, so that they can be searched.
    fn order(&mut self) {
        if let Self::Unordered(changes) = self {
            let changes = std::mem::take(changes);
            *self = Self::Ordered(BTreeMap::new());
            for (key, is_there) in changes {
                self.push(key, is_there);
            }
        }
    }

    /// Returns the newest changes of the keys from one up to another, if the changes are sorted.
    fn between<'a>(&'a self, from: &'a [u8], to: &'a [u8]) -> Option<Changes<'a>> {
        let Self::Ordered(changes) = self else { return None };
        let change = |(key, ages): (&Arc<[u8]>, &SmallVec<[bool; 2]>)| {
            let is_there = ages.last().copied().unwrap_or_default();
            Ok((key.clone(), is_there.then(SharedBytes::default)))
        };
        let bounds = (Bound::Included(from), Bound::Excluded(to));
        Some(Box::new(changes.range::<[u8], _>(bounds).map(change)))
    }
}

impl Overlay {
    /// Creates an empty overlay. The first changes belong to `flush`.
    pub(crate) fn new(flush: u64) -> Self {
        Self(VecDeque::from([(flush, FlushChanges::default())]))
    }

    /// Starts a new group. From now on, changes belong to `flush`.
    pub(crate) fn begin(&mut self, flush: u64) {
        self.0.push_back((flush, FlushChanges::default()));
    }

    /// Drops the changes that flushes up to `flushed` have written.
    pub(crate) fn release(&mut self, flushed: u64) {
        while self.0.len() > 1 && self.0.front().is_some_and(|(flush, _)| *flush <= flushed) {
            self.0.pop_front();
        }
    }

    /// Sets or removes the value of a key. The value of an index entry is empty. Returns what [`Overlay::undo`] needs
    /// to take the change back.
    pub(crate) fn put(&mut self, key: Arc<[u8]>, value: Option<SharedBytes>) -> UndoRecord {
        let newest = self.newest();
        if keys::is_document(&key) {
            return match newest.documents.insert(key, value) {
                Some(value) => UndoRecord::Changed(value),
                None => UndoRecord::Unchanged,
            };
        }
        let changes = newest.indexes.entry(keys::prefix_of(&key));
        changes.or_insert_with(|| EntryChanges::Unordered(Vec::new())).push(key, value.is_some());
        UndoRecord::Entry
    }

    /// Takes the newest change back. `before` comes from [`Overlay::put`].
    pub(crate) fn undo(&mut self, key: &[u8], before: UndoRecord) {
        let newest = self.newest();
        match before {
            UndoRecord::Changed(value) => {
                newest.documents.insert(key.into(), value);
            }
            UndoRecord::Unchanged => {
                newest.documents.remove(key);
            }
            UndoRecord::Entry => {
                if let Some(changes) = newest.indexes.get_mut(&keys::prefix_of(key)) {
                    changes.pop(key);
                }
            }
        }
    }

    fn newest(&mut self) -> &mut FlushChanges {
        &mut self.0.back_mut().expect("`release` keeps the newest changes").1
    }

    /// Returns the current value of a document's full key.
    pub(crate) fn get(&self, index: &IndexSnapshot, key: &[u8]) -> Result<Option<SharedBytes>, ReadError> {
        for (_, changes) in self.0.iter().rev() {
            if let Some(value) = changes.documents.get(key) {
                return Ok(value.clone());
            }
        }
        indexed::value(index, key)
    }

    /// Returns the current entries of an index from one key up to another.
    pub(crate) fn entries<'a>(
        &'a mut self,
        index: &'a IndexSnapshot,
        from: &'a [u8],
        to: &'a [u8],
    ) -> Result<Merged<'a>, ReadError> {
        let mut sources = self.changed_entries(from, to);
        sources.push(indexed::between(index, from, to, Way::Ascending)?);
        Ok(Merged::new(sources, Way::Ascending))
    }

    /// Returns the changed entries of an index from one key up to another, from the newest flush to the oldest.
    fn changed_entries<'a>(&'a mut self, from: &'a [u8], to: &'a [u8]) -> Vec<Changes<'a>> {
        debug_assert!(!keys::is_document(from), "documents have no order here");
        let prefix = keys::prefix_of(from);
        let indexes = self.0.iter_mut().rev().filter_map(|(_, changes)| changes.indexes.get_mut(&prefix));
        let ordered = indexes.filter_map(|changes| {
            changes.order();
            changes.between(from, to)
        });
        ordered.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::keys::{Space, index_key, range};

    /// Returns the last byte of each changed entry in index 3.
    fn entries(overlay: &mut Overlay) -> Vec<u8> {
        let (from, to) = range(20, Space::Index(3), &Bound::Unbounded, &Bound::Unbounded);
        let sources = overlay.changed_entries(&from, &to);
        let mut merged = Merged::new(sources, Way::Ascending);
        let next = || merged.next().expect("nothing is read");
        std::iter::from_fn(next).map(|(key, _)| key[key.len() - 1]).collect()
    }

    #[test]
    fn undoes_entries_sorted_since_their_change() {
        let key = |name: &str| -> Arc<[u8]> { index_key(20, 3, b"s", name.as_bytes()).into() };
        let mut overlay = Overlay::new(1);
        overlay.put(key("b"), Some(SharedBytes::default()));
        overlay.put(key("a"), Some(SharedBytes::default()));
        assert_eq!(entries(&mut overlay), b"ab");
        overlay.begin(2);
        let undone = [
            ("b", None),
            ("c", Some(SharedBytes::default())),
            ("b", Some(SharedBytes::default())),
            ("a", None),
        ];
        let undone = undone.map(|(name, value)| (key(name), overlay.put(key(name), value)));
        assert_eq!(entries(&mut overlay), b"bc");
        for (key, before) in undone.into_iter().rev() {
            overlay.undo(&key, before);
        }
        assert_eq!(entries(&mut overlay), b"ab");
        overlay.release(1);
        assert_eq!(entries(&mut overlay), b"");
    }
}
