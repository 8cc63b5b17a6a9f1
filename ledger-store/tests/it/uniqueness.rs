//! A unique value remains in use, regardless of how much is written afterwards. Every way to write compares the request
//! that an idempotency key protects.

use std::sync::mpsc;

use ledger_core::schema::Schema;
use ledger_core::{
    Command, CreateTransaction, Idempotency, IdempotencyKey, InsertSchema, LedgerName, LedgerOptions,
    Metadata, Overdraft, Posting, Reference, Rejection, RevertDate, RevertTransaction, Rules, SchemaVersion,
    Target,
};
use ledger_store::{
    AtomicWrite, Atomicity, Detail, LedgerCommand, LedgerError, Mode, Options, Outcome, Receipt, Request,
    Store, Submission, WriteError,
};

use crate::commit_future::block_on;

const REFERENCES: u32 = 60_000;
const BATCH: usize = 1_000;

fn payment(amount: u64) -> CreateTransaction {
    let posting = Posting {
        source: "world".parse().expect("an address"),
        destination: "a".parse().expect("an address"),
        amount: amount.into(),
        asset: "USD/2".parse().expect("an asset"),
    };
    CreateTransaction::of([posting].into_iter().collect())
}

fn referenced(number: u32) -> Command {
    let mut create = payment(1);
    create.reference = Some(Reference::parse(&format!("reference-{number}")).expect("a reference"));
    Command::CreateTransaction(create)
}

fn apply(store: &Store, numbers: impl Iterator<Item = u32>) -> Vec<Outcome> {
    let numbers: Vec<u32> = numbers.collect();
    let submit = |part: &[u32]| {
        let requests = part.iter().map(|number| referenced(*number).into()).collect();
        let ledger = LedgerName::parse("main").expect("a name");
        let (atomicity, mode, detail) = (Atomicity::Independent, Mode::Commit, Detail::Ids);
        store.apply(Submission { ledger, requests, atomicity, mode, detail }).expect("the store writes")
    };
    numbers.chunks(BATCH).flat_map(submit).collect()
}

/// Uses little memory, so that filters of the index replace the writer's uniqueness filter many times.
#[test]
fn reference_stays_taken_with_little_memory() {
    let mut options = Options::default();
    options.memory_budget = 1 << 20;
    let store = Store::in_memory_with(&options);
    let ledger = LedgerName::parse("main").expect("a name");
    store.create_ledger(ledger, LedgerOptions::default()).expect("a new ledger");
    let mut tried = 0;
    // After each batch of new references, tries a selection of all old ones.
    for start in (0..REFERENCES).step_by(BATCH) {
        let new = apply(&store, start..start + BATCH as u32);
        assert!(new.iter().all(|outcome| matches!(outcome, Outcome::Done(_))));
        let old = apply(&store, (0..start + BATCH as u32).rev().step_by(97));
        tried += old.len();
        let is_taken =
            |outcome: &Outcome| matches!(outcome, Outcome::Refused(Rejection::ReferenceTaken { .. }));
        assert!(
            old.iter().all(is_taken),
            "after {start}: {:?}",
            old.iter().find(|outcome| !is_taken(outcome))
        );
    }
    assert!(tried > 10_000);
    assert_eq!(store.status().entries, 1 + u64::from(REFERENCES));
}

type Answer = Result<Receipt, LedgerError>;

/// A public way to write one request.
type Path = fn(&Store, LedgerName, Request) -> Answer;

