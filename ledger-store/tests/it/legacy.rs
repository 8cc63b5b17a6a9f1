//! Store functions for the v1 API.

use std::sync::Arc;

use ledger_core::{
    AccountAddress, AddressExpression, AddressRole, AddressTest, Amount, Asset, Command, Condition,
    CreateTransaction, Features, FilterNode, FilterOf, HashChain, Idempotency, IdempotencyKey, LedgerName,
    LedgerOptions, LegacyHashChain, LegacyRules, LogEntry, LogId, Metadata, Overdraft, PastDates, Posting,
    Reference, Rejection, RevertDate, RevertTransaction, Rules, Switch, Timestamp, TransactionId,
};
use ledger_store::{
    Atomicity, Detail, Direction, LogHashes, LogQuery, LogView, Mode, Outcome, PageRequest, Request, Start,
    Store, Submission, TransactionOrder, TransactionQuery,
};

fn name() -> LedgerName {
    LedgerName::parse("main").expect("a name")
}

fn send(source: &str, destination: &str, amount: u64, rules: Rules) -> CreateTransaction {
    let posting = Posting {
        source: AccountAddress::parse(source).expect("an address"),
        destination: AccountAddress::parse(destination).expect("an address"),
        amount: Amount::from(amount),
        asset: Asset::parse("USD/2").expect("an asset"),
    };
    CreateTransaction { rules, ..CreateTransaction::of([posting].into_iter().collect()) }
}

fn apply(store: &Store, requests: Vec<Request>, atomicity: Atomicity) -> Vec<Outcome> {
    let submission =
        Submission { ledger: name(), requests, atomicity, mode: Mode::Commit, detail: Detail::Entry };
    store.apply(submission).expect("the store takes writes")
}

fn one(store: &Store, command: Command) -> Outcome {
    apply(store, vec![command.into()], Atomicity::Independent).remove(0)
}

#[test]
fn mapping_survives_every_way_of_opening() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("data");
    let mapping = |store: &Store| {
        let ledger = store.snapshot().ledger(&name()).expect("the ledger");
        ledger.mapping().map(ToString::to_string)
    };
    let store = Store::open(&path).expect("the store opens");
    store.create_ledger(name(), LedgerOptions::default()).expect("a new ledger");
    assert_eq!(mapping(&store), None);
    for text in ["first", "second"] {
        store.set_mapping(&name(), text.to_owned()).expect("the write succeeds");
        assert_eq!(mapping(&store).as_deref(), Some(text));
    }
    store.close().expect("the store closes");
    drop(store);
    let store = Store::open(&path).expect("the store opens from its index");
    assert_eq!(mapping(&store).as_deref(), Some("second"));
    store.close().expect("the store closes");
    drop(store);
    std::fs::remove_file(path.join("index/index.redb")).expect("there is an index");
    let store = Store::open(&path).expect("the store opens from its journal");
    assert_eq!(mapping(&store).as_deref(), Some("second"));
    let report = store.verify().expect("the verification runs");
    assert!(report.violations.is_empty(), "{report:?}");
}

#[test]
fn batch_with_one_key_runs_once_and_replays_whole() {
    let store = Store::in_memory();
    store.create_ledger(name(), LedgerOptions::default()).expect("a new ledger");
    let key = IdempotencyKey::parse("k").expect("a key");
    let batch = || {
        let mut requests: Vec<Request> = ["a", "b", "c"]
            .map(|to| Command::CreateTransaction(send("world", to, 1, Rules::Current)).into())
            .into();
        requests[0].idempotency = Some(Box::new(Idempotency { key: key.clone(), hash: "h".into() }));
        apply(&store, requests, Atomicity::AsOne)
    };
    let entries = |outcomes: Vec<Outcome>, replayed: bool| -> Vec<_> {
        let receipts = outcomes.into_iter().map(|outcome| match outcome {
            Outcome::Done(receipt) => receipt,
            other => panic!("{other:?}"),
        });
        receipts
            .map(|receipt| {
                assert_eq!(receipt.replayed, replayed);
                receipt.entry.expect("the entry was asked for").payload
            })
            .collect()
    };
    let first = entries(batch(), false);
    one(&store, Command::CreateTransaction(send("world", "z", 1, Rules::Current)));
    assert_eq!(entries(batch(), true), first);
    let stats = store.snapshot().ledger(&name()).expect("the ledger").stats().expect("counted");
    assert_eq!(stats.transactions, 4);
}

