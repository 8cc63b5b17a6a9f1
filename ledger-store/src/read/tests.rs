//! Tests of read costs: how many rows a read examines in a ledger that has many more.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use ledger_core::{
    AccountAddress, Accounts, AddressExpression, AddressRole, AddressTest, Amount, Asset, Balance, Command,
    Comparison, Condition, CreateTransaction, DateField, FilterNode, FilterOf, LedgerName, LedgerOptions,
    Metadata, Posting, Reference, Selects, Target, TextField, TextTest, Timestamp, Transactions,
};

use super::{Session, accounts, transactions, volumes};
use crate::options::{Options, TimeSource};
use crate::query::{
    AccountOrder, AccountQuery, BalancesQuery, Direction, Expand, PageRequest, Start, TransactionOrder,
    TransactionQuery,
};
use crate::store::Store;
use crate::submission::{Atomicity, Detail, Mode, Outcome, Request, Submission};

/// Number of transactions, and nearly of accounts, in the ledger under test.
const TRANSACTIONS: u64 = 3_000;

/// Creates a store whose transaction `n` sends to `users:NNNN`. One transaction and one account in a hundred has a tag.
/// The effective dates are one second apart and differ from the insertion dates.
fn store(flushed: bool) -> Store {
    let store = Store::in_memory();
    store.create_ledger(name(), LedgerOptions::default()).expect("a new ledger");
    let tag: Metadata = [("tag", "rare")].into_iter().collect();
    let mut requests: Vec<Request> = Vec::new();
    for n in 0..TRANSACTIONS {
        let address = format!("users:{n:04}");
        let mut create = give(&address);
        create.reference = Reference::parse(&format!("r{n}")).ok();
        create.timestamp = Some(Timestamp::from_micros(1_600_000_000_000_000 + n as i64 * 1_000_000));
        if n % 100 == 0 {
            create.metadata = tag.clone();
            let account = AccountAddress::parse(&address).expect("an address");
            let (target, metadata) = (Target::Account(account), tag.clone());
            requests.push(Command::SetMetadata { target, metadata }.into());
        }
        requests.push(Command::CreateTransaction(create).into());
    }
    apply(&store, requests);
    if flushed {
        store.flush();
    }
    store
}

fn name() -> LedgerName {
    LedgerName::parse("main").expect("a name")
}

fn give(address: &str) -> CreateTransaction {
    let posting = Posting {
        source: AccountAddress::world(),
        destination: AccountAddress::parse(address).expect("an address"),
        amount: Amount::from(1_u64),
        asset: Asset::parse("GEM").expect("an asset"),
    };
    CreateTransaction::of([posting].into_iter().collect())
}

fn apply(store: &Store, requests: Vec<Request>) {
    let (atomicity, mode, detail) = (Atomicity::AllOrNothing, Mode::Commit, Detail::Ids);
    let submission = Submission { ledger: name(), requests, atomicity, mode, detail };
    let outcomes = store.apply(submission).expect("the store takes writes");
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Outcome::Done(_))));
}

/// Runs a read. Returns its answer and the number of rows that it examined.
fn measure<T>(store: &Store, question: impl FnOnce(&Session) -> T) -> (T, u64) {
    let ledger = store.snapshot().ledger(&name()).expect("the ledger");
    let session = ledger.session();
    let answer = question(&session);
    (answer, session.meter.rows())
}

fn page<K>(size: usize) -> PageRequest<K> {
    PageRequest { size, direction: Direction::Descending, start: Start::First }
}

fn only<R: Selects>(condition: Condition) -> FilterOf<R> {
    FilterOf::new(FilterNode::Is(condition)).expect("a filter")
}

fn like(role: AddressRole, pattern: &str) -> Condition {
    let expression = AddressExpression::whole(pattern).expect("an expression");
    Condition::Address { role, test: AddressTest::Like(expression) }
}

fn tagged() -> Condition {
    Condition::Metadata { key: "tag".into(), test: TextTest::Equal("rare".into()) }
}

fn transactions(filter: FilterOf<Transactions>, size: usize) -> impl FnOnce(&Session) -> usize {
    move |session| {
        let order = TransactionOrder::Id;
        let query = TransactionQuery { filter, at: None, effective_volumes: false, order, page: page(size) };
        transactions::list(session, &query).expect("a page").items.len()
    }
}

fn accounts(filter: FilterOf<Accounts>, size: usize) -> impl FnOnce(&Session) -> usize {
    move |session| {
        let (order, expand) = (AccountOrder::Address, Expand::default());
        let query = AccountQuery { filter, at: None, order, expand, page: page(size) };
        accounts::list(session, &query).expect("a page").items.len()
    }
}

