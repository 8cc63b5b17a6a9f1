//! Finds where a restored store may end.
//!
//! One batch of the writer may fill several chunks, and an atomic bulk is part of a batch. The writer gives all logs
//! of a batch the same date. So the end of a chunk is also the end of a batch if the logs before and after it have
//! different dates. Documents have no dates, so a chunk end next to one cannot be used.

use ledger_core::Timestamp;
use ledger_journal::entry::{Body, read_chunk};
use ledger_journal::{Chunk, Head, JournalReader, Position};

use super::copy::walk;
use super::report::RestorePoint;
use crate::cause::Cause;
use crate::error::OpenError;

/// Returns the position after the last entry that is restored.
pub(super) fn find_cut(
    journal: &dyn JournalReader,
    begin: Head,
    point: RestorePoint,
) -> Result<Position, OpenError> {
    let head = journal.head();
    let mut search = CutSearch { point, usable: Position::FIRST, last: None, is_past: false };
    // A damaged backup is refused as a whole, even if the damage is after the restore point.
    walk(journal, begin, |chunk| search.step(chunk))?;
    let is_whole = match point {
        RestorePoint::End => true,
        RestorePoint::Entries(entries) => entries >= head.next.get() - 1,
        RestorePoint::Date(_) => !search.is_past,
    };
    Ok(if is_whole { head.next } else { search.usable })
}

struct CutSearch {
    point: RestorePoint,
    /// The last known end of a batch before the point.
    usable: Position,
    /// The date of the last entry before the chunk, if that is a log.
    last: Option<Timestamp>,
    /// True if the restore point was passed.
    is_past: bool,
}

impl CutSearch {
    fn step(&mut self, chunk: &Chunk) -> Result<(), OpenError> {
        if self.is_past || self.point == RestorePoint::End {
            return Ok(());
        }
        let dates = Dates::of(chunk)?;
        if let (Some(before), Some(after)) = (self.last, dates.first)
            && before != after
        {
            self.usable = chunk.first();
        }
        self.is_past = match self.point {
            RestorePoint::End => false,
            RestorePoint::Entries(entries) => chunk.next().get() - 1 > entries,
            RestorePoint::Date(date) => dates.latest.is_some_and(|latest| latest > date),
        };
        self.last = dates.last;
        Ok(())
    }
}

/// The dates of the logs in a chunk.
#[derive(Default)]
struct Dates {
    /// The date of the first entry, if it is a log.
    first: Option<Timestamp>,
    /// The date of the last entry, if it is a log.
    last: Option<Timestamp>,
    /// The latest date of a log that was not imported. Imported logs keep the dates of another store.
    latest: Option<Timestamp>,
}

impl Dates {
    fn of(chunk: &Chunk) -> Result<Self, OpenError> {
        let mut dates = Self::default();
        let mut last = None;
        read_chunk(chunk, |record| {
            let date = match &record.body {
                Body::Log(log) => {
                    if !log.imported {
                        dates.latest = dates.latest.max(Some(log.date));
                    }
                    Some(log.date)
                }
                Body::Document(_) => None,
            };
            if record.position == chunk.first() {
                dates.first = date;
            }
            last = Some((record.position, date));
            Ok(())
        })
        .map_err(|corrupt| OpenError::Damaged(Cause::within(&format!("entry {}", chunk.first()), corrupt)))?;
        // Entries of a removed section leave gaps, whose dates are unknown.
        dates.last = last.filter(|(position, _)| position.next() == chunk.next()).and_then(|(_, date)| date);
        Ok(dates)
    }
}
