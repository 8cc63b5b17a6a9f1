//! Merges sorted sources of any kind into one sequence, in either direction.

use super::order::{Direction, Heap};

/// The items of several sorted sources in one order. Of several items with the same key, the merge returns only that of
/// the first source.
///
/// The merge asks a source for its next item when it needs it, and not earlier: an item that no caller wants costs no
/// read. After an error it returns nothing more.
pub struct MergedSources<S, T, K> {
    sources: Vec<Source<S, T>>,
    /// The sources that were not asked yet, in reverse order.
    unopened: Vec<S>,
    /// The next key of each source, and the rank of the source among equal keys.
    heap: Heap<(K, usize)>,
    direction: Direction,
    key: fn(&T) -> K,
    /// The key of the last item that was returned.
    last: Option<K>,
}

/// A source with its next item. The item is `None` once it was returned.
struct Source<S, T> {
    next: Option<T>,
    rest: S,
}

impl<S, T, E, K> MergedSources<S, T, K>
where
    S: Iterator<Item = Result<T, E>>,
    K: Ord + Clone,
{
    /// Creates a merge of sources whose items have their keys in this direction. `key` returns the key of an item.
    pub fn new(sources: impl IntoIterator<Item = S>, direction: Direction, key: fn(&T) -> K) -> Self {
        let mut unopened: Vec<S> = sources.into_iter().collect();
        unopened.reverse();
        let sources = Vec::with_capacity(unopened.len());
        Self { sources, unopened, heap: Heap::new(direction), direction, key, last: None }
    }

    /// Returns the part of a source's key that puts the first source before the others.
    fn rank(&self, source: usize) -> usize {
        match self.direction {
            Direction::Ascending => source,
            Direction::Descending => usize::MAX - source,
        }
    }

    fn advance(&mut self) -> Result<Option<T>, E> {
        while let Some(mut rest) = self.unopened.pop() {
            if let Some(next) = rest.next().transpose()? {
                let source = self.sources.len();
                self.heap.push(((self.key)(&next), self.rank(source)), source);
                self.sources.push(Source { next: Some(next), rest });
            }
        }
        while let Some(first) = self.heap.first() {
            let rank = self.rank(first);
            let source = &mut self.sources[first];
            let Some(item) = source.next.take() else {
                source.next = source.rest.next().transpose()?;
                self.heap.replace_first(source.next.as_ref().map(|next| ((self.key)(next), rank)));
                continue;
            };
            let key = (self.key)(&item);
            if self.last.as_ref() != Some(&key) {
                self.last = Some(key);
                return Ok(Some(item));
            }
        }
        Ok(None)
    }
}

impl<S, T, E, K> Iterator for MergedSources<S, T, K>
where
    S: Iterator<Item = Result<T, E>>,
    K: Ord + Clone,
{
    type Item = Result<T, E>;

    fn next(&mut self) -> Option<Self::Item> {
        let result = self.advance();
        if result.is_err() {
            self.unopened.clear();
            self.heap.clear();
        }
        result.transpose()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::rows::tests::Rng;

    /// An item: its key, and the source that it comes from.
    type Item = (u64, usize);

    fn merge(
        sources: Vec<Vec<Result<Item, &'static str>>>,
        direction: Direction,
    ) -> impl Iterator<Item = Result<Item, &'static str>> {
        MergedSources::new(sources.into_iter().map(Vec::into_iter), direction, |item| item.0)
    }

    #[test]
    fn first_source_of_a_key_counts_both_ways() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            for direction in [Direction::Ascending, Direction::Descending] {
                let mut expected = BTreeMap::new();
                let mut sources = Vec::new();
                for source in 0..rng.below(9) as usize {
                    let mut keys: Vec<u64> = (0..rng.below(30)).map(|_| rng.below(60)).collect();
                    keys.sort_unstable();
                    keys.dedup();
                    if direction == Direction::Descending {
                        keys.reverse();
                    }
                    for key in &keys {
                        expected.entry(*key).or_insert(source);
                    }
                    sources.push(keys.into_iter().map(|key| Ok((key, source))).collect());
                }
                let mut expected: Vec<Item> = expected.into_iter().collect();
                if direction == Direction::Descending {
                    expected.reverse();
                }
                let found: Result<Vec<Item>, _> = merge(sources, direction).collect();
                assert_eq!(found, Ok(expected), "seed {seed}");
            }
        }
    }

    #[test]
    fn an_error_of_a_source_ends_the_merge() {
        let first = vec![Ok((1, 0)), Err("a block"), Ok((3, 0))];
        let found: Vec<_> = merge(vec![first, vec![Ok((2, 1))]], Direction::Ascending).collect();
        assert_eq!(found, [Ok((1, 0)), Err("a block")]);
    }

    #[test]
    fn reads_no_item_before_it_is_needed() {
        let mut asked = 0;
        let source = std::iter::from_fn(|| {
            asked += 1;
            Some(Ok::<_, &str>(asked))
        });
        let merged = MergedSources::new([source], Direction::Ascending, |item: &u64| *item);
        assert_eq!(merged.take(3).collect::<Result<Vec<_>, _>>(), Ok(vec![1, 2, 3]));
        assert_eq!(asked, 3);
    }
}
