//! The entries of a plain table between two keys.

use std::sync::Arc;

use super::error::{IndexError, catch_redb_panic, storage};
use super::health::Health;
use super::stored::{RawRange, verified};

/// A key and its value.
pub(crate) type Entry = (Vec<u8>, Vec<u8>);

/// Iterates over entries of a plain table in key order, from either end.
pub struct PlainRange<'a> {
    name: &'a str,
    range: RawRange<'a>,
    /// The first and the last existing key. An iteration that ends elsewhere was misled by a changed key.
    ends: Option<(Vec<u8>, Vec<u8>)>,
    /// The last key from the front and the last key from the back. Keys that do not ascend are damage.
    front: Option<Vec<u8>>,
    back: Option<Vec<u8>>,
    /// The health of the snapshot's file.
    health: Option<Arc<Health>>,
}

impl<'a> PlainRange<'a> {
    pub(super) fn new(
        name: &'a str,
        range: RawRange<'a>,
        ends: Option<(Vec<u8>, Vec<u8>)>,
        health: Option<Arc<Health>>,
    ) -> Self {
        Self { name, range, ends, front: None, back: None, health }
    }

    /// Returns whether the iteration may end: it has reached the last key, or the first.
    fn is_complete(&self) -> bool {
        let (first, last) = self.ends.as_ref().map(|(first, last)| (first, last)).unzip();
        match (&self.front, &self.back) {
            (front, None) => front.as_ref() == last,
            (None, back) => back.as_ref() == first,
            // The iterations from both ends have met, and each key was checked.
            (Some(_), Some(_)) => true,
        }
    }

    fn step(&mut self, back: bool) -> Option<Result<Entry, IndexError>> {
        let entry = catch_redb_panic("reading a range", || {
            let entry = if back { self.range.next_back() } else { self.range.next() };
            let Some((key, stored)) = entry.transpose().map_err(storage)? else {
                return if self.is_complete() {
                    Ok(None)
                } else {
                    Err(IndexError::damaged(self.name, "a range ends too early"))
                };
            };
            let (key, value) = (key.value(), verified(self.name, key.value(), stored.value())?);
            let ascends = self.front.as_deref().is_none_or(|front| front < key)
                && self.back.as_deref().is_none_or(|back| key < back);
            if !ascends {
                return Err(IndexError::damaged(self.name, "keys do not ascend"));
            }
            let last = if back { &mut self.back } else { &mut self.front }.get_or_insert_default();
            last.clear();
            last.extend_from_slice(key);
            Ok(Some((key.to_vec(), value.to_vec())))
        });
        match &self.health {
            Some(health) => health.note(entry).transpose(),
            None => entry.transpose(),
        }
    }
}

impl Iterator for PlainRange<'_> {
    type Item = Result<Entry, IndexError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(false)
    }
}

impl DoubleEndedIterator for PlainRange<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(true)
    }
}
