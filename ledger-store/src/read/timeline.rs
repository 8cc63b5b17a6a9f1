//! Converts dates into ids: finds the last log or transaction recorded up to a date.

use std::ops::Range;

use ledger_core::{Switch, Timestamp};
use ledger_index::{IndexError, LogRow, Row, TableView, TransactionRow, Way};

use super::session::{AsOf, Session};
use super::streams::Span;
use crate::error::ReadError;

/// A row in a ledger's timeline. The date never decreases as the id grows.
pub(crate) trait Dated: Row<Key = (u32, u64)> {
    /// Returns the insertion date in microseconds since 1970.
    fn date(&self) -> i64;
}

impl Dated for LogRow {
    fn date(&self) -> i64 {
        self.date
    }
}

impl Dated for TransactionRow {
    fn date(&self) -> i64 {
        self.date
    }
}

/// Smallest possible id. An import may begin with an id below the first one that the ledger itself would assign.
const FIRST: u64 = 0;

/// Number of ids below which a search reads rows in sequence, because so few rows share a block or two.
const IDS_READ_IN_SEQUENCE: u64 = 512;

/// Returns the last row of a ledger with one of these ids and a date of at most `at`.
///
/// The number of lookups grows with the logarithm of the number of ids. It is small where dates grow evenly.
fn last_by<R: Dated>(
    table: &TableView<R>,
    ledger: u32,
    ids: Range<u64>,
    at: i64,
) -> Result<Option<R>, IndexError> {
    let first = ids.start;
    let Some(mut to) = ids.end.checked_sub(1).filter(|to| *to >= first) else { return Ok(None) };
    let Some(last) = table.last_in((ledger, first), (ledger, to))? else { return Ok(None) };
    if last.date() <= at {
        return Ok(Some(last));
    }
    let Some(mut best) = table.first_in((ledger, first), (ledger, to))?.filter(|row| row.date() <= at) else {
        return Ok(None);
    };
    // Ids up to that of `best` are early enough, and ids from `late` on are too late.
    let mut late = last;
    let mut guess = true;
    loop {
        let from = best.key().1 + 1;
        to = late.key().1 - 1;
        if from > to {
            return Ok(Some(best));
        }
        if to - from < IDS_READ_IN_SEQUENCE {
            break;
        }
        let middle = if guess { between(&best, &late, at).clamp(from, to) } else { from + (to - from) / 2 };
        guess = !guess;
        match table.last_in((ledger, from), (ledger, middle))? {
            Some(row) if row.date() <= at => best = row,
            Some(row) => late = row,
            // This id is in a gap. The next row after the gap shows on which side to continue.
            None => match table.first_in((ledger, middle), (ledger, to))? {
                Some(row) if row.date() <= at => best = row,
                Some(row) if row.key().1 < late.key().1 => late = row,
                _ => return Ok(Some(best)),
            },
        }
    }
    for row in table.cursor((ledger, best.key().1 + 1), (ledger, to), Way::Ascending) {
        let row = row?;
        if row.date() > at {
            break;
        }
        best = row;
    }
    Ok(Some(best))
}

/// Estimates the id at which the date is reached, as if dates grew evenly.
fn between<R: Dated>(early: &R, late: &R, at: i64) -> u64 {
    let dates = i128::from(late.date()) - i128::from(early.date());
    let ids = i128::from(late.key().1) - i128::from(early.key().1);
    let elapsed = i128::from(at) - i128::from(early.date());
    // `elapsed` is at most `dates`, so the result is at most `ids`. If the product exceeds 128 bits, take the middle.
    let step = ids.checked_mul(elapsed).and_then(|product| product.checked_div(dates)).unwrap_or(ids / 2);
    early.key().1.saturating_add(u64::try_from(step).unwrap_or(u64::MAX))
}

/// Resolves the date of a query.
pub(crate) fn as_of(session: &Session, at: Option<Timestamp>) -> Result<AsOf, ReadError> {
    let position = match at {
        None => u64::MAX,
        Some(at) => log_at(session, at)?.map_or(0, |log| log.position),
    };
    let features = &session.head.info.features;
    let kept = |history: Switch| if history == Switch::On { position } else { u64::MAX };
    Ok(AsOf {
        at,
        position,
        account_metadata: kept(features.account_metadata_history),
        transaction_metadata: kept(features.transaction_metadata_history),
    })
}

