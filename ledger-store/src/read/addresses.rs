//! Walks the accounts of a ledger in address order. Merges the accounts in the index with those in the memtables.

use std::ops::Bound;

use ledger_codec::Corrupt;
use ledger_core::short_text;
use ledger_index::{PlainRange, tables};
use smol_str::SmolStr;

use super::session::Session;
use crate::error::ReadError;
use crate::projection::NewAccount;
use crate::query::Direction;

/// Returns the accounts whose addresses start with a prefix, one after the other in address order.
pub(crate) struct AddressWalk<'s> {
    direction: Direction,
    stored: Option<PlainRange<'static>>,
    next_stored: Option<(SmolStr, u32)>,
    /// For each memtable, its new accounts that the walk has not returned yet.
    new_accounts: Vec<&'s [NewAccount]>,
}

/// Returns the smallest key that is greater than every key that starts with `key`, or `None` if no key is greater.
fn end_of_prefix(key: &[u8]) -> Option<Vec<u8>> {
    let mut end = key.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return Some(end);
        }
    }
    None
}

impl<'s> AddressWalk<'s> {
    /// Starts a walk over the accounts whose addresses start with `prefix`. With `beyond`, the walk starts right after
    /// that address.
    pub(crate) fn new(
        session: &'s Session,
        prefix: &str,
        direction: Direction,
        beyond: Option<&str>,
    ) -> Result<Self, ReadError> {
        let ledger = session.ledger();
        let key_of = |text: &str| [&ledger.to_be_bytes(), text.as_bytes()].concat();
        let first = key_of(prefix);
        let end = end_of_prefix(&first);
        let beyond_key = beyond.map(key_of);
        let mut from = Bound::Included(first.as_slice());
        let mut to = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut is_empty = false;
        if let Some(key) = &beyond_key {
            match direction {
                Direction::Ascending if *key >= first => from = Bound::Excluded(key),
                Direction::Descending if end.as_ref().is_none_or(|end| key < end) => {
                    to = Bound::Excluded(key);
                }
                Direction::Ascending | Direction::Descending => {}
            }
            is_empty = match direction {
                Direction::Ascending => end.as_ref().is_some_and(|end| key >= end),
                Direction::Descending => *key <= first,
            };
        }
        if is_empty {
            return Ok(Self { direction, stored: None, next_stored: None, new_accounts: Vec::new() });
        }
        let stored = session.reader.view.index.range(tables::ADDRESSES, from, to)?;
        let order = |account: &NewAccount, bound: &[u8]| {
            account.ledger.to_be_bytes().iter().chain(account.address.as_bytes()).cmp(bound)
        };
        let mut new_accounts = Vec::new();
        for memtable in &session.reader.view.memtables {
            let all = &memtable.memtable.accounts;
            let start = match from {
                Bound::Included(bound) => all.partition_point(|account| order(account, bound).is_lt()),
                Bound::Excluded(bound) => all.partition_point(|account| order(account, bound).is_le()),
                Bound::Unbounded => 0,
            };
            let end = match to {
                Bound::Excluded(bound) => all.partition_point(|account| order(account, bound).is_lt()),
                Bound::Included(_) | Bound::Unbounded => all.len(),
            };
            if start < end {
                new_accounts.push(&all[start..end]);
            }
        }
        let mut walk = Self { direction, stored: Some(stored), next_stored: None, new_accounts };
        walk.load_stored()?;
        Ok(walk)
    }

    fn load_stored(&mut self) -> Result<(), ReadError> {
        self.next_stored = None;
        let Some(range) = &mut self.stored else { return Ok(()) };
        let entry = match self.direction {
            Direction::Ascending => range.next(),
            Direction::Descending => range.next_back(),
        };
        let Some((key, number)) = entry.transpose()? else { return Ok(()) };
        let address = key.get(4..).and_then(|text| std::str::from_utf8(text).ok());
        let address = address.map(short_text).ok_or(Corrupt { what: "address in the directory" })?;
        let number = number.try_into().map_err(|_| Corrupt { what: "number of an account" })?;
        self.next_stored = Some((address, u32::from_be_bytes(number)));
        Ok(())
    }

    /// Returns address and number of the next account.
    pub(crate) fn next_account(&mut self) -> Result<Option<(SmolStr, u32)>, ReadError> {
        let ascending = self.direction == Direction::Ascending;
        let mut best: Option<(usize, &'s NewAccount)> = None;
        for (index, rest) in self.new_accounts.iter().enumerate() {
            let rest: &'s [NewAccount] = rest;
            let Some(next) = (if ascending { rest.first() } else { rest.last() }) else { continue };
            if best.is_none_or(|(_, best)| (next.address < best.address) == ascending) {
                best = Some((index, next));
            }
        }
        if let Some((index, account)) = best
            && self.next_stored.as_ref().is_none_or(|(stored, _)| (account.address < *stored) == ascending)
        {
            let rest = self.new_accounts[index];
            self.new_accounts[index] = if ascending { &rest[1..] } else { &rest[..rest.len() - 1] };
            return Ok(Some((account.address.clone(), account.account)));
        }
        let found = self.next_stored.take();
        if found.is_some() {
            self.load_stored()?;
        }
        Ok(found)
    }
}
