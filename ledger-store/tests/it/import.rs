//! Logs of one store taken over by another.

use std::path::Path;
use std::sync::Arc;

use ledger_core::Filter;
use ledger_core::{
    AccountAddress, Asset, Command, CreateTransaction, LedgerName, LedgerOptions, LogId, LogPayload,
    Metadata, Movement, Overdraft, Posting, Reference, Resource, RevertDate, RevertTransaction, Rules,
    Target, Timestamp, TransactionId, WireHash,
};
use ledger_store::testing::{Dice, Disk, SetClock, SimDisk};
use ledger_store::{
    Atomicity, Detail, Direction, ImportError, ImportRefusal, ImportedLog, LogHashes, LogQuery, LogView,
    Mode, Options, Outcome, PageRequest, Request, Start, Store, Submission,
};

fn name() -> LedgerName {
    LedgerName::parse("main").expect("a name")
}

fn open(disk: &SimDisk, clock: &Arc<SetClock>) -> Store {
    let mut options = Options::default();
    options.clock = clock.clone();
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    Store::open_on_disk(disk, Path::new("data"), &options).expect("it opens")
}

fn run(store: &Store, command: Command) -> Outcome {
    let submission = Submission {
        ledger: name(),
        requests: vec![Request { command, idempotency: None }],
        atomicity: Atomicity::Independent,
        mode: Mode::Commit,
        detail: Detail::Ids,
    };
    store.apply(submission).expect("it is written").pop().expect("one answer")
}

fn pay(
    source: &str,
    destination: &str,
    amount: u64,
    at: Option<Timestamp>,
    reference: Option<&str>,
) -> Command {
    Command::CreateTransaction(CreateTransaction {
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

/// A store with some hundreds of logs of all kinds.
fn source(clock: &Arc<SetClock>) -> Store {
    let store = open(&SimDisk::new(), clock);
    store.create_ledger(name(), LedgerOptions::default()).expect("a ledger");
    let mut dice = Dice::from_seed(7);
    for step in 0..400_u64 {
        clock.set(Timestamp::from_micros(1_700_000_000_000_000 + step as i64 * 1_000_003));
        let user = format!("users:{}", dice.below(9));
        let command = match dice.below(8) {
            0 => Command::SetMetadata {
                target: Target::Account(AccountAddress::parse(&user).expect("an address")),
                metadata: [("tier", "gold")].into_iter().collect(),
            },
            1 => Command::DeleteMetadata {
                target: Target::Account(AccountAddress::parse(&user).expect("an address")),
                key: "tier".into(),
            },
            2 => Command::RevertTransaction(RevertTransaction {
                id: TransactionId::new(dice.below(step + 1)),
                dated: if dice.below(2) == 0 { RevertDate::Now } else { RevertDate::OfOriginal },
                overdraft: Overdraft::Allow,
                metadata: Metadata::EMPTY,
                rules: Rules::default(),
            }),
            3 => Command::SetMetadata {
                target: Target::Transaction(TransactionId::new(dice.below(step + 1))),
                metadata: [("note", "x")].into_iter().collect(),
            },
            4 => {
                let earlier = Timestamp::from_micros(1_690_000_000_000_000 + dice.below(1_000) as i64);
                pay("world", &user, 5, Some(earlier), None)
            }
            5 => pay("world", &user, 7, None, Some(&format!("r{step}"))),
            _ => pay(&user, "shop", u64::MAX, None, None),
        };
        run(&store, command);
    }
    store
}

fn logs(store: &Store) -> Vec<LogView> {
    let view = store.snapshot().ledger(&name()).expect("it is there");
    let filter = Filter::all(Resource::Logs);
    let mut all = Vec::new();
    let mut start = Start::First;
    loop {
        let page = PageRequest { size: 100, direction: Direction::Ascending, start };
        let page =
            view.logs(&LogQuery { filter: filter.clone(), hashes: LogHashes::Wire, page }).expect("it reads");
        let Some(last) = page.items.last() else { return all };
        start = Start::After(last.entry.id);
        all.extend(page.items);
    }
}

fn imported(logs: &[LogView]) -> Vec<ImportedLog> {
    logs.iter()
        .map(|log| ImportedLog { entry: log.entry.clone(), hash: log.hash.map(WireHash::from_bytes) })
        .collect()
}

#[test]
fn a_ledger_of_imported_logs_is_the_one_that_they_came_from() {
    let clock = Arc::<SetClock>::default();
    let original = logs(&source(&clock));
    assert!(original.len() > 300, "{}", original.len());
    let disk = SimDisk::new();
    let store = open(&disk, &clock);
    store.create_ledger(name(), LedgerOptions::default()).expect("a ledger");
    for part in original.chunks(90) {
        store.import(&name(), &imported(part)).expect("they follow each other");
    }
    assert_eq!(logs(&store), original);
    drop(store);
    let store = open(&disk, &clock);
    assert_eq!(logs(&store), original, "also after an opening");
    let refused = store.import(&name(), &imported(&original[..1]));
    let refusal = ImportRefusal::LogExists;
    assert_eq!(refused, Err(ImportError::Refused { log: original[0].entry.id, refusal }));
    // What is written now goes on behind, and ends the importing.
    clock.set(Timestamp::from_micros(1_800_000_000_000_000));
    let Outcome::Done(receipt) = run(&store, pay("world", "users:1", 1, None, None)) else {
        panic!("it is accepted")
    };
    let last = original.last().expect("there are some").entry.id;
    assert_eq!(receipt.log, LogId::new(last.get() + 1));
    let mut next = original.last().expect("there are some").clone();
    next.entry.id = LogId::new(1_000_000);
    let refused = store.import(&name(), &imported(&[next]));
    assert!(
        matches!(refused, Err(ImportError::Refused { refusal: ImportRefusal::InUse, .. })),
        "{refused:?}"
    );
    let report = store.verify().expect("there is room");
    assert!(report.is_clean(), "{}", report.to_json_lines());
}

#[test]
fn a_log_that_was_changed_is_found_and_those_before_it_stay() {
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
    store.import(&name(), &imported(&original[20..])).expect("it goes on where it was left");
    assert_eq!(logs(&store), original);
}

#[test]
fn a_transaction_keeps_the_date_at_which_it_was_first_recorded() {
    let clock = Arc::<SetClock>::default();
    let mut log = logs(&source(&clock))
        .into_iter()
        .find(|log| matches!(log.entry.payload, LogPayload::NewTransaction { .. }))
        .expect("there are transactions");
    let LogPayload::NewTransaction { transaction, .. } = &mut log.entry.payload else { unreachable!() };
    let earlier = Timestamp::from_micros(log.entry.date.as_micros() - 5);
    (transaction.inserted_at, transaction.updated_at) = (earlier, earlier);
    let disk = SimDisk::new();
    let store = open(&disk, &clock);
    store.create_ledger(name(), LedgerOptions::default()).expect("a ledger");
    // It is not part of what is hashed, but its place in the chain is.
    let hash = Some(ledger_core::wire_hash(None, &log.entry));
    store.import(&name(), &[ImportedLog { entry: log.entry.clone(), hash }]).expect("it is taken");
    drop(store);
    let store = open(&disk, &clock);
    assert_eq!(logs(&store)[0].entry, log.entry);
    assert!(store.verify().expect("there is room").is_clean());
}
