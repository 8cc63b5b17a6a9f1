//! Top-k selection: the first keys in an order that no index serves.

use std::collections::BTreeSet;

use crate::query::{Direction, PageRequest};

/// Keeps those of the offered keys that a page needs: one per item, and one more to show that more items exist. Memory
/// depends on the page size, not on the number of offered keys.
pub(crate) struct TopK<K> {
    direction: Direction,
    beyond: Option<K>,
    count: usize,
    keys: BTreeSet<K>,
}

impl<K: Ord> TopK<K> {
    /// Creates an empty selection for a page. `place` converts the cursor of the page into a key.
    pub(crate) fn new<P>(page: &PageRequest<P>, place: impl FnOnce(&P) -> K) -> Self {
        let (direction, beyond) = page.walk();
        Self { direction, beyond: beyond.map(place), count: page.size.max(1) + 1, keys: BTreeSet::new() }
    }

    /// Adds a key, unless the keys offered so far show that the page does not need it.
    pub(crate) fn offer(&mut self, key: K) {
        let is_beyond = self.beyond.as_ref().is_none_or(|beyond| match self.direction {
            Direction::Ascending => key > *beyond,
            Direction::Descending => key < *beyond,
        });
        if is_beyond && self.keys.insert(key) && self.keys.len() > self.count {
            match self.direction {
                Direction::Ascending => self.keys.pop_last(),
                Direction::Descending => self.keys.pop_first(),
            };
        }
    }

    /// Returns the keys in the order of the walk.
    pub(crate) fn into_walk(self) -> Vec<K> {
        let mut keys: Vec<K> = self.keys.into_iter().collect();
        if self.direction == Direction::Descending {
            keys.reverse();
        }
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Start;

    #[test]
    fn keeps_the_keys_of_a_page_and_one_more() {
        for (direction, start, expected) in [
            (Direction::Ascending, Start::First, vec![1, 2, 3]),
            (Direction::Descending, Start::First, vec![9, 8, 7]),
            (Direction::Ascending, Start::After(7), vec![8, 9]),
            (Direction::Descending, Start::After(3), vec![2, 1]),
            (Direction::Ascending, Start::Before(8), vec![7, 6, 5]),
            (Direction::Descending, Start::Before(2), vec![3, 4, 5]),
        ] {
            let mut top_k = TopK::new(&PageRequest { size: 2, direction, start }, |key| *key);
            for key in [5, 1, 9, 3, 7, 2, 8, 6, 4, 5] {
                top_k.offer(key);
            }
            assert_eq!(top_k.into_walk(), expected, "{direction:?}");
        }
    }
}
