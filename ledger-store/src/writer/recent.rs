//! Values written since the index was last flushed, by key.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hash};

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// The container of one generation.
pub(super) trait Generation {
    /// Empty, with room for so many.
    fn with_room(count: usize) -> Self;

    /// How many it holds.
    fn len(&self) -> usize;

    /// How many it has room for.
    fn room(&self) -> usize;

    /// Empties it and keeps its memory.
    fn clear(&mut self);
}

impl<T> Generation for HashTable<T> {
    fn with_room(count: usize) -> Self {
        Self::with_capacity(count)
    }

    fn len(&self) -> usize {
        self.len()
    }

    fn room(&self) -> usize {
        self.capacity()
    }

    fn clear(&mut self) {
        self.clear();
    }
}

/// Values that are dropped, a generation at a time, when the flush that holds them is done.
///
/// There is one for the rows that gather now, and one for each flush that is under way.
pub(super) struct Generations<G> {
    each: VecDeque<(u64, G)>,
    /// An empty one whose memory is used again: what is given back comes back page by page, zeroed.
    spare: Option<G>,
}

impl<G: Generation> Generations<G> {
    /// Empty; what is put first belongs to `flush`.
    pub(super) fn new(flush: u64) -> Self {
        Self { each: VecDeque::from([(flush, G::with_room(0))]), spare: None }
    }

    /// All, the newest first.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = &G> {
        self.each.iter().rev().map(|(_, generation)| generation)
    }

    /// The part that gathers now.
    pub(super) fn newest(&self) -> &G {
        &self.each.back().expect("there is always a generation").1
    }

    /// The same, to change it.
    pub(super) fn newest_mut(&mut self) -> &mut G {
        &mut self.each.back_mut().expect("there is always a generation").1
    }

    /// From now on what is put belongs to `flush`.
    pub(super) fn begin(&mut self, flush: u64) {
        // The next is as large as the last, most likely; to grow there would move everything again and again.
        let room = self.newest().len();
        let generation = match self.spare.take() {
            // One that once was large is not kept for ever.
            Some(spare) if spare.room() / 4 <= room => spare,
            _ => G::with_room(room),
        };
        self.each.push_back((flush, generation));
    }

    /// Drops what flushes up to `flushed` hold.
    pub(super) fn release(&mut self, flushed: u64) {
        while self.each.len() > 1 && self.each.front().is_some_and(|(flush, _)| *flush <= flushed) {
            if let Some((_, mut generation)) = self.each.pop_front() {
                generation.clear();
                self.spare = Some(generation);
            }
        }
    }
}

/// A map of what was written since the index was last flushed.
pub(crate) struct Recent<K, V> {
    generations: Generations<HashTable<(K, V)>>,
    hasher: RandomState,
}

impl<K: Eq + Hash, V> Recent<K, V> {
    /// Empty; what is put first belongs to `flush`.
    pub(crate) fn new(flush: u64) -> Self {
        Self { generations: Generations::new(flush), hasher: RandomState::default() }
    }

    /// The newest value under a key.
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        if self.generations.newest_first().all(HashTable::is_empty) {
            return None;
        }
        let hash = self.hasher.hash_one(key);
        let mut tables = self.generations.newest_first();
        let (_, value) = tables.find_map(|table| table.find(hash, |(have, _)| have == key))?;
        Some(value)
    }

    /// Puts a value; what stood under the key in this generation is returned.
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

    /// Takes back what [`Recent::insert`] put.
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

    /// From now on what is put belongs to `flush`.
    pub(crate) fn begin(&mut self, flush: u64) {
        self.generations.begin(flush);
    }

    /// Drops what flushes up to `flushed` hold.
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
    fn what_a_flush_holds_is_forgotten_and_nothing_else() {
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
