//! Imports logs of one store into another.

use std::path::Path;
use std::sync::Arc;

use ledger_core::{
    AccountAddress, Asset, Command, CreateTransaction, Features, FilterOf, FirstId, HashLogs, Idempotency,
    IdempotencyKey, LedgerName, LedgerOptions, LogId, LogPayload, Metadata, Movement, Overdraft, Posting,
    Reference, Rejection, RevertDate, RevertTransaction, Rules, Target, Timestamp, TransactionId, WireHash,
    request_hash,
};
use ledger_store::{
    Atomicity, Detail, Direction, Expand, ImportError, ImportRefusal, ImportedLog, LogHashes, LogQuery,
    LogView, Mode, Options, Outcome, PageRequest, Receipt, Request, Start, Store, Submission,
};
use ledger_testkit::{Disk, Rng, SetClock, SimDisk};

pub(crate) fn name() -> LedgerName {
    LedgerName::parse("main").expect("a name")
}

pub(crate) fn open(disk: &SimDisk, clock: &Arc<SetClock>) -> Store {
    let mut options = Options::default();
    options.clock = clock.clone();
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    Store::open_on_disk(disk, Path::new("data"), &options).expect("the store opens")
}

pub(crate) fn run(store: &Store, command: Command) -> Outcome {
    run_request(store, Request::from(command))
}

/// Runs a command with an idempotency key.
fn run_once(store: &Store, key: &str, hash: &str, command: Command) -> Outcome {
    run_request(store, keyed(key, hash, command))
}

fn keyed(key: &str, hash: &str, command: Command) -> Request {
    let key = IdempotencyKey::parse(key).expect("a key");
    Request { idempotency: Some(Box::new(Idempotency { key, hash: hash.into() })), ..Request::from(command) }
}

fn run_request(store: &Store, request: Request) -> Outcome {
    run_all(store, vec![request], Atomicity::Independent).pop().expect("an outcome")
}

fn run_all(store: &Store, requests: Vec<Request>, atomicity: Atomicity) -> Vec<Outcome> {
    let (mode, detail) = (Mode::Commit, Detail::Ids);
    let submission = Submission { ledger: name(), requests, atomicity, mode, detail };
    store.apply(submission).expect("the write succeeds")
}

pub(crate) fn pay(
    source: &str,
    destination: &str,
    amount: u64,
    at: Option<Timestamp>,
    reference: Option<&str>,
) -> Command {
    Command::CreateTransaction(CreateTransaction {
        template: None,
        movement: Movement::Postings(
            [Posting {
                source: AccountAddress::parse(source).expect("an address"),
                destination: AccountAddress::parse(destination).expect("an address"),
                amount: amount.into(),
                asset: Asset::parse("USD/2").expect("an asset"),
            }]
            .into_iter()
            .collect(),
        ),
        metadata: [("k", "<v>")].into_iter().collect(),
        account_metadata: [(AccountAddress::parse(destination).expect("an address"), Metadata::EMPTY)].into(),
        timestamp: at,
        reference: reference.map(|text| Reference::parse(text).expect("a reference")),
        overdraft: Overdraft::Allow,
        rules: Rules::default(),
    })
}

/// Creates a store with some hundreds of logs of all kinds.
fn source(clock: &Arc<SetClock>) -> Store {
    let store = open(&SimDisk::new(), clock);
    store.create_ledger(name(), LedgerOptions::default()).expect("a ledger");
    let mut rng = Rng::from_seed(7);
    for step in 0..400_u64 {
        clock.set(Timestamp::from_micros(1_700_000_000_000_000 + step as i64 * 1_000_003));
        let user = format!("users:{}", rng.below(9));
        let command = match rng.below(8) {
            0 => Command::SetMetadata {
                target: Target::Account(AccountAddress::parse(&user).expect("an address")),
                metadata: [("tier", "gold")].into_iter().collect(),
            },
            1 => Command::DeleteMetadata {
                target: Target::Account(AccountAddress::parse(&user).expect("an address")),
                key: "tier".into(),
            },
            2 => Command::RevertTransaction(RevertTransaction {
                id: TransactionId::new(rng.below(step + 1)),
                dated: if rng.below(2) == 0 { RevertDate::Now } else { RevertDate::OfOriginal },
                overdraft: Overdraft::Allow,
                metadata: Metadata::EMPTY,
                rules: Rules::default(),
            }),
            3 => Command::SetMetadata {
                target: Target::Transaction(TransactionId::new(rng.below(step + 1))),
                metadata: [("note", "x")].into_iter().collect(),
            },
            4 => {
                let earlier = Timestamp::from_micros(1_690_000_000_000_000 + rng.below(1_000) as i64);
                pay("world", &user, 5, Some(earlier), None)
            }
            5 => pay("world", &user, 7, None, Some(&format!("r{step}"))),
            _ => pay(&user, "shop", u64::MAX, None, None),
        };
        run(&store, command);
    }
    store
}

