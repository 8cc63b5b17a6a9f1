//! The order in which a cursor reads its sources.

/// The direction of a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the smallest key to the largest.
    Ascending,
    /// From the largest key to the smallest.
    Descending,
}

/// The next key of each source, in a binary heap with the next source at the top.
pub(super) struct Heap<K> {
    entries: Vec<(K, usize)>,
    direction: Direction,
}

impl<K: Ord> Heap<K> {
    pub(super) fn new(direction: Direction) -> Self {
        Self { entries: Vec::new(), direction }
    }

    #[inline]
    fn is_before(&self, one: usize, other: usize) -> bool {
        match self.direction {
            Direction::Ascending => self.entries[one].0 < self.entries[other].0,
            Direction::Descending => self.entries[one].0 > self.entries[other].0,
        }
    }

    pub(super) fn push(&mut self, key: K, source: usize) {
        let mut place = self.entries.len();
        self.entries.push((key, source));
        while place > 0 && self.is_before(place, (place - 1) / 2) {
            self.entries.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    #[inline]
    pub(super) fn first(&self) -> Option<usize> {
        self.entries.first().map(|entry| entry.1)
    }

    /// Replaces the key of the first source. `None` removes the source.
    #[inline]
    pub(super) fn replace_first(&mut self, key: Option<K>) {
        match key {
            Some(key) => self.entries[0].0 = key,
            None => {
                self.entries.swap_remove(0);
            }
        }
        let mut place = 0;
        loop {
            let left = 2 * place + 1;
            if left >= self.entries.len() {
                return;
            }
            let right = left + 1;
            let child = if right < self.entries.len() && self.is_before(right, left) { right } else { left };
            if !self.is_before(child, place) {
                return;
            }
            self.entries.swap(place, child);
            place = child;
        }
    }
}