#[test]
fn batch_without_hash_is_hashed_as_a_whole() {
    let store = Store::in_memory();
    store.create_ledger(name(), LedgerOptions::default()).expect("a new ledger");
    let pay = |key: Option<&str>| {
        let key = key.map(|key| IdempotencyKey::parse(key).expect("a key"));
        let idempotency = key.map(|key| Box::new(Idempotency { key, hash: "".into() }));
        let command = Command::CreateTransaction(send("world", "a", 1, Rules::Current));
        Request { idempotency, ..Request::from(command) }
    };
    assert!(matches!(apply(&store, vec![pay(Some("k"))], Atomicity::AsOne)[0], Outcome::Done(_)));
    let found = apply(&store, vec![pay(Some("k")), pay(None), pay(None)], Atomicity::AsOne);
    let mismatch =
        |outcome: &Outcome| matches!(outcome, Outcome::Refused(Rejection::IdempotencyMismatch { .. }));
    assert!(mismatch(&found[0]) && found[1..] == [Outcome::Cancelled, Outcome::Cancelled], "{found:?}");
    let again = apply(&store, vec![pay(Some("k"))], Atomicity::AsOne);
    assert!(matches!(&again[0], Outcome::Done(receipt) if receipt.replayed), "{again:?}");
    let batch = || vec![pay(Some("batch")), pay(None)];
    assert!(matches!(&apply(&store, batch(), Atomicity::AsOne)[..], [Outcome::Done(_), Outcome::Done(_)]));
    let again = apply(&store, batch(), Atomicity::AsOne);
    assert!(again.iter().all(|outcome| matches!(outcome, Outcome::Done(r) if r.replayed)), "{again:?}");
    let longer = [batch(), vec![pay(None)]].concat();
    assert!(mismatch(&apply(&store, longer, Atomicity::AsOne)[0]));
}

#[test]
fn v1_revert_derives_reference_from_original() {
    let store = Store::in_memory();
    store.create_ledger(name(), LedgerOptions::default()).expect("a new ledger");
    let legacy = || Rules::Legacy(Arc::new(LegacyRules::default()));
    let named = |to: &str, reference: &str| {
        let reference = Some(Reference::parse(reference).expect("a reference"));
        Command::CreateTransaction(CreateTransaction { reference, ..send("world", to, 5, legacy()) })
    };
    let revert = |id| {
        let command = RevertTransaction {
            id: TransactionId::new(id),
            overdraft: Overdraft::Refuse,
            dated: RevertDate::Now,
            metadata: Metadata::EMPTY,
            rules: legacy(),
        };
        one(&store, Command::RevertTransaction(command))
    };
    assert!(matches!(one(&store, named("a", "x")), Outcome::Done(_)));
    assert!(matches!(one(&store, named("b", "revert_y")), Outcome::Done(_)));
    assert!(matches!(one(&store, named("c", "y")), Outcome::Done(_)));
    assert!(matches!(revert(1), Outcome::Done(_)));
    assert!(matches!(
        one(&store, named("d", "revert_x")),
        Outcome::Refused(Rejection::ReferenceTaken { .. })
    ));
    assert!(matches!(revert(3), Outcome::Refused(Rejection::ReferenceTaken { .. })));
    let ledger = store.snapshot().ledger(&name()).expect("the ledger");
    let original =
        ledger.transaction(TransactionId::new(1), None, false).expect("read").expect("a transaction");
    assert_eq!(original.reverted_by, Some(TransactionId::new(4)));
}

#[test]
fn strict_dates_compare_with_the_last_transaction() {
    let store = Store::in_memory();
    store.create_ledger(name(), LedgerOptions::default()).expect("a new ledger");
    let rules =
        Rules::Legacy(Arc::new(LegacyRules { past_dates: PastDates::Refuse, ..LegacyRules::default() }));
    let dated = |at: i64| {
        let timestamp = Some(Timestamp::from_micros(at));
        let create = CreateTransaction { timestamp, ..send("world", "a", 1, rules.clone()) };
        one(&store, Command::CreateTransaction(create))
    };
    assert!(matches!(dated(50), Outcome::Done(_)));
    assert!(matches!(dated(50), Outcome::Done(_)));
    assert!(matches!(dated(49), Outcome::Refused(Rejection::PastDate { .. })));
    assert!(matches!(dated(51), Outcome::Done(_)));
}