pub(crate) fn logs(store: &Store) -> Vec<LogView> {
    let view = store.snapshot().ledger(&name()).expect("the ledger exists");
    let filter = FilterOf::all();
    let mut all = Vec::new();
    let mut start = Start::First;
    loop {
        let page = PageRequest { size: 100, direction: Direction::Ascending, start };
        let page = view
            .logs(&LogQuery { filter: filter.clone(), hashes: LogHashes::Wire, page })
            .expect("the read succeeds");
        let Some(last) = page.items.last() else { return all };
        start = Start::After(last.entry.id);
        all.extend(page.items);
    }
}

fn imported(logs: &[LogView]) -> Vec<ImportedLog> {
    logs.iter()
        .map(|log| ImportedLog {
            entry: log.entry.clone(),
            hash: log.hash.map(WireHash::from_bytes),
            original_updated_at: None,
            tells_volumes: true,
        })
        .collect()
}

#[test]
fn an_imported_ledger_equals_its_source() {
    let clock = Arc::<SetClock>::default();
    let original = logs(&source(&clock));
    assert!(original.len() > 300, "{}", original.len());
    let disk = SimDisk::new();
    let store = open(&disk, &clock);
    store.create_ledger(name(), LedgerOptions::default()).expect("a ledger");
    for part in original.chunks(90) {
        store.import(&name(), &imported(part)).expect("consecutive logs");
    }
    assert_eq!(logs(&store), original);
    drop(store);
    let store = open(&disk, &clock);
    assert_eq!(logs(&store), original, "also after an opening");
    let refused = store.import_new(&name(), &imported(&original[..1]));
    let refusal = ImportRefusal::LogExists;
    assert_eq!(refused, Err(ImportError::Refused { log: original[0].entry.id, refusal }));
    // A write continues the imported log, and ends the import.
    clock.set(Timestamp::from_micros(1_800_000_000_000_000));
    let Outcome::Done(receipt) = run(&store, pay("world", "users:1", 1, None, None)) else {
        panic!("it is accepted")
    };
    let last = original.last().expect("a last log").entry.id;
    assert_eq!(receipt.log, LogId::new(last.get() + 1));
    let mut next = original.last().expect("a last log").clone();
    next.entry.id = LogId::new(1_000_000);
    let refused = store.import(&name(), &imported(&[next]));
    assert!(
        matches!(refused, Err(ImportError::Refused { refusal: ImportRefusal::InUse, .. })),
        "{refused:?}"
    );
    let report = store.verify().expect("the verification runs");
    assert!(report.is_clean(), "{}", report.to_json_lines());
}

#[test]
fn import_that_broke_off_can_be_repeated() {
    let clock = Arc::<SetClock>::default();
    let original = logs(&source(&clock));
    let all = imported(&original);
    for hash_logs in [HashLogs::Sync, HashLogs::Disabled] {
        let store = open(&SimDisk::new(), &clock);
        let features = Features { hash_logs, ..Features::default() };
        let options = LedgerOptions { features, ..LedgerOptions::default() };
        store.create_ledger(name(), options).expect("a ledger");
        let report = |logs: &[ImportedLog]| {
            store.import(&name(), logs).map(|report| (report.imported, report.skipped))
        };
        assert_eq!(report(&all[..100]), Ok((100, 0)));
        assert_eq!(report(&all[..100]), Ok((0, 100)));
        assert_eq!(report(&all[40..200]), Ok((100, 60)));
        let mut forged = all[150].clone();
        forged.entry.date = Timestamp::from_micros(forged.entry.date.as_micros() + 1);
        let refusal = ImportRefusal::LogExists;
        let refused = Err(ImportError::Refused { log: forged.entry.id, refusal });
        assert_eq!(report(&[all[149].clone(), forged, all[200].clone()]), refused);
        assert_eq!(report(&all), Ok((all.len() as u64 - 200, 200)));
        assert_eq!(logs(&store).len(), all.len());
        run(&store, pay("world", "users:1", 1, None, None));
        assert_eq!(report(&all), Ok((0, all.len() as u64)), "nothing is new");
        let report = store.verify().expect("the verification runs");
        assert!(report.is_clean(), "{}", report.to_json_lines());
    }
}

