//! Plans how to find the transactions that a filter selects: which index to follow, and between which keys.

use ledger_codec::Corrupt;
use ledger_core::{
    AccountAddress, AddressRole, AddressTest, Balance, Comparison, Condition, DateField, Filter, FilterNode,
    TextField, TextTest, Timestamp,
};
use ledger_index::Way;

use super::accounts::conjuncts;
use super::addresses::AddressWalk;
use super::session::{AsOf, Session};
use super::streams::Span;
use super::{flows, timeline};
use crate::error::ReadError;
use crate::fingerprint::{KeyKind, Subject, key_space, subject_space};
use crate::query::Direction;

/// Leads to the candidates for a part of a filter: all transactions that satisfy it, and perhaps others.
#[derive(Debug)]
pub(crate) enum Driver {
    /// All transactions of the ledger.
    All,
    /// All transactions in a range of ids.
    Recorded(Span<u64>),
    /// The transactions with these ids.
    Ids(Vec<u64>),
    /// The histories of holdings, and the side of a transaction on which they must be.
    Holdings {
        /// Numbers of the holdings.
        holdings: Vec<u32>,
        /// Source, destination or either.
        role: AddressRole,
        /// Total number of rows in the histories.
        rows: u64,
    },
    /// Transactions that now have a metadata pair. Contains the fingerprint of the pair.
    Term(u64),
    /// The candidates of any of these drivers.
    Union(Vec<Driver>),
}

/// Maximum number of holdings whose histories a read merges. Bounds the number of open cursors.
const HOLDINGS_MAX: usize = 1_024;
/// Number of addresses to test against a pattern in any ledger, however few transactions it has.
const ADDRESSES_MIN: u64 = 4_096;
/// Maximum number of addresses to test against a pattern. Bounds the work before the first transaction is read.
const ADDRESSES_MAX: u64 = 262_144;
/// Number of transactions in the ledger per address to test, between these limits. Testing an address costs a small
/// part of reading a transaction.
const TRANSACTIONS_PER_ADDRESS: u64 = 4;
/// Maximum number of backdated transactions to collect and sort by id. With more, the plan reads all transactions.
const BACKDATED_MAX: usize = 4_096;
/// Assumed number of transactions with a metadata pair. The real number is unknown before they are read.
const TERM_ROWS: u64 = 20_000;

impl Driver {
    /// Estimates the number of candidates.
    fn cost(&self) -> u64 {
        match self {
            Self::All => u64::MAX,
            Self::Recorded(span) => span.to.saturating_sub(span.from),
            Self::Ids(ids) => ids.len() as u64,
            Self::Holdings { rows, .. } => *rows,
            Self::Term(_) => TERM_ROWS,
            Self::Union(drivers) => drivers.iter().map(Self::cost).fold(0, u64::saturating_add),
        }
    }
}

/// A driver, and the range of keys in which to follow it.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Leads to the candidates.
    pub(crate) driver: Driver,
    /// True if the filter selects every candidate, so that none needs a test.
    pub(crate) is_exact: bool,
    /// Ids that the filter can select.
    pub(crate) ids: Span<u64>,
    /// Effective dates that the filter can select, in microseconds since 1970.
    pub(crate) dates: Span<i64>,
}

/// Narrows a range of ids by a comparison with a number of any size.
pub(crate) fn narrow_ids(span: &mut Span<u64>, comparison: Comparison, value: &Balance) {
    let number = value.to_u64();
    let (from, to) = match (comparison, number) {
        (Comparison::Equal, Some(number)) => (number, number),
        (Comparison::Less, Some(number)) if number > 0 => (0, number - 1),
        (Comparison::LessOrEqual, Some(number)) => (0, number),
        (Comparison::Greater, Some(number)) if number < u64::MAX => (number + 1, u64::MAX),
        (Comparison::GreaterOrEqual, Some(number)) => (number, u64::MAX),
        // A number that is not an id is below all ids or above all of them.
        (Comparison::Less | Comparison::LessOrEqual, None) if !value.is_negative() => (0, u64::MAX),
        (Comparison::Greater | Comparison::GreaterOrEqual, None) if value.is_negative() => (0, u64::MAX),
        _ => (1, 0),
    };
    span.raise_from(from);
    span.lower_to(to);
}

