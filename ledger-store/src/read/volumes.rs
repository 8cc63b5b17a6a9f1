//! Reads volumes of many accounts: rows in a window of time, grouped rows, and sums per asset.

use std::borrow::Cow;
use std::collections::BTreeMap;

use ledger_core::{AccountAddress, AddressRole, Asset, Balance, DateField, Filter, FilterSubject, Timestamp};

use super::account::AccountSubject;
use super::flows::{Flows, Until, Window};
use super::page::PageBuilder;
use super::session::Session;
use super::{accounts, flows, timeline};
use crate::error::ReadError;
use crate::query::{Balances, BalancesQuery, Direction, Page, TimeAxis, VolumesQuery, VolumesRow};

/// A row of volumes with its account, as the subject of a filter.
struct RowSubject<'a> {
    account: &'a AccountSubject<'a>,
    asset: &'a Asset,
    flows: &'a Flows,
}

impl FilterSubject for RowSubject<'_> {
    type Error = ReadError;

    fn any_address(&self, role: AddressRole, test: &dyn Fn(&str) -> bool) -> Result<bool, ReadError> {
        self.account.any_address(role, test)
    }

    fn metadata(&self, key: &str) -> Result<Option<Cow<'_, str>>, ReadError> {
        self.account.metadata(key)
    }

    fn balance(&self, asset: &str) -> Result<Option<Balance>, ReadError> {
        Ok((self.asset.as_str() == asset).then(|| self.flows.balance()))
    }

    fn date(&self, field: DateField) -> Result<Option<Timestamp>, ReadError> {
        self.account.date(field)
    }
}

/// The parameters of a walk over rows of volumes.
struct RowWalk<'q> {
    filter: &'q Filter,
    window: Window,
    /// Date at which metadata counts; now if `None`.
    at: Option<Timestamp>,
    direction: Direction,
    /// The account whose rows come first; the first account if `None`.
    start: Option<&'q str>,
    /// True if rows come in order of address and asset. Otherwise the walk uses the order that is fastest to read.
    is_ordered: bool,
}

/// Number of accounts to sort by number before their holdings are read. Accounts with close numbers share pages of the
/// index.
const ACCOUNTS_PER_BLOCK: usize = 16_384;

/// Called for each selected row. Returns false to end the walk.
type VisitRow<'v> = &'v mut dyn FnMut(&AccountAddress, Asset, Flows) -> Result<bool, ReadError>;

/// Calls `visit` for every row that the filter selects, until it returns false.
fn walk_rows(session: &Session, walk: &RowWalk<'_>, visit: VisitRow<'_>) -> Result<(), ReadError> {
    let as_of = timeline::as_of(session, walk.at)?;
    let plan = accounts::plan(session, walk.filter, &as_of);
    let until = Until::Now;
    let mut rows: Vec<(Asset, Flows)> = Vec::new();
    let mut visit_account = |number: u32, address: AccountAddress| {
        rows.clear();
        for (asset, holding) in session.reader.holdings(number)? {
            session.meter.row()?;
            if let Some(flows) = flows::within(session, holding, &walk.window)? {
                rows.push((session.reader.asset(asset)?, flows));
            }
        }
        if rows.is_empty() {
            return Ok(true);
        }
        if walk.is_ordered {
            rows.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
            if walk.direction == Direction::Descending {
                rows.reverse();
            }
        }
        let account = AccountSubject::new(session, &as_of, &until, number, address);
        for (asset, flows) in rows.drain(..) {
            let selected =
                walk.filter.matches(&RowSubject { account: &account, asset: &asset, flows: &flows })?;
            if selected && !visit(&account.address, asset, flows)? {
                return Ok(false);
            }
        }
        Ok(true)
    };
    // The account of the cursor may have rows on this side of the page border.
    if let Some(start) = walk.start
        && let Ok(address) = AccountAddress::parse(start)
        && let Some(number) = session.account_number(start)?
        && !visit_account(number, address)?
    {
        return Ok(());
    }
    if walk.is_ordered {
        return accounts::walk(session, &plan, walk.direction, walk.start, &mut visit_account);
    }
    let mut block = Vec::new();
    let mut visit_block = |block: &mut Vec<(u32, AccountAddress)>| -> Result<bool, ReadError> {
        block.sort_unstable_by_key(|(number, _)| *number);
        for (number, address) in block.drain(..) {
            if !visit_account(number, address)? {
                return Ok(false);
            }
        }
        Ok(true)
    };
    let mut continues = true;
    accounts::walk(session, &plan, walk.direction, walk.start, &mut |number, address| {
        block.push((number, address));
        if block.len() == ACCOUNTS_PER_BLOCK {
            continues = visit_block(&mut block)?;
        }
        Ok(continues)
    })?;
    if continues {
        visit_block(&mut block)?;
    }
    Ok(())
}

