//! Every kind of question, asked of a snapshot and of the model.

use std::fmt::Debug;

use ledger_core::model::{Model, ModelAccount, MoveDate, Window};
use ledger_core::{
    Asset, HashChain, LedgerName, LogEntry, LogPayload, Resource, Timestamp, TransactionId, Volumes,
};
use ledger_store::{
    Account, AccountKey, AccountOrder, AccountQuery, BalancesQuery, Clock, Direction, Expand, LedgerView,
    LogHashes, LogQuery, LogView, Page, PageRequest, ReadError, Snapshot, Start, Stats, TransactionKey,
    TransactionOrder, TransactionQuery, VolumesQuery,
};

use super::world::{ADDRESSES, ASSETS, World, address};

/// Fetches a whole list in pages, forwards to its end and backwards again; it must be `expected`.
fn walk<T: Debug + PartialEq, K: Clone + Debug>(
    what: &dyn Debug,
    (size, direction): (usize, Direction),
    key: impl Fn(&T) -> K,
    fetch: impl Fn(PageRequest<K>) -> Result<Page<T>, ReadError>,
    mut expected: Vec<T>,
) {
    if direction == Direction::Descending {
        expected.reverse();
    }
    let ask = |start: Start<K>| fetch(PageRequest { size, direction, start }).expect("an answer");
    let mut start = Start::First;
    let mut seen = 0;
    loop {
        let page = ask(start);
        let left = &expected[seen..];
        assert_eq!(page.items, left[..size.min(left.len())], "{what:?}: {direction:?} by {size} from {seen}");
        assert_eq!(page.has_previous, seen > 0, "{what:?}: {direction:?} by {size} from {seen}");
        assert_eq!(page.has_next, left.len() > size, "{what:?}: {direction:?} by {size} from {seen}");
        if !page.has_next {
            break;
        }
        seen += size;
        start = Start::After(key(page.items.last().expect("a full page")));
    }
    while seen > 0 {
        let page = ask(Start::Before(key(&expected[seen])));
        let from = seen.saturating_sub(size);
        assert_eq!(page.items, expected[from..seen], "{what:?}: {direction:?} by {size} before {seen}");
        assert!(page.has_next);
        assert_eq!(page.has_previous, from > 0, "{what:?}: {direction:?} by {size} before {seen}");
        seen = from;
    }
}

fn shown(account: ModelAccount, expand: Expand) -> Account {
    let volumes = |asked: bool, volumes: std::collections::BTreeMap<Asset, Volumes>| {
        asked.then(|| volumes.into_iter().collect())
    };
    Account {
        address: account.address,
        metadata: account.metadata,
        first_usage: account.first_usage,
        insertion_date: account.insertion_date,
        updated_at: account.updated_at,
        volumes: volumes(expand.volumes, account.volumes),
        effective_volumes: volumes(expand.effective_volumes, account.effective_volumes),
    }
}

/// What a question is asked with.
struct Round<'w> {
    world: &'w mut World,
    model: Model,
    ledger: LedgerName,
    view: LedgerView,
}

impl World {
    /// Asks a snapshot and the model of its moment every kind of question `rounds` times.
    pub(crate) fn judge_snapshot(&mut self, snapshot: &Snapshot, model: &Model, rounds: usize) {
        for ledger in self.ledgers.clone() {
            let view = snapshot.ledger(&ledger).expect("the ledger exists");
            let mut round = Round { world: self, model: model.clone(), ledger, view };
            round.points();
            for _ in 0..rounds {
                round.accounts();
                round.transactions();
                round.logs();
                round.balances();
                round.volumes();
            }
        }
    }

    /// The same of the store as it is now.
    pub(crate) fn judge(&mut self, rounds: usize) {
        let (snapshot, model) = (self.store.snapshot(), self.model.clone());
        self.judge_snapshot(&snapshot, &model, rounds);
    }
}

