//! Flows of a holding: total input and output, up to a date on either time axis, or in a window.

use ledger_codec::Corrupt;
use ledger_core::{Balance, Timestamp, Volumes};
use ledger_index::{HistoryRow, Quantity, TransactionRow};

use super::session::Session;
use super::timeline;
use crate::error::ReadError;
use crate::lookup::missing_in;
use crate::quantity::{amount_of, quantity_of};
use crate::query::TimeAxis;

/// The total input and output of a holding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flows {
    /// The total input.
    pub(crate) input: Quantity,
    /// The total output.
    pub(crate) output: Quantity,
    /// Number of transactions that moved it.
    pub(crate) moves: u64,
}

impl Flows {
    /// No flows.
    pub(crate) const NONE: Self = Self { input: Quantity::ZERO, output: Quantity::ZERO, moves: 0 };

    fn of(row: HistoryRow) -> Self {
        Self { input: row.input, output: row.output, moves: u64::from(row.ordinal) }
    }

    /// Adds flows.
    pub(crate) fn add(&mut self, input: &Quantity, output: &Quantity, moves: u64) {
        self.input = self.input.plus(input);
        self.output = self.output.plus(output);
        self.moves += moves;
    }

    /// Subtracts flows that are part of these.
    pub(crate) fn take(&mut self, input: &Quantity, output: &Quantity, moves: u64) -> Result<(), Corrupt> {
        let shrunk = Corrupt { what: "sums of a holding that shrink" };
        self.input = self.input.minus(input).ok_or(shrunk)?;
        self.output = self.output.minus(output).ok_or(shrunk)?;
        self.moves = self.moves.checked_sub(moves).ok_or(shrunk)?;
        Ok(())
    }

    /// Returns the flows as volumes.
    pub(crate) fn volumes(&self) -> Volumes {
        Volumes { input: amount_of(&self.input), output: amount_of(&self.output) }
    }

    /// Returns input minus output.
    pub(crate) fn balance(&self) -> Balance {
        Balance::of(&amount_of(&self.input), &amount_of(&self.output))
    }
}

/// The upper limit of the moves that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// No move counts.
    Never,
    /// Every move counts.
    Now,
    /// The moves of transactions up to this id count.
    Transaction(u64),
    /// The moves of transactions up to a date count.
    Date {
        /// The latest effective date that counts, in microseconds since 1970.
        timestamp: i64,
        /// The largest id of a backdated transaction with exactly this date that counts.
        transaction: u64,
        /// The largest id of any other transaction that counts, or `None` if none of them does.
        recorded: Option<u64>,
    },
}

/// The moves that count in a window of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// The moves up to this limit do not count.
    before: Until,
    /// The moves up to this limit count.
    until: Until,
}

/// Returns the limit for moves up to a date, inclusive.
pub(crate) fn until(session: &Session, at: Option<Timestamp>, clock: TimeAxis) -> Result<Until, ReadError> {
    let Some(at) = at else { return Ok(Until::Now) };
    let recorded = timeline::transaction_at(session, at)?.map(|row| row.transaction);
    Ok(match (clock, recorded) {
        (TimeAxis::Inserted, None) => Until::Never,
        (TimeAxis::Inserted, Some(last)) => Until::Transaction(last),
        (TimeAxis::Effective, recorded) => {
            Until::Date { timestamp: at.as_micros(), transaction: u64::MAX, recorded }
        }
    })
}

/// Returns the window between two dates, both inclusive.
pub(crate) fn window(
    session: &Session,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    clock: TimeAxis,
) -> Result<Window, ReadError> {
    let before = match from.map(|from| from.as_micros().checked_sub(1)) {
        None | Some(None) => Until::Never,
        Some(Some(before)) => until(session, Some(Timestamp::from_micros(before)), clock)?,
    };
    Ok(Window { before, until: until(session, to, clock)? })
}

