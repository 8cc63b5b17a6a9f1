//! Many concurrent callers: all writes have one order, without duplicates and gaps.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Barrier, mpsc};
use std::thread;

use ledger_core::{
    AccountAddress, Amount, Asset, Command, CreateTransaction, Idempotency, IdempotencyKey, LedgerName,
    LedgerOptions, Metadata, Posting, Rejection, Target, Timestamp,
};
use ledger_store::{
    Atomicity, Detail, Mode, Options, Outcome, Request, Store, Submission, SystemClock, TimeSource,
    WriteError,
};
use ledger_testkit::{DiskSpace, Faults, SimDisk};
use parking_lot::{Condvar, Mutex};

fn main_ledger() -> LedgerName {
    LedgerName::parse("main").expect("a name")
}

fn store() -> Store {
    let store = Store::in_memory();
    store.create_ledger(main_ledger(), LedgerOptions::default()).expect("a new ledger");
    store
}

fn send(source: &str, destination: &str, amount: u64) -> Command {
    let posting = Posting {
        source: AccountAddress::parse(source).expect("an address"),
        destination: AccountAddress::parse(destination).expect("an address"),
        amount: Amount::from(amount),
        asset: Asset::parse("USD/2").expect("an asset"),
    };
    Command::CreateTransaction(CreateTransaction::of([posting].into_iter().collect()))
}

fn submission(requests: Vec<Request>, atomicity: Atomicity) -> Submission {
    Submission { ledger: main_ledger(), requests, atomicity, mode: Mode::Commit, detail: Detail::Ids }
}

/// Runs `work` in `threads` threads that start at the same time, and collects the results.
fn together<T: Send>(threads: u64, work: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let barrier = Barrier::new(threads as usize);
    thread::scope(|scope| {
        let (barrier, work) = (&barrier, &work);
        let started: Vec<_> = (0..threads)
            .map(|number| {
                scope.spawn(move || {
                    barrier.wait();
                    work(number)
                })
            })
            .collect();
        started.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
    })
}

#[track_caller]
fn verified(store: &Store) {
    let report = store.verify().expect("the verification runs");
    assert!(report.is_clean(), "{}", report.to_json_lines());
}

#[test]
fn commits_one_of_equal_requests_with_one_key() {
    let store = store();
    for round in 0..20 {
        let key = IdempotencyKey::parse(&format!("key-{round}")).expect("a key");
        let request = || Request {
            schema_version: None,
            preconditions: None,
            command: send("world", "a", 1),
            idempotency: Some(Box::new(Idempotency { key: key.clone(), hash: "same".into() })),
        };
        let answers = together(8, |_| {
            let mut outcomes =
                store.apply(submission(vec![request()], Atomicity::Independent)).expect("the write succeeds");
            match outcomes.pop() {
                Some(Outcome::Done(receipt)) => (receipt.log, receipt.transaction, receipt.replayed),
                other => panic!("{other:?}"),
            }
        });
        let first = answers.iter().filter(|(_, _, replayed)| !replayed).count();
        assert_eq!(first, 1, "round {round}: {answers:?}");
        let ids: BTreeSet<_> = answers.iter().map(|(log, transaction, _)| (*log, *transaction)).collect();
        assert_eq!(ids.len(), 1, "round {round}: all get the one answer");
    }
    assert_eq!(store.status().entries, 1 + 20);
    verified(&store);
}

#[test]
fn parallel_creates_get_ids_without_gaps() {
    let store = store();
    let ids = together(8, |thread| {
        let mut ids = Vec::new();
        for round in 0..50 {
            let requests = vec![send("world", &format!("t:{thread}"), round).into(); 2];
            for outcome in
                store.apply(submission(requests, Atomicity::Independent)).expect("the write succeeds")
            {
                match outcome {
                    Outcome::Done(receipt) => ids.push(receipt.transaction.expect("a transaction").get()),
                    other => panic!("{other:?}"),
                }
            }
        }
        assert!(ids.is_sorted(), "what one caller does in order is in order");
        ids
    });
    let all: BTreeSet<u64> = ids.into_iter().flatten().collect();
    assert_eq!(all, (1..=800).collect());
    verified(&store);
}

#[test]
fn contended_submissions_stay_atomic() {
    let store = store();
    store
        .apply(submission(vec![send("world", "pool", 100).into()], Atomicity::Independent))
        .expect("the write succeeds");
    // Each submission takes 3 and then 4 from an account whose funds suffice for 14 submissions.
    let happened = together(8, |thread| {
        let mut happened = 0;
        for _ in 0..5 {
            let requests =
                vec![send("pool", &format!("t:{thread}"), 3).into(), send("pool", "fees", 4).into()];
            let outcomes =
                store.apply(submission(requests, Atomicity::AllOrNothing)).expect("the write succeeds");
            match outcomes.as_slice() {
                [Outcome::Done(_), Outcome::Done(_)] => happened += 1,
                [Outcome::Refused(Rejection::InsufficientFunds { .. }), Outcome::Cancelled]
                | [Outcome::Cancelled, Outcome::Refused(Rejection::InsufficientFunds { .. })] => {}
                other => panic!("{other:?}"),
            }
        }
        happened
    });
    assert_eq!(happened.iter().sum::<u64>(), 14);
    assert_eq!(store.status().entries, 1 + 1 + 28);
    verified(&store);
}