#[test]
fn keys_of_imported_logs_are_known_by_what_they_did() {
    let clock = Arc::<SetClock>::default();
    let source = open(&SimDisk::new(), &clock);
    source.create_ledger(name(), LedgerOptions::default()).expect("a ledger");
    let revert = |id: u64| {
        Command::RevertTransaction(RevertTransaction {
            id: TransactionId::new(id),
            dated: RevertDate::Now,
            overdraft: Overdraft::Allow,
            metadata: Metadata::EMPTY,
            rules: Rules::default(),
        })
    };
    let set = |target: Target| Command::SetMetadata { target, metadata: Metadata::EMPTY };
    let account = Target::Account(AccountAddress::parse("shop").expect("an address"));
    let transaction = Target::Transaction(TransactionId::new(1));
    let commands = [
        pay("world", "shop", 1, None, None),
        revert(1),
        set(account.clone()),
        set(transaction.clone()),
        Command::DeleteMetadata { target: account, key: "k".into() },
        Command::DeleteMetadata { target: transaction, key: "k".into() },
    ];
    for (at, command) in commands.iter().enumerate() {
        let outcome = run_once(&source, &format!("key-{at}"), "theirs", command.clone());
        assert!(matches!(outcome, Outcome::Done(_)), "{at}: {outcome:?}");
    }
    let logs_of_source = logs(&source);
    let disk = SimDisk::new();
    let store = open(&disk, &clock);
    store.create_ledger(name(), LedgerOptions::default()).expect("a ledger");
    store.import(&name(), &imported(&logs_of_source)).expect("the import succeeds");
    let check = |store: &Store| {
        for key in 0..commands.len() {
            for (at, command) in commands.iter().enumerate() {
                let outcome = run_once(store, &format!("key-{key}"), "ours", command.clone());
                match outcome {
                    Outcome::Done(receipt) if at == key => {
                        assert!(receipt.replayed);
                        assert_eq!(receipt.log, logs_of_source[at].entry.id);
                    }
                    Outcome::Refused(Rejection::IdempotencyMismatch { .. }) if at != key => {}
                    other => panic!("{at} under the key of {key}: {other:?}"),
                }
            }
        }
        let other = run_once(store, "key-1", "ours", revert(2));
        assert!(matches!(other, Outcome::Refused(Rejection::IdempotencyMismatch { .. })), "{other:?}");
        // Nothing records how many logs several commands created, so only an equal hash identifies a repetition.
        let several = vec![keyed("key-0", "ours", commands[0].clone()), commands[0].clone().into()];
        let others = run_all(store, several, Atomicity::AsOne);
        assert!(matches!(others[0], Outcome::Refused(Rejection::IdempotencyMismatch { .. })), "{others:?}");
        assert_eq!(logs(store), logs_of_source);
    };
    check(&store);
    drop(store);
    check(&open(&disk, &clock));
    // Logs of this store are compared by their hash. Without one, it is the hash of the command.
    let pay = pay("world", "shop", 1, None, None);
    assert!(matches!(run_once(&source, "own", "a", pay.clone()), Outcome::Done(_)));
    assert!(matches!(run_once(&source, "own", "b", pay.clone()), Outcome::Refused(_)));
    assert!(matches!(run_once(&source, "own", "", pay.clone()), Outcome::Refused(_)));
    assert!(matches!(run_once(&source, "hashed", "", pay.clone()), Outcome::Done(_)));
    let again = run_once(&source, "hashed", &request_hash(&pay), pay.clone());
    assert!(matches!(again, Outcome::Done(Receipt { replayed: true, .. })), "{again:?}");
    assert!(matches!(run_once(&source, "hashed", "", revert(3)), Outcome::Refused(_)));
}

