//! Questions about lists and sums.

use ledger_core::model::{Model, MoveDate, Window};
use ledger_core::schema::{created_at_of, version_of};
use ledger_core::{
    Accounts, AggregatedBalances, FilterOf, HashChain, HashLogs, LegacyHashChain, LogPayload, Logs, Switch,
    Transactions, VolumeRows,
};
use ledger_store::{
    Account, AccountKey, AccountOrder, AccountQuery, BalancesQuery, Direction, Expand, LogHashes, LogQuery,
    LogView, PageRequest, SchemaKey, SchemaOrder, SchemaQuery, SchemaView, Start, TimeAxis, TransactionKey,
    TransactionOrder, TransactionQuery, TransactionView, VolumesQuery, VolumesRow,
};

use super::round::{Round, reverting, shown};
use crate::failure::Failure;
use crate::fixtures;

impl Round<'_, '_> {
    pub(super) fn accounts(&mut self) -> Result<(), Failure> {
        let filter = self.filter::<Accounts>();
        let at = self.at();
        let expand = Expand { volumes: self.rng.one_in(2), effective_volumes: self.rng.one_in(2) };
        let found = self.model.accounts(self.ledger, &filter, at);
        // A balance at a date is the sum of the moves up to this date.
        let lacks = self.lacks_moves(at.is_some() && filter.asks_for_balances());
        let count = lacks.clone().map_or(Ok(found.len() as u64), Err);
        same!(self.view.count_accounts(&filter, at), count, "count {filter:?} at {at:?}");
        let mut expected: Vec<_> = found.into_iter().map(|account| shown(account, expand)).collect();
        let order = self.rng.pick(&[
            AccountOrder::Address,
            AccountOrder::FirstUsage,
            AccountOrder::InsertionDate,
            AccountOrder::UpdatedAt,
        ]);
        let key =
            |account: &Account| AccountKey { date: order.date_of(account), address: account.address.clone() };
        if order != AccountOrder::Address {
            expected.sort_by_key(key);
        }
        let view = self.view;
        let fetch = |page| view.accounts(&AccountQuery { filter: filter.clone(), at, expand, order, page });
        let expected = self.lacks_of(expand).or(lacks).map_or(Ok(expected), Err);
        self.walk(&("accounts", &filter, at, order, expand), key, fetch, expected)
    }

    pub(super) fn transactions(&mut self) -> Result<(), Failure> {
        let filter = self.filter::<Transactions>();
        let at = self.at();
        let mut found = self.model.transactions(self.ledger, &filter, at);
        let count = self.view.count_transactions(&filter, at);
        same!(count, Ok(found.len() as u64), "count {filter:?} at {at:?}");
        let order = self.rng.pick(&[
            TransactionOrder::Id,
            TransactionOrder::Timestamp,
            TransactionOrder::UpdatedAt,
            TransactionOrder::RevertedAt,
        ]);
        match order {
            TransactionOrder::Id => found.reverse(),
            dated => found.sort_by_key(|found| (dated.date_of(found), found.id)),
        }
        let effective_volumes = self.rng.one_in(3);
        let (model, ledger, view) = (self.model, self.ledger, self.view);
        let expected: Vec<_> = found
            .into_iter()
            .map(|transaction| TransactionView {
                effective_volumes: effective_volumes
                    .then(|| model.post_commit_effective_volumes(ledger, transaction.id))
                    .flatten(),
                reverted_by: transaction
                    .reverted_at
                    .and_then(|_| reverting(model.log(ledger), transaction.id)),
                transaction,
            })
            .collect();
        let fetch = |page| {
            view.transactions(&TransactionQuery {
                filter: filter.clone(),
                at,
                effective_volumes,
                order,
                page,
            })
        };
        let key = |found: &TransactionView| TransactionKey {
            timestamp: order.date_of(&found.transaction),
            id: found.transaction.id,
        };
        let expected = self.lacks_effective_volumes(effective_volumes).map_or(Ok(expected), Err);
        self.walk(&("transactions", &filter, at, order), key, fetch, expected)
    }

