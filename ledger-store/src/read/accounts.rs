//! Lists and counts accounts by address.

use ledger_codec::{Corrupt, Reader};
use ledger_core::{
    AccountAddress, AddressRole, AddressTest, Condition, Filter, FilterNode, SmolStr, TextTest, Timestamp,
};
use ledger_index::Way;

use super::account::{AccountSubject, Expansion};
use super::addresses::AddressWalk;
use super::flows::Until;
use super::page::PageBuilder;
use super::session::{AsOf, Session};
use super::top_k::TopK;
use super::{account, flows, timeline};
use crate::error::ReadError;
use crate::fingerprint::{Subject, subject_space};
use crate::lookup::missing;
use crate::query::{Account, AccountKey, AccountOrder, AccountQuery, Direction, Page, TimeAxis};

/// The accounts that a filter may select. The filter itself is tested in any case.
#[derive(Debug)]
pub(crate) struct AccountPlan {
    /// If set, only these accounts, in ascending order.
    addresses: Option<Vec<AccountAddress>>,
    /// A prefix of all addresses.
    prefix: String,
    /// An exclusive upper bound of the addresses.
    below: Option<SmolStr>,
    /// A metadata term that all of the accounts have now.
    term: Option<u64>,
}

/// Maximum number of accounts to sort by address. For more, the directory of addresses is walked in order.
const SORTED_MAX: usize = 4_096;

/// The date of a move that counts for a filter on past balances.
const FILTERED_BY: TimeAxis = TimeAxis::Effective;

/// Calls `visit` for each condition that must be true for the whole filter to be true.
pub(crate) fn conjuncts<'f>(node: &'f FilterNode, visit: &mut dyn FnMut(&'f Condition)) {
    match node {
        FilterNode::And(children) => children.iter().for_each(|child| conjuncts(child, visit)),
        FilterNode::Is(condition) => visit(condition),
        FilterNode::Or(_) | FilterNode::Not(_) => {}
    }
}

impl AccountPlan {
    /// Returns the list of addresses, if the plan has one.
    pub(crate) fn addresses(&self) -> Option<&[AccountAddress]> {
        self.addresses.as_deref()
    }

    /// Returns the prefix of the addresses.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns whether the plan uses a metadata term.
    pub(crate) fn has_term(&self) -> bool {
        self.term.is_some()
    }

    /// Narrows the plan to the addresses that can pass a test.
    fn narrow(&mut self, test: &AddressTest) {
        match test {
            AddressTest::In(all) => self.keep_addresses(all.clone()),
            AddressTest::Fits(pattern) => match pattern.exact() {
                Some(address) => self.keep_addresses(vec![address]),
                None if pattern.can_match() => self.keep_prefix(pattern.literal_prefix()),
                None => self.keep_addresses(Vec::new()),
            },
            AddressTest::Like(expression) => self.keep_prefix(expression.literal_prefix()),
            AddressTest::Below(bound) => self.below = Some(bound.clone()),
        }
    }

    fn keep_prefix(&mut self, prefix: &str) {
        if prefix.len() > self.prefix.len() {
            prefix.clone_into(&mut self.prefix);
        }
    }

    fn keep_addresses(&mut self, allowed: Vec<AccountAddress>) {
        match &mut self.addresses {
            Some(have) => have.retain(|address| allowed.contains(address)),
            None => self.addresses = Some(allowed),
        }
    }
}

/// Plans how to find the accounts that a filter selects.
pub(crate) fn plan(session: &Session, filter: &Filter, as_of: &AsOf) -> AccountPlan {
    let mut plan = AccountPlan { addresses: None, prefix: String::new(), below: None, term: None };
    let present = as_of.account_metadata == u64::MAX;
    let space = subject_space(session.ledger(), Subject::Account);
    conjuncts(filter.root(), &mut |condition| match condition {
        Condition::Address { role: AddressRole::Own, test } => plan.narrow(test),
        Condition::Metadata { key, test: TextTest::Equal(value) } if present && plan.term.is_none() => {
            plan.term = Some(session.fingerprints.term(space, key, value));
        }
        _ => {}
    });
    plan
}

/// Calls `visit` with number and address of each account of a plan, in address order, starting right after
/// `beyond`, until it returns `false`.
pub(crate) fn walk(
    session: &Session,
    plan: &AccountPlan,
    direction: Direction,
    beyond: Option<&str>,
    visit: &mut dyn FnMut(u32, AccountAddress) -> Result<bool, ReadError>,
) -> Result<(), ReadError> {
    // A descending list need not walk the addresses above the upper bound.
    let beyond = beyond.or(plan.below.as_deref().filter(|_| direction == Direction::Descending));
    let is_beyond = |address: &str| match direction {
        Direction::Ascending => beyond.is_none_or(|beyond| address > beyond),
        Direction::Descending => beyond.is_none_or(|beyond| address < beyond),
    };
    if let Some(addresses) = &plan.addresses {
        let mut known = Vec::with_capacity(addresses.len());
        for address in addresses.iter().filter(|address| is_beyond(address.as_str())) {
            session.meter.row()?;
            if let Some(number) = session.account_number(address.as_str())? {
                known.push((address.clone(), number));
            }
        }
        return visit_in_order(known, direction, visit);
    }
    let members = plan.term.map(|term| with_address(session, term)).transpose()?;
    if let Some(members) = &members
        && members.len() <= SORTED_MAX
    {
        let mut known = Vec::with_capacity(members.len());
        for number in members {
            session.meter.row()?;
            let address = session.reader.address(*number)?;
            if address.as_str().starts_with(&plan.prefix) && is_beyond(address.as_str()) {
                known.push((address, *number));
            }
        }
        return visit_in_order(known, direction, visit);
    }
    let mut walk = AddressWalk::new(session, &plan.prefix, direction, beyond)?;
    while let Some((address, number)) = walk.next_account()? {
        session.meter.row()?;
        if members.as_ref().is_some_and(|members| members.binary_search(&number).is_err()) {
            continue;
        }
        let address =
            AccountAddress::try_from(address).map_err(|_| Corrupt { what: "address in the directory" })?;
        if !visit(number, address)? {
            break;
        }
    }
    Ok(())
}

