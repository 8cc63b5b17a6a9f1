//! Lists and counts transactions, by id or by effective date.

use ledger_core::{DateField, Filter, FilterSubject, Timestamp, TransactionId};
use ledger_index::Way;

use super::page::PageBuilder;
use super::plan::Plan;
use super::session::{AsOf, Session};
use super::streams::{Span, Stream};
use super::top_k::TopK;
use super::transaction::TransactionSubject;
use super::{candidates, plan, timeline, transaction};
use crate::error::ReadError;
use crate::lookup::missing;
use crate::query::{
    AFTER_ALL, Direction, Page, TransactionKey, TransactionOrder, TransactionQuery, TransactionView,
};

/// Returns a page of transactions.
pub(crate) fn list(session: &Session, query: &TransactionQuery) -> Result<Page<TransactionView>, ReadError> {
    if query.effective_volumes {
        session.need_effective_volumes()?;
    }
    let as_of = timeline::as_of(session, query.at)?;
    let plan = plan::choose(session, &query.filter, &as_of)?;
    let (direction, beyond) = query.page.walk();
    let mut page = PageBuilder::new(&query.page, session.page_bytes);
    let mut visit = |subject: TransactionSubject<'_>| {
        if page.is_full() {
            page.has_more();
            return Ok(false);
        }
        page.push(subject.into_view(query.effective_volumes)?);
        Ok(true)
    };
    match query.order {
        TransactionOrder::Id => {
            let plan = plan::narrowed_by_dates(session, plan)?;
            let mut ids = plan.ids;
            let neighbours =
                |key: &TransactionKey| (key.id.get().checked_sub(1), key.id.get().checked_add(1));
            if narrow_beyond(&mut ids, direction, beyond, neighbours) {
                let stream = candidates::by_id(session, &plan.driver, ids, direction);
                select(session, stream, &plan, &query.filter, &as_of, &mut visit)?;
            }
        }
        TransactionOrder::Timestamp => {
            let mut span = Span { from: (plan.dates.from, 0), to: (plan.dates.to, u64::MAX) };
            if narrow_beyond(&mut span, direction, beyond, neighbours) {
                let stream = candidates::by_date(session, &plan.driver, plan.ids, span, direction)?;
                let plan = Plan { is_exact: query.filter.is_all(), ..plan };
                select(session, stream, &plan, &query.filter, &as_of, &mut visit)?;
            }
        }
        TransactionOrder::UpdatedAt | TransactionOrder::RevertedAt => {
            let field = match query.order {
                TransactionOrder::RevertedAt => DateField::RevertedAt,
                _ => DateField::UpdatedAt,
            };
            let mut top_k = TopK::new(&query.page, TransactionKey::clone);
            let stream = candidates::by_id(session, &plan.driver, plan.ids, Direction::Ascending);
            select(session, stream, &plan, &query.filter, &as_of, &mut |subject| {
                let timestamp = subject.date(field)?.unwrap_or(AFTER_ALL);
                let id = subject.id()?.ok_or_else(|| missing("the id of a transaction"))?;
                top_k.offer(TransactionKey { timestamp, id: TransactionId::new(id) });
                Ok(true)
            })?;
            for key in top_k.into_walk() {
                let row = transaction::row(session, key.id.get())?.ok_or_else(|| missing("a transaction"))?;
                if !visit(TransactionSubject::new(session, &as_of, row))? {
                    break;
                }
            }
        }
    }
    Ok(page.finish(&query.page))
}

