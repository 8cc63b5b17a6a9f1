//! A store keeps acknowledged writes, and refuses writes that break a rule.

use ledger_core::{
    AccountAddress, Amount, Asset, Command, CreateTransaction, Idempotency, IdempotencyKey, LedgerName,
    LedgerOptions, Posting, Rejection, RevertTransaction, TransactionId,
};
use ledger_store::{Atomicity, Detail, Mode, Outcome, Request, Store, Submission};

fn name(text: &str) -> LedgerName {
    LedgerName::parse(text).expect("a name")
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

fn apply(store: &Store, commands: Vec<Command>) -> Vec<Outcome> {
    let submission = Submission {
        ledger: name("main"),
        requests: commands.into_iter().map(Request::from).collect(),
        atomicity: Atomicity::Independent,
        mode: Mode::Commit,
        detail: Detail::Entry,
    };
    store.apply(submission).expect("the store takes writes")
}

fn ids(outcomes: &[Outcome]) -> Vec<Option<u64>> {
    outcomes
        .iter()
        .map(|outcome| match outcome {
            Outcome::Done(receipt) => receipt.transaction.map(TransactionId::get),
            Outcome::Refused(_) | Outcome::Cancelled | Outcome::Failed(_) => None,
        })
        .collect()
}

#[test]
fn refused_command_takes_no_id() {
    let store = Store::in_memory();
    store.create_ledger(name("main"), LedgerOptions::default()).expect("a new ledger");
    let outcomes = apply(
        &store,
        vec![send("world", "a", 100), send("a", "b", 101), send("a", "b", 100), send("b", "c", 1)],
    );
    assert_eq!(ids(&outcomes), [Some(1), None, Some(2), Some(3)]);
    assert!(matches!(&outcomes[1], Outcome::Refused(Rejection::InsufficientFunds { .. })), "{outcomes:?}");
}

#[test]
fn reopened_store_continues_where_it_stopped() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("data");
    for round in 0..4_u64 {
        let store = Store::open(&path).expect("the store opens");
        if round == 0 {
            store.create_ledger(name("main"), LedgerOptions::default()).expect("a new ledger");
        }
        assert_eq!(store.opening().rebuilt, None);
        let outcomes = apply(&store, vec![send("world", "a", 5), send("a", &format!("b:{round}"), 4)]);
        assert_eq!(ids(&outcomes), [Some(round * 2 + 1), Some(round * 2 + 2)]);
        let too_much = apply(&store, vec![send("a", "b", round + 2)]);
        assert_eq!(ids(&too_much), [None], "{too_much:?}");
        if round % 2 == 0 {
            store.close().expect("the store closes");
        }
    }
    std::fs::remove_file(path.join("index/index.redb")).expect("there is an index");
    let store = Store::open(&path).expect("the store opens without its index");
    assert!(store.opening().rebuilt.is_some());
    let revert = Command::RevertTransaction(RevertTransaction {
        id: TransactionId::new(2),
        overdraft: ledger_core::Overdraft::Refuse,
        dated: ledger_core::RevertDate::Now,
        metadata: ledger_core::Metadata::EMPTY,
        rules: ledger_core::Rules::Current,
    });
    let outcomes = apply(&store, vec![revert.clone(), revert, send("a", "z", 8)]);
    assert_eq!(ids(&outcomes), [Some(9), None, Some(10)], "{outcomes:?}");
    assert!(matches!(outcomes[1], Outcome::Refused(Rejection::AlreadyReverted { .. })));
}

#[test]
fn returns_the_chain_of_every_earlier_commit() {
    let store = Store::in_memory();
    let mut kept = vec![store.status()];
    store.create_ledger(name("main"), LedgerOptions::default()).expect("a new ledger");
    for at in 0..5 {
        apply(&store, (0..=at).map(|_| send("world", "a", 1)).collect());
        kept.push(store.status());
    }
    for status in &kept {
        let chain = store.chain_at(status.entries).expect("the read succeeds");
        assert_eq!(chain.as_ref(), Some(&status.chain), "{}", status.entries);
    }
    let last = kept.last().expect("a status").entries;
    // Positions within the last commit and beyond it have no chain.
    assert_eq!([last - 1, last + 1].map(|entries| store.chain_at(entries)), [Ok(None), Ok(None)]);
    let other = Store::in_memory();
    assert_ne!(other.chain_at(0), store.chain_at(0));
}

#[test]
fn dry_run_replays_a_key_of_the_same_submission() {
    let store = Store::in_memory();
    store.create_ledger(name("main"), LedgerOptions::default()).expect("a new ledger");
    let request = || Request {
        schema_version: None,
        preconditions: None,
        command: send("world", "a", 1),
        idempotency: Some(Box::new(Idempotency {
            key: IdempotencyKey::parse("once").expect("a key"),
            hash: "same".into(),
        })),
    };
    let submission = |mode| Submission {
        ledger: name("main"),
        requests: vec![send("world", "b", 1).into(), request(), request()],
        atomicity: Atomicity::Independent,
        mode,
        detail: Detail::Entry,
    };
    let dry = store.apply(submission(Mode::DryRun)).expect("an answer");
    let [Outcome::Done(_), Outcome::Done(first), Outcome::Done(second)] = dry.as_slice() else {
        panic!("{dry:?}");
    };
    assert_eq!((first.replayed, second.replayed), (false, true));
    assert_eq!((first.log, first.transaction, &first.entry), (second.log, second.transaction, &second.entry));
    assert_eq!(store.status().entries, 1);
    let done = store.apply(submission(Mode::Commit)).expect("an answer");
    assert_eq!(ids(&done), [Some(1), Some(2), Some(2)]);
}

#[test]
fn dry_run_shows_ids_of_the_next_writes() {
    let store = Store::in_memory();
    let submission = |mode| Submission {
        ledger: name("main"),
        requests: vec![send("world", "a", 1).into(), send("nobody", "a", 1).into(), send("a", "b", 1).into()],
        atomicity: Atomicity::Independent,
        mode,
        detail: Detail::Ids,
    };
    let logs = |outcomes: &[Outcome]| -> Vec<Option<u64>> {
        let log = |outcome: &Outcome| match outcome {
            Outcome::Done(receipt) => Some(receipt.log.get()),
            Outcome::Refused(_) | Outcome::Cancelled | Outcome::Failed(_) => None,
        };
        outcomes.iter().map(log).collect()
    };
    let mut shown =
        store.try_on_new_ledger(LedgerOptions::default(), submission(Mode::DryRun)).expect("an answer");
    store.create_ledger(name("main"), LedgerOptions::default()).expect("a new ledger");
    for first in [1, 3] {
        let dry = store.apply(submission(Mode::DryRun)).expect("an answer");
        let again = store.apply(submission(Mode::DryRun)).expect("an answer");
        let done = store.apply(submission(Mode::Commit)).expect("an answer");
        assert_eq!(ids(&done), [Some(first), None, Some(first + 1)]);
        for dry in [&shown, &dry, &again] {
            assert_eq!((ids(dry), logs(dry)), (ids(&done), logs(&done)));
        }
        shown = store.apply(submission(Mode::DryRun)).expect("an answer");
    }
}
