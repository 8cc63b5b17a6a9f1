//! Dropping what is of ledgers that were removed for good.
//!
//! Runs are immutable: one that holds such rows is written again without them, as a merge of one run. What lies in
//! plain tables is deleted range by range. All of it happens in short transactions beside readers and the writer of
//! new runs, and may end after any of them: whoever does it again finds less to do.

use std::ops::Bound;

use super::dropped::Gone;
use super::error::IndexError;
use super::file::{Commit, IndexFile};
use super::merge::{Merge, MergeLimits, sweep_step};
use super::row::Row;
use super::rows::{
    DisplacedRow, EffectiveRow, HistoryRow, KeyRow, LogRow, TABLES, TermRow, TransactionRow, VersionRow,
};

/// Values that are deleted in one transaction. Pages of accounts take some kilobytes.
const SLICE_ENTRIES: usize = 256;
/// Ranges that are looked at in one transaction: most ledgers have nothing in most tables.
const SLICE_RANGES: usize = 1_024;

/// A stretch of keys of a plain table: from the first on, and before the second.
pub type Stretch = (&'static str, Vec<u8>, Vec<u8>);

/// Writes the runs of a table again that have rows of these ledgers; whether none is left that has.
fn purge_table<R: Row>(
    file: &IndexFile,
    gone: &Gone,
    should_stop: &dyn Fn() -> bool,
) -> Result<bool, IndexError> {
    while let Some(mut rewrite) = Merge::<R>::without(file, MergeLimits::default(), gone)? {
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

/// Drops all rows of these ledgers from the runs; whether none is left. False only if it was to stop.
///
/// No flush may bring such rows any more.
///
/// # Errors
///
/// [`IndexError::Damaged`] if a run is not as it was written; else as the storage engine fails.
pub fn purge_runs(file: &IndexFile, gone: &Gone, should_stop: &dyn Fn() -> bool) -> Result<bool, IndexError> {
    for table in 0..TABLES.len() as u8 {
        let is_done = match table {
            HistoryRow::TABLE => purge_table::<HistoryRow>(file, gone, should_stop),
            DisplacedRow::TABLE => purge_table::<DisplacedRow>(file, gone, should_stop),
            KeyRow::TABLE => purge_table::<KeyRow>(file, gone, should_stop),
            TermRow::TABLE => purge_table::<TermRow>(file, gone, should_stop),
            LogRow::TABLE => purge_table::<LogRow>(file, gone, should_stop),
            TransactionRow::TABLE => purge_table::<TransactionRow>(file, gone, should_stop),
            VersionRow::TABLE => purge_table::<VersionRow>(file, gone, should_stop),
            EffectiveRow::TABLE => purge_table::<EffectiveRow>(file, gone, should_stop),
            _ => panic!("there is no table {table}"),
        };
        if !is_done? {
            return Ok(false);
        }
    }
    // Runs that were replaced are deleted here and not by the next flush: then their space is free.
    while sweep_step(file)? {
        if should_stop() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Deletes what stands in these stretches of plain tables; whether nothing is left. False only if it was to stop.
///
/// # Errors
///
/// As the storage engine fails.
pub fn purge_plain(
    file: &IndexFile,
    stretches: impl IntoIterator<Item = Stretch>,
    should_stop: &dyn Fn() -> bool,
) -> Result<bool, IndexError> {
    let mut stretches = stretches.into_iter().peekable();
    while stretches.peek().is_some() {
        if should_stop() {
            return Ok(false);
        }
        let write = file.begin_write(Commit::Visible)?;
        let mut left = SLICE_ENTRIES;
        for _ in 0..SLICE_RANGES {
            let Some((table, from, to)) = stretches.peek() else { break };
            let bounds = (Bound::Included(from.as_slice()), to.as_slice());
            left -= write.table(table)?.delete_between(bounds.0, bounds.1, left)?;
            if left == 0 {
                break;
            }
            stretches.next();
        }
        write.commit()?;
    }
    Ok(true)
}