/// Calls `visit` for each candidate that the filter selects, until it returns false.
fn select<K>(
    session: &Session,
    stream: Stream<K>,
    plan: &Plan,
    filter: &Filter,
    as_of: &AsOf,
    visit: &mut dyn FnMut(TransactionSubject<'_>) -> Result<bool, ReadError>,
) -> Result<(), ReadError> {
    for candidate in stream {
        session.meter.row()?;
        let Some(row) = candidates::row_of(session, candidate?)? else { continue };
        if !plan.ids.holds(row.transaction) || !plan.dates.holds(row.timestamp) {
            continue;
        }
        let subject = TransactionSubject::new(session, as_of, row);
        if (plan.is_exact || filter.matches(&subject)?) && !visit(subject)? {
            break;
        }
    }
    Ok(())
}

/// Counts the transactions that a filter selects.
pub(crate) fn count(session: &Session, filter: &Filter, at: Option<Timestamp>) -> Result<u64, ReadError> {
    match (filter.is_all(), at) {
        (true, None) => return Ok(session.head.counters.transactions),
        (true, Some(at)) => {
            if let Some(first) = first_without_gaps(session)? {
                return count_dated_by(session, at, first);
            }
        }
        (false, _) => {}
    }
    let as_of = timeline::as_of(session, at)?;
    let plan = plan::narrowed_by_dates(session, plan::choose(session, filter, &as_of)?)?;
    let stream = candidates::by_id(session, &plan.driver, plan.ids, Direction::Ascending);
    let mut count = 0;
    if plan.is_exact && as_of.at.is_none() {
        // Neither the filter nor a date needs a test.
        for candidate in stream {
            session.meter.row()?;
            candidate?;
            count += 1;
        }
        return Ok(count);
    }
    select(session, stream, &plan, filter, &as_of, &mut |_| {
        count += 1;
        Ok(true)
    })?;
    Ok(count)
}

/// Returns the id of the first transaction, if no id after it is missing.
fn first_without_gaps(session: &Session) -> Result<Option<u64>, ReadError> {
    let counters = &session.head.counters;
    let ledger = session.ledger();
    // An import may have begun with an id other than the ledger's own first one.
    let row = session.transactions().first_in((ledger, 0), (ledger, u64::MAX))?;
    let first = row.map_or(counters.next_transaction, |row| row.transaction);
    Ok((counters.next_transaction - first == counters.transactions).then_some(first))
}

/// Counts the transactions with an effective date of at most `at`: those recorded up to then, without the backdated
/// ones among them, and with all backdated ones that have such a date.
fn count_dated_by(session: &Session, at: Timestamp, first: u64) -> Result<u64, ReadError> {
    let next = timeline::first_transaction_after(session, at)?;
    let (mut with, mut without) = (next.saturating_sub(first), 0);
    let ledger = session.ledger();
    let (from, to) = ((ledger, i64::MIN, 0), (ledger, i64::MAX, u64::MAX));
    for row in session.effective().cursor(from, to, Way::Ascending) {
        session.meter.row()?;
        let row = row?;
        with += u64::from(row.timestamp <= at.as_micros());
        without += u64::from(row.transaction < next);
    }
    Ok(with - without)
}

/// An effective date in microseconds and a transaction id.
type DateAndId = (i64, u64);

/// Returns the keys right before and right after a transaction in the order of effective dates.
fn neighbours(key: &TransactionKey) -> (Option<DateAndId>, Option<DateAndId>) {
    let (date, id) = (key.timestamp.as_micros(), key.id.get());
    let before = match id.checked_sub(1) {
        Some(id) => Some((date, id)),
        None => date.checked_sub(1).map(|date| (date, u64::MAX)),
    };
    let after = match id.checked_add(1) {
        Some(id) => Some((date, id)),
        None => date.checked_add(1).map(|date| (date, 0)),
    };
    (before, after)
}

/// Narrows the span to the keys beyond a cursor in the direction of the walk. Returns false if no key can be there.
fn narrow_beyond<K: Ord + Copy>(
    span: &mut Span<K>,
    direction: Direction,
    beyond: Option<&TransactionKey>,
    neighbours: impl FnOnce(&TransactionKey) -> (Option<K>, Option<K>),
) -> bool {
    let Some(beyond) = beyond else { return true };
    match (direction, neighbours(beyond)) {
        (Direction::Ascending, (_, Some(after))) => span.raise_from(after),
        (Direction::Descending, (Some(before), _)) => span.lower_to(before),
        (Direction::Ascending, (_, None)) | (Direction::Descending, (None, _)) => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use ledger_core::TransactionId;

    use super::*;

    #[test]
    fn narrows_span_to_keys_beyond_the_cursor() {
        let key =
            |date, id| TransactionKey { timestamp: Timestamp::from_micros(date), id: TransactionId::new(id) };
        let narrowed = |key: TransactionKey, direction| {
            let mut span = Span { from: (i64::MIN, 0), to: (i64::MAX, u64::MAX) };
            narrow_beyond(&mut span, direction, Some(&key), neighbours).then_some((span.from, span.to))
        };
        let (first, last) = ((i64::MIN, 0), (i64::MAX, u64::MAX));
        assert_eq!(narrowed(key(i64::MAX, u64::MAX), Direction::Ascending), None);
        assert_eq!(narrowed(key(i64::MIN, 0), Direction::Descending), None);
        assert_eq!(narrowed(key(7, 0), Direction::Descending), Some((first, (6, u64::MAX))));
        assert_eq!(narrowed(key(7, u64::MAX), Direction::Ascending), Some(((8, 0), last)));
        assert_eq!(narrowed(key(7, 3), Direction::Ascending), Some(((7, 4), last)));
    }
}
