//! Asks a snapshot and the model every kind of question, and compares the answers.

use std::fmt::Debug;

use ledger_core::model::{Model, ModelAccount, MoveDate, Window};
use ledger_core::schema::{created_at_of, version_of};
use ledger_core::{
    Accounts, AggregatedBalances, Asset, Features, FilterOf, HashChain, HashLogs, LedgerName,
    LegacyHashChain, LogEntry, LogPayload, Logs, Switch, Timestamp, TransactionId, Transactions, VolumeRows,
    Volumes,
};
use ledger_store::{
    Account, AccountKey, AccountOrder, AccountQuery, BalancesQuery, Direction, Expand, LedgerView, LogHashes,
    LogQuery, LogView, Page, PageRequest, ReadError, SchemaKey, SchemaOrder, SchemaQuery, SchemaView,
    Snapshot, Start, Stats, TimeAxis, TransactionKey, TransactionOrder, TransactionQuery, TransactionView,
    VolumesQuery, VolumesRow,
};

use crate::cast::{self, ASSETS};
use crate::failure::Failure;
use crate::filters::filter_of_ledgers;
use crate::{Dice, Judge};

/// Maximum number of accounts and transactions to ask about in a round. The model walks the whole log for each of them.
const POINTS: usize = 16;
/// Maximum number of pages for walking a list in each direction. Bounds the time of a round.
const PAGES_MAX: usize = 24;

/// Compares an answer of the store with that of the model.
macro_rules! same {
    ($found:expr, $expected:expr, $($what:tt)+) => {{
        let (found, expected) = (&$found, &$expected);
        if found != expected {
            return Err(format!("{}: {found:?}, expected {expected:?}", format_args!($($what)+)).into());
        }
    }};
}

impl Judge {
    /// Asks a snapshot every kind of question about a ledger, once in each of `rounds` rounds, and returns the number
    /// of questions. The snapshot must show the state that the judge knows. `now` is close to the dates of the latest
    /// writes.
    ///
    /// # Errors
    ///
    /// Names the question and both answers, if they differ.
    pub fn ask(
        &self,
        snapshot: &Snapshot,
        dice: &mut Dice<'_>,
        now: Timestamp,
        rounds: u32,
    ) -> Result<u64, Failure> {
        let ledgers: Vec<&LedgerName> = self.model.ledgers().collect();
        let mut asked = 0;
        for _ in 0..rounds {
            self.shelf.compare(snapshot, dice)?;
            self.roll.ask(snapshot, &filter_of_ledgers(dice), dice)?;
            asked += 2;
            if ledgers.is_empty() {
                continue;
            }
            let ledger = dice.pick(&ledgers);
            let (view, info) = match (snapshot.ledger(ledger), self.roll.info(ledger)) {
                (Some(view), Some(info)) => (view, info),
                // The ledger is deleted, and neither side finds it.
                (None, None) => continue,
                (found, _) => return Err(format!("{ledger} is found: {}", found.is_some()).into()),
            };
            let features = info.features;
            let addresses = addresses_of(self.model.log(ledger));
            let (model, addresses) = (&self.model, addresses.as_slice());
            let mut round = Round { dice, model, ledger, features, view: &view, addresses, now, asked: 0 };
            round.ask_all().map_err(|failure| failure.during(format!("in ledger {ledger}")))?;
            asked += round.asked;
        }
        Ok(asked)
    }
}

/// Counts the answers of a store whose files may be damaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DamagedAnswers {
    /// Groups of questions with right answers only.
    pub right: u64,
    /// Groups of questions in which an answer is an error that names the damage.
    pub errors: u64,
}

impl DamagedAnswers {
    /// Counts the result of a group of questions.
    ///
    /// # Errors
    ///
    /// Names the difference, if an answer is wrong.
    pub fn note<T>(&mut self, asked: Result<T, Failure>) -> Result<(), Failure> {
        match asked {
            Ok(_) => self.right += 1,
            Err(failure) if failure.names_damage() => self.errors += 1,
            Err(failure) => return Err(failure),
        }
        Ok(())
    }
}

