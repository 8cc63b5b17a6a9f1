//! What was written since the index was last flushed, by key.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hash};

use compact_str::CompactString;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::entry::Recognition;

/// A map whose entries are dropped when the flush that holds them is done.
///
/// There is one generation for the rows that gather now, and one for each flush that is under way.
pub(crate) struct Recent<K, V> {
    generations: VecDeque<(u64, HashTable<(K, V)>)>,
    /// An empty table whose memory is used again: what is given back comes back page by page, zeroed.
    spare: Option<HashTable<(K, V)>>,
    hasher: RandomState,
}

impl<K: Eq + Hash, V> Recent<K, V> {
    /// Empty; what is put first belongs to `flush`.
    pub(crate) fn new(flush: u64) -> Self {
        Self {
            generations: VecDeque::from([(flush, HashTable::new())]),
            spare: None,
            hasher: RandomState::default(),
        }
    }

    /// What was put last under a key, given as anything with its hash and `is`, which compares with it.
    pub(crate) fn get(&self, key: &impl Hash, is: impl Fn(&K) -> bool) -> Option<&V> {
        if self.generations.iter().all(|(_, table)| table.is_empty()) {
            return None;
        }
        let hash = self.hasher.hash_one(key);
        self.generations
            .iter()
            .rev()
            .find_map(|(_, table)| table.find(hash, |(have, _)| is(have)).map(|(_, value)| value))
    }

    /// Looks at where [`Recent::insert`] will put a key, and drops it: so it is near then.
    pub(crate) fn warm(&self, key: &impl Hash) -> bool {
        let (_, table) = self.generations.back().expect("there is always a generation");
        table.find(self.hasher.hash_one(key), |_| true).is_some()
    }

    /// Puts a value; what stood under the key in this generation is returned.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let hash = self.hasher.hash_one(&key);
        let hasher = &self.hasher;
        let (_, table) = self.generations.back_mut().expect("there is always a generation");
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
        let (_, table) = self.generations.back_mut().expect("there is always a generation");
        if let Ok(mut entry) = table.find_entry(hash, |(have, _)| have == key) {
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
        // The next is as large as the last, most likely; to grow there would move everything again and again.
        let room = self.generations.back().map_or(0, |(_, table)| table.len());
        let table = match self.spare.take() {
            // One that once was large is not kept for ever.
            Some(spare) if spare.capacity() / 4 <= room => spare,
            _ => HashTable::with_capacity(room),
        };
        self.generations.push_back((flush, table));
    }

    /// Drops what flushes up to `flushed` hold.
    pub(crate) fn release(&mut self, flushed: u64) {
        while self.generations.len() > 1
            && self.generations.front().is_some_and(|(flush, _)| *flush <= flushed)
        {
            if let Some((_, mut table)) = self.generations.pop_front() {
                table.clear();
                self.spare = Some(table);
            }
        }
    }
}

/// A reference or an idempotency key that was used recently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecentKey {
    /// The transaction, or the position of the entry.
    pub(crate) value: u64,
    /// By what the request that brought an idempotency key is recognized. References have none, and are many: so it is
    /// boxed.
    pub(crate) request: Option<Box<Recognition>>,
}

/// By space (a ledger and a kind of key) and text: exact, no fingerprint.
pub(crate) type RecentKeys = Recent<(u64, CompactString), RecentKey>;

impl RecentKeys {
    /// What was put last under a text in a space.
    pub(crate) fn find(&self, space: u64, text: &str) -> Option<&RecentKey> {
        self.get(&(space, text), |(have_space, have_text)| *have_space == space && have_text == text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(recent: &Recent<u64, u64>, key: u64) -> Option<u64> {
        recent.get(&key, |have| *have == key).copied()
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

    #[test]
    fn keys_are_found_by_text_without_one_of_their_own() {
        let mut keys = RecentKeys::new(1);
        let key = |value| RecentKey { value, request: None };
        keys.insert((1, "a".into()), key(10));
        keys.begin(2);
        keys.insert((2, "a".into()), key(20));
        assert_eq!(keys.find(1, "a"), Some(&key(10)));
        assert_eq!(keys.find(2, "a"), Some(&key(20)));
        assert_eq!(keys.find(1, "b"), None);
    }
}
