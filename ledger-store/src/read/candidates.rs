//! Follows the driver of a plan: the candidates for a filter, in order of id or of effective date.

use ledger_core::AddressRole;
use ledger_index::{HistoryRow, TransactionRow};

use super::plan::Driver;
use super::session::Session;
use super::streams::{Candidate, Span, Stream, sorted, union};
use super::{timeline, transaction};
use crate::error::ReadError;
use crate::fingerprint::{Subject, subject_space};
use crate::lookup::missing;
use crate::query::Direction;

/// Returns the candidates of a driver in order of id.
pub(crate) fn by_id(
    session: &Session,
    driver: &Driver,
    span: Span<u64>,
    direction: Direction,
) -> Stream<u64> {
    if span.is_empty() {
        return Box::new(std::iter::empty());
    }
    match driver {
        Driver::All => {
            let (from, to) = ((session.ledger(), span.from), (session.ledger(), span.to));
            let rows = session.transactions().cursor(from, to, direction.way());
            Box::new(rows.map(|row| {
                let row = row?;
                Ok(Candidate { key: row.transaction, id: row.transaction, row: Some(row) })
            }))
        }
        Driver::Recorded(recorded) => {
            let mut span = span;
            span.raise_from(recorded.from);
            span.lower_to(recorded.to);
            by_id(session, &Driver::All, span, direction)
        }
        Driver::Ids(ids) => {
            let candidates = ids.iter().map(|id| Candidate { key: *id, id: *id, row: None }).collect();
            sorted(candidates, span, direction)
        }
        Driver::Holdings { holdings, role, .. } => {
            let sources = holdings.iter().map(|holding| -> Stream<u64> {
                Box::new(history_of(session, *holding, *role, span, direction).map(|row| {
                    let id = row?.transaction;
                    Ok(Candidate { key: id, id, row: None })
                }))
            });
            union(sources.collect(), direction)
        }
        Driver::Term(term) => {
            let space = subject_space(session.ledger(), Subject::Transaction);
            let (from, to) = ((space, *term, span.from, 0), (space, *term, span.to, u64::MAX));
            let rows = session.terms().cursor(from, to, direction.way()).current();
            Box::new(rows.map(|row| {
                let id = row?.id;
                Ok(Candidate { key: id, id, row: None })
            }))
        }
        Driver::Union(drivers) => {
            union(drivers.iter().map(|driver| by_id(session, driver, span, direction)).collect(), direction)
        }
    }
}

/// Returns the history rows in which a holding has the given role.
fn history_of(
    session: &Session,
    holding: u32,
    role: AddressRole,
    span: Span<u64>,
    direction: Direction,
) -> impl Iterator<Item = Result<HistoryRow, ReadError>> + 'static {
    let key = session.holding_key(holding);
    let rows = session.history().cursor((key, span.from), (key, span.to), direction.way());
    let has_role = move |row: &HistoryRow| match role {
        AddressRole::Source => row.is_source,
        AddressRole::Destination => row.is_destination,
        AddressRole::Any => true,
        // Transactions have no address of their own.
        AddressRole::Own => false,
    };
    let meter = session.meter.clone();
    rows.filter_map(move |row| match row {
        Ok(row) if has_role(&row) => Some(Ok(row)),
        Ok(_) => meter.row().err().map(Err),
        Err(error) => Some(Err(error.into())),
    })
}

/// Returns the candidates of a driver by effective date and then by id. Leaves it to the filter to test on which
/// side of a transaction an account is.
///
/// Transactions that are not backdated are in this order by their ids. The backdated ones have an index in this
/// order.
pub(crate) fn by_date(
    session: &Session,
    driver: &Driver,
    ids: Span<u64>,
    span: Span<(i64, u64)>,
    direction: Direction,
) -> Result<Stream<(i64, u64)>, ReadError> {
    if span.is_empty() || ids.is_empty() {
        return Ok(Box::new(std::iter::empty()));
    }
    let sources = match driver {
        // Their number is known only after they are read.
        Driver::Ids(_) | Driver::Term(_) => return sorted_by_date(session, driver, ids, span, direction),
        Driver::Union(drivers) => {
            let sources = drivers.iter().map(|driver| by_date(session, driver, ids, span, direction));
            sources.collect::<Result<Vec<_>, _>>()?
        }
        Driver::All => all_by_date(session, ids, span, direction)?,
        Driver::Recorded(recorded) => {
            let mut ids = ids;
            ids.raise_from(recorded.from);
            ids.lower_to(recorded.to);
            all_by_date(session, ids, span, direction)?
        }
        Driver::Holdings { holdings, role, .. } => {
            let recorded = timeline::recorded_as_dated(session, ids, span)?;
            let mut sources = Vec::with_capacity(2 * holdings.len());
            for holding in holdings {
                sources.push(in_order_of(session, *holding, *role, recorded, span, direction));
                sources.push(backdated_of(session, *holding, ids, span, direction));
            }
            sources
        }
    };
    Ok(union(sources, direction))
}

