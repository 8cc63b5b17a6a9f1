//! A bounded cache of filter pages.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// Number of words in a line.
pub(super) const LINE_WORDS: usize = 8;
/// Size of a line in bytes.
pub(super) const LINE_BYTES: usize = LINE_WORDS * 8;

pub(super) type Line = [u64; LINE_WORDS];

/// A key of a filter. Pages are divided in its order.
pub(crate) type ProbeKey = (u64, u64);

/// A cached page or the fences of a filter.
#[derive(Debug)]
pub(super) enum Cached {
    Fences(Box<[ProbeKey]>),
    Page(Box<[Line]>),
}

impl Cached {
    fn bytes(&self) -> usize {
        // The map entry, the slot and the reference counts take about 96 bytes.
        96 + match self {
            Self::Fences(fences) => size_of_val(&**fences),
            Self::Page(lines) => lines.len() * LINE_BYTES,
        }
    }
}

/// Caches filter pages up to a number of bytes. Evicts pages that were not used recently.
#[derive(Debug)]
pub(crate) struct FilterCache {
    clock: Mutex<Clock>,
    bytes_max: usize,
}

/// The slots form a circle. The hand clears marks of use, and evicts the first slot without one.
#[derive(Debug, Default)]
struct Clock {
    places: HashMap<(u64, u32), usize>,
    slots: Vec<Slot>,
    hand: usize,
    bytes: usize,
}

#[derive(Debug)]
struct Slot {
    key: (u64, u32),
    value: Arc<Cached>,
    used: bool,
}

impl FilterCache {
    /// Creates an empty cache of at most `bytes_max` bytes.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { clock: Mutex::default(), bytes_max }
    }

    pub(super) fn get(&self, key: (u64, u32)) -> Option<Arc<Cached>> {
        let mut clock = self.clock.lock();
        let place = *clock.places.get(&key)?;
        let slot = clock.slots.get_mut(place)?;
        slot.used = true;
        Some(slot.value.clone())
    }

    pub(super) fn insert(&self, key: (u64, u32), value: Arc<Cached>) {
        let bytes = value.bytes();
        if bytes > self.bytes_max {
            return;
        }
        let mut clock = self.clock.lock();
        if clock.places.contains_key(&key) {
            // Another reader has added the page in the meantime.
            return;
        }
        while clock.bytes + bytes > self.bytes_max {
            clock.evict();
        }
        let place = clock.slots.len();
        clock.places.insert(key, place);
        clock.slots.push(Slot { key, value, used: false });
        clock.bytes += bytes;
    }
}

impl Clock {
    /// Evicts one slot. There is one, because the cache holds bytes.
    fn evict(&mut self) {
        loop {
            if self.hand >= self.slots.len() {
                self.hand = 0;
            }
            let slot = &mut self.slots[self.hand];
            if !std::mem::take(&mut slot.used) {
                break;
            }
            self.hand += 1;
        }
        let gone = self.slots.swap_remove(self.hand);
        self.bytes -= gone.value.bytes();
        self.places.remove(&gone.key);
        if let Some(moved) = self.slots.get(self.hand) {
            self.places.insert(moved.key, self.hand);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_keeps_to_its_bytes() {
        let cache = FilterCache::new(10_000);
        let page = || Arc::new(Cached::Page(vec![[0; LINE_WORDS]; 10].into()));
        cache.insert((0, 0), page());
        for number in 1..1000 {
            assert!(cache.get((0, 0)).is_some());
            cache.insert((1, number), page());
            let clock = cache.clock.lock();
            assert!(clock.bytes <= 10_000);
            assert_eq!(clock.bytes, clock.slots.iter().map(|slot| slot.value.bytes()).sum::<usize>());
            assert_eq!(clock.slots.len(), clock.places.len());
            assert!(clock.slots.iter().enumerate().all(|(place, slot)| clock.places[&slot.key] == place));
        }
        assert!(cache.get((1, 999)).is_some());
        assert!(cache.get((1, 1)).is_none());
    }
}
