//! Sorted streams of candidate transactions, and their union.

use ledger_index::{MergedSources, TransactionRow};

use crate::error::ReadError;
use crate::query::Direction;

/// A transaction that a filter may select.
#[derive(Clone, Debug)]
pub(crate) struct Candidate<K> {
    /// Key of the sort order: the id, or the effective date and the id.
    pub(crate) key: K,
    /// Id of the transaction.
    pub(crate) id: u64,
    /// Row of the transaction, if the source has read it.
    pub(crate) row: Option<TransactionRow>,
}

/// Candidates in sorted order, each once.
pub(crate) type Stream<K> = Box<dyn Iterator<Item = Result<Candidate<K>, ReadError>>>;

/// A range of keys that includes both ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span<K> {
    pub(crate) from: K,
    pub(crate) to: K,
}

impl<K: Ord + Copy> Span<K> {
    /// Raises the lower end of the range to `from`, if it is below.
    pub(crate) fn raise_from(&mut self, from: K) {
        self.from = self.from.max(from);
    }

    /// Lowers the upper end of the range to `to`, if it is above.
    pub(crate) fn lower_to(&mut self, to: K) {
        self.to = self.to.min(to);
    }

    /// Returns whether the range contains no key.
    pub(crate) fn is_empty(&self) -> bool {
        self.from > self.to
    }

    /// Returns whether the range contains a key.
    pub(crate) fn holds(&self, key: K) -> bool {
        self.from <= key && key <= self.to
    }
}

/// Merges streams of one direction into their union. Returns a candidate once, even if several streams contain it.
pub(crate) fn union<K: Ord + Copy + 'static>(mut sources: Vec<Stream<K>>, direction: Direction) -> Stream<K> {
    if sources.len() == 1
        && let Some(only) = sources.pop()
    {
        return only;
    }
    Box::new(MergedSources::new(sources, direction.way(), |candidate| candidate.key))
}

/// Returns the candidates in a span as a stream. The candidates may be in any order.
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
    fn union_returns_each_candidate_once_in_order() {
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
    fn union_returns_the_error_of_a_source() {
        let broken = ReadError::Damaged("a block".into());
        let failing: Stream<u64> = Box::new([Err(broken.clone())].into_iter());
        let mut union = union(vec![stream(&[1], Direction::Ascending), failing], Direction::Ascending);
        assert_eq!(union.find_map(Result::err), Some(broken));
    }
}
