//! The writer knows entries that wait for a flush from memory, because the index does not hold them yet.

use ledger_core::{Overdraft, RevertDate, RevertTransaction, Rules, TransactionId};

use super::*;
use crate::documents::{Collection, DocumentAction, DocumentChange, Expected};

/// Requests a flush that no thread carries out, so that everything written so far keeps waiting.
fn begin_flush(engine: &Engine) {
    flushes::begin_flush(engine, &mut engine.decider.lock());
}

fn outcome(engine: &Engine, command: Command) -> Outcome {
    let outcomes = apply(engine, vec![command], Atomicity::Independent, Mode::Commit).expect("an outcome");
    outcomes.into_iter().next().expect("one for each command")
}

#[test]
fn a_reference_that_waits_for_a_flush_is_taken() {
    let (engine, _) = engine(&Options::default());
    let paid = outcome(&engine, payment("world", "users:1", "a"));
    assert!(matches!(paid, Outcome::Done(_)), "{paid:?}");
    begin_flush(&engine);
    let again = outcome(&engine, payment("world", "users:1", "a"));
    assert!(matches!(again, Outcome::Refused(_)), "{again:?}");
}

#[test]
fn a_revert_that_waits_for_a_flush_is_known() {
    let (engine, _) = engine(&Options::default());
    let Outcome::Done(paid) = outcome(&engine, payment("world", "users:1", "")) else {
        panic!("it is accepted")
    };
    let revert = || {
        Command::RevertTransaction(RevertTransaction {
            id: paid.transaction.unwrap_or(TransactionId::new(0)),
            dated: RevertDate::Now,
            overdraft: Overdraft::Allow,
            metadata: Metadata::EMPTY,
            rules: Rules::default(),
        })
    };
    let reverted = outcome(&engine, revert());
    assert!(matches!(reverted, Outcome::Done(_)), "{reverted:?}");
    begin_flush(&engine);
    let again = outcome(&engine, revert());
    assert!(matches!(again, Outcome::Refused(_)), "{again:?}");
}

#[test]
fn a_document_that_waits_for_a_flush_is_known() {
    let (engine, _) = engine(&Options::default());
    let put = || {
        let change = DocumentChange {
            collection: Collection::new(20).expect("a number"),
            key: b"key".to_vec(),
            expected: Expected::Absent,
            action: DocumentAction::Put { value: b"value".to_vec(), keys: Vec::new() },
        };
        run(&engine, 1, |done| WorkItem::ChangeDocuments(vec![change], done))
    };
    assert!(put().is_ok());
    begin_flush(&engine);
    assert!(matches!(put(), Err(WriteError::Document(_))));
}
