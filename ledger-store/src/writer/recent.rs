//! What was written since the index was last flushed, by key.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hash};

use compact_str::CompactString;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::entry::Recognition;
use crate::fingerprint::KeyKind;

/// Tables whose entries are dropped when the flush that holds them is done.
///
/// There is one for the rows that gather now, and one for each flush that is under way.
struct Generations<T> {
    tables: VecDeque<(u64, HashTable<T>)>,
    /// An empty table whose memory is used again: what is given back comes back page by page, zeroed.
    spare: Option<HashTable<T>>,
}

impl<T> Generations<T> {
    /// Empty; what is put first belongs to `flush`.
    fn new(flush: u64) -> Self {
        Self { tables: VecDeque::from([(flush, HashTable::new())]), spare: None }
    }

    fn is_empty(&self) -> bool {
        self.tables.iter().all(|(_, table)| table.is_empty())
    }

    /// What was put last under a hash, of what `is` says yes to.
    fn find(&self, hash: u64, is: impl Fn(&T) -> bool) -> Option<&T> {
        self.tables.iter().rev().find_map(|(_, table)| table.find(hash, &is))
    }

    /// The table that gathers now.
    fn newest(&self) -> &HashTable<T> {
        &self.tables.back().expect("there is always a generation").1
    }

    fn newest_mut(&mut self) -> &mut HashTable<T> {
        &mut self.tables.back_mut().expect("there is always a generation").1
    }

    /// From now on what is put belongs to `flush`.
    fn begin(&mut self, flush: u64) {
        // The next is as large as the last, most likely; to grow there would move everything again and again.
        let room = self.newest().len();
        let table = match self.spare.take() {
            // One that once was large is not kept for ever.
            Some(spare) if spare.capacity() / 4 <= room => spare,
            _ => HashTable::with_capacity(room),
        };
        self.tables.push_back((flush, table));
    }

    /// Drops what flushes up to `flushed` hold.
    fn release(&mut self, flushed: u64) {
        while self.tables.len() > 1 && self.tables.front().is_some_and(|(flush, _)| *flush <= flushed) {
            if let Some((_, mut table)) = self.tables.pop_front() {
                table.clear();
                self.spare = Some(table);
            }
        }
    }
}

/// A map of what was written since the index was last flushed.
pub(crate) struct Recent<K, V> {
    generations: Generations<(K, V)>,
    hasher: RandomState,
}

impl<K: Eq + Hash, V> Recent<K, V> {
    /// Empty; what is put first belongs to `flush`.
    pub(crate) fn new(flush: u64) -> Self {
        Self { generations: Generations::new(flush), hasher: RandomState::default() }
    }

    /// What was put last under a key.
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        if self.generations.is_empty() {
            return None;
        }
        let found = self.generations.find(self.hasher.hash_one(key), |(have, _)| have == key);
        found.map(|(_, value)| value)
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

/// A reference or an idempotency key that was used recently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecentKey {
    ledger: u32,
    /// Half of its fingerprint: by that it is placed, and a table that grows looks at nothing else.
    hash: u32,
    text: CompactString,
    /// The transaction, or the position of the entry.
    pub(crate) value: u64,
    /// By what the request that brought an idempotency key is recognized; references have none. They are many: so it
    /// is boxed.
    pub(crate) request: Option<Box<Recognition>>,
}

/// Two hundred thousand of them wait for a flush.
const _: () = assert!(size_of::<RecentKey>() <= 48);

impl RecentKey {
    /// No key.
    const EMPTY: Self =
        Self { ledger: 0, hash: 0, text: CompactString::const_new(""), value: 0, request: None };

    fn kind(&self) -> KeyKind {
        if self.request.is_some() { KeyKind::Idempotency } else { KeyKind::Reference }
    }

    /// Whether this is another mention of the same key.
    fn is_alike(&self, other: &Self) -> bool {
        (self.ledger, self.kind()) == (other.ledger, other.kind()) && self.text == other.text
    }
}

fn half(fingerprint: u64) -> u32 {
    (fingerprint >> 32) as u32
}