/// Reads with every kind of filter that an index serves. Compares the number of answers, and limits the examined rows.
#[test]
fn indexed_filters_examine_few_other_rows() {
    for flushed in [false, true] {
        let store = store(flushed);
        let reference = |text: &str| {
            let (field, test) = (TextField::Reference, TextTest::Equal(text.into()));
            Condition::Text { field, test }
        };
        for (condition, found, rows_max) in [
            (reference("r1700"), 1, 3),
            (reference("none"), 0, 2),
            (tagged(), 30, 35),
            (like(AddressRole::Any, "users:170[0-9]"), 10, 40),
            (like(AddressRole::Destination, "users:17(0|1)1"), 2, 210),
            (like(AddressRole::Source, "users:170[0-9]"), 0, 60),
        ] {
            let shown = format!("{condition:?}, flushed: {flushed}");
            let filter = only(condition);
            let (listed, rows) = measure(&store, transactions(filter.clone(), 1_000));
            assert_eq!(listed, found, "{shown}");
            assert!(rows <= rows_max, "{rows} rows: {shown}");
            let (counted, rows) =
                measure(&store, |session| transactions::count(session, &filter, None).expect("a count"));
            assert_eq!(counted, found as u64, "{shown}");
            assert!(rows <= rows_max, "{rows} rows to count: {shown}");
        }
        for (condition, found, rows_max) in [
            (tagged(), 30, 70),
            (like(AddressRole::Own, "users:170[0-9]"), 10, 12),
            (like(AddressRole::Own, "users:1(70|71)[0-9]"), 20, 110),
        ] {
            let shown = format!("{condition:?}, flushed: {flushed}");
            let filter = only(condition.clone());
            let (listed, rows) = measure(&store, accounts(filter.clone(), 1_000));
            assert_eq!(listed, found, "{shown}");
            assert!(rows <= rows_max, "{rows} rows: {shown}");
            let (counted, rows) =
                measure(&store, |session| accounts::count(session, &filter, None).expect("a count"));
            assert_eq!(counted, found as u64, "{shown}");
            assert!(rows <= rows_max, "{rows} rows to count: {shown}");
            let (_, rows) = measure(&store, |session| {
                volumes::aggregated(
                    session,
                    &BalancesQuery {
                        filter: only(condition),
                        at: None,
                        axis: crate::query::TimeAxis::Inserted,
                    },
                )
                .expect("balances")
            });
            assert!(rows <= 2 * rows_max, "{rows} rows to sum: {shown}");
        }
    }
}

/// A clock that is one second later each time it is read.
struct Ticking(AtomicI64);

impl TimeSource for Ticking {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.fetch_add(1_000_000, Ordering::Relaxed))
    }
}

/// Creates a ledger of 300 transactions, one per second. Every tenth has an effective date one hour later.
fn ticking() -> Store {
    let clock = Arc::new(Ticking(AtomicI64::new(1_600_000_000_000_000)));
    let options = Options { clock, ..Options::default() };
    let store = Store::in_memory_with(&options);
    store.create_ledger(name(), LedgerOptions::default()).expect("a new ledger");
    for n in 0..300 {
        let mut create = give("users:1");
        if n % 10 == 0 {
            create.timestamp = Some(Timestamp::from_micros(1_600_003_600_000_000 + n * 1_000_000));
        }
        apply(&store, vec![Command::CreateTransaction(create).into()]);
    }
    store
}

#[test]
fn date_window_examines_few_rows_outside_it() {
    let window = |from: i64, to: i64| {
        let at = |second: i64| Timestamp::from_micros(1_600_000_000_000_000 + second * 1_000_000);
        let field = DateField::Timestamp;
        let bounds = [(Comparison::GreaterOrEqual, at(from)), (Comparison::Less, at(to))];
        let conditions =
            bounds.map(|(comparison, value)| FilterNode::Is(Condition::Date { field, comparison, value }));
        FilterOf::new(FilterNode::And(conditions.into())).expect("a filter")
    };
    for (store, from, to, found) in [
        // Dated as recorded, without the postdated transactions. The ledger took the first second.
        (ticking(), 51, 101, 45),
        // All postdated transactions.
        (ticking(), 3_600, 7_200, 30),
        (ticking(), 0, 7_200, 300),
        (ticking(), 400, 3_600, 0),
        (store(true), 100, 150, 50),
        (store(true), 10_000, 20_000, 0),
    ] {
        let filter = window(from, to);
        let (listed, rows) = measure(&store, transactions(filter.clone(), 1_000));
        assert_eq!(listed, found, "{from} to {to}");
        assert!(rows <= 2 * found as u64 + 20, "{from} to {to}: {rows}");
        let (counted, rows) =
            measure(&store, |session| transactions::count(session, &filter, None).expect("a count"));
        assert_eq!(counted, found as u64, "{from} to {to}");
        assert!(rows <= 2 * found as u64 + 20, "{from} to {to}: {rows} to count");
    }
}

#[test]
fn newest_page_examines_only_its_own_rows() {
    let store = store(true);
    let (listed, rows) = measure(&store, transactions(FilterOf::all(), 15));
    assert!(listed == 15 && rows <= 17, "{rows}");
    let (listed, rows) = measure(&store, accounts(FilterOf::all(), 15));
    assert!(listed == 15 && rows <= 17, "{rows}");
}

#[test]
fn counts_whole_ledger_without_examining_rows() {
    let store = store(true);
    let count = |session: &Session| {
        let transactions = transactions::count(session, &FilterOf::<Transactions>::all(), None);
        let accounts = accounts::count(session, &FilterOf::<Accounts>::all(), None);
        (transactions.expect("a count"), accounts.expect("a count"))
    };
    assert_eq!(measure(&store, count), ((TRANSACTIONS, TRANSACTIONS + 1), 0));
}

/// Without an index, a read examines every row, and the meter counts each of them.
#[test]
fn filter_without_index_counts_every_row() {
    let store = store(true);
    let filter = only(like(AddressRole::Any, ".*:170[0-9]"));
    let (listed, rows) = measure(&store, transactions(filter, 1_000));
    assert!(listed == 10 && rows >= TRANSACTIONS, "{rows}");
    let filter = only(like(AddressRole::Own, ".*:170[0-9]"));
    let (listed, rows) = measure(&store, accounts(filter, 1_000));
    assert!(listed == 10 && rows >= TRANSACTIONS, "{rows}");
    let below = Condition::Balance { asset: None, comparison: Comparison::Less, value: Balance::ZERO };
    let (listed, rows) = measure(&store, accounts(only(below), 1_000));
    assert!(listed == 1 && rows >= TRANSACTIONS, "{rows}");
}