impl Judge {
    /// Asks a snapshot of a store with possibly damaged files every kind of question about every ledger. Each answer
    /// must be right, or an error that names the damage.
    ///
    /// # Errors
    ///
    /// Names the question and both answers, if one is wrong.
    pub fn ask_damaged(
        &self,
        snapshot: &Snapshot,
        dice: &mut Dice<'_>,
        now: Timestamp,
    ) -> Result<DamagedAnswers, Failure> {
        let mut answers = DamagedAnswers::default();
        answers.note(self.shelf.compare(snapshot, dice))?;
        answers.note(self.roll.ask(snapshot, &filter_of_ledgers(dice), dice))?;
        for ledger in self.model.ledgers() {
            let (view, info) = match (snapshot.ledger(ledger), self.roll.info(ledger)) {
                (Some(view), Some(info)) => (view, info),
                (None, None) => continue,
                (found, _) => return Err(format!("{ledger} is found: {}", found.is_some()).into()),
            };
            let (features, addresses) = (info.features, addresses_of(self.model.log(ledger)));
            let (model, addresses) = (&self.model, addresses.as_slice());
            let mut round = Round { dice, model, ledger, features, view: &view, addresses, now, asked: 0 };
            for ask in [
                Round::points,
                Round::points,
                Round::accounts,
                Round::accounts,
                Round::transactions,
                Round::transactions,
                Round::logs,
                Round::balances,
                Round::volumes,
                Round::schemas,
            ] {
                let noted = answers.note(ask(&mut round));
                noted.map_err(|failure| failure.during(format!("in ledger {ledger}")))?;
            }
        }
        Ok(answers)
    }
}

/// Returns the addresses in the transactions of a log.
fn addresses_of(log: &[LogEntry]) -> Vec<String> {
    let mut all = std::collections::BTreeSet::new();
    for entry in log {
        if let LogPayload::NewTransaction { transaction, .. } = &entry.payload {
            all.extend(transaction.postings.iter().map(|posting| posting.destination.as_str()));
        }
    }
    all.into_iter().map(str::to_owned).collect()
}

/// The inputs of a round of questions about one ledger.
pub(crate) struct Round<'a, 'd> {
    pub(crate) dice: &'a mut Dice<'d>,
    /// Addresses of the ledger's accounts.
    pub(crate) addresses: &'a [String],
    pub(crate) model: &'a Model,
    pub(crate) ledger: &'a LedgerName,
    features: Features,
    view: &'a LedgerView,
    now: Timestamp,
    asked: u64,
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

/// Returns the transaction that reverts another one.
fn reverting(log: &[LogEntry], id: TransactionId) -> Option<TransactionId> {
    log.iter().find_map(|entry| match &entry.payload {
        LogPayload::RevertedTransaction { reverted, transaction, .. } if *reverted == id => {
            Some(transaction.id)
        }
        _ => None,
    })
}

impl Round<'_, '_> {
    /// Asks every kind of question once.
    fn ask_all(&mut self) -> Result<(), Failure> {
        self.points()?;
        self.accounts()?;
        self.transactions()?;
        self.logs()?;
        self.balances()?;
        self.volumes()?;
        self.schemas()
    }

    /// Returns a date that occurs in the ledger, or one right beside it.
    pub(crate) fn date(&mut self) -> Timestamp {
        let log = self.model.log(self.ledger);
        let near = match self.dice.below(8) {
            0 => self.now.as_micros() + 100_000_000,
            1 => 0,
            _ if log.is_empty() => self.now.as_micros(),
            choice => {
                let entry = &log[self.dice.below(log.len() as u64) as usize];
                match &entry.payload {
                    LogPayload::NewTransaction { transaction, .. }
                    | LogPayload::RevertedTransaction { transaction, .. }
                        if choice < 5 =>
                    {
                        transaction.timestamp.as_micros()
                    }
                    _ => entry.date.as_micros(),
                }
            }
        };
        Timestamp::from_micros(near + self.dice.below(3) as i64 - 1)
    }

