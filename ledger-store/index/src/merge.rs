//! Merges adjacent runs while readers and the flusher continue.
//!
//! Eight adjacent runs of a tier become one run of the next tier. If many rows are removals, all runs become one, so that
//! readers need not pass over the removals and the rows that they hide. A merge reads a snapshot, so it only sees committed
//! runs. It writes in short transactions. Its output stays invisible until the last one replaces the input runs by the
//! new run in the table's list. Other short transactions delete the runs that no list refers to: merged inputs, and
//! outputs of abandoned merges.

use std::ops::Bound;

use ledger_codec::Output;
use parking_lot::MutexGuard;

use super::dropped::{DroppedLedgers, holds};
use super::error::{IndexError, storage};
use super::file::{Commit, IndexFile};
use super::loser_tree::{LoserTree, Scale};
use super::row::{KeyBytes, Row};
use super::rows::{
    BackdatedRow, DocumentRow, EffectiveRow, HistoryRow, KeyRow, LogRow, TABLES, TermRow, TransactionRow,
    VersionRow,
};
use super::run_list::RunMeta;
use super::runs::RunBuilder;
use super::snapshot::IndexSnapshot;
use super::stored::RawTableMut;
use super::stream::{RunStream, WholeBlock};
use super::tables::FILTERS;

/// Number of runs of a tier that become one run of the next tier.
const FAN_IN: usize = 8;
/// Maximum size of a run that a merge creates, in bytes. Bounds the duration of a merge and the space that it needs.
const RUN_BYTES_MAX: u64 = 1 << 30;
/// Minimum number of removals for a merge of all runs.
const REMOVALS_MIN: u64 = 4_096;
/// Minimum part of the rows that are removals, as a divisor, for a merge of all runs. It then writes at most that many
/// rows for each removal.
const REMOVALS_ONE_IN: u64 = 8;
/// Maximum size of the inputs of a merge of all runs, as a multiple of the maximum size of other merges.
const ALL_RUNS_FACTOR: u64 = 4;
/// Number of bytes that a merge writes in one transaction. They are in memory twice: here and in redb.
const SLICE_BYTES: usize = 5 << 20;
/// Number of entries that are deleted in one transaction: blocks of 8 KiB, or filter pages of 16 KiB.
const SLICE_ENTRIES: usize = 512;

/// The limits of merges.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MergeLimits {
    /// Maximum size of a run that a merge creates, in bytes.
    pub(crate) run_bytes_max: u64,
    /// Approximate number of bytes that one transaction writes.
    pub(crate) slice_bytes: usize,
}

impl Default for MergeLimits {
    fn default() -> Self {
        Self { run_bytes_max: RUN_BYTES_MAX, slice_bytes: SLICE_BYTES }
    }
}

/// Returns whether all runs should become one, because of their removals. The oldest run has none.
fn has_many_removals(runs: &[RunMeta], run_bytes_max: u64) -> bool {
    let sum = |number: fn(&RunMeta) -> u64| runs.iter().map(number).fold(0, u64::saturating_add);
    let removals = sum(|run| run.removals);
    runs.len() > 1
        && removals >= REMOVALS_MIN
        && removals >= sum(|run| run.rows) / REMOVALS_ONE_IN
        && sum(|run| run.bytes) <= ALL_RUNS_FACTOR.saturating_mul(run_bytes_max)
}

/// Returns the range of runs in the list to merge next, preferring the oldest. Returns `None` if no merge is due.
fn select(runs: &[RunMeta], run_bytes_max: u64) -> Option<std::ops::Range<usize>> {
    if has_many_removals(runs, run_bytes_max) {
        return Some(0..runs.len());
    }
    let mut start = 0;
    while start < runs.len() {
        let tier = runs[start].tier;
        let same = runs[start..].iter().take_while(|run| run.tier == tier).count();
        if same < FAN_IN {
            start += same;
            continue;
        }
        let mut bytes: u64 = 0;
        let fitting = runs[start..start + FAN_IN].iter().take_while(|run| {
            bytes = bytes.saturating_add(run.bytes);
            bytes <= run_bytes_max
        });
        let count = fitting.count();
        if count >= 2 {
            return Some(start..start + count);
        }
        // This run has the maximum size. The next one may still have neighbours to merge with.
        start += 1;
    }
    None
}

/// A running merge. If it is dropped before it is done, the table stays unchanged.
pub(crate) struct Merge<'a, R: Row> {
    file: &'a IndexFile,
    inputs: Vec<RunMeta>,
    /// The tier of the new run.
    tier: u8,
    /// Ledgers whose rows are left out.
    dropped: DroppedLedgers,
    rows: MergedRuns<R>,
    builder: RunBuilder<R>,
    run: u64,
    limits: MergeLimits,
    is_done: bool,
    /// Excludes other merges, which could take the same inputs.
    _only_one: MutexGuard<'a, ()>,
}

