//! What tests and fuzzing need of a store: a disk that they control, a clock that they set, random work with
//! a judge who asks questions, trials of both, and campaigns of power cuts. Feature `testing` only, and no part of the
//! stable interface.

mod campaign;
mod cast;
mod clock;
mod dice;
mod filters;
mod flips;
mod journal_rate;
mod judge;
mod questions;
mod rig;
mod roll;
mod sectors;
mod shelf;
mod tally;
mod trial;
mod workload;
mod writers;

use std::collections::BTreeMap;

use ledger_core::{LedgerName, LogEntry};

use crate::entry::read_chunk;
use crate::error::ReadError;
use crate::index::Way;
use crate::journal::{Position, decode_untrusted};
use crate::read::LedgerReader;
use crate::store::Store;

pub use self::campaign::{Campaign, Work, power_cut};
pub use self::clock::SetClock;
pub use self::dice::Dice;
pub use self::flips::{Damaged, FlipCounts, Flipped, Left, flips};
pub use self::journal_rate::{bare_writes, journal_appends};
pub use self::judge::{ImportStep, Judge};
pub use self::questions::DamagedAnswers;
pub use self::rig::Done;
pub use self::sectors::{from_sectors, to_sectors};
pub use self::shelf::DocumentStep;
pub use self::tally::Tally;
pub use self::trial::{Trials, trial_of};
pub use self::workload::{Step, Workload};
pub use self::writers::power_cut_under_writers;
pub use crate::disk::{
    Disk, DiskFile, DiskLock, DiskRoom, Faults, LockOutcome, OpenMode, RealDisk, SimDisk, Space,
};

/// Every log of every ledger, oldest entry first, as it is acknowledged now.
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

/// Fails one of the next reads on which the writer decides, counted from 1; none for 0. Says whether the one that was
/// to fail before is still to come.
pub fn fail_decision_read(store: &Store, nth: u64) -> bool {
    store.engine().fail_decision_read(nth)
}

/// Decodes any bytes as a chunk of the journal and, if its digest were right, as the entries in it: how many
/// there are. For fuzzing: no bytes may make it panic.
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