    pub(super) fn logs(&mut self) -> Result<(), Failure> {
        let filter = self.filter::<Logs>();
        let (model, ledger, view) = (self.model, self.ledger, self.view);
        let selected = model.logs(ledger, &filter);
        let mut selected = selected.iter().rev().map(|entry| entry.id).peekable();
        let hashes = self.rng.pick(&[LogHashes::Wire, LogHashes::Legacy]);
        let shows_legacy = hashes == LogHashes::Legacy && self.features.legacy_hashes == Switch::On;
        let shows = self.features.hash_logs == HashLogs::Sync;
        let (mut chain, mut legacy) = (HashChain::after(None), LegacyHashChain::default());
        let mut so_far = Model::default();
        let mut all = Vec::new();
        for entry in model.log(ledger) {
            so_far.record(ledger, entry.clone());
            let (wire, legacy) = (chain.append(entry), legacy.append(entry));
            let hash = shows.then(|| if shows_legacy { *legacy.as_bytes() } else { *wire.as_bytes() });
            if selected.next_if_eq(&entry.id).is_none() {
                continue;
            }
            let reverted = match &entry.payload {
                LogPayload::RevertedTransaction { reverted, .. } => {
                    so_far.transaction(ledger, *reverted, None).map(Box::new)
                }
                _ => None,
            };
            all.push(LogView { entry: entry.clone(), hash, reverted });
        }
        let fetch = |page| view.logs(&LogQuery { filter: filter.clone(), hashes, page });
        self.walk(&("logs", &filter, hashes), |log: &LogView| log.entry.id, fetch, Ok(all))
    }

    fn clock(&mut self) -> (TimeAxis, MoveDate) {
        self.rng
            .pick(&[(TimeAxis::Effective, MoveDate::Effective), (TimeAxis::Inserted, MoveDate::Insertion)])
    }

    pub(super) fn balances(&mut self) -> Result<(), Failure> {
        let filter = self.filter::<AggregatedBalances>();
        let at = self.at();
        let (clock, by) = self.clock();
        let expected = self.model.aggregated_balances(self.ledger, &filter, at, by).into_iter().collect();
        let by_effective_date = at.is_some() && clock == TimeAxis::Effective;
        let lacks =
            self.lacks_moves(at.is_some()).or_else(|| self.lacks_effective_volumes(by_effective_date));
        let query = BalancesQuery { filter, at, axis: clock };
        same!(self.view.aggregated_balances(&query), lacks.map_or(Ok(expected), Err), "{query:?}");
        self.asked += 1;
        Ok(())
    }

    pub(super) fn volumes(&mut self) -> Result<(), Failure> {
        let filter = self.filter::<VolumeRows>();
        let (from, to) = (self.at(), self.at());
        let (clock, by) = self.clock();
        let group_by = self.rng.pick(&[0, 0, 1, 2, 9]);
        let window = Window { start: from, end: to, by };
        let mut expected: Vec<_> = self
            .model
            .volumes(self.ledger, &filter, window, Some(group_by))
            .into_iter()
            .map(|row| VolumesRow {
                account: row.account.as_str().to_owned(),
                asset: row.asset,
                volumes: row.volumes,
            })
            .collect();
        expected.sort_by(|a, b| (&a.account, &a.asset).cmp(&(&b.account, &b.asset)));
        let view = self.view;
        let fetch = |page| {
            view.volumes(&VolumesQuery { filter: filter.clone(), from, to, axis: clock, group_by, page })
        };
        let key = |row: &VolumesRow| (row.account.clone(), row.asset.clone());
        let expected = self.lacks_moves(from.is_some() || to.is_some()).map_or(Ok(expected), Err);
        self.walk(&("volumes", &filter, from, to, clock, group_by), key, fetch, expected)
    }

    pub(super) fn schemas(&mut self) -> Result<(), Failure> {
        let (model, ledger, view) = (self.model, self.ledger, self.view);
        let texts = model.log(ledger).iter().filter_map(|entry| match &entry.payload {
            LogPayload::InsertedSchema { schema } => Some(schema.to_string()),
            _ => None,
        });
        let mut expected: Vec<_> = texts
            .map(|text| {
                (
                    version_of(&text).expect("the text of a stored schema states its version"),
                    created_at_of(&text),
                    text,
                )
            })
            .collect();
        let order = self.rng.pick(&[SchemaOrder::Created, SchemaOrder::Version]);
        if order == SchemaOrder::Version {
            expected.sort_by(|one, other| one.0.as_str().cmp(other.0.as_str()));
        }
        let version = fixtures::version(self.rng);
        let one = view.schema(&version).map(|found| found.map(|schema| schema.text));
        let named = expected.iter().find(|(have, ..)| *have == version).map(|(_, _, text)| text.clone());
        same!(one, Ok(named), "schema {}", version.as_str());
        // Only the store knows the positions in the list. Compare its whole list with the model first, then its pages
        // with that list.
        let fetch = |page: PageRequest<SchemaKey>| {
            let query = SchemaQuery { filter: FilterOf::all(), order, page };
            view.schemas(&query)
        };
        let all = fetch(PageRequest { size: 100, direction: Direction::Ascending, start: Start::First });
        let all = all?.items;
        let found: Vec<_> = all
            .iter()
            .map(|schema| (schema.version.clone(), Some(schema.created_at), schema.text.clone()))
            .collect();
        same!(found, expected, "schemas by {order:?}");
        self.walk(&("schemas", order), |schema: &SchemaView| schema.key.clone(), fetch, Ok(all))
    }
}
