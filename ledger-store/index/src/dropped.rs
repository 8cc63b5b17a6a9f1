//! Dropped ledgers, which were removed for good, and the runs that still hold rows of them.

use std::collections::BTreeSet;

use super::cursor::{Cursor, UnopenedSource};
use super::error::IndexError;
use super::order::Direction;
use super::row::Row;
use super::run_list::RunMeta;
use super::snapshot::IndexSnapshot;

/// Numbers of the ledgers whose rows must be deleted.
pub type DroppedLedgers = BTreeSet<u32>;

/// Returns whether a run holds a row of one of these ledgers.
pub(super) fn holds<R: Row>(
    snapshot: &IndexSnapshot,
    run: &RunMeta,
    dropped: &DroppedLedgers,
) -> Result<bool, IndexError> {
    let mut next = dropped.first().copied();
    while let Some(ledger) = next {
        let source = vec![UnopenedSource::Run(run.clone())];
        let mut rows = Cursor::<R>::new(
            snapshot.clone(),
            source,
            R::first_of(ledger),
            R::last_key(),
            Direction::Ascending,
        );
        let Some(row) = rows.next_row()? else { return Ok(false) };
        let found = R::ledger_of(&row.key());
        if dropped.contains(&found) {
            return Ok(true);
        }
        next = dropped.range(found..).next().copied();
    }
    Ok(false)
}