/// Returns the numbers of the accounts that have a metadata term now, in ascending order. May include accounts
/// that have another term with the same fingerprint.
fn with_address(session: &Session, term: u64) -> Result<Vec<u32>, ReadError> {
    let space = subject_space(session.ledger(), Subject::Account);
    let (from, to) = ((space, term, 0, 0), (space, term, u64::MAX, u64::MAX));
    let mut members = Vec::new();
    for row in session.terms().cursor(from, to, Way::Ascending).current() {
        session.meter.row()?;
        members.push(u32::try_from(row?.id).map_err(|_| Corrupt { what: "number of an account" })?);
        session.meter.held(members.len())?;
    }
    Ok(members)
}

/// Returns a page of accounts.
pub(crate) fn list(session: &Session, query: &AccountQuery) -> Result<Page<Account>, ReadError> {
    let as_of = timeline::as_of(session, query.at)?;
    let expansion = account::expansion(session, query.expand, &as_of)?;
    account::need_history_for(session, &query.filter, query.at)?;
    let until = flows::until(session, query.at, FILTERED_BY)?;
    let plan = plan(session, &query.filter, &as_of);
    if query.order != AccountOrder::Address {
        return dated(session, query, &as_of, &until, &expansion, &plan);
    }
    let (direction, beyond) = query.page.walk();
    let beyond = beyond.map(|key| key.address.as_str());
    let mut page = PageBuilder::new(&query.page, session.page_bytes);
    walk(session, &plan, direction, beyond, &mut |number, address| {
        let subject = AccountSubject::new(session, &as_of, &until, number, address);
        if !subject.is_visible()? || !query.filter.matches(&subject)? {
            return Ok(true);
        }
        if page.is_full() {
            page.has_more();
            return Ok(false);
        }
        page.push(subject.into_account(&expansion)?);
        Ok(true)
    })?;
    Ok(page.finish(&query.page))
}

/// Returns a page of accounts in an order by date. Examines every account and keeps those of the page.
fn dated(
    session: &Session,
    query: &AccountQuery,
    as_of: &AsOf,
    until: &Until,
    expansion: &Expansion,
    plan: &AccountPlan,
) -> Result<Page<Account>, ReadError> {
    let mut top_k = TopK::new(&query.page, AccountKey::clone);
    walk(session, plan, Direction::Ascending, None, &mut |number, address| {
        let subject = AccountSubject::new(session, as_of, until, number, address);
        if subject.is_visible()? && query.filter.matches(&subject)? {
            top_k.offer(subject.key_by(query.order)?);
        }
        Ok(true)
    })?;
    let mut page = PageBuilder::new(&query.page, session.page_bytes);
    for AccountKey { address, .. } in top_k.into_walk() {
        if page.is_full() {
            page.has_more();
            break;
        }
        let number = session.account_number(address.as_str())?.ok_or_else(|| missing("an account"))?;
        let subject = AccountSubject::new(session, as_of, until, number, address);
        page.push(subject.into_account(expansion)?);
    }
    Ok(page.finish(&query.page))
}

/// Counts the accounts that a filter selects.
pub(crate) fn count(session: &Session, filter: &Filter, at: Option<Timestamp>) -> Result<u64, ReadError> {
    match (filter.is_all(), at) {
        (true, None) => return Ok(u64::from(session.head.counters.accounts)),
        (true, Some(at)) => return count_used_by(session, at),
        (false, _) => account::need_history_for(session, filter, at)?,
    }
    let as_of = timeline::as_of(session, at)?;
    let until = flows::until(session, at, FILTERED_BY)?;
    let plan = plan(session, filter, &as_of);
    let mut count = 0;
    walk(session, &plan, Direction::Ascending, None, &mut |number, address| {
        let subject = AccountSubject::new(session, &as_of, &until, number, address);
        if subject.is_visible()? && filter.matches(&subject)? {
            count += 1;
        }
        Ok(true)
    })?;
    Ok(count)
}

/// Counts the accounts that were used by a date, in one pass over the versions of their documents.
fn count_used_by(session: &Session, at: Timestamp) -> Result<u64, ReadError> {
    let space = subject_space(session.ledger(), Subject::Account);
    let (from, to) = ((space, 0, 0), (space, u64::MAX, u64::MAX));
    let mut last: Option<(u64, Timestamp)> = None;
    let mut count = 0;
    for row in session.versions().cursor(from, to, Way::Ascending) {
        session.meter.row()?;
        let row = row?;
        // The first usage is the first member of a document.
        let first_usage = Reader::new(&row.bytes).array().map(i64::from_be_bytes)?;
        if let Some((id, used)) = last
            && id != row.id
        {
            count += u64::from(used <= at);
        }
        last = Some((row.id, Timestamp::from_micros(first_usage)));
    }
    Ok(count + last.map_or(0, |(_, used)| u64::from(used <= at)))
}

fn visit_in_order(
    mut accounts: Vec<(AccountAddress, u32)>,
    direction: Direction,
    visit: &mut dyn FnMut(u32, AccountAddress) -> Result<bool, ReadError>,
) -> Result<(), ReadError> {
    accounts.sort_unstable();
    accounts.dedup();
    if direction == Direction::Descending {
        accounts.reverse();
    }
    for (address, number) in accounts {
        if !visit(number, address)? {
            break;
        }
    }
    Ok(())
}
