//! The first of many in an order that no index serves.

use std::collections::BTreeSet;

use crate::query::{Direction, PageRequest};

/// Of all keys that are offered, those that a page needs: as many as it has items, and one that shows that there are
/// more. So the memory is that of a page, whatever is looked at.
pub(crate) struct Foremost<K> {
    direction: Direction,
    beyond: Option<K>,
    count: usize,
    keys: BTreeSet<K>,
}

impl<K: Ord> Foremost<K> {
    /// For a page; `place` makes a key of its place.
    pub(crate) fn new<P>(page: &PageRequest<P>, place: impl FnOnce(&P) -> K) -> Self {
        let (direction, beyond) = page.walk();
        Self { direction, beyond: beyond.map(place), count: page.size.max(1) + 1, keys: BTreeSet::new() }
    }

    /// Takes a key, if it belongs to the page by what was offered so far.
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

    /// The keys, in the order of the walk.
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
    fn a_page_and_one_more_are_kept_in_order() {
        for (direction, start, expected) in [
            (Direction::Ascending, Start::First, vec![1, 2, 3]),
            (Direction::Descending, Start::First, vec![9, 8, 7]),
            (Direction::Ascending, Start::After(7), vec![8, 9]),
            (Direction::Descending, Start::After(3), vec![2, 1]),
            (Direction::Ascending, Start::Before(8), vec![7, 6, 5]),
            (Direction::Descending, Start::Before(2), vec![3, 4, 5]),
        ] {
            let mut foremost = Foremost::new(&PageRequest { size: 2, direction, start }, |key| *key);
            for key in [5, 1, 9, 3, 7, 2, 8, 6, 4, 5] {
                foremost.offer(key);
            }
            assert_eq!(foremost.into_walk(), expected, "{direction:?}");
        }
    }
}
