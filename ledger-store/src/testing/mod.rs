//! The test kit: a disk and a clock that tests control, random work, an oracle that asks a store questions and compares
//! the answers with the model, trials of both, and campaigns with power cuts. Only with the feature `testing`, and not
//! part of the stable interface.

mod campaign;
mod cast;
mod clock;
mod dice;
mod filters;
mod flips;
mod harness;
mod journal_rate;
mod judge;
mod questions;
mod roll;
mod sectors;
mod shelf;
mod tally;
mod trial;
mod workload;
mod writers;

use std::collections::BTreeMap;

use ledger_core::{LedgerName, LogEntry};
use ledger_index::Way;
use ledger_journal::entry::read_chunk;
use ledger_journal::{Position, decode_untrusted};

use crate::error::ReadError;
use crate::read::LedgerReader;
use crate::store::Store;

pub use self::campaign::{Campaign, Work, power_cut};
pub use self::clock::SetClock;
pub use self::dice::Dice;
pub use self::flips::{Damaged, FlipCounts, Flipped, Left, flips};
pub use self::harness::Done;
pub use self::journal_rate::{bare_writes, journal_appends};
pub use self::judge::{ImportStep, Judge};
pub use self::questions::DamagedAnswers;
pub use self::sectors::{from_sectors, to_sectors};
pub use self::shelf::DocumentStep;
pub use self::tally::Tally;
pub use self::trial::{Trials, trial_of};
pub use self::workload::{Step, Workload};
pub use self::writers::power_cut_under_writers;
pub use ledger_journal::disk::{
    Disk, DiskFile, DiskLock, DiskRoom, Faults, LockOutcome, OpenMode, RealDisk, SimDisk, Space,
};

/// Returns every acknowledged log of every ledger, oldest entry first.
///
/// # Errors
///
/// [`ReadError`] if the store is damaged.
pub fn logs(store: &Store) -> Result<BTreeMap<LedgerName, Vec<LogEntry>>, ReadError> {
    let engine = store.engine();
    let view = engine.view();
    let mut all = BTreeMap::new();
    for head in view.heads.iter().filter(|head| !head.is_removed) {
        let ledger = head.info.id;
        let reader = LedgerReader::new(engine.journal.clone(), view.clone(), ledger);
        let mut entries = Vec::new();
        let rows = view.table(|piece| &piece.logs);
        for row in rows.cursor((ledger, 0), (ledger, u64::MAX), Way::Ascending) {
            let position = Position::new(row?.position);
            entries.push(reader.entry(position.ok_or_else(|| crate::lookup::missing("a position"))?)?);
        }
        all.insert(head.info.name.clone(), entries);
    }
    Ok(all)
}

/// Lets one of the next reads fail that the writer needs for a decision: the `nth`, counted from 1, or none for 0.
/// Returns whether the read that was to fail before is still to come.
pub fn fail_decision_read(store: &Store, nth: u64) -> bool {
    store.engine().fail_decision_read(nth)
}

/// Decodes bytes as a chunk of the journal and, as if its digest were right, as entries. Returns the number of entries.
/// For fuzzing: no bytes may cause a panic.
pub fn decode_chunk(bytes: &[u8]) -> Option<usize> {
    let chunk = decode_untrusted(bytes)?;
    let mut entries = 0;
    read_chunk(&chunk, |_| {
        entries += 1;
        Ok(())
    })
    .ok()?;
    Some(entries)
}
