//! The recent keys: references and idempotency keys that were used since the last flush.

#![allow(clippy::cast_possible_truncation, reason = "fewer than 2^32 keys gather between two flushes")]

use hashbrown::HashTable;
use hashbrown::hash_table;
use ledger_core::{PriorRequest, short_text};
use smol_str::SmolStr;

use super::hash_prefix::{Entry, prefix, spread};
#[cfg(any(test, debug_assertions, feature = "testing"))]
use super::miscount::Miscount;
use super::recent::{Generation, Generations};
use crate::fingerprint::KeyKind;

/// A recently used reference or idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecentKey {
    ledger: u32,
    /// The upper half of its fingerprint.
    prefix: u32,
    text: SmolStr,
    /// The id of the transaction, or the position of the entry.
    pub(crate) value: u64,
    /// Recognises the request that used an idempotency key. References have none. Boxed because there are many keys.
    pub(crate) request: Option<Box<PriorRequest>>,
}

/// Two hundred thousand keys may wait for a flush.
const _: () = assert!(size_of::<RecentKey>() <= 48);

impl RecentKey {
    /// A key without content.
    const EMPTY: Self = Self { ledger: 0, prefix: 0, text: SmolStr::new_static(""), value: 0, request: None };

    fn kind(&self) -> KeyKind {
        if self.request.is_some() { KeyKind::Idempotency } else { KeyKind::Reference }
    }

    /// Returns whether both are the same key.
    fn is_alike(&self, other: &Self) -> bool {
        (self.ledger, self.prefix, self.kind()) == (other.ledger, other.prefix, other.kind())
            && self.text == other.text
    }

    /// Returns the number of heap bytes.
    fn heap_bytes(&self) -> usize {
        let text = if self.text.is_heap_allocated() { self.text.len() } else { 0 };
        let request = self.request.as_ref().map_or(0, |request| {
            let hash = if request.hash.is_heap_allocated() { request.hash.len() } else { 0 };
            size_of::<PriorRequest>() + hash
        });
        text + request
    }
}

/// Number of keys that are added to the hash table together.
const LATELY_MAX: usize = 32;

/// The keys of one generation in insertion order, and a hash table of their indexes.
struct Keys {
    all: Vec<RecentKey>,
    /// The hash table of the keys before `settled`; only a few keys follow. Its slots are far apart in memory. When
    /// many are written in sequence, their cache misses overlap; a single one would stall the writes after it.
    slots: HashTable<Entry>,
    settled: usize,
    heap_bytes: usize,
}

impl Generation for Keys {
    fn with_capacity(count: usize) -> Self {
        let capacity = count + count / 8;
        Self {
            all: Vec::with_capacity(capacity),
            slots: HashTable::with_capacity(capacity),
            settled: 0,
            heap_bytes: 0,
        }
    }

    fn len(&self) -> usize {
        self.all.len()
    }

    fn capacity(&self) -> usize {
        self.all.capacity()
    }

    fn clear(&mut self) {
        self.all.clear();
        self.slots.clear();
        (self.settled, self.heap_bytes) = (0, 0);
    }
}

impl Keys {
    fn find(&self, fingerprint: u64, is: impl Fn(&RecentKey) -> bool) -> Option<&RecentKey> {
        let wanted = prefix(fingerprint);
        let lately = self.all[self.settled..].iter().rfind(|key| key.prefix == wanted && is(key));
        lately.or_else(|| {
            let is = |have: &Entry| have.prefix == wanted && is(&self.all[have.slot as usize]);
            Some(&self.all[self.slots.find(spread(fingerprint), is)?.slot as usize])
        })
    }

    /// Adds the latest keys to the hash table.
    fn settle(&mut self) {
        for at in self.settled..self.all.len() {
            let key = &self.all[at];
            let entry = Entry { prefix: key.prefix, slot: at as u32 };
            let is = |have: &Entry| have.prefix == key.prefix && self.all[have.slot as usize].is_alike(key);
            match self.slots.entry(entry.place(), is, |have| have.place()) {
                // The key's earlier value is no longer found.
                hash_table::Entry::Occupied(mut have) => *have.get_mut() = entry,
                hash_table::Entry::Vacant(place) => {
                    place.insert(entry);
                }
            }
        }
        self.settled = self.all.len();
    }

    fn undo(&mut self, key: &RecentKey) {
        if let Some(at) = self.all[self.settled..].iter().rposition(|have| have.is_alike(key)) {
            self.heap_bytes -= self.all.remove(self.settled + at).heap_bytes();
            return;
        }
        let place = Entry { prefix: key.prefix, slot: 0 }.place();
        let is = |have: &Entry| have.prefix == key.prefix && self.all[have.slot as usize].is_alike(key);
        if let Ok(found) = self.slots.find_entry(place, is) {
            let (entry, _) = found.remove();
            // Keys are undone from the last to the first. A key that is not the last one stays in the list but is no
            // longer found.
            if entry.slot as usize + 1 == self.all.len() {
                self.heap_bytes -= self.all.pop().map_or(0, |key| key.heap_bytes());
                self.settled = self.all.len();
            }
        }
    }

