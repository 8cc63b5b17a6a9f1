//! Streams of transactions in order, from one index or several.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::error::ReadError;
use crate::index::TransactionRow;
use crate::query::Direction;

/// A transaction that may be one that is looked for.
#[derive(Clone, Debug)]
pub(crate) struct Candidate<K> {
    /// Its place in the order: its id, or its effective date and id.
    pub(crate) key: K,
    /// Its id.
    pub(crate) id: u64,
    /// Its row, where it is at hand.
    pub(crate) row: Option<TransactionRow>,
}

/// Candidates in order, each once.
pub(crate) type Stream<K> = Box<dyn Iterator<Item = Result<Candidate<K>, ReadError>>>;

/// Keys of an order, both included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span<K> {
    pub(crate) from: K,
    pub(crate) to: K,
}

impl<K: Ord + Copy> Span<K> {
    /// Narrows it from below.
    pub(crate) fn raise_from(&mut self, from: K) {
        self.from = self.from.max(from);
    }

    /// Narrows it from above.
    pub(crate) fn lower_to(&mut self, to: K) {
        self.to = self.to.min(to);
    }

    /// Whether nothing is between.
    pub(crate) fn is_empty(&self) -> bool {
        self.from > self.to
    }

    /// Whether a key is between.
    pub(crate) fn holds(&self, key: K) -> bool {
        self.from <= key && key <= self.to
    }
}

/// The next candidate of a source.
struct Head<K> {
    candidate: Candidate<K>,
    source: usize,
    direction: Direction,
}

impl<K: Ord> Ord for Head<K> {
    /// What is to be taken first is the greatest, as a binary heap wants it.
    fn cmp(&self, other: &Self) -> Ordering {
        let order = self.candidate.key.cmp(&other.candidate.key);
        match self.direction {
            Direction::Ascending => order.reverse(),
            Direction::Descending => order,
        }
    }
}

impl<K: Ord> PartialOrd for Head<K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: Ord> PartialEq for Head<K> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<K: Ord> Eq for Head<K> {}

/// Several streams as one; what stands in more than one of them comes once.
struct Union<K> {
    sources: Vec<Stream<K>>,
    heads: BinaryHeap<Head<K>>,
    direction: Direction,
    /// Sources whose next candidate is not among the heads.
    waiting: Vec<usize>,
    last: Option<K>,
}

impl<K: Ord + Copy> Union<K> {
    fn advance(&mut self) -> Result<Option<Candidate<K>>, ReadError> {
        loop {
            while let Some(source) = self.waiting.pop() {
                if let Some(candidate) = self.sources[source].next().transpose()? {
                    self.heads.push(Head { candidate, source, direction: self.direction });
                }
            }
            let Some(Head { candidate, source, .. }) = self.heads.pop() else { return Ok(None) };
            self.waiting.push(source);
            if self.last != Some(candidate.key) {
                self.last = Some(candidate.key);
                return Ok(Some(candidate));
            }
        }
    }
}

impl<K: Ord + Copy> Iterator for Union<K> {
    type Item = Result<Candidate<K>, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.advance().transpose()
    }
}

/// Streams of one direction as one.
pub(crate) fn union<K: Ord + Copy + 'static>(mut sources: Vec<Stream<K>>, direction: Direction) -> Stream<K> {
    if sources.len() == 1
        && let Some(only) = sources.pop()
    {
        return only;
    }
    let waiting = (0..sources.len()).collect();
    Box::new(Union { sources, heads: BinaryHeap::new(), direction, waiting, last: None })
}

/// Candidates that are at hand, in whatever order.
pub(crate) fn sorted<K: Ord + Copy + 'static>(
    mut candidates: Vec<Candidate<K>>,
    span: Span<K>,
    direction: Direction,
) -> Stream<K> {
    candidates.retain(|candidate| span.holds(candidate.key));
    candidates.sort_unstable_by_key(|candidate| candidate.key);
    candidates.dedup_by_key(|candidate| candidate.key);
    match direction {
        Direction::Ascending => Box::new(candidates.into_iter().map(Ok)),
        Direction::Descending => Box::new(candidates.into_iter().rev().map(Ok)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(keys: &[u64], direction: Direction) -> Stream<u64> {
        let candidates = keys.iter().map(|key| Candidate { key: *key, id: *key, row: None }).collect();
        sorted(candidates, Span { from: 1, to: 8 }, direction)
    }

    #[test]
    fn a_union_is_in_order_and_has_each_once() {
        for (direction, expected) in
            [(Direction::Ascending, [1, 2, 3, 5, 8]), (Direction::Descending, [8, 5, 3, 2, 1])]
        {
            let sources = vec![
                stream(&[5, 1, 3], direction),
                stream(&[], direction),
                stream(&[3, 2, 5, 9], direction),
                stream(&[8, 3, 0], direction),
            ];
            let found: Vec<u64> = union(sources, direction).map(|next| next.unwrap().key).collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn an_error_of_a_source_is_one_of_the_union() {
        let broken = ReadError::Damaged { reason: "a block".to_owned() };
        let failing: Stream<u64> = Box::new([Err(broken.clone())].into_iter());
        let mut union = union(vec![stream(&[1], Direction::Ascending), failing], Direction::Ascending);
        assert_eq!(union.find_map(Result::err), Some(broken));
    }
}