#[test]
fn imported_ids_below_the_first_are_found_by_date() {
    let clock = Arc::<SetClock>::default();
    let from_zero = open(&SimDisk::new(), &clock);
    let options = LedgerOptions { first_id: FirstId::Zero, ..LedgerOptions::default() };
    from_zero.create_ledger(name(), options).expect("a ledger");
    for second in 1..=5_i64 {
        clock.set(Timestamp::from_micros(second * 1_000_000));
        run(&from_zero, pay("world", &format!("users:{second}"), 1, None, None));
    }
    let of_zero = logs(&from_zero);
    // Without the second log, there is a gap where ids and the number of logs seem to agree.
    let with_a_gap: Vec<LogView> = of_zero.iter().filter(|log| log.entry.id.get() != 1).cloned().collect();
    for (taken, is_hashed) in [(&of_zero, true), (&with_a_gap, false)] {
        let store = open(&SimDisk::new(), &clock);
        let hash_logs = if is_hashed { HashLogs::Sync } else { HashLogs::Disabled };
        let features = Features { hash_logs, ..Features::default() };
        let options = LedgerOptions { features, ..LedgerOptions::default() };
        store.create_ledger(name(), options).expect("a ledger whose own first id is one");
        store.import(&name(), &imported(taken)).expect("the import succeeds");
        let view = store.snapshot().ledger(&name()).expect("the ledger exists");
        for second in 0..=6_i64 {
            let at = Some(Timestamp::from_micros(second * 1_000_000));
            let there = taken.iter().filter(|log| log.entry.date.as_micros() <= second * 1_000_000).count();
            let all = FilterOf::all();
            assert_eq!(view.count_transactions(&all, at), Ok(there as u64), "at {second}");
            let world = AccountAddress::parse("world").expect("an address");
            let expand = Expand { volumes: true, effective_volumes: true };
            let account = view.account(&world, at, expand).expect("an answer");
            let paid = |volumes: &Option<Vec<(Asset, ledger_core::Volumes)>>| {
                let volumes = volumes.as_ref().expect("volumes were requested").first();
                volumes.map(|(_, volumes)| volumes.output.to_string())
            };
            let expected = (there > 0).then(|| there.to_string());
            let found =
                account.as_ref().map(|account| (paid(&account.volumes), paid(&account.effective_volumes)));
            assert_eq!(found, (there > 0).then(|| (expected.clone(), expected)), "at {second}");
        }
    }
}

#[test]
fn a_changed_log_is_found() {
    let clock = Arc::<SetClock>::default();
    let original = logs(&source(&clock));
    let store = open(&SimDisk::new(), &clock);
    store.create_ledger(name(), LedgerOptions::default()).expect("a ledger");
    let mut changed = imported(&original[..50]);
    changed[20].entry.date = Timestamp::from_micros(changed[20].entry.date.as_micros() + 1);
    match store.import(&name(), &changed) {
        Err(ImportError::Refused { log, refusal: ImportRefusal::WrongHash { .. } }) => {
            assert_eq!(log, original[20].entry.id);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(logs(&store), original[..20]);
    let mut without = imported(&original[20..21]);
    without[0].hash = None;
    assert!(store.import(&name(), &without).is_err());
    store.import(&name(), &imported(&original[20..])).expect("the import continues");
    assert_eq!(logs(&store), original);
}

#[test]
fn an_imported_transaction_keeps_its_date() {
    let clock = Arc::<SetClock>::default();
    let mut log = logs(&source(&clock))
        .into_iter()
        .find(|log| matches!(log.entry.payload, LogPayload::NewTransaction { .. }))
        .expect("a transaction");
    let LogPayload::NewTransaction { transaction, .. } = &mut log.entry.payload else { unreachable!() };
    let earlier = Timestamp::from_micros(log.entry.date.as_micros() - 5);
    (transaction.inserted_at, transaction.updated_at) = (earlier, earlier);
    let disk = SimDisk::new();
    let store = open(&disk, &clock);
    store.create_ledger(name(), LedgerOptions::default()).expect("a ledger");
    // The id is not part of the hashed text, but the position in the chain is.
    let hash = Some(ledger_core::wire_hash(None, &log.entry));
    store
        .import(
            &name(),
            &[ImportedLog { entry: log.entry.clone(), hash, original_updated_at: None, tells_volumes: true }],
        )
        .expect("the import succeeds");
    drop(store);
    let store = open(&disk, &clock);
    assert_eq!(logs(&store)[0].entry, log.entry);
    assert!(store.verify().expect("the verification runs").is_clean());
}