/// Returns the range of dates for which the comparison with `value` is true.
pub(crate) fn dates_where(comparison: Comparison, value: Timestamp) -> Span<i64> {
    let value = value.as_micros();
    match comparison {
        Comparison::Equal => Span { from: value, to: value },
        Comparison::Less => match value.checked_sub(1) {
            Some(to) => Span { from: i64::MIN, to },
            None => Span { from: 1, to: 0 },
        },
        Comparison::LessOrEqual => Span { from: i64::MIN, to: value },
        Comparison::Greater => match value.checked_add(1) {
            Some(from) => Span { from, to: i64::MAX },
            None => Span { from: 1, to: 0 },
        },
        Comparison::GreaterOrEqual => Span { from: value, to: i64::MAX },
    }
}

/// Plans how to find the transactions that a filter selects at a moment.
pub(crate) fn choose(session: &Session, filter: &Filter, as_of: &AsOf) -> Result<Plan, ReadError> {
    let mut ids = Span { from: 0, to: u64::MAX };
    let mut dates = Span { from: i64::MIN, to: as_of.at.map_or(i64::MAX, Timestamp::as_micros) };
    let mut recorded = Span { from: i64::MIN, to: i64::MAX };
    conjuncts(filter.root(), &mut |condition| match condition {
        Condition::Id { comparison, value } => narrow_ids(&mut ids, *comparison, value),
        Condition::Date { field: DateField::Timestamp, comparison, value } => {
            let allowed = dates_where(*comparison, *value);
            dates.raise_from(allowed.from);
            dates.lower_to(allowed.to);
        }
        Condition::Date { field: DateField::InsertedAt, comparison, value } => {
            let allowed = dates_where(*comparison, *value);
            recorded.raise_from(allowed.from);
            recorded.lower_to(allowed.to);
        }
        _ => {}
    });
    if recorded.is_empty() {
        ids = Span { from: 1, to: 0 };
    } else {
        if let Some(before) = recorded.from.checked_sub(1) {
            ids.raise_from(timeline::first_transaction_after(session, Timestamp::from_micros(before))?);
        }
        if recorded.to < i64::MAX {
            let last = timeline::transaction_at(session, Timestamp::from_micros(recorded.to))?
                .map(|row| row.transaction);
            match last {
                Some(last) => ids.lower_to(last),
                None => ids = Span { from: 1, to: 0 },
            }
        }
    }
    let (driver, is_exact) = driver(session, filter.root(), as_of)?;
    Ok(Plan { driver, is_exact, ids, dates })
}

/// Returns the driver for a node of the filter, and whether the node selects all candidates of the driver.
fn driver(session: &Session, node: &FilterNode, as_of: &AsOf) -> Result<(Driver, bool), ReadError> {
    match node {
        FilterNode::And(children) => {
            let mut best = (Driver::All, children.is_empty());
            for child in children {
                let (driver, is_exact) = driver(session, child, as_of)?;
                if driver.cost() < best.0.cost() {
                    best = (driver, is_exact && children.len() == 1);
                }
            }
            Ok(best)
        }
        FilterNode::Or(children) if children.is_empty() => Ok((Driver::All, true)),
        FilterNode::Or(children) => {
            let mut drivers = Vec::with_capacity(children.len());
            let mut all_exact = true;
            for child in children {
                let (driver, is_exact) = driver(session, child, as_of)?;
                if matches!(driver, Driver::All) {
                    return Ok((Driver::All, false));
                }
                all_exact &= is_exact;
                drivers.push(driver);
            }
            Ok((Driver::Union(drivers), all_exact))
        }
        FilterNode::Not(_) => Ok((Driver::All, false)),
        FilterNode::Is(condition) => condition_driver(session, condition, as_of),
    }
}

fn condition_driver(
    session: &Session,
    condition: &Condition,
    as_of: &AsOf,
) -> Result<(Driver, bool), ReadError> {
    let driver = match condition {
        Condition::Id { comparison: Comparison::Equal, value } => {
            Driver::Ids(value.to_u64().into_iter().collect())
        }
        Condition::Text { field: TextField::Reference, test } => match test {
            TextTest::Equal(reference) => Driver::Ids(transactions_of(session, reference)?),
            TextTest::In(references) => {
                let mut ids = Vec::new();
                for reference in references {
                    session.meter.row()?;
                    ids.extend(transactions_of(session, reference)?);
                }
                Driver::Ids(ids)
            }
            TextTest::Like(_) | TextTest::Compares(..) => Driver::All,
        },
        Condition::Metadata { key, test } if as_of.transaction_metadata == u64::MAX => {
            let space = subject_space(session.ledger(), Subject::Transaction);
            let term = |value: &str| Driver::Term(session.fingerprints.term(space, key, value));
            match test {
                TextTest::Equal(value) => term(value),
                TextTest::In(values) => Driver::Union(values.iter().map(|value| term(value)).collect()),
                TextTest::Like(_) | TextTest::Compares(..) => Driver::All,
            }
        }
        Condition::Address { role, test } => {
            let addresses = match test {
                AddressTest::In(all) => all.clone(),
                AddressTest::Fits(pattern) => match pattern.exact() {
                    Some(address) => vec![address],
                    None if pattern.can_match() => {
                        return prefix_driver(session, pattern.literal_prefix(), test, *role);
                    }
                    None => Vec::new(),
                },
                AddressTest::Like(expression) => {
                    return prefix_driver(session, expression.literal_prefix(), test, *role);
                }
                AddressTest::Below(_) => return Ok((Driver::All, false)),
            };
            return holdings_driver(session, &addresses, *role);
        }
        _ => Driver::All,
    };
    Ok((driver, false))
}

