//! Questions about single accounts and transactions.

use ledger_core::{Asset, TransactionId};
use ledger_store::{Expand, Stats, TransactionView};

use super::round::{Round, reverting, shown};
use crate::failure::Failure;
use crate::fixtures::{self, ASSETS};

/// Maximum number of accounts and transactions to ask about in a round. The model walks the whole log for each of them.
const POINTS: usize = 16;
impl Round<'_, '_> {
    /// Compares single accounts and transactions.
    pub(super) fn points(&mut self) -> Result<(), Failure> {
        let (transactions, accounts) = self.model.stats(self.ledger);
        let stats = Stats { transactions: transactions as u64, accounts: accounts as u64 };
        same!(self.view.stats(), Ok(stats), "stats");
        for _ in 0..POINTS {
            let expand = Expand { volumes: self.rng.one_in(2), effective_volumes: self.rng.one_in(2) };
            let lacks = self.lacks_of(expand);
            let account = if self.addresses.is_empty() || self.rng.one_in(3) {
                fixtures::any_address(self.rng, 4)
            } else {
                fixtures::address(&self.rng.pick(self.addresses))
            };
            for at in [None, self.at()] {
                let found = self.model.account(self.ledger, &account, at);
                let expected = match &lacks {
                    Some(lacks) => Err(lacks.clone()),
                    None => Ok(found.map(|found| shown(found, expand))),
                };
                same!(self.view.account(&account, at, expand), expected, "{account} at {at:?}");
            }
            let present = self.model.account(self.ledger, &account, None);
            let asset = Asset::parse(self.rng.pick(&ASSETS)).expect("every asset of the list parses");
            let held = present.as_ref().and_then(|account| account.volumes.get(&asset).cloned());
            let balance = held.unwrap_or_default().balance();
            same!(self.view.balance(&account, &asset), Ok(balance), "{account} {asset}");
        }
        for _ in 0..POINTS {
            let id = TransactionId::new(self.rng.below(transactions as u64 + 2));
            let at = self.at();
            let effective = self.rng.one_in(2);
            let found = self.view.transaction(id, at, effective);
            let expected = self.model.transaction(self.ledger, id, at).map(|transaction| TransactionView {
                effective_volumes: effective
                    .then(|| self.model.post_commit_effective_volumes(self.ledger, id))
                    .flatten(),
                reverted_by: transaction.reverted_at.and_then(|_| reverting(self.model.log(self.ledger), id)),
                transaction,
            });
            let expected = self.lacks_effective_volumes(effective).map_or(Ok(expected), Err);
            same!(found, expected, "{id:?} at {at:?}");
        }
        self.asked += 4 * POINTS as u64 + 1;
        Ok(())
    }
}