/// A clock that blocks the writer until the gate opens.
#[derive(Default)]
struct Gate {
    closed: Mutex<bool>,
    opened: Condvar,
}

struct GatedClock(Arc<Gate>);

impl TimeSource for GatedClock {
    fn now(&self) -> Timestamp {
        let mut closed = self.0.closed.lock();
        while *closed {
            self.0.opened.wait(&mut closed);
        }
        SystemClock.now()
    }
}

#[test]
fn full_queue_is_busy_until_it_drains() {
    let gate = Arc::<Gate>::default();
    let mut options = Options::default();
    options.memory_budget = 1 << 20;
    options.clock = Arc::new(GatedClock(gate.clone()));
    let store = Store::in_memory_with(&options);
    store.create_ledger(main_ledger(), LedgerOptions::default()).expect("a new ledger");
    *gate.closed.lock() = true;
    let mut metadata = Metadata::EMPTY;
    metadata.insert_text("text", &"x".repeat(10_000));
    let (sender, answers) = mpsc::channel();
    let mut sent = 0;
    let submit = || {
        let target = Target::Account(AccountAddress::parse("a").expect("an address"));
        let command = Command::SetMetadata { target, metadata: metadata.clone() };
        let sender = sender.clone();
        store.submit(submission(vec![command.into()], Atomicity::Independent), move |answer| {
            sender.send(answer).expect("somebody waits");
        });
    };
    // The writer is blocked, so only a refusal is answered.
    let refused = loop {
        submit();
        sent += 1;
        if let Ok(answer) = answers.try_recv() {
            break answer;
        }
        assert!(sent < 1_000, "the queue has no bound");
    };
    assert_eq!(refused, Err(WriteError::Busy));
    *gate.closed.lock() = false;
    gate.opened.notify_all();
    for _ in 1..sent {
        assert!(matches!(answers.recv().expect("an answer").as_deref(), Ok([Outcome::Done(_)])));
    }
    submit();
    assert!(answers.recv().expect("an answer").is_ok());
    assert_eq!(store.status().entries, 1 + sent);
    verified(&store);
}

#[test]
fn nearly_full_disk_refuses_writes_until_freed() {
    let disk = SimDisk::new();
    let options = Options::default();
    let store =
        Store::open_on_disk(Arc::new(disk.clone()), Path::new("data"), &options).expect("the store opens");
    store.create_ledger(main_ledger(), LedgerOptions::default()).expect("a new ledger");
    let pay = || store.apply(submission(vec![send("world", "a", 1).into()], Atomicity::Independent));
    let free = |free| {
        let space = Some(DiskSpace { total: 1 << 30, free });
        disk.set_faults(Faults { space, ..Faults::default() });
    };
    free(1 << 29);
    assert!(pay().is_ok());
    free(1 << 20);
    let entries = store.status().entries;
    assert_eq!(pay(), Err(WriteError::DiskNearlyFull));
    let other = LedgerName::parse("other").expect("a name");
    let created = store.create_ledger(other, LedgerOptions::default());
    assert!(matches!(created, Err(WriteError::DiskNearlyFull)), "{created:?}");
    // The store writes nothing for these commands, or they are the way to free space.
    let mut tried = submission(vec![send("world", "a", 1).into()], Atomicity::Independent);
    tried.mode = Mode::DryRun;
    assert!(matches!(store.apply(tried).as_deref(), Ok([Outcome::Done(_)])));
    assert_eq!(store.status().entries, entries);
    let bucket = ledger_core::BucketName::parse("_default").expect("a name");
    store.delete_bucket(&bucket).expect("marked");
    store.restore_bucket(&bucket).expect("marked");
    assert_eq!(store.status().stopped, None);
    free(1 << 29);
    assert!(pay().is_ok());
    verified(&store);
}

#[test]
fn a_full_disk_refuses_before_anything_is_decided() {
    let disk = SimDisk::new();
    let mut options = Options::default();
    options.segment_bytes = 64 << 10;
    let store =
        Store::open_on_disk(Arc::new(disk.clone()), Path::new("data"), &options).expect("the store opens");
    store.create_ledger(main_ledger(), LedgerOptions::default()).expect("a new ledger");
    let pay = || store.apply(submission(vec![send("world", "a", 1).into()], Atomicity::Independent));
    disk.set_faults(Faults { is_full: true, ..Faults::default() });
    let refused = (0..5_000).find_map(|_| pay().err());
    assert_eq!(refused, Some(WriteError::DiskNearlyFull));
    assert_eq!(store.status().stopped, None);
    disk.set_faults(Faults::default());
    assert!(pay().is_ok());
    verified(&store);
}

#[test]
fn closed_store_refuses_writes_as_stopped() {
    let store = store();
    store.close().expect("the store closes");
    let refused = store.apply(submission(vec![send("world", "a", 1).into()], Atomicity::Independent));
    assert!(matches!(refused, Err(WriteError::Stopped { .. })), "{refused:?}");
    verified(&store);
}