const PATHS: [(&str, Path); 12] = [
    ("apply-independent", |store, ledger, request| applied(store, ledger, [request], Atomicity::Independent)),
    ("apply-stop", |store, ledger, request| applied(store, ledger, [request], Atomicity::StopAtRefusal)),
    ("apply-all", |store, ledger, request| applied(store, ledger, [request], Atomicity::AllOrNothing)),
    ("apply-one", |store, ledger, request| applied(store, ledger, [request], Atomicity::AsOne)),
    ("apply-one-of-two", |store, ledger, request| {
        applied(store, ledger, [request, plain(payment(9))], Atomicity::AsOne)
    }),
    ("submit", |store, ledger, request| {
        let (send, answers) = mpsc::channel();
        let submission = submission(ledger, [request], Atomicity::Independent);
        store.submit(submission, move |answer| send.send(answer).expect("the test waits"));
        first(answers.recv().expect("an answer"))
    }),
    ("write-atomically", |store, ledger, request| first(store.write_atomically(write(ledger, request)))),
    ("submit-atomically", |store, ledger, request| {
        let (send, answers) = mpsc::channel();
        store.submit_atomically(write(ledger, request), move |answer| {
            send.send(answer).expect("the test waits");
        });
        first(answers.recv().expect("an answer"))
    }),
    ("batch", |store, ledger, request| {
        store.ledger(ledger.as_str())?.batch().push(request).commit().expect("answers").remove(0)
    }),
    ("batch-async", |store, ledger, request| {
        block_on(store.ledger(ledger.as_str())?.batch().push(request).commit_async())
            .expect("answers")
            .remove(0)
    }),
    ("atomic-batch", |store, ledger, request| {
        Ok(store.ledger(ledger.as_str())?.batch().push(request).atomic().commit()?.remove(0))
    }),
    ("atomic-batch-async", |store, ledger, request| {
        Ok(block_on(store.ledger(ledger.as_str())?.batch().push(request).atomic().commit_async())?.remove(0))
    }),
];

fn submission(
    ledger: LedgerName,
    requests: impl IntoIterator<Item = Request>,
    atomicity: Atomicity,
) -> Submission {
    let requests = requests.into_iter().collect();
    Submission { ledger, requests, atomicity, mode: Mode::Commit, detail: Detail::Ids }
}

fn applied<const N: usize>(
    store: &Store,
    ledger: LedgerName,
    requests: [Request; N],
    atomicity: Atomicity,
) -> Answer {
    first(store.apply(submission(ledger, requests, atomicity)))
}

fn write(ledger: LedgerName, request: Request) -> AtomicWrite {
    AtomicWrite { documents: vec![], commands: vec![LedgerCommand { ledger, request }] }
}

/// Returns the answer to the first request.
fn first(outcomes: Result<Vec<Outcome>, WriteError>) -> Answer {
    answer(outcomes.expect("outcomes").remove(0))
}

fn answer(outcome: Outcome) -> Answer {
    match outcome {
        Outcome::Done(receipt) => Ok(receipt),
        Outcome::Refused(rejection) => Err(LedgerError::Refused(rejection)),
        other => panic!("{other:?}"),
    }
}

fn plain(create: CreateTransaction) -> Request {
    Command::CreateTransaction(create).into()
}

/// Returns a request with an idempotency key, whose hash the store must compute.
fn keyed(command: Command) -> Request {
    let key = IdempotencyKey::parse("once").expect("a key");
    let idempotency = Some(Box::new(Idempotency { key, hash: "".into() }));
    Request { idempotency, ..Request::from(command) }
}

