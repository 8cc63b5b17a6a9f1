//! Values, by key, whose flush to the index has not finished.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hash};

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// The container of one generation.
pub(super) trait Generation {
    /// Creates an empty container with capacity for `count` values.
    fn with_capacity(count: usize) -> Self;

    /// Returns the number of values.
    fn len(&self) -> usize;

    /// Returns the capacity.
    fn capacity(&self) -> usize;

    /// Removes all values and keeps the memory.
    fn clear(&mut self);
}

impl<T> Generation for HashTable<T> {
    fn with_capacity(count: usize) -> Self {
        Self::with_capacity(count)
    }

    fn len(&self) -> usize {
        self.len()
    }

    fn capacity(&self) -> usize {
        self.capacity()
    }

    fn clear(&mut self) {
        self.clear();
    }
}

/// Values in generations, one for each flush. A generation is dropped when its flush is done.
///
/// The newest generation belongs to the flush that has not begun yet; the others belong to running flushes.
pub(super) struct Generations<G> {
    /// Each generation with the number of its flush, oldest first. Never empty.
    by_flush: VecDeque<(u64, G)>,
    /// An empty generation whose memory is reused. The allocator would return new memory page by page, zeroed.
    spare: Option<G>,
}

impl<G: Generation> Generations<G> {
    /// Creates an empty set whose first values belong to `flush`.
    pub(super) fn new(flush: u64) -> Self {
        Self { by_flush: VecDeque::from([(flush, G::with_capacity(0))]), spare: None }
    }

    /// Returns all generations, newest first.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = &G> {
        self.by_flush.iter().rev().map(|(_, generation)| generation)
    }

    /// Returns the newest generation.
    pub(super) fn newest(&self) -> &G {
        &self.by_flush.back().expect("`release` keeps the newest generation").1
    }

    /// Returns the newest generation, to change it.
    pub(super) fn newest_mut(&mut self) -> &mut G {
        &mut self.by_flush.back_mut().expect("`release` keeps the newest generation").1
    }

    /// Starts a new generation: values from now on belong to `flush`.
    pub(super) fn begin(&mut self, flush: u64) {
        // The next generation is probably as large as the last. Growing it would move its content repeatedly.
        let capacity = self.newest().len();
        let generation = match self.spare.take() {
            // Do not keep memory that is much larger than needed.
            Some(spare) if spare.capacity() / 4 <= capacity => spare,
            _ => G::with_capacity(capacity),
        };
        self.by_flush.push_back((flush, generation));
    }

    /// Drops the generations of the flushes up to number `flushed`, which have ended. Keeps the newest generation.
    pub(super) fn release(&mut self, flushed: u64) {
        while self.by_flush.len() > 1 && self.by_flush.front().is_some_and(|(flush, _)| *flush <= flushed) {
            if let Some((_, mut generation)) = self.by_flush.pop_front() {
                generation.clear();
                self.spare = Some(generation);
            }
        }
    }
}

/// A map of the values whose flush to the index has not finished.
pub(crate) struct Recent<K, V> {
    generations: Generations<HashTable<(K, V)>>,
    hasher: RandomState,
}

impl<K: Eq + Hash, V> Recent<K, V> {
    /// Creates an empty map whose first values belong to `flush`.
    pub(crate) fn new(flush: u64) -> Self {
        Self { generations: Generations::new(flush), hasher: RandomState::default() }
    }

    /// Returns the newest value of a key.
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        if self.generations.newest_first().all(HashTable::is_empty) {
            return None;
        }
        let hash = self.hasher.hash_one(key);
        let mut tables = self.generations.newest_first();
        let (_, value) = tables.find_map(|table| table.find(hash, |(have, _)| have == key))?;
        Some(value)
    }

    /// Sets the value of a key. Returns its previous value in the newest generation.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let hasher = &self.hasher;
        let hash = hasher.hash_one(&key);
        let table = self.generations.newest_mut();
        match table.entry(hash, |(have, _)| *have == key, |(key, _)| hasher.hash_one(key)) {
            Entry::Occupied(mut have) => Some(std::mem::replace(&mut have.get_mut().1, value)),
            Entry::Vacant(place) => {
                place.insert((key, value));
                None
            }
        }
    }

    /// Undoes [`Recent::insert`].
    pub(crate) fn undo(&mut self, key: &K, previous: Option<V>) {
        let hash = self.hasher.hash_one(key);
        if let Ok(mut entry) = self.generations.newest_mut().find_entry(hash, |(have, _)| have == key) {
            match previous {
                Some(value) => entry.get_mut().1 = value,
                None => {
                    entry.remove();
                }
            }
        }
    }

    /// Starts a new generation: values from now on belong to `flush`.
    pub(crate) fn begin(&mut self, flush: u64) {
        self.generations.begin(flush);
    }

    /// Drops the values of the flushes up to number `flushed`, which have ended.
    pub(crate) fn release(&mut self, flushed: u64) {
        self.generations.release(flushed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(recent: &Recent<u64, u64>, key: u64) -> Option<u64> {
        recent.get(&key).copied()
    }

    #[test]
    fn drops_only_the_values_of_a_finished_flush() {
        let mut recent: Recent<u64, u64> = Recent::new(1);
        recent.insert(1, 10);
        recent.begin(2);
        recent.insert(2, 20);
        assert_eq!(recent.insert(1, 11), None, "the older generation is not touched");
        assert_eq!((get(&recent, 1), get(&recent, 2)), (Some(11), Some(20)));
        recent.release(1);
        assert_eq!((get(&recent, 1), get(&recent, 2)), (Some(11), Some(20)));
        recent.undo(&1, None);
        assert_eq!(get(&recent, 1), None);
        recent.begin(3);
        recent.release(2);
        assert_eq!(get(&recent, 2), None);
    }
}