    /// Returns the error for a question that needs the history of moves, if the ledger does not have it.
    fn lacks_moves(&self, needs: bool) -> Option<ReadError> {
        let is_off = self.features.moves_history == Switch::Off;
        (needs && is_off).then_some(ReadError::MissingFeature { feature: "MOVES_HISTORY" })
    }

    /// Returns the error for a question that needs effective volumes, if the ledger does not have them. A ledger has
    /// them only together with the history of moves.
    fn lacks_effective_volumes(&self, needs: bool) -> Option<ReadError> {
        let feature = "MOVES_HISTORY_POST_COMMIT_EFFECTIVE_VOLUMES";
        let is_off = self.features.effective_volumes == Switch::Off;
        (needs && is_off).then_some(ReadError::MissingFeature { feature }).or_else(|| self.lacks_moves(needs))
    }

    /// Returns the date of a question about the past, or `None` for one about the present.
    fn at(&mut self) -> Option<Timestamp> {
        if self.dice.one_in(3) { None } else { Some(self.date()) }
    }

    /// Reads a whole list in pages, forwards to its end and backwards again. The list must equal `expected`, or be
    /// refused like it.
    fn walk<T: Debug + PartialEq, K: Clone + Debug>(
        &mut self,
        what: &dyn Debug,
        key: impl Fn(&T) -> K,
        fetch: impl Fn(PageRequest<K>) -> Result<Page<T>, ReadError>,
        expected: Result<Vec<T>, ReadError>,
    ) -> Result<(), Failure> {
        self.asked += 1;
        let mut expected = match expected {
            Ok(expected) => expected,
            Err(refused) => {
                let found =
                    fetch(PageRequest { size: 3, direction: Direction::Ascending, start: Start::First });
                same!(found, Err(refused), "{what:?}");
                return Ok(());
            }
        };
        let size = self.dice.pick(&[1, 3, 1000]).max(expected.len().div_ceil(PAGES_MAX));
        let direction = self.dice.pick(&[Direction::Ascending, Direction::Descending]);
        if direction == Direction::Descending {
            expected.reverse();
        }
        let mut asked = 0;
        let mut ask = |start: Start<K>| {
            asked += 1;
            fetch(PageRequest { size, direction, start })
                .map_err(|error| Failure::from(error).during(format!("{what:?}")))
        };
        let mut start = Start::First;
        let mut seen = 0;
        loop {
            let page = ask(start)?;
            let left = &expected[seen..];
            let part = &left[..size.min(left.len())];
            same!(page.items.as_slice(), part, "{what:?}: {direction:?} by {size} from {seen}");
            let ends = (page.has_previous, page.has_next);
            same!(ends, (seen > 0, left.len() > size), "{what:?}: {direction:?} by {size} from {seen}");
            let Some(last) = page.items.last().filter(|_| page.has_next) else { break };
            seen += size;
            start = Start::After(key(last));
        }
        while seen > 0 {
            let page = ask(Start::Before(key(&expected[seen])))?;
            let from = seen.saturating_sub(size);
            let part = &expected[from..seen];
            same!(page.items.as_slice(), part, "{what:?}: {direction:?} by {size} before {seen}");
            let ends = (page.has_previous, page.has_next);
            same!(ends, (from > 0, true), "{what:?}: {direction:?} by {size} before {seen}");
            seen = from;
        }
        self.asked += asked;
        Ok(())
    }

