//! Explains how a read finds its rows: the index that leads to them, and the number of examined rows.

use super::accounts::AccountPlan;
use super::plan::Driver;
use super::session::Session;
use super::{accounts, logs, plan, timeline, transactions, volumes};
use crate::error::ReadError;
use crate::query::{
    AccountOrder, AccountQuery, BalancesQuery, Explanation, LogQuery, TransactionOrder, TransactionQuery,
    VolumesQuery,
};

/// Reads a page of transactions and explains how.
pub(crate) fn transactions(session: &Session, query: &TransactionQuery) -> Result<Explanation, ReadError> {
    let as_of = timeline::as_of(session, query.at)?;
    let plan = plan::choose(session, &query.filter, &as_of)?;
    let before = session.meter.rows();
    let returned = transactions::list(session, query)?.items.len() as u64;
    Ok(Explanation {
        index: describe(&plan.driver, query.order),
        is_exact: plan.is_exact,
        is_sorted: !matches!(query.order, TransactionOrder::UpdatedAt | TransactionOrder::RevertedAt),
        rows_planning: before,
        rows_scanned: session.meter.rows() - before,
        rows_returned: returned,
    })
}

/// Reads a page of accounts and explains how.
pub(crate) fn accounts(session: &Session, query: &AccountQuery) -> Result<Explanation, ReadError> {
    let as_of = timeline::as_of(session, query.at)?;
    let plan = accounts::plan(session, &query.filter, &as_of);
    let index = describe_accounts(&plan);
    let before = session.meter.rows();
    let returned = accounts::list(session, query)?.items.len() as u64;
    Ok(Explanation {
        index,
        is_exact: query.filter.is_all(),
        is_sorted: query.order == AccountOrder::Address,
        rows_planning: before,
        rows_scanned: session.meter.rows() - before,
        rows_returned: returned,
    })
}

/// Reads a page of volumes and explains how.
pub(crate) fn volumes(session: &Session, query: &VolumesQuery) -> Result<Explanation, ReadError> {
    let plan = accounts::plan(session, &query.filter, &timeline::as_of(session, query.to)?);
    let index = describe_accounts(&plan);
    let before = session.meter.rows();
    let returned = volumes::list(session, query)?.items.len() as u64;
    Ok(Explanation {
        index,
        is_exact: query.filter.is_all(),
        // A group is complete only after the last account was read.
        is_sorted: query.group_by == 0,
        rows_planning: before,
        rows_scanned: session.meter.rows() - before,
        rows_returned: returned,
    })
}

/// Sums balances and explains how.
pub(crate) fn balances(session: &Session, query: &BalancesQuery) -> Result<Explanation, ReadError> {
    let is_known = query.at.is_none() && query.filter.is_all();
    let index = if is_known {
        "assets: the balances of all accounts cancel".to_owned()
    } else {
        describe_accounts(&accounts::plan(session, &query.filter, &timeline::as_of(session, query.at)?))
    };
    let before = session.meter.rows();
    let returned = volumes::aggregated(session, query)?.len() as u64;
    Ok(Explanation {
        index,
        is_exact: query.filter.is_all(),
        is_sorted: is_known,
        rows_planning: before,
        rows_scanned: session.meter.rows() - before,
        rows_returned: returned,
    })
}

/// Reads a page of logs and explains how.
pub(crate) fn logs(session: &Session, query: &LogQuery) -> Result<Explanation, ReadError> {
    let span = logs::span(session, query)?;
    let index = match (span.from, span.to) {
        (0, u64::MAX) => "logs by id".to_owned(),
        _ if span.is_empty() => "none: no log can be selected".to_owned(),
        (from, u64::MAX) => format!("logs by id from {from} on"),
        (from, to) => format!("logs by id from {from} to {to}"),
    };
    let before = session.meter.rows();
    let returned = logs::list(session, query)?.items.len() as u64;
    Ok(Explanation {
        index,
        is_exact: query.filter.is_all(),
        is_sorted: true,
        rows_planning: before,
        rows_scanned: session.meter.rows() - before,
        rows_returned: returned,
    })
}

/// Names the index that a driver of transactions follows.
fn describe(driver: &Driver, order: TransactionOrder) -> String {
    match driver {
        Driver::All if order == TransactionOrder::Timestamp => "transactions by effective date".to_owned(),
        Driver::All => "transactions by id".to_owned(),
        Driver::Recorded(_) => "transactions between two ids".to_owned(),
        Driver::Ids(ids) => format!("{} transactions by id or reference", ids.len()),
        Driver::Holdings { holdings, rows, .. } => {
            format!("histories of {} holdings with {rows} rows", holdings.len())
        }
        Driver::Term(_) => "metadata".to_owned(),
        Driver::Union(drivers) => {
            let parts: Vec<String> = drivers.iter().map(|driver| describe(driver, order)).collect();
            format!("any of: {}", parts.join("; "))
        }
    }
}

/// Names the index that a plan for accounts follows.
fn describe_accounts(plan: &AccountPlan) -> String {
    if let Some(addresses) = plan.addresses() {
        return format!("{} addresses", addresses.len());
    }
    let prefix = match plan.prefix() {
        "" => String::new(),
        prefix => format!(" from {prefix} on"),
    };
    if plan.has_term() { format!("metadata, then addresses{prefix}") } else { format!("addresses{prefix}") }
}