impl<'a, R: Row> Merge<'a, R> {
    /// Begins to merge runs of the table. Returns `None` if no merge is due or another merge is running.
    ///
    /// # Errors
    ///
    /// The errors of the storage engine.
    pub(crate) fn begin(file: &'a IndexFile, limits: MergeLimits) -> Result<Option<Self>, IndexError> {
        let Some(only_one) = file.merging().try_lock() else {
            return Ok(None);
        };
        let snapshot = file.snapshot()?;
        let runs = snapshot.runs(R::TABLE);
        let Some(selected) = select(runs, limits.run_bytes_max) else {
            return Ok(None);
        };
        let tier = runs[selected.clone()].iter().map(|run| run.tier).max().unwrap_or(0).saturating_add(1);
        Self::of(file, limits, (snapshot.clone(), selected, tier), DroppedLedgers::new(), only_one).map(Some)
    }

    /// Begins to rewrite a run without the rows of some ledgers. Returns `None` if no run has any. Waits for a running
    /// merge.
    ///
    /// # Errors
    ///
    /// [`IndexError::Damaged`] if a run is damaged; otherwise the errors of the storage engine.
    pub(super) fn without(
        file: &'a IndexFile,
        limits: MergeLimits,
        dropped: &DroppedLedgers,
    ) -> Result<Option<Self>, IndexError> {
        let only_one = file.merging().lock();
        let snapshot = file.snapshot()?;
        for (place, run) in snapshot.runs(R::TABLE).iter().enumerate() {
            if holds::<R>(&snapshot, run, dropped)? {
                let input = (snapshot.clone(), place..place + 1, run.tier);
                return Self::of(file, limits, input, dropped.clone(), only_one).map(Some);
            }
        }
        Ok(None)
    }

    fn of(
        file: &'a IndexFile,
        limits: MergeLimits,
        (snapshot, selected, tier): (IndexSnapshot, std::ops::Range<usize>, u8),
        dropped: DroppedLedgers,
        only_one: MutexGuard<'a, ()>,
    ) -> Result<Self, IndexError> {
        let drop_removals = selected.start == 0;
        let inputs = snapshot.runs(R::TABLE)[selected].to_vec();
        let rows = MergedRuns::open(&snapshot, &inputs)?;
        let run = file.allocate_run();
        Ok(Self {
            file,
            inputs,
            tier,
            dropped,
            rows,
            builder: RunBuilder::new(run, drop_removals, Output::default()),
            run,
            limits,
            is_done: false,
            _only_one: only_one,
        })
    }

    /// Returns whether all rows are kept unchanged, so that whole blocks can be copied.
    fn keeps_rows(&self) -> bool {
        !R::LINKED && !R::SUPERSEDES && self.dropped.is_empty()
    }

