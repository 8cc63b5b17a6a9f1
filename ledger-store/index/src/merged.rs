//! Merges the rows of several memtables into one sorted sequence.

use std::sync::Arc;

use super::loser_tree::{LoserTree, Scale};
use super::row::{MemtableRows, Row, link_all};

/// The rows of several memtables in key order, including superseded ones.
pub struct Merged<'a, R: Row> {
    /// The remaining rows of each memtable.
    rests: Vec<&'a [R]>,
    order: Order,
}

/// The strategy for finding the next row.
enum Order {
    /// Each memtable is entirely before the next. Holds the index of the current one.
    InSequence(usize),
    Mixed(LoserTree, Scale),
}

/// Merges the rows of memtables without copying them.
pub fn merged<'a, R: Row>(memtables: impl IntoIterator<Item = &'a MemtableRows<R>>) -> Merged<'a, R> {
    let memtables = memtables.into_iter().map(|memtable| memtable.as_slice());
    let rests: Vec<&[R]> = memtables.filter(|rows| !rows.is_empty()).collect();
    let in_sequence = |pair: &[&[R]]| pair[0][pair[0].len() - 1].is_before(&pair[1][0]);
    let order = if rests.windows(2).all(in_sequence) {
        Order::InSequence(0)
    } else {
        let least = rests.iter().map(|rest| rest[0].key_rank()).min().unwrap_or(0);
        let greatest = rests.iter().map(|rest| rest[rest.len() - 1].key_rank()).max().unwrap_or(0);
        let scale = Scale::between(least, greatest);
        let first: Vec<_> = rests.iter().map(|rest| next_rank(rest, scale)).collect();
        Order::Mixed(LoserTree::new(&first, &|one, other| is_before(&rests, one, other)), scale)
    };
    Merged { rests, order }
}

#[inline]
fn next_rank<R: Row>(rest: &[R], scale: Scale) -> Option<u64> {
    rest.first().map(|row| scale.rank(row.key_rank()))
}

/// Returns whether the next row of one source comes before that of another. A source without rows comes last.
#[cold]
fn is_before<R: Row>(rests: &[&[R]], one: usize, other: usize) -> bool {
    let next = |source: usize| rests.get(source).and_then(|rest| rest.first());
    match (next(one), next(other)) {
        (Some(one), Some(other)) => one.is_before(other),
        (one, _) => one.is_some(),
    }
}

impl<'a, R: Row> Iterator for Merged<'a, R> {
    type Item = &'a R;

    #[inline]
    fn next(&mut self) -> Option<&'a R> {
        match &mut self.order {
            Order::InSequence(source) => loop {
                let rest = self.rests.get_mut(*source)?;
                if let Some((row, after)) = rest.split_first() {
                    *rest = after;
                    return Some(row);
                }
                *source += 1;
            },
            Order::Mixed(loser_tree, scale) => {
                let rest = self.rests.get_mut(loser_tree.winner())?;
                let (row, after) = rest.split_first()?;
                *rest = after;
                let rests = &self.rests;
                loser_tree.replace(next_rank(after, *scale), |one, other| is_before(rests, one, other));
                Some(row)
            }
        }
    }
}

/// Merges memtables into one, from the oldest to the newest. Drops rows that are superseded within them.
pub fn merge_memtables<R: Row>(memtables: &[MemtableRows<R>]) -> MemtableRows<R> {
    let mut rows: Vec<R> = Vec::with_capacity(memtables.iter().map(|memtable| memtable.len()).sum());
    for row in merged(memtables) {
        match rows.last_mut() {
            Some(last) if R::SUPERSEDES && row.supersedes(last) => last.clone_from(row),
            _ => rows.push(row.clone()),
        }
    }
    link_all(&mut rows);
    Arc::new(rows)
}