#[test]
fn address_expression_selects_transactions() {
    let store = Store::in_memory();
    store.create_ledger(name(), LedgerOptions::default()).expect("a new ledger");
    for to in ["users:1", "users:20", "users-x", "shops:1", "users:3"] {
        one(&store, Command::CreateTransaction(send("world", to, 1, Rules::Current)));
    }
    let ledger = store.snapshot().ledger(&name()).expect("the ledger");
    for (text, expected) in [
        ("users:[0-9]", vec![5, 1]),
        ("users.*", vec![5, 3, 2, 1]),
        (".*:1", vec![4, 1]),
        ("nosuch.", vec![]),
    ] {
        let expression = AddressExpression::whole(text).expect("an expression");
        let condition = Condition::Address { role: AddressRole::Any, test: AddressTest::Like(expression) };
        let filter = FilterOf::new(FilterNode::Is(condition)).expect("a filter");
        let query = TransactionQuery {
            filter: filter.clone(),
            at: None,
            effective_volumes: false,
            order: TransactionOrder::Id,
            page: PageRequest { size: 9, direction: Direction::Descending, start: Start::First },
        };
        let page = ledger.transactions(&query).expect("a page");
        let ids: Vec<u64> = page.items.iter().map(|view| view.transaction.id.get()).collect();
        assert_eq!(ids, expected, "{text}");
        assert_eq!(ledger.count_transactions(&filter, None), Ok(ids.len() as u64), "{text}");
    }
}

/// Returns the hundred newest logs below an id.
fn logs_before(store: &Store, hashes: LogHashes, before: u64) -> Vec<LogView> {
    let ledger = store.snapshot().ledger(&name()).expect("the ledger");
    let start = Start::After(LogId::new(before));
    let page = PageRequest { size: 100, direction: Direction::Descending, start };
    let query = LogQuery { filter: FilterOf::all(), hashes, page };
    ledger.logs(&query).expect("a page").items
}

/// Returns every log of the ledger, oldest first.
fn all_entries(store: &Store) -> Vec<LogEntry> {
    let mut entries = Vec::new();
    let mut next = u64::MAX;
    loop {
        let more = logs_before(store, LogHashes::Wire, next);
        let Some(last) = more.last() else { break };
        next = last.entry.id.get();
        entries.extend(more.into_iter().map(|view| view.entry));
    }
    entries.reverse();
    entries
}

/// Computes the hashes of all logs and compares lists with them. Returns the number of logs.
fn check_hashes(store: &Store) -> usize {
    let entries = all_entries(store);
    let mut v1 = LegacyHashChain::default();
    let v1: Vec<_> = entries.iter().map(|entry| (entry.id, v1.append(entry))).collect();
    let mut v2 = HashChain::after(None);
    let v2: Vec<_> = entries.iter().map(|entry| (entry.id, v2.append(entry))).collect();
    // Pages begin before, between and after the checkpoints.
    for before in [u64::MAX, 700, 300, 120] {
        for view in logs_before(store, LogHashes::Legacy, before) {
            let (_, hash) = v1.iter().find(|(id, _)| *id == view.entry.id).expect("a listed log");
            assert_eq!(view.hash.as_ref(), Some(hash.as_bytes()), "{:?}", view.entry.id);
        }
        for view in logs_before(store, LogHashes::Wire, before) {
            let (_, hash) = v2.iter().find(|(id, _)| *id == view.entry.id).expect("a listed log");
            assert_eq!(view.hash.as_ref(), Some(hash.as_bytes()), "{:?}", view.entry.id);
        }
    }
    assert!(store.verify().expect("the verification runs").violations.is_empty());
    entries.len()
}

#[test]
fn v1_and_v2_hashes_survive_every_way_of_opening() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("data");
    let store = Store::open(&path).expect("the store opens");
    let features = Features { legacy_hashes: Switch::On, ..Features::default() };
    store
        .create_ledger(name(), LedgerOptions { features, ..LedgerOptions::default() })
        .expect("a new ledger");
    for _ in 0..9 {
        let requests = (0..100).map(|at| {
            Command::CreateTransaction(send("world", &format!("a:{at}"), 1, Rules::Current)).into()
        });
        apply(&store, requests.collect(), Atomicity::Independent);
    }
    assert_eq!(check_hashes(&store), 900);
    store.close().expect("the store closes");
    drop(store);
    let store = Store::open(&path).expect("the store opens from its index");
    one(&store, Command::CreateTransaction(send("world", "b", 1, Rules::Current)));
    assert_eq!(check_hashes(&store), 901);
    store.close().expect("the store closes");
    drop(store);
    std::fs::remove_file(path.join("index/index.redb")).expect("there is an index");
    let store = Store::open(&path).expect("the store opens from its journal");
    assert_eq!(check_hashes(&store), 901);
}