    /// Reads and writes one slice in one transaction. Returns whether the merge is done.
    ///
    /// # Errors
    ///
    /// [`IndexError::Damaged`] if an input is damaged; otherwise the errors of the storage engine. The merge must then
    /// be dropped.
    pub(crate) fn step(&mut self) -> Result<bool, IndexError> {
        let takes_blocks = self.keeps_rows() && R::probe_key(&R::first_key()).is_none();
        while !self.is_done {
            if takes_blocks && let Some(block) = self.rows.whole_block() {
                self.builder.adopt(&block);
                self.rows.skip_block()?;
            } else if let Some(mut row) = self.rows.take()? {
                if !self.dropped.is_empty() && self.dropped.contains(&R::ledger_of(&row.key())) {
                    continue;
                }
                if R::LINKED {
                    row.link(self.builder.previous());
                }
                self.builder.push(row);
            } else {
                self.finish()?;
                self.is_done = true;
            }
            if self.builder.pending_bytes() >= self.limits.slice_bytes {
                let write = self.file.begin_write(Commit::Visible)?;
                self.builder.write_pending(&write)?;
                write.commit()?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes the rest, and replaces the inputs by the new run in the list.
    fn finish(&mut self) -> Result<(), IndexError> {
        let mut merged = self.builder.finish(self.tier);
        if let Some(run) = &mut merged
            && self.keeps_rows()
        {
            run.rows = self.inputs.iter().map(|run| run.rows).sum();
        }
        let write = self.file.begin_write(Commit::Visible)?;
        self.builder.write_pending(&write)?;
        let mut runs = write.runs(R::TABLE)?;
        let inputs = self.inputs.len();
        let place = runs.windows(inputs).position(|window| window == self.inputs);
        // Only merges remove runs from a list, and no other merge is running.
        let place = place.ok_or_else(|| {
            IndexError::damaged(TABLES[usize::from(R::TABLE)], "the inputs of a merge left the list")
        })?;
        runs.splice(place..place + inputs, merged);
        write.set_runs(R::TABLE, &runs)?;
        write.commit()?;
        for run in &self.inputs {
            self.file.discard_run(R::TABLE, run.id);
        }
        Ok(())
    }
}

/// The rows of several runs in key order, including superseded ones.
struct MergedRuns<R: Row> {
    runs: Vec<RunStream<R>>,
    scale: Scale,
    loser_tree: LoserTree,
}

impl<R: Row> MergedRuns<R> {
    fn open(snapshot: &IndexSnapshot, runs: &[RunMeta]) -> Result<Self, IndexError> {
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
    fn take(&mut self) -> Result<Option<R>, IndexError> {
        let Some(run) = self.runs.get_mut(self.loser_tree.winner()) else {
            return Ok(None);
        };
        let row = run.take()?;
        self.replay();
        Ok(row)
    }

    /// Returns the block with the next row if none of its rows was taken, and no row of another run comes before its
    /// last row.
    fn whole_block(&self) -> Option<WholeBlock<'_>> {
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
    fn skip_block(&mut self) -> Result<(), IndexError> {
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

impl<R: Row> Drop for Merge<'_, R> {
    fn drop(&mut self) {
        if !self.is_done {
            self.file.discard_run(R::TABLE, self.run);
        }
    }
}

/// Runs one merge in the table of `R` if one is due. Returns whether it did.
///
/// Stops between two slices, without effect, if `should_stop` returns `true`.
///
/// # Errors
///
/// The errors of [`Merge::step`].
pub(crate) fn merge_table<R: Row>(
    file: &IndexFile,
    should_stop: &dyn Fn() -> bool,
) -> Result<bool, IndexError> {
    let Some(mut merge) = Merge::<R>::begin(file, MergeLimits::default())? else {
        return Ok(false);
    };
    loop {
        if should_stop() {
            return Ok(false);
        }
        if merge.step()? {
            return Ok(true);
        }
    }
}

/// Runs one merge in the table with this number if one is due. Returns whether it did.
///
/// # Errors
///
/// The errors of [`Merge::step`].
///
/// # Panics
///
/// Panics if there is no such table.
pub(crate) fn merge_step(
    file: &IndexFile,
    table: u8,
    should_stop: &dyn Fn() -> bool,
) -> Result<bool, IndexError> {
    match table {
        HistoryRow::TABLE => merge_table::<HistoryRow>(file, should_stop),
        BackdatedRow::TABLE => merge_table::<BackdatedRow>(file, should_stop),
        KeyRow::TABLE => merge_table::<KeyRow>(file, should_stop),
        TermRow::TABLE => merge_table::<TermRow>(file, should_stop),
        LogRow::TABLE => merge_table::<LogRow>(file, should_stop),
        TransactionRow::TABLE => merge_table::<TransactionRow>(file, should_stop),
        VersionRow::TABLE => merge_table::<VersionRow>(file, should_stop),
        EffectiveRow::TABLE => merge_table::<EffectiveRow>(file, should_stop),
        DocumentRow::TABLE => merge_table::<DocumentRow>(file, should_stop),
        _ => panic!("there is no table {table}"),
    }
}

/// Deletes a slice of the runs that no list refers to, and then runs one merge if one is due. Returns whether there
/// was anything to do.
///
/// The merger thread calls this until it returns `false`, and again after each flush.
///
/// # Errors
///
/// [`IndexError::Damaged`] if a run is damaged; otherwise the errors of the storage engine.
pub fn maintain(file: &IndexFile, should_stop: &dyn Fn() -> bool) -> Result<bool, IndexError> {
    if sweep_step(file)? {
        return Ok(true);
    }
    for table in 0..TABLES.len() {
        if merge_step(file, table as u8, should_stop)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Deletes a slice of a run that no list refers to, in one transaction. Returns whether there was one.
///
/// # Errors
///
/// The errors of the storage engine.
pub(crate) fn sweep_step(file: &IndexFile) -> Result<bool, IndexError> {
    let Some((table, run)) = file.next_garbage() else {
        return Ok(false);
    };
    let write = file.begin_write(Commit::Visible)?;
    if write.runs(table)?.iter().any(|listed| listed.id == run) {
        // A merge whose last commit reported a failure may have taken effect after all.
        file.forget_garbage(table, run);
        return Ok(true);
    }
    // Delete the blocks last: a reopened file recognises an unlisted run by them.
    let mut left = SLICE_ENTRIES;
    for name in [FILTERS, TABLES[usize::from(table)]] {
        let mut entries = write.raw_table(name)?;
        left = write.attempt("deleting a run", || delete(&mut entries, run, left))?;
    }
    write.commit()?;
    if left > 0 {
        file.forget_garbage(table, run);
    }
    Ok(true)
}

/// Deletes at most `limit` entries of a run. Returns how much of the limit is left.
fn delete(table: &mut RawTableMut<'_>, run: u64, limit: usize) -> Result<usize, IndexError> {
    let prefix = run.to_be_bytes();
    let mut cursor = table.lower_bound_mut(Bound::Included(prefix.as_slice())).map_err(storage)?;
    let mut left = limit;
    while left > 0 {
        match cursor.peek_next().map_err(storage)? {
            Some((key, _)) if key.value().starts_with(&prefix) => {}
            _ => break,
        }
        cursor.remove_next().map_err(storage)?;
        left -= 1;
    }
    cursor.close().map_err(storage)?;
    Ok(left)
}