/// Returns a driver over the accounts that start with a prefix and pass a test. Returns [`Driver::All`] if they are
/// too many or take too long to find.
fn prefix_driver(
    session: &Session,
    prefix: &str,
    test: &AddressTest,
    role: AddressRole,
) -> Result<(Driver, bool), ReadError> {
    let transactions = session.head.counters.transactions;
    let seen_max = (transactions / TRANSACTIONS_PER_ADDRESS).clamp(ADDRESSES_MIN, ADDRESSES_MAX);
    let mut addresses = Vec::new();
    let mut walk = AddressWalk::new(session, prefix, Direction::Ascending, None)?;
    let mut seen = 0;
    while let Some((address, _)) = walk.next_account()? {
        session.meter.row()?;
        seen += 1;
        if seen > seen_max || addresses.len() > HOLDINGS_MAX {
            return Ok((Driver::All, false));
        }
        if test.passes(&address) {
            let address = AccountAddress::try_from(address);
            addresses.push(address.map_err(|_| Corrupt { what: "address in the directory" })?);
        }
    }
    holdings_driver(session, &addresses, role)
}

fn holdings_driver(
    session: &Session,
    addresses: &[AccountAddress],
    role: AddressRole,
) -> Result<(Driver, bool), ReadError> {
    let mut all = Vec::new();
    let mut rows: u64 = 0;
    for address in addresses {
        session.meter.row()?;
        let Some(number) = session.account_number(address.as_str())? else { continue };
        for (_, holding) in session.reader.holdings(number)? {
            if all.len() == HOLDINGS_MAX {
                return Ok((Driver::All, false));
            }
            rows += flows::now(session, holding)?.moves;
            all.push(holding);
        }
    }
    Ok((Driver::Holdings { holdings: all, role, rows }, true))
}

/// Returns the plan for reading in order of id. If only dates narrow the plan, its new driver covers the range of
/// ids that were recorded on these dates, and the ids of backdated transactions if they are few.
pub(crate) fn narrowed_by_dates(session: &Session, mut plan: Plan) -> Result<Plan, ReadError> {
    let is_bounded = plan.dates.from > i64::MIN || plan.dates.to < i64::MAX;
    if !matches!(plan.driver, Driver::All) || !is_bounded || plan.dates.is_empty() {
        return Ok(plan);
    }
    let dates = Span { from: (plan.dates.from, 0), to: (plan.dates.to, u64::MAX) };
    let recorded = timeline::recorded_as_dated(session, plan.ids, dates)?;
    let counters = &session.head.counters;
    if !recorded.is_empty() && recorded.to - recorded.from > counters.transactions / 2 {
        // The range covers most of the ledger. Testing every row costs less than finding the backdated ones.
        return Ok(plan);
    }
    let ledger = session.ledger();
    let (from, to) = ((ledger, plan.dates.from, 0), (ledger, plan.dates.to, u64::MAX));
    let mut backdated = Vec::new();
    for row in session.effective().cursor(from, to, Way::Ascending) {
        session.meter.row()?;
        if backdated.len() == BACKDATED_MAX {
            return Ok(plan);
        }
        backdated.push(row?.transaction);
    }
    plan.driver = Driver::Union(vec![Driver::Recorded(recorded), Driver::Ids(backdated)]);
    Ok(plan)
}

/// Returns the ids of transactions that may have a reference. A fingerprint can lead to other transactions too.
fn transactions_of(session: &Session, reference: &str) -> Result<Vec<u64>, ReadError> {
    let space = key_space(session.ledger(), KeyKind::Reference);
    Ok(session.keys().probe(space, session.fingerprints.of(space, reference))?)
}
