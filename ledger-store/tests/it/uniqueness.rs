//! A unique value remains in use, regardless of how much is written afterwards.

use ledger_core::{Command, CreateTransaction, LedgerName, LedgerOptions, Posting, Reference, Rejection};
use ledger_store::{Atomicity, Detail, Mode, Options, Outcome, Store, Submission};

const REFERENCES: u32 = 60_000;
const BATCH: usize = 1_000;

fn referenced(number: u32) -> Command {
    let posting = Posting {
        source: "world".parse().expect("an address"),
        destination: "a".parse().expect("an address"),
        amount: 1_u64.into(),
        asset: "USD/2".parse().expect("an asset"),
    };
    let mut create = CreateTransaction::of([posting].into_iter().collect());
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
