//! A loser tree: finds the smallest row among many sorted sources.

/// Maps 128-bit numbers to 64-bit numbers without reversing their order. Keeps as many significant bits of their
/// differences as fit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    least: u128,
    shift: u32,
}

impl Scale {
    /// Creates a scale for the numbers from the smallest to the largest.
    pub(super) fn between(least: u128, greatest: u128) -> Self {
        let width = greatest.saturating_sub(least);
        Self { least, shift: (u128::BITS - width.leading_zeros()).saturating_sub(u64::BITS) }
    }

    /// Returns the 64-bit rank of a number. Numbers outside the scale get its nearest end.
    #[inline]
    pub(super) fn rank(self, number: u128) -> u64 {
        let rank = number.saturating_sub(self.least) >> self.shift;
        u64::try_from(rank).unwrap_or(u64::MAX)
    }
}

/// A source in the tree.
#[derive(Clone, Copy)]
struct Source {
    rank: u64,
    source: u32,
}

/// A loser tree. Each inner node of a binary tree keeps the source that lost there. After the winner's next row was
/// taken, only the path from its leaf to the root is compared again, with one comparison per level.
///
/// Sources are numbered from 0. Ranks are compared first. For equal ranks, `is_before` returns whether the next row of
/// the first source comes before that of the second. A source without rows must never come before another one.
/// `is_before` is also called with numbers that no source has; they have no rows.
pub(super) struct LoserTree {
    /// The losers by node, with the root at index 1; the winner is at index 0. There are as many nodes as leaves.
    nodes: Vec<Source>,
}

impl LoserTree {
    /// Creates the tree from the rank of each source's first row, or `None` for a source without rows.
    pub(super) fn new(first: &[Option<u64>], is_before: &dyn Fn(usize, usize) -> bool) -> Self {
        let width = first.len().next_power_of_two();
        let rank = |source: usize| first.get(source).copied().flatten().unwrap_or(u64::MAX);
        // The sources that reach the next level, starting from the leaves.
        let mut left: Vec<Source> =
            (0..width).zip(0..).map(|(at, source)| Source { rank: rank(at), source }).collect();
        let mut nodes = left.clone();
        while left.len() > 1 {
            let level = left.len() / 2;
            for place in 0..level {
                let (one, other) = (left[2 * place], left[2 * place + 1]);
                let other_wins = beats(other, one, is_before);
                left[place] = if other_wins { other } else { one };
                nodes[level + place] = if other_wins { one } else { other };
            }
            left.truncate(level);
        }
        nodes[0] = left[0];
        Self { nodes }
    }

    /// Returns the source with the smallest row, or one without rows if all are at their ends.
    #[inline]
    pub(super) fn winner(&self) -> usize {
        self.nodes[0].source as usize
    }

    /// Updates the tree after the winner's row was taken. `rank` is that of the winner's next row, if it has one.
    #[inline]
    pub(super) fn replace(&mut self, rank: Option<u64>, is_before: impl Fn(usize, usize) -> bool) {
        let nodes = self.nodes.as_mut_slice();
        let mut source = Source { rank: rank.unwrap_or(u64::MAX), source: nodes[0].source };
        // Half the index that its leaf would have after all nodes.
        let mut node = usize::midpoint(nodes.len(), source.source as usize);
        while node > 0 {
            let loser = nodes[node];
            let swaps = beats(loser, source, &is_before);
            // The comparison is unpredictable, so use conditional moves instead of a branch.
            nodes[node].rank = if swaps { source.rank } else { loser.rank };
            nodes[node].source = if swaps { source.source } else { loser.source };
            source.rank = if swaps { loser.rank } else { source.rank };
            source.source = if swaps { loser.source } else { source.source };
            node /= 2;
        }
        nodes[0] = source;
    }
}

/// Returns whether the next row of one source comes before that of another.
#[inline]
fn beats(one: Source, other: Source, is_before: impl Fn(usize, usize) -> bool) -> bool {
    if one.rank == other.rank {
        return is_before(one.source as usize, other.source as usize);
    }
    one.rank < other.rank
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::tests::Rng;

    #[test]
    fn rows_of_all_sources_come_in_order() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let count = rng.below(20);
            let mut sources: Vec<Vec<(u64, u64)>> = Vec::new();
            for _ in 0..count {
                let length = rng.below(40);
                let rank = |rng: &mut Rng| if rng.below(10) == 0 { u64::MAX } else { rng.below(6) };
                let mut rows: Vec<_> = (0..length).map(|_| (rank(&mut rng), rng.any())).collect();
                rows.sort_unstable();
                sources.push(rows);
            }
            let mut expected = sources.concat();
            expected.sort_unstable();
            let mut next = vec![0; sources.len()];
            let peek = |next: &[usize], source: usize| sources.get(source)?.get(next[source]).copied();
            let is_before = |next: &[usize], one, other| match (peek(next, one), peek(next, other)) {
                (Some(one), Some(other)) => one < other,
                (one, _) => one.is_some(),
            };
            let first: Vec<_> = sources.iter().map(|rows| rows.first().map(|row| row.0)).collect();
            let mut loser_tree = LoserTree::new(&first, &|one, other| is_before(&next, one, other));
            let mut rows = Vec::new();
            while let Some(row) = peek(&next, loser_tree.winner()) {
                let source = loser_tree.winner();
                rows.push(row);
                next[source] += 1;
                let rank = peek(&next, source).map(|row| row.0);
                loser_tree.replace(rank, |one, other| is_before(&next, one, other));
            }
            assert_eq!(rows, expected, "seed {seed}");
        }
    }

    #[test]
    fn a_scale_keeps_the_order() {
        let mut rng = Rng::new(1);
        for bits in 0..128 {
            let least = u128::from(rng.any()) << rng.below(40);
            let width = (1_u128 << bits) - 1;
            let numbers = [0, width / 5, width / 4, width / 3, width / 2, width].map(|more| least + more);
            let scale = Scale::between(numbers[0], numbers[5]);
            let ranks = numbers.map(|number| scale.rank(number));
            assert!(ranks.is_sorted() && ranks[0] == 0);
            let kept = if bits <= 64 { width } else { width >> (bits - 64) };
            assert_eq!(u128::from(ranks[5]), kept);
        }
        assert_eq!(Scale::between(0, u128::MAX).rank(u128::MAX), u64::MAX);
    }
}