/// A hash of a half, good in all bits that a table looks at.
fn place(half: u32) -> u64 {
    u64::from(half).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// So many keys wait to be put into a table together.
const LATELY_MAX: usize = 32;

/// By ledger, kind and text: exact, whatever their fingerprints.
pub(crate) struct RecentKeys {
    tables: Generations<RecentKey>,
    /// What was put last. Tables are large, and their places far: written to one after the other, many are fetched at a
    /// time, and one in between holds up what is written after it.
    lately: Vec<RecentKey>,
}

impl RecentKeys {
    /// Empty; what is put first belongs to `flush`.
    pub(crate) fn new(flush: u64) -> Self {
        Self { tables: Generations::new(flush), lately: Vec::with_capacity(LATELY_MAX) }
    }

    /// What was put last under a key.
    pub(crate) fn find(
        &self,
        ledger: u32,
        kind: KeyKind,
        fingerprint: u64,
        text: &str,
    ) -> Option<&RecentKey> {
        let half = half(fingerprint);
        let is = |have: &RecentKey| {
            have.hash == half && have.ledger == ledger && have.kind() == kind && have.text == text
        };
        self.lately.iter().rfind(|have| is(have)).or_else(|| self.tables.find(place(half), is))
    }

    /// Looks at where [`RecentKeys::put`] will put a key, and drops it: so it is near then.
    pub(crate) fn warm(&self, fingerprint: u64) -> bool {
        self.tables.newest().find(place(half(fingerprint)), |_| true).is_some()
    }

    /// Puts a key, or what it stands for now: the transaction, or the position of the entry with its request.
    pub(crate) fn put(
        &mut self,
        ledger: u32,
        fingerprint: u64,
        text: &str,
        value: u64,
        request: Option<Recognition>,
    ) -> &RecentKey {
        if self.lately.len() == LATELY_MAX {
            self.settle();
        }
        // Filled where it lies, as rows are.
        self.lately.push(RecentKey::EMPTY);
        let key = self.lately.last_mut().expect("it was pushed");
        key.ledger = ledger;
        key.hash = half(fingerprint);
        key.text.push_str(text);
        key.value = value;
        key.request = request.map(Box::new);
        key
    }

    /// Puts what was put last into its table.
    fn settle(&mut self) {
        let table = self.tables.newest_mut();
        for key in self.lately.drain(..) {
            match table.entry(place(key.hash), |have| have.is_alike(&key), |have| place(have.hash)) {
                Entry::Occupied(mut have) => *have.get_mut() = key,
                Entry::Vacant(place) => {
                    place.insert(key);
                }
            }
        }
    }

    /// Takes back a key that [`RecentKeys::put`] put, and that was not there before.
    pub(crate) fn undo(&mut self, key: &RecentKey) {
        if let Some(at) = self.lately.iter().rposition(|have| have.is_alike(key)) {
            self.lately.remove(at);
            return;
        }
        let table = self.tables.newest_mut();
        if let Ok(entry) = table.find_entry(place(key.hash), |have| have.is_alike(key)) {
            entry.remove();
        }
    }

    /// From now on what is put belongs to `flush`.
    pub(crate) fn begin(&mut self, flush: u64) {
        self.settle();
        self.tables.begin(flush);
    }

    /// Drops what flushes up to `flushed` hold.
    pub(crate) fn release(&mut self, flushed: u64) {
        self.tables.release(flushed);
    }
}

#[cfg(test)]
mod tests {
    use ledger_core::Timestamp;

    use super::*;
    use crate::entry::{Event, IdempotencyRecord, LogRecord};

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

    #[test]
    fn keys_are_found_by_ledger_kind_and_text_whatever_their_fingerprints() {
        let mut keys = RecentKeys::new(1);
        let record = IdempotencyRecord { key: "a", hash: "hash" };
        let log = LogRecord {
            ledger: 1,
            log: 1,
            date: Timestamp::from_micros(0),
            idempotency: Some(record),
            schema_version: None,
            imported: false,
            event: Event::InsertedSchema { schema: "" },
        };
        let (_, request) = Recognition::of(&log).expect("it has a key");
        let find = |keys: &RecentKeys, ledger, kind, text: &str| {
            keys.find(ledger, kind, 9, text).map(|found| found.value)
        };
        keys.put(1, 9, "a", 10, None);
        keys.begin(2);
        keys.put(2, 9, "a", 20, None);
        let later = keys.put(1, 9, "a", 30, Some(request)).clone();
        assert_eq!(find(&keys, 1, KeyKind::Reference, "a"), Some(10));
        assert_eq!(find(&keys, 2, KeyKind::Reference, "a"), Some(20));
        assert_eq!(find(&keys, 1, KeyKind::Idempotency, "a"), Some(30));
        assert_eq!(find(&keys, 2, KeyKind::Idempotency, "a"), None);
        assert_eq!(find(&keys, 1, KeyKind::Reference, "b"), None);
        assert!(keys.find(1, KeyKind::Reference, 9 << 32, "a").is_none(), "its fingerprint is another");
        keys.undo(&later);
        assert_eq!(find(&keys, 1, KeyKind::Idempotency, "a"), None);
        keys.release(1);
        assert_eq!(find(&keys, 1, KeyKind::Reference, "a"), None);
        assert_eq!(find(&keys, 2, KeyKind::Reference, "a"), Some(20));
    }

    #[test]
    fn keys_that_wait_and_keys_in_tables_are_alike() {
        let mut keys = RecentKeys::new(1);
        let all = 0..3 * LATELY_MAX as u64 + 1;
        let text = |value: u64| format!("reference {value}");
        let find = |keys: &RecentKeys, value: u64| {
            keys.find(1, KeyKind::Reference, value << 32, &text(value)).map(|found| found.value)
        };
        let mut put = Vec::new();
        for value in all.clone() {
            put.push(keys.put(1, value << 32, &text(value), value, None).clone());
            assert_eq!(find(&keys, value), Some(value));
        }
        assert!(all.clone().all(|value| find(&keys, value) == Some(value)));
        // As a submission is taken back: the last first.
        for key in put.drain(1..).rev() {
            keys.undo(&key);
            assert_eq!(find(&keys, key.value), None, "{}", key.value);
            assert_eq!(find(&keys, key.value - 1), Some(key.value - 1));
        }
        keys.begin(2);
        assert_eq!(find(&keys, 0), Some(0));
        keys.release(1);
        assert_eq!(find(&keys, 0), None, "what waited belonged to the flush before");
    }
}
