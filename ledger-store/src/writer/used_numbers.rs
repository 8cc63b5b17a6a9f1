//! Numbers that the journal has already used, known from other sources than the writer's state.
//!
//! The state comes from the index, which may be damaged. A second entry with a used number would make the journal
//! impossible to replay. So preventing such an entry must not depend on the index alone.

use std::collections::BTreeMap;

use ledger_codec::Corrupt;
use ledger_journal::entry::{AddressRef, Body, Event, LogRecord, Record, TargetRecord};

use super::ledgers::Ledgers;

/// The numbers that the journal had used before the writer started.
#[derive(Debug, Default)]
pub(crate) struct UsedNumbers {
    /// The highest number of a ledger.
    ledgers: u32,
    /// The ledgers with entries in the last chunk of the journal that the index holds.
    seen: BTreeMap<u32, LedgerNumbers>,
}

/// The highest used numbers of a ledger.
#[derive(Debug, Default)]
struct LedgerNumbers {
    log: u64,
    transaction: Option<u64>,
    account: Option<u32>,
    holding: Option<u32>,
}

impl UsedNumbers {
    /// Creates the numbers of ledgers up to this one.
    pub(crate) fn new(ledgers: u32) -> Self {
        Self { ledgers, seen: BTreeMap::new() }
    }

    /// Adds the numbers in an entry of the journal.
    pub(crate) fn note(&mut self, record: &Record<'_>) {
        let Body::Log(log) = &record.body else { return };
        self.ledgers = self.ledgers.max(log.ledger);
        let seen = self.seen.entry(log.ledger).or_default();
        seen.log = seen.log.max(log.log);
        seen.account = seen.account.max(accounts(log).max());
        if let Event::Transaction(transaction) = &log.event {
            seen.transaction = seen.transaction.max(Some(transaction.id));
            seen.holding = seen.holding.max(transaction.holdings.iter().map(|holding| holding.holding).max());
        }
    }

    /// Checks that a state knows every used number of its ledgers.
    ///
    /// # Errors
    ///
    /// [`Corrupt`] if it does not, because it was loaded from a damaged index.
    pub(crate) fn check(&self, ledgers: &Ledgers) -> Result<(), Corrupt> {
        if ledgers.len() != self.ledgers {
            return Err(Corrupt { what: "a ledger is missing" });
        }
        for (ledger, seen) in &self.seen {
            let Some(ledger) = ledgers.get(*ledger) else {
                return Err(Corrupt { what: "a ledger is missing" });
            };
            let counters = &ledger.head.counters;
            let knows = seen.log < counters.next_log
                && seen.transaction.is_none_or(|id| id < counters.next_transaction)
                && seen.account.is_none_or(|account| account < counters.accounts)
                && seen.holding.is_none_or(|holding| holding < counters.holdings);
            if !ledger.head.is_removed && !knows {
                return Err(Corrupt { what: "the counters of a ledger are behind its entries" });
            }
        }
        Ok(())
    }

    /// Marks the number of a new ledger as used.
    ///
    /// # Errors
    ///
    /// [`Corrupt`] if the journal has used it before.
    pub(super) fn take_ledger(&mut self, number: u32) -> Result<(), Corrupt> {
        if number <= self.ledgers {
            return Err(Corrupt { what: "number of a ledger that another has" });
        }
        self.ledgers = number;
        Ok(())
    }

    /// Checks that the new numbers in an entry are unused.
    ///
    /// # Errors
    ///
    /// [`Corrupt`] if the journal has used one of them before.
    #[inline]
    pub(super) fn admit(&self, log: &LogRecord<'_>) -> Result<(), Corrupt> {
        match self.seen.get(&log.ledger) {
            Some(seen) => seen.admit(log),
            None => Ok(()),
        }
    }
}

impl LedgerNumbers {
    fn admit(&self, log: &LogRecord<'_>) -> Result<(), Corrupt> {
        let is_taken = log.log <= self.log
            || new_accounts(log).any(|account| Some(account) <= self.account)
            || matches!(&log.event, Event::Transaction(transaction)
                if transaction.holdings.iter().any(|new| new.is_new && Some(new.holding) <= self.holding));
        if is_taken { Err(Corrupt { what: "number that was given before" }) } else { Ok(()) }
    }
}

/// Returns the accounts that an entry names.
fn named<'r, 'a>(log: &'r LogRecord<'a>) -> impl Iterator<Item = &'r AddressRef<'a>> {
    let (transaction, target) = match &log.event {
        Event::Transaction(transaction) => (Some(transaction), None),
        Event::SetMetadata { target: TargetRecord::Account(account), .. }
        | Event::DeleteMetadata { target: TargetRecord::Account(account), .. } => (None, Some(account)),
        Event::SetMetadata { .. } | Event::DeleteMetadata { .. } | Event::InsertedSchema { .. } => {
            (None, None)
        }
    };
    let moved = transaction.into_iter().flat_map(|transaction| {
        let holdings = transaction.holdings.iter().map(|holding| &holding.account);
        holdings.chain(transaction.account_metadata.iter().map(|(account, _)| account))
    });
    moved.chain(target)
}

fn accounts(log: &LogRecord<'_>) -> impl Iterator<Item = u32> {
    named(log).map(|account| account.account)
}

fn new_accounts(log: &LogRecord<'_>) -> impl Iterator<Item = u32> {
    named(log).filter(|account| account.new.is_some()).map(|account| account.account)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_number_is_taken_once() {
        let mut used = UsedNumbers::new(3);
        assert!(used.take_ledger(1).is_err());
        assert!(used.take_ledger(3).is_err());
        assert!(used.take_ledger(4).is_ok());
        assert!(used.take_ledger(4).is_err());
    }
}
