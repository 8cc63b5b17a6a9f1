//! Merges adjacent runs while readers and the flusher continue.
//!
//! Eight adjacent runs of a tier become one run of the next tier. If many rows are removals, all runs become one, so that
//! readers need not pass over the removals and the rows that they hide. A merge reads a snapshot, so it only sees committed
//! runs. It writes in short transactions. Its output stays invisible until the last one replaces the input runs by the
//! new run in the table's list. Other short transactions delete the runs that no list refers to: merged inputs, and
//! outputs of abandoned merges.

use std::ops::{Bound, Range};

use ledger_codec::Output;
use parking_lot::MutexGuard;

use super::dropped::{DroppedLedgers, holds};
use super::error::{IndexError, storage};
use super::file::{Commit, IndexFile};
use super::merged_runs::MergedRuns;
use super::row::Row;
use super::rows::TABLES;
use super::run_list::RunMeta;
use super::runs::{RunBlocks, RunBuilder};
use super::snapshot::IndexSnapshot;
use super::stored::RawTableMut;
use super::tables::FILTERS;
use crate::for_each_run_table;

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
fn select(runs: &[RunMeta], run_bytes_max: u64) -> Option<Range<usize>> {
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

/// The part of a merge that is the same for all tables. Not generic, so that it is not compiled for each type of rows. If
/// it is dropped before it is done, the table stays unchanged.
struct Job<'a> {
    file: &'a IndexFile,
    table: u8,
    inputs: Vec<RunMeta>,
    /// The tier of the new run.
    tier: u8,
    run: u64,
    limits: MergeLimits,
    is_done: bool,
    /// Excludes other merges, which could take the same inputs.
    _only_one: MutexGuard<'a, ()>,
}

/// Runs to merge, by their places in the list of the table.
struct Inputs {
    snapshot: IndexSnapshot,
    places: Range<usize>,
    /// The tier of the new run.
    tier: u8,
}

impl Inputs {
    /// Selects runs of a table. Returns `None` if no merge is due.
    fn select(snapshot: IndexSnapshot, table: u8, limits: MergeLimits) -> Option<Self> {
        let runs = snapshot.runs(table);
        let places = select(runs, limits.run_bytes_max)?;
        let tier = runs[places.clone()].iter().map(|run| run.tier).max().unwrap_or(0).saturating_add(1);
        Some(Self { snapshot, places, tier })
    }
}

impl<'a> Job<'a> {
    fn of(
        file: &'a IndexFile,
        table: u8,
        limits: MergeLimits,
        inputs: &Inputs,
        only_one: MutexGuard<'a, ()>,
    ) -> Self {
        Self {
            file,
            table,
            inputs: inputs.snapshot.runs(table)[inputs.places.clone()].to_vec(),
            tier: inputs.tier,
            run: file.allocate_run(),
            limits,
            is_done: false,
            _only_one: only_one,
        }
    }

    /// Writes what is pending of the new run in one transaction.
    fn write_slice(&self, new: &mut RunBlocks) -> Result<(), IndexError> {
        let write = self.file.begin_write(Commit::Visible)?;
        new.write_pending(&write)?;
        write.commit()
    }

    /// Writes the rest of the new run, and replaces the inputs by it in the list. `merged` is `None` if it has no rows.
    fn finish(&mut self, new: &mut RunBlocks, merged: Option<RunMeta>) -> Result<(), IndexError> {
        let write = self.file.begin_write(Commit::Visible)?;
        new.write_pending(&write)?;
        let mut runs = write.runs(self.table)?;
        let inputs = self.inputs.len();
        let place = runs.windows(inputs).position(|window| window == self.inputs);
        // Only merges remove runs from a list, and no other merge is running.
        let place = place.ok_or_else(|| {
            IndexError::damaged(TABLES[usize::from(self.table)], "the inputs of a merge left the list")
        })?;
        runs.splice(place..place + inputs, merged);
        write.set_runs(self.table, &runs)?;
        write.commit()?;
        for run in &self.inputs {
            self.file.discard_run(self.table, run.id);
        }
        self.is_done = true;
        Ok(())
    }
}

impl Drop for Job<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.file.discard_run(self.table, self.run);
        }
    }
}

/// A running merge. If it is dropped before it is done, the table stays unchanged.
pub(crate) struct Merge<'a, R: Row> {
    job: Job<'a>,
    /// Ledgers whose rows are left out.
    dropped: DroppedLedgers,
    rows: MergedRuns<R>,
    builder: RunBuilder<R>,
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
        let Some(inputs) = Inputs::select(file.snapshot()?, R::TABLE, limits) else {
            return Ok(None);
        };
        Self::of(file, limits, &inputs, DroppedLedgers::new(), only_one).map(Some)
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
                let (places, tier) = (place..place + 1, run.tier);
                let inputs = Inputs { snapshot: snapshot.clone(), places, tier };
                return Self::of(file, limits, &inputs, dropped.clone(), only_one).map(Some);
            }
        }
        Ok(None)
    }

    fn of(
        file: &'a IndexFile,
        limits: MergeLimits,
        inputs: &Inputs,
        dropped: DroppedLedgers,
        only_one: MutexGuard<'a, ()>,
    ) -> Result<Self, IndexError> {
        let drop_removals = inputs.places.start == 0;
        let job = Job::of(file, R::TABLE, limits, inputs, only_one);
        let rows = MergedRuns::open(&inputs.snapshot, &job.inputs)?;
        let builder = RunBuilder::new(job.run, drop_removals, Output::default());
        Ok(Self { job, dropped, rows, builder })
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
        while !self.job.is_done {
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
            }
            if self.builder.pending_bytes() >= self.job.limits.slice_bytes {
                self.job.write_slice(self.builder.blocks())?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Ends the new run, and puts it into the place of the inputs.
    fn finish(&mut self) -> Result<(), IndexError> {
        let mut merged = self.builder.finish(self.job.tier);
        if let Some(run) = &mut merged
            && self.keeps_rows()
        {
            run.rows = self.job.inputs.iter().map(|run| run.rows).sum();
        }
        self.job.finish(self.builder.blocks(), merged)
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

/// Deletes a slice of the runs that no list refers to, and then runs one merge if one is due. Returns whether there
/// was anything to do.
///
/// The merger thread calls this until it returns `false`, and again after each flush.
///
/// # Errors
///
/// [`IndexError::Damaged`] if a run is damaged; otherwise the errors of the storage engine.
pub fn maintain(file: &IndexFile, should_stop: &dyn Fn() -> bool) -> Result<bool, IndexError> {
    macro_rules! merge_one {
        ($($(#[$doc:meta])* $table:ident: $row:ty;)*) => {$(
            if merge_table::<$row>(file, should_stop)? {
                return Ok(true);
            }
        )*};
    }
    if sweep_step(file)? {
        return Ok(true);
    }
    for_each_run_table!(merge_one);
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