fn all_by_date(
    session: &Session,
    ids: Span<u64>,
    span: Span<(i64, u64)>,
    direction: Direction,
) -> Result<Vec<Stream<(i64, u64)>>, ReadError> {
    let recorded = timeline::recorded_as_dated(session, ids, span)?;
    let meter = session.meter.clone();
    let in_order =
        by_id(session, &Driver::All, recorded, direction).filter_map(move |candidate| match candidate {
            Ok(Candidate { row: Some(row), .. }) => match in_order(row, span) {
                None => meter.row().err().map(Err),
                found => found.map(Ok),
            },
            Ok(Candidate { row: None, .. }) => None,
            Err(error) => Some(Err(error)),
        });
    let ledger = session.ledger();
    let (from, to) = ((ledger, span.from.0, span.from.1), (ledger, span.to.0, span.to.1));
    let meter = session.meter.clone();
    let backdated = session.effective().cursor(from, to, direction.way()).filter_map(move |row| match row {
        Ok(row) if ids.holds(row.transaction) => Some(Ok(dated(row.timestamp, row.transaction))),
        Ok(_) => meter.row().err().map(Err),
        Err(error) => Some(Err(error.into())),
    });
    Ok(vec![Box::new(in_order), Box::new(backdated)])
}

fn in_order_of(
    session: &Session,
    holding: u32,
    role: AddressRole,
    recorded: Span<u64>,
    span: Span<(i64, u64)>,
    direction: Direction,
) -> Stream<(i64, u64)> {
    if recorded.is_empty() {
        return Box::new(std::iter::empty());
    }
    let (table, ledger, meter) = (session.transactions().clone(), session.ledger(), session.meter.clone());
    let rows = history_of(session, holding, role, recorded, direction)
        .filter(|row| !row.as_ref().is_ok_and(|row| row.is_backdated));
    let dated =
        move |row: Result<HistoryRow, ReadError>| -> Result<Option<Candidate<(i64, u64)>>, ReadError> {
            meter.row()?;
            let row = table.get((ledger, row?.transaction))?.ok_or_else(|| missing("a transaction"))?;
            Ok(in_order(row, span))
        };
    Box::new(rows.filter_map(move |row| dated(row).transpose()))
}

fn backdated_of(
    session: &Session,
    holding: u32,
    ids: Span<u64>,
    span: Span<(i64, u64)>,
    direction: Direction,
) -> Stream<(i64, u64)> {
    let key = session.holding_key(holding);
    let (from, to) = ((key, span.from.0, span.from.1), (key, span.to.0, span.to.1));
    let meter = session.meter.clone();
    Box::new(session.backdated().cursor(from, to, direction.way()).filter_map(move |row| match row {
        Ok(row) if ids.holds(row.transaction) => Some(Ok(dated(row.timestamp, row.transaction))),
        Ok(_) => meter.row().err().map(Err),
        Err(error) => Some(Err(error.into())),
    }))
}

fn sorted_by_date(
    session: &Session,
    driver: &Driver,
    ids: Span<u64>,
    span: Span<(i64, u64)>,
    direction: Direction,
) -> Result<Stream<(i64, u64)>, ReadError> {
    let mut candidates = Vec::new();
    for candidate in by_id(session, driver, ids, direction) {
        session.meter.row()?;
        let candidate = candidate?;
        if let Some(row) = row_of(session, candidate)? {
            candidates.push(Candidate {
                key: (row.timestamp, row.transaction),
                id: row.transaction,
                row: Some(row),
            });
            session.meter.held(candidates.len())?;
        }
    }
    Ok(sorted(candidates, span, direction))
}

/// Returns the row of a candidate. Returns `None` if a fingerprint led to an id without a transaction.
pub(crate) fn row_of<K>(
    session: &Session,
    candidate: Candidate<K>,
) -> Result<Option<TransactionRow>, ReadError> {
    match candidate.row {
        Some(row) => Ok(Some(row)),
        None => transaction::row(session, candidate.id),
    }
}

/// Returns a candidate at its position in the order of effective dates.
fn dated(timestamp: i64, id: u64) -> Candidate<(i64, u64)> {
    Candidate { key: (timestamp, id), id, row: None }
}

/// Returns the candidate for a row in the order of effective dates, unless the row is backdated or outside the span.
fn in_order(row: TransactionRow, span: Span<(i64, u64)>) -> Option<Candidate<(i64, u64)>> {
    let (key, id) = ((row.timestamp, row.transaction), row.transaction);
    (row.timestamp == row.date && span.holds(key)).then_some(Candidate { key, id, row: Some(row) })
}
