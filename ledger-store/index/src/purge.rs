//! Deletes the data of dropped ledgers, which were removed for good.
//!
//! Runs are immutable, so a run with such rows is rewritten without them, as a merge of one run. Data in plain tables
//! is deleted range by range. All of this happens in short transactions while readers and the flusher continue, and
//! may stop after any of them. A repeated purge finds less to do.

use std::ops::Bound;

use super::dropped::DroppedLedgers;
use super::error::IndexError;
use super::file::{Commit, IndexFile};
use super::merge::{Merge, MergeLimits, sweep_step};
use super::row::Row;
use crate::for_each_run_table;

/// Number of values that are deleted in one transaction. Pages of accounts take some kilobytes.
const SLICE_ENTRIES: usize = 256;
/// Number of key ranges that are examined in one transaction. Most ledgers have no data in most tables.
const SLICE_RANGES: usize = 1_024;

/// A key range of a plain table, from the first key (inclusive) to the second (exclusive).
pub type KeyRange = (&'static str, Vec<u8>, Vec<u8>);

/// Rewrites the runs of a table that hold rows of these ledgers. Returns whether none is left.
fn purge_table<R: Row>(
    file: &IndexFile,
    dropped: &DroppedLedgers,
    should_stop: &dyn Fn() -> bool,
) -> Result<bool, IndexError> {
    while let Some(mut rewrite) = Merge::<R>::without(file, MergeLimits::default(), dropped)? {
        loop {
            if should_stop() {
                return Ok(false);
            }
            if rewrite.step()? {
                break;
            }
        }
    }
    Ok(true)
}

/// Deletes all rows of these ledgers from the runs. Returns `false` only if `should_stop` ended it early.
///
/// No later flush may contain such rows.
///
/// # Errors
///
/// [`IndexError::Damaged`] if a run is damaged; otherwise the errors of the storage engine.
pub fn purge_runs(
    file: &IndexFile,
    dropped: &DroppedLedgers,
    should_stop: &dyn Fn() -> bool,
) -> Result<bool, IndexError> {
    macro_rules! purge_all {
        ($($(#[$doc:meta])* $table:ident: $row:ty;)*) => {$(
            if !purge_table::<$row>(file, dropped, should_stop)? {
                return Ok(false);
            }
        )*};
    }
    for_each_run_table!(purge_all);
    // Delete the replaced runs here instead of after the next flush, so that their space is free when this returns.
    while sweep_step(file)? {
        if should_stop() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Deletes the values in these ranges of plain tables. Returns `false` only if `should_stop` ended it early.
///
/// # Errors
///
/// The errors of the storage engine.
pub fn purge_plain(
    file: &IndexFile,
    ranges: impl IntoIterator<Item = KeyRange>,
    should_stop: &dyn Fn() -> bool,
) -> Result<bool, IndexError> {
    let mut ranges = ranges.into_iter().peekable();
    while ranges.peek().is_some() {
        if should_stop() {
            return Ok(false);
        }
        let write = file.begin_write(Commit::Visible)?;
        let mut left = SLICE_ENTRIES;
        for _ in 0..SLICE_RANGES {
            let Some((table, from, to)) = ranges.peek() else { break };
            let bounds = (Bound::Included(from.as_slice()), to.as_slice());
            left -= write.table(table)?.delete_between(bounds.0, bounds.1, left)?;
            if left == 0 {
                break;
            }
            ranges.next();
        }
        write.commit()?;
    }
    Ok(true)
}