/// Returns a page of volumes.
pub(crate) fn list(session: &Session, query: &VolumesQuery) -> Result<Page<VolumesRow>, ReadError> {
    if query.from.is_some() || query.to.is_some() {
        session.need_moves_history()?;
    }
    let (direction, beyond) = query.page.walk();
    let mut walk = RowWalk {
        filter: &query.filter,
        window: flows::window(session, query.from, query.to, query.axis)?,
        at: query.to,
        direction,
        start: None,
        is_ordered: query.group_by == 0,
    };
    let is_beyond = |account: &str, asset: &Asset| match beyond {
        None => true,
        Some((border, border_asset)) => {
            let order = (account, asset).cmp(&(border.as_str(), border_asset));
            if direction == Direction::Ascending { order.is_gt() } else { order.is_lt() }
        }
    };
    let mut page = PageBuilder::new(&query.page, session.page_bytes);
    let mut put = |account: &str, asset: Asset, flows: Flows| {
        if !is_beyond(account, &asset) {
            return true;
        }
        if page.is_full() {
            page.has_more();
            return false;
        }
        page.push(VolumesRow { account: account.to_owned(), asset, volumes: flows.volumes() });
        true
    };
    if query.group_by == 0 {
        walk.start = beyond.map(|(account, _)| account.as_str());
        walk_rows(session, &walk, &mut |address, asset, flows| Ok(put(address.as_str(), asset, flows)))?;
    } else {
        // Addresses of one group are not adjacent: `users-x` sorts between `users` and `users:1`.
        let mut groups: BTreeMap<(String, Asset), Flows> = BTreeMap::new();
        walk_rows(session, &walk, &mut |address, asset, flows| {
            let group = first_segments(address.as_str(), query.group_by).to_owned();
            let sum = groups.entry((group, asset)).or_insert(Flows::NONE);
            sum.add(&flows.input, &flows.output, flows.moves);
            session.meter.held(groups.len())?;
            Ok(true)
        })?;
        let mut put_group = |((account, asset), flows): ((String, Asset), Flows)| put(&account, asset, flows);
        let _all = match direction {
            Direction::Ascending => groups.into_iter().all(&mut put_group),
            Direction::Descending => groups.into_iter().rev().all(&mut put_group),
        };
    }
    Ok(page.finish(&query.page))
}

/// Returns the sum of balances per asset.
pub(crate) fn aggregated(session: &Session, query: &BalancesQuery) -> Result<Balances, ReadError> {
    if query.at.is_some() {
        session.need_moves_history()?;
        if query.axis == TimeAxis::Effective {
            session.need_effective_volumes()?;
        }
    } else if query.filter.is_all() {
        return balances_of_all(session);
    }
    let walk = RowWalk {
        filter: &query.filter,
        window: flows::window(session, None, query.at, query.axis)?,
        at: query.at,
        direction: Direction::Ascending,
        start: None,
        is_ordered: false,
    };
    let mut sums: BTreeMap<Asset, Balance> = BTreeMap::new();
    walk_rows(session, &walk, &mut |_, asset, flows| {
        *sums.entry(asset).or_insert(Balance::ZERO) += &flows.balance();
        Ok(true)
    })?;
    Ok(sums.into_iter().collect())
}

/// Returns the balances over all accounts. They are zero for every asset, because an entry adds to one account what
/// it takes from another.
fn balances_of_all(session: &Session) -> Result<Balances, ReadError> {
    let mut balances = Vec::new();
    for asset in 0..session.head.counters.assets {
        session.meter.row()?;
        balances.push((session.reader.asset(asset)?, Balance::ZERO));
    }
    balances.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    Ok(balances)
}

/// Returns the first segments of an address, or the whole address if it has no more.
fn first_segments(address: &str, segments: usize) -> &str {
    match address.match_indices(':').nth(segments - 1) {
        Some((end, _)) => &address[..end],
        None => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_by_the_first_segments() {
        for (segments, group) in [(1, "a"), (2, "a:b"), (3, "a:b:c"), (4, "a:b:c"), (usize::MAX, "a:b:c")] {
            assert_eq!(first_segments("a:b:c", segments), group);
        }
    }
}