/// Returns the last transaction recorded up to a date.
pub(crate) fn transaction_at(session: &Session, at: Timestamp) -> Result<Option<TransactionRow>, ReadError> {
    // One question asks for the same date several times.
    let known = session.last_date.take();
    if let Some((date, row)) = &known
        && *date == at
    {
        let row = row.clone();
        session.last_date.set(known);
        return Ok(row);
    }
    let ids = FIRST..session.head.counters.next_transaction;
    let row = last_by(session.transactions(), session.ledger(), ids, at.as_micros())?;
    session.last_date.set(Some((at, row.clone())));
    Ok(row)
}

/// Returns the last log recorded up to a date.
pub(crate) fn log_at(session: &Session, at: Timestamp) -> Result<Option<LogRow>, ReadError> {
    // Most logs are transactions, so the transactions next to the date narrow the search.
    let (ledger, counters) = (session.ledger(), &session.head.counters);
    let before = transaction_at(session, at)?;
    let next = before.as_ref().map_or(FIRST, |row| row.transaction + 1);
    let after = if next < counters.next_transaction {
        session.transactions().first_in((ledger, next), (ledger, counters.next_transaction))?
    } else {
        None
    };
    let from = before.as_ref().map_or(FIRST, |row| row.log);
    let to = after.map_or(counters.next_log, |row| row.log);
    Ok(last_by(session.logs(), ledger, from..to, at.as_micros())?)
}

/// Returns the first transaction id that may have been recorded after a date.
pub(crate) fn first_transaction_after(session: &Session, at: Timestamp) -> Result<u64, ReadError> {
    Ok(transaction_at(session, at)?.map_or(FIRST, |row| row.transaction + 1))
}

/// Returns the first log id that may have been recorded after a date.
pub(crate) fn first_log_after(session: &Session, at: Timestamp) -> Result<u64, ReadError> {
    Ok(log_at(session, at)?.map_or(FIRST, |row| row.log + 1))
}

/// Returns the range of ids that includes every transaction dated in `span`, except the backdated ones.
pub(super) fn recorded_as_dated(
    session: &Session,
    mut ids: Span<u64>,
    span: Span<(i64, u64)>,
) -> Result<Span<u64>, ReadError> {
    if let Some(before) = span.from.0.checked_sub(1) {
        ids.raise_from(first_transaction_after(session, Timestamp::from_micros(before))?);
    }
    match transaction_at(session, Timestamp::from_micros(span.to.0))? {
        Some(last) => ids.lower_to(last.transaction),
        None => ids = Span { from: 1, to: 0 },
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use ledger_index::{IndexFile, IndexOptions, freeze_memtable};

    use super::*;

    #[test]
    fn finds_the_last_row_up_to_a_date() {
        let options = IndexOptions { cache_bytes: 1 << 20, filter_bytes: 1 << 20 };
        let index = IndexFile::in_memory(options).unwrap();
        // The ids have gaps, the dates have steps and plateaus, and there is another ledger on either side.
        let mut rows = Vec::new();
        for ledger in 1..=3_u32 {
            let mut date = 0_i64;
            for number in 0..5_000_u64 {
                let id = if number < 2_500 { number } else { number * 7 + 100_000 };
                date += [0, 0, 5, 1, 9_000][(number % 5) as usize] * i64::from(ledger);
                rows.push(LogRow { ledger, log: id, position: number + 1, date });
            }
        }
        let all: Vec<&LogRow> = rows.iter().filter(|row| row.ledger == 2).collect();
        let next = all.last().unwrap().log + 1;
        let memtables = rows.chunks(4_000).map(|chunk| freeze_memtable(chunk.to_vec())).collect();
        let table = TableView::new(memtables, index.snapshot().unwrap());
        let last = all.last().unwrap().date;
        let dates = (0..400).map(|step| step * last / 390 - 10);
        for at in dates.chain(all.iter().step_by(97).flat_map(|row| [row.date - 1, row.date, row.date + 1])) {
            let expected = all.iter().rev().find(|row| row.date <= at).map(|row| row.log);
            let found = last_by(&table, 2, 0..next, at).unwrap().map(|row| row.log);
            assert_eq!(found, expected, "{at}");
        }
        assert_eq!(last_by(&table, 2, 5..5, i64::MAX).unwrap(), None);
    }
}