    #[cfg(any(test, debug_assertions, feature = "testing"))]
    fn check_bytes(&self) -> Result<(), Miscount> {
        let held = self.all.iter().map(RecentKey::heap_bytes).sum();
        Miscount::check("recent keys", self.heap_bytes, held)
    }

    fn bytes(&self) -> usize {
        self.all.len() * size_of::<RecentKey>() + self.slots.allocation_size() + self.heap_bytes
    }
}

/// The recent keys by ledger, kind and text. Exact, even if fingerprints collide.
pub(crate) struct RecentKeys(Generations<Keys>);

impl RecentKeys {
    /// Creates an empty set whose first keys belong to `flush`.
    pub(crate) fn new(flush: u64) -> Self {
        Self(Generations::new(flush))
    }

    /// Returns the newest entry of a key.
    pub(crate) fn find(
        &self,
        ledger: u32,
        kind: KeyKind,
        fingerprint: u64,
        text: &str,
    ) -> Option<&RecentKey> {
        let is = |have: &RecentKey| have.ledger == ledger && have.kind() == kind && have.text == text;
        self.0.newest_first().find_map(|keys| keys.find(fingerprint, is))
    }

    /// Prefetches the memory that [`RecentKeys::put`] will write for a key. The result only keeps the compiler from
    /// removing the read.
    pub(crate) fn warm(&self, fingerprint: u64) -> bool {
        self.0.newest().slots.find(spread(fingerprint), |_| true).is_some()
    }

    /// Sets the value of a key: the id of its transaction, or the position of its entry with the request.
    pub(crate) fn put(
        &mut self,
        ledger: u32,
        fingerprint: u64,
        text: &str,
        value: u64,
        request: Option<PriorRequest>,
    ) -> &RecentKey {
        let newest = self.0.newest_mut();
        if newest.all.len() - newest.settled == LATELY_MAX {
            newest.settle();
        }
        let Keys { all, heap_bytes, .. } = newest;
        // Fill the key in place: a copy of it would be read back at once.
        all.push(RecentKey::EMPTY);
        let key = all.last_mut().expect("a key was pushed above");
        key.ledger = ledger;
        key.prefix = prefix(fingerprint);
        key.text = short_text(text);
        key.value = value;
        key.request = request.map(Box::new);
        *heap_bytes += key.heap_bytes();
        key
    }

    /// Undoes [`RecentKeys::put`] for a key that did not exist before.
    pub(crate) fn undo(&mut self, key: &RecentKey) {
        self.0.newest_mut().undo(key);
    }

    /// Compares the counter of heap bytes with the sum over the keys of the newest generation.
    ///
    /// # Errors
    ///
    /// Both numbers, if they differ.
    #[cfg(any(test, debug_assertions, feature = "testing"))]
    pub(crate) fn check_bytes(&self) -> Result<(), Miscount> {
        self.0.newest().check_bytes()
    }

    /// Returns the memory of the keys that no flush covers yet, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.0.newest().bytes()
    }

    /// Starts a new generation: keys from now on belong to `flush`.
    pub(crate) fn begin(&mut self, flush: u64) {
        self.0.newest_mut().settle();
        self.0.begin(flush);
    }

    /// Drops the keys that flushes up to `flushed` have written.
    pub(crate) fn release(&mut self, flushed: u64) {
        self.0.release(flushed);
    }
}

#[cfg(test)]
mod tests {
    use ledger_core::Timestamp;
    use ledger_journal::entry::{Event, IdempotencyRecord, LogRecord, prior_request};

    use super::*;

    #[test]
    fn keys_with_equal_fingerprints_are_told_apart() {
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
        let (_, request) = prior_request(&log).expect("it has a key");
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
    fn the_bytes_of_keys_are_counted_and_given_back() {
        let mut keys = RecentKeys::new(1);
        let long = "long ".repeat(100);
        let put = |keys: &mut RecentKeys, value: u64| {
            let text = format!("{long}{value}");
            keys.put(1, value << 32, &text, value, None).clone()
        };
        let first = put(&mut keys, 0);
        let one = keys.bytes();
        assert!(one >= size_of::<RecentKey>() + long.len(), "{one}");
        let more: Vec<_> = (1..=2 * LATELY_MAX as u64).map(|value| put(&mut keys, value)).collect();
        assert!(keys.bytes() > more.len() * one);
        for key in more.iter().rev() {
            keys.undo(key);
        }
        keys.undo(&first);
        let left = keys.0.newest();
        assert_eq!((left.all.len(), left.settled, left.heap_bytes), (0, 0, 0));
        put(&mut keys, 0);
        keys.begin(2);
        assert_eq!(keys.0.newest().heap_bytes, 0, "what gathers now is counted, and no more");
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
        // Undo in the order of a refused submission, the last key first.
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