/// The transaction that reverts another.
fn reverting(log: &[LogEntry], id: TransactionId) -> Option<TransactionId> {
    log.iter().find_map(|entry| match &entry.payload {
        LogPayload::RevertedTransaction { reverted, transaction, .. } if *reverted == id => {
            Some(transaction.id)
        }
        _ => None,
    })
}

impl Round<'_> {
    fn at(&mut self) -> Option<Timestamp> {
        if self.world.dice.one_in(3) { None } else { Some(self.world.date(&self.ledger)) }
    }

    fn paging(&mut self) -> (usize, Direction) {
        let size = self.world.dice.pick(&[1, 3, 1000]);
        (size, self.world.dice.pick(&[Direction::Ascending, Direction::Descending]))
    }

    fn points(&mut self) {
        let (transactions, accounts) = self.model.stats(&self.ledger);
        let stats = Stats { transactions: transactions as u64, accounts: accounts as u64 };
        assert_eq!(self.view.stats(), Ok(stats));
        let expand = Expand { volumes: true, effective_volumes: true };
        for text in ADDRESSES.iter().chain(&["nobody"]) {
            let account = address(text);
            let at = self.at();
            for at in [None, at] {
                let expected =
                    self.model.account(&self.ledger, &account, at).map(|found| shown(found, expand));
                assert_eq!(self.view.account(&account, at, expand), Ok(expected), "{text} at {at:?}");
            }
            let present = self.model.account(&self.ledger, &account, None);
            for asset in ASSETS {
                let asset = Asset::parse(asset).expect("an asset");
                let held = present.as_ref().and_then(|account| account.volumes.get(&asset).cloned());
                let balance = held.unwrap_or_default().balance();
                assert_eq!(self.view.balance(&account, &asset), Ok(balance), "{text} {asset}");
            }
        }
        for id in (0..transactions as u64 + 2).map(TransactionId::new) {
            let at = self.at();
            for at in [None, at] {
                let expected = self.model.transaction(&self.ledger, id, at);
                let effective = self.model.post_commit_effective_volumes(&self.ledger, id);
                let found = self.view.transaction(id, at, true).expect("an answer");
                assert_eq!(found.is_some(), expected.is_some(), "{id:?} at {at:?}");
                if let Some(found) = found {
                    assert_eq!(Some(found.transaction), expected, "{id:?} at {at:?}");
                    assert_eq!(found.effective_volumes, effective, "{id:?}");
                }
            }
        }
    }

    fn accounts(&mut self) {
        let filter = self.world.filter(Resource::Accounts, &self.ledger);
        let at = self.at();
        let expand =
            Expand { volumes: self.world.dice.one_in(2), effective_volumes: self.world.dice.one_in(2) };
        let found = self.model.accounts(&self.ledger, &filter, at);
        let what = (&filter, at);
        assert_eq!(self.view.count_accounts(&filter, at), Ok(found.len() as u64), "{what:?}");
        let mut expected: Vec<_> = found.into_iter().map(|account| shown(account, expand)).collect();
        let order = self.world.dice.pick(&[
            AccountOrder::Address,
            AccountOrder::FirstUsage,
            AccountOrder::InsertionDate,
            AccountOrder::UpdatedAt,
        ]);
        let key = |account: &ledger_store::Account| AccountKey {
            date: order.date_of(account),
            address: account.address.clone(),
        };
        if order != AccountOrder::Address {
            expected.sort_by_key(key);
        }
        let paging = self.paging();
        let fetch = |page: PageRequest<AccountKey>| {
            self.view.accounts(&AccountQuery { filter: filter.clone(), at, expand, order, page })
        };
        walk(&(what, order), paging, key, fetch, expected);
    }

    fn transactions(&mut self) {
        let filter = self.world.filter(Resource::Transactions, &self.ledger);
        let at = self.at();
        let mut found = self.model.transactions(&self.ledger, &filter, at);
        let what = (&filter, at);
        assert_eq!(self.view.count_transactions(&filter, at), Ok(found.len() as u64), "{what:?}");
        let order = self.world.dice.pick(&[
            TransactionOrder::Id,
            TransactionOrder::Timestamp,
            TransactionOrder::UpdatedAt,
            TransactionOrder::RevertedAt,
        ]);
        match order {
            TransactionOrder::Id => found.reverse(),
            dated => found.sort_by_key(|found| (dated.date_of(found), found.id)),
        }
        let effective_volumes = self.world.dice.one_in(3);
        let expected = found
            .into_iter()
            .map(|transaction| ledger_store::TransactionView {
                effective_volumes: effective_volumes
                    .then(|| self.model.post_commit_effective_volumes(&self.ledger, transaction.id))
                    .flatten(),
                reverted_by: transaction
                    .reverted_at
                    .and_then(|_| reverting(self.model.log(&self.ledger), transaction.id)),
                transaction,
            })
            .collect();
        let paging = self.paging();
        let fetch = |page: PageRequest<TransactionKey>| {
            self.view.transactions(&TransactionQuery {
                filter: filter.clone(),
                at,
                effective_volumes,
                order,
                page,
            })
        };
        let key = |found: &ledger_store::TransactionView| TransactionKey {
            timestamp: order.date_of(&found.transaction),
            id: found.transaction.id,
        };
        walk(&(what, order), paging, key, fetch, expected);
    }

    fn logs(&mut self) {
        let filter = self.world.filter(Resource::Logs, &self.ledger);
        let mut chain = HashChain::after(None);
        let mut so_far = Model::default();
        let mut all = Vec::new();
        for entry in self.model.log(&self.ledger) {
            so_far.record(&self.ledger, entry.clone());
            let reverted = match &entry.payload {
                LogPayload::RevertedTransaction { reverted, .. } => {
                    so_far.transaction(&self.ledger, *reverted, None).map(Box::new)
                }
                _ => None,
            };
            all.push(LogView { entry: entry.clone(), hash: Some(*chain.append(entry).as_bytes()), reverted });
        }
        let selected = self.model.logs(&self.ledger, &filter);
        all.retain(|log| selected.iter().any(|entry| entry.id == log.entry.id));
        let paging = self.paging();
        let fetch =
            |page| self.view.logs(&LogQuery { filter: filter.clone(), hashes: LogHashes::Wire, page });
        walk(&filter, paging, |log: &LogView| log.entry.id, fetch, all);
    }

    fn clock(&mut self) -> (Clock, MoveDate) {
        self.world
            .dice
            .pick(&[(Clock::Effective, MoveDate::Effective), (Clock::Insertion, MoveDate::Insertion)])
    }

    fn balances(&mut self) {
        let filter = self.world.filter(Resource::AggregatedBalances, &self.ledger);
        let at = self.at();
        let (clock, by) = self.clock();
        let expected = self.model.aggregated_balances(&self.ledger, &filter, at, by).into_iter().collect();
        let query = BalancesQuery { filter, at, clock };
        assert_eq!(self.view.aggregated_balances(&query), Ok(expected), "{query:?}");
    }

    fn volumes(&mut self) {
        let filter = self.world.filter(Resource::Volumes, &self.ledger);
        let (from, to) = (self.at(), self.at());
        let (clock, by) = self.clock();
        let group_by = self.world.dice.pick(&[0, 0, 1, 2, 9]);
        let window = Window { start: from, end: to, by };
        let mut expected: Vec<_> = self
            .model
            .volumes(&self.ledger, &filter, window, Some(group_by))
            .into_iter()
            .map(|row| ledger_store::VolumesRow {
                account: row.account.as_str().to_owned(),
                asset: row.asset,
                volumes: row.volumes,
            })
            .collect();
        expected.sort_by(|a, b| (&a.account, &a.asset).cmp(&(&b.account, &b.asset)));
        let paging = self.paging();
        let fetch = |page| {
            self.view.volumes(&VolumesQuery { filter: filter.clone(), from, to, clock, group_by, page })
        };
        let what = (&filter, from, to, clock, group_by);
        walk(
            &what,
            paging,
            |row: &ledger_store::VolumesRow| (row.account.clone(), row.asset.clone()),
            fetch,
            expected,
        );
    }
}