/// Returns pairs of different requests for each kind of command.
fn pairs() -> [[Command; 2]; 5] {
    let account = || Target::Account("a".parse().expect("an address"));
    let revert = |overdraft| {
        let (dated, metadata, rules) = (RevertDate::Now, Metadata::EMPTY, Rules::Current);
        Command::RevertTransaction(RevertTransaction { id: 1.into(), overdraft, dated, metadata, rules })
    };
    let set = |value| Command::SetMetadata { target: account(), metadata: Metadata::from([("tier", value)]) };
    let delete = |key: &str| Command::DeleteMetadata { target: account(), key: key.into() };
    let insert = |chart: &str| {
        let schema = Schema::parse(&format!(r#"{{"chart": {chart}}}"#)).expect("a schema");
        let version = SchemaVersion::parse("v1").expect("a version");
        Command::InsertSchema(InsertSchema { version, schema: Box::new(schema) })
    };
    [
        [1, 2].map(|amount| Command::CreateTransaction(payment(amount))),
        [Overdraft::Refuse, Overdraft::Allow].map(revert),
        ["gold", "silver"].map(set),
        ["tier", "name"].map(delete),
        [r#"{"users": {}}"#, r#"{"shops": {}}"#].map(insert),
    ]
}

fn is_conflict(answer: &Answer) -> bool {
    matches!(
        answer,
        Err(LedgerError::IdempotencyConflict { .. }
            | LedgerError::Refused(Rejection::IdempotencyMismatch { .. }))
    )
}

#[test]
fn every_write_compares_keys_without_hash() {
    let store = Store::in_memory();
    for (path, send) in PATHS {
        for (number, [once, other]) in pairs().into_iter().enumerate() {
            let case = format!("{path}-{number}");
            let ledger = LedgerName::parse(&case).expect("a name");
            store.create_ledger(ledger.clone(), LedgerOptions::default()).expect("a new ledger");
            applied(&store, ledger.clone(), [plain(payment(5))], Atomicity::Independent).expect("a payment");
            let send = |command: &Command| send(&store, ledger.clone(), keyed(command.clone()));
            let first = send(&once).expect(&case);
            let entries = store.status().entries;
            let again = send(&once).expect(&case);
            assert_eq!((first.replayed, again.replayed, again.log), (false, true, first.log), "{case}");
            let conflict = send(&other);
            assert!(is_conflict(&conflict), "{case}: {conflict:?}");
            assert_eq!(store.status().entries, entries, "{case}");
        }
    }
}

#[test]
fn dry_runs_compare_keys_without_hash() {
    let store = Store::in_memory();
    let ledger = LedgerName::parse("main").expect("a name");
    store.create_ledger(ledger.clone(), LedgerOptions::default()).expect("a new ledger");
    let trial = |requests: Vec<Request>| {
        let mut submission = submission(ledger.clone(), requests, Atomicity::Independent);
        submission.mode = Mode::DryRun;
        submission
    };
    for [once, other] in pairs() {
        let sent = vec![plain(payment(5)), keyed(once.clone()), keyed(once.clone()), keyed(other.clone())];
        let on_new = store.try_on_new_ledger(LedgerOptions::default(), trial(sent.clone()));
        for outcomes in [on_new, store.apply(trial(sent))] {
            let answers: Vec<Answer> = outcomes.expect("outcomes").into_iter().map(answer).collect();
            let [Ok(_), Ok(first), Ok(again), conflict] = &answers[..] else { panic!("{answers:?}") };
            assert_eq!((first.replayed, again.replayed, again.log), (false, true, first.log));
            assert!(is_conflict(conflict), "{conflict:?}");
        }
    }
    assert_eq!(store.status().entries, 1, "only the ledger was created");
}

#[test]
fn key_of_a_revert_is_compared() {
    let ledger = Store::in_memory().ledger("main").expect("a name");
    for _ in 0..2 {
        ledger.transaction().posting("world", "a", 5, "USD").commit().expect("a payment");
    }
    let revert = |id: u64| ledger.revert(id).idempotency_key("once");
    let first = revert(1).commit().expect("a revert");
    let again = revert(1).commit().expect("a replay");
    assert_eq!((first.replayed, again.replayed, again.id), (false, true, first.id));
    for other in
        [revert(2), revert(1).force(), revert(1).at_effective_date(), revert(1).metadata("why", "fraud")]
    {
        let conflict = other.commit();
        assert!(matches!(conflict, Err(LedgerError::IdempotencyConflict { .. })), "{conflict:?}");
    }
    assert_eq!(ledger.balance("a", "USD").expect("the read succeeds"), 5);
}