    /// Compares single accounts and transactions.
    fn points(&mut self) -> Result<(), Failure> {
        let (transactions, accounts) = self.model.stats(self.ledger);
        let stats = Stats { transactions: transactions as u64, accounts: accounts as u64 };
        same!(self.view.stats(), Ok(stats), "stats");
        for _ in 0..POINTS {
            let expand = Expand { volumes: self.dice.one_in(2), effective_volumes: self.dice.one_in(2) };
            let lacks = self.lacks_of(expand);
            let account = if self.addresses.is_empty() || self.dice.one_in(3) {
                cast::any_address(self.dice, 4)
            } else {
                cast::address(&self.dice.pick(self.addresses))
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
            let asset = Asset::parse(self.dice.pick(&ASSETS)).expect("an asset");
            let held = present.as_ref().and_then(|account| account.volumes.get(&asset).cloned());
            let balance = held.unwrap_or_default().balance();
            same!(self.view.balance(&account, &asset), Ok(balance), "{account} {asset}");
        }
        for _ in 0..POINTS {
            let id = TransactionId::new(self.dice.below(transactions as u64 + 2));
            let at = self.at();
            let effective = self.dice.one_in(2);
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

    /// Returns the error for accounts with these volumes, if the ledger does not have them.
    fn lacks_of(&self, expand: Expand) -> Option<ReadError> {
        let lacks = self.lacks_moves(expand.volumes || expand.effective_volumes);
        lacks.or_else(|| self.lacks_effective_volumes(expand.effective_volumes))
    }

    fn accounts(&mut self) -> Result<(), Failure> {
        let filter = self.filter::<Accounts>();
        let at = self.at();
        let expand = Expand { volumes: self.dice.one_in(2), effective_volumes: self.dice.one_in(2) };
        let found = self.model.accounts(self.ledger, &filter, at);
        // A balance in the past is a sum of the moves up to then.
        let lacks = self.lacks_moves(at.is_some() && filter.asks_for_balances());
        let count = lacks.clone().map_or(Ok(found.len() as u64), Err);
        same!(self.view.count_accounts(&filter, at), count, "count {filter:?} at {at:?}");
        let mut expected: Vec<_> = found.into_iter().map(|account| shown(account, expand)).collect();
        let order = self.dice.pick(&[
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

    fn transactions(&mut self) -> Result<(), Failure> {
        let filter = self.filter::<Transactions>();
        let at = self.at();
        let mut found = self.model.transactions(self.ledger, &filter, at);
        let count = self.view.count_transactions(&filter, at);
        same!(count, Ok(found.len() as u64), "count {filter:?} at {at:?}");
        let order = self.dice.pick(&[
            TransactionOrder::Id,
            TransactionOrder::Timestamp,
            TransactionOrder::UpdatedAt,
            TransactionOrder::RevertedAt,
        ]);
        match order {
            TransactionOrder::Id => found.reverse(),
            dated => found.sort_by_key(|found| (dated.date_of(found), found.id)),
        }
        let effective_volumes = self.dice.one_in(3);
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

    fn logs(&mut self) -> Result<(), Failure> {
        let filter = self.filter::<Logs>();
        let (model, ledger, view) = (self.model, self.ledger, self.view);
        let selected = model.logs(ledger, &filter);
        let mut selected = selected.iter().rev().map(|entry| entry.id).peekable();
        let hashes = self.dice.pick(&[LogHashes::Wire, LogHashes::Legacy]);
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
        self.dice
            .pick(&[(TimeAxis::Effective, MoveDate::Effective), (TimeAxis::Inserted, MoveDate::Insertion)])
    }

    fn balances(&mut self) -> Result<(), Failure> {
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

    fn volumes(&mut self) -> Result<(), Failure> {
        let filter = self.filter::<VolumeRows>();
        let (from, to) = (self.at(), self.at());
        let (clock, by) = self.clock();
        let group_by = self.dice.pick(&[0, 0, 1, 2, 9]);
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

    fn schemas(&mut self) -> Result<(), Failure> {
        let (model, ledger, view) = (self.model, self.ledger, self.view);
        let texts = model.log(ledger).iter().filter_map(|entry| match &entry.payload {
            LogPayload::InsertedSchema { schema } => Some(schema.to_string()),
            _ => None,
        });
        let mut expected: Vec<_> = texts
            .map(|text| (version_of(&text).expect("it was added with one"), created_at_of(&text), text))
            .collect();
        let order = self.dice.pick(&[SchemaOrder::Created, SchemaOrder::Version]);
        if order == SchemaOrder::Version {
            expected.sort_by(|one, other| one.0.as_str().cmp(other.0.as_str()));
        }
        let version = cast::version(self.dice);
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