/// Returns the flows in a window, or `None` if nothing moved.
pub(crate) fn within(session: &Session, holding: u32, window: &Window) -> Result<Option<Flows>, ReadError> {
    let mut flows = of_holding(session, holding, &window.until)?;
    if window.before != Until::Never && flows.moves > 0 {
        let before = of_holding(session, holding, &window.before)?;
        if before.moves >= flows.moves {
            return Ok(None);
        }
        flows.take(&before.input, &before.output, before.moves)?;
    }
    Ok((flows.moves > 0).then_some(flows))
}

/// Returns the flows up to a limit.
pub(crate) fn of_holding(session: &Session, holding: u32, until: &Until) -> Result<Flows, ReadError> {
    match until {
        Until::Never => Ok(Flows::NONE),
        Until::Now => now(session, holding),
        Until::Transaction(last) => {
            let key = session.holding_key(holding);
            let row = session.history().last_in((key, 0), (key, *last))?;
            Ok(row.map_or(Flows::NONE, Flows::of))
        }
        Until::Date { timestamp, transaction, recorded } => {
            dated(session, holding, *timestamp, *transaction, *recorded)
        }
    }
}

/// Returns the moves of transactions up to `recorded` in insertion order, without the backdated ones among them,
/// plus the backdated ones up to an effective date.
fn dated(
    session: &Session,
    holding: u32,
    timestamp: i64,
    transaction: u64,
    recorded: Option<u64>,
) -> Result<Flows, ReadError> {
    let key = session.holding_key(holding);
    let row = match recorded {
        Some(last) => session.history().last_in((key, 0), (key, last))?,
        None => None,
    };
    let mut flows = Flows::NONE;
    if let Some(mut row) = row {
        let backdated = row.backdated.take();
        flows = Flows::of(row);
        if let Some(sums) = backdated {
            flows.take(&sums.input, &sums.output, u64::from(sums.count))?;
        }
    }
    for row in session.backdated().last_of_each((key, i64::MIN, 0), (key, timestamp, transaction))? {
        flows.add(&row.run_input, &row.run_output, u64::from(row.run_count));
    }
    Ok(flows)
}

/// Returns the current flows, from the newest row in memory or from the index.
pub(crate) fn now(session: &Session, holding: u32) -> Result<Flows, ReadError> {
    let key = session.holding_key(holding);
    for memtable in session.reader.view.memtables.iter().rev() {
        let rows = &memtable.memtable.history;
        let end = rows.partition_point(|row| row.holding <= key);
        if let Some(row) = end.checked_sub(1).map(|last| &rows[last]).filter(|row| row.holding == key) {
            return Ok(Flows {
                input: row.input.clone(),
                output: row.output.clone(),
                moves: u64::from(row.ordinal),
            });
        }
    }
    let stored = session.reader.stored_holding(holding)?;
    let (volumes, transaction_count) =
        stored.ok_or_else(|| missing_in(&session.reader.view.index, "a holding"))?;
    Ok(Flows {
        input: quantity_of(&volumes.input),
        output: quantity_of(&volumes.output),
        moves: u64::from(transaction_count),
    })
}

/// Returns the limit for moves up to and including a transaction in effective order. Equal dates are ordered by
/// id.
pub(crate) fn until_effective(session: &Session, row: &TransactionRow) -> Result<Until, ReadError> {
    let recorded = if row.timestamp == row.date {
        // Every transaction up to this date that is not backdated was recorded before this one.
        Some(row.transaction)
    } else {
        // A transaction with the same date that is not backdated was recorded later if this date is in the future
        // of its own recording.
        let date = if row.timestamp < row.date { Some(row.timestamp) } else { row.timestamp.checked_sub(1) };
        match date {
            Some(date) => {
                timeline::transaction_at(session, Timestamp::from_micros(date))?.map(|row| row.transaction)
            }
            None => None,
        }
    };
    Ok(Until::Date { timestamp: row.timestamp, transaction: row.transaction, recorded })
}
