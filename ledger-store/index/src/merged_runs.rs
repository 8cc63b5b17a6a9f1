//! Reads several runs in key order.

use super::error::IndexError;
use super::loser_tree::{LoserTree, Scale};
use super::row::{KeyBytes, Row};
use super::run_list::RunMeta;
use super::snapshot::IndexSnapshot;
use super::stream::{RunStream, WholeBlock};

/// The rows of several runs in key order, including superseded ones.
pub(super) struct MergedRuns<R: Row> {
    runs: Vec<RunStream<R>>,
    scale: Scale,
    loser_tree: LoserTree,
}

impl<R: Row> MergedRuns<R> {
    pub(super) fn open(snapshot: &IndexSnapshot, runs: &[RunMeta]) -> Result<Self, IndexError> {
        let rank = |key: &KeyBytes| R::rank(&R::read_key(key.as_slice()));
        let least = runs.iter().map(|run| rank(&run.first)).min().unwrap_or(0);
        let greatest = runs.iter().map(|run| rank(&run.last)).max().unwrap_or(0);
        let scale = Scale::between(least, greatest);
        let runs = runs.iter().map(|run| RunStream::open(snapshot, run)).collect::<Result<Vec<_>, _>>()?;
        let first: Vec<_> = runs.iter().map(|run| Self::next_rank(run, scale)).collect();
        let loser_tree = LoserTree::new(&first, &|one, other| is_before(&runs, one, other));
        Ok(Self { runs, scale, loser_tree })
    }

    #[inline]
    fn next_rank(run: &RunStream<R>, scale: Scale) -> Option<u64> {
        run.peek().map(|row| scale.rank(row.key_rank()))
    }

    /// Takes the next row. Returns `None` at the end.
    #[inline]
    pub(super) fn take(&mut self) -> Result<Option<R>, IndexError> {
        let Some(run) = self.runs.get_mut(self.loser_tree.winner()) else {
            return Ok(None);
        };
        let row = run.take()?;
        self.replay();
        Ok(row)
    }

    /// Returns the block with the next row if none of its rows was taken, and no row of another run comes before its
    /// last row.
    pub(super) fn whole_block(&self) -> Option<WholeBlock<'_>> {
        let winner = self.loser_tree.winner();
        let run = self.runs.get(winner)?;
        if !run.is_at_block_start() {
            return None;
        }
        let others = self.runs.iter().enumerate().filter(|(number, _)| *number != winner);
        let next = others.filter_map(|(_, other)| other.peek().map(Row::key)).min();
        run.whole_before(next.map(|key| KeyBytes::of::<R>(&key)).as_ref())
    }

    /// Skips that block.
    pub(super) fn skip_block(&mut self) -> Result<(), IndexError> {
        if let Some(run) = self.runs.get_mut(self.loser_tree.winner()) {
            run.skip_block()?;
            self.replay();
        }
        Ok(())
    }

    /// Updates the order after the first run has moved on to another row.
    #[inline]
    fn replay(&mut self) {
        let runs = &self.runs;
        let rank = Self::next_rank(&runs[self.loser_tree.winner()], self.scale);
        self.loser_tree.replace(rank, |one, other| is_before(runs, one, other));
    }
}

/// Returns whether the next row of one run comes before that of another. A run without rows comes last.
#[cold]
fn is_before<R: Row>(runs: &[RunStream<R>], one: usize, other: usize) -> bool {
    let next = |run: usize| runs.get(run).and_then(RunStream::peek);
    match (next(one), next(other)) {
        (Some(one), Some(other)) => one.is_before(other),
        (one, _) => one.is_some(),
    }
}
