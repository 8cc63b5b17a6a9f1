//! A read that fails while a command is decided fails only that command.

use ledger_core::{Overdraft, RevertDate, RevertTransaction, Rules, TransactionId};

use super::*;
use crate::error::ReadError;

/// A revert. The writer must read the original transaction from the journal.
fn revert(id: u64) -> Command {
    Command::RevertTransaction(RevertTransaction {
        id: TransactionId::new(id),
        dated: RevertDate::Now,
        overdraft: Overdraft::Refuse,
        metadata: Metadata::EMPTY,
        rules: Rules::default(),
    })
}

/// Creates an engine with some payments, and makes reads of its journal fail.
fn unreadable() -> (Arc<Engine>, Arc<ScriptedJournal>) {
    let (engine, journal) = engine(&Options::default());
    let payments = (0..3).map(|_| payment("world", "users:1", "")).collect();
    apply(&engine, payments, Atomicity::Independent, Mode::Commit).expect("outcomes");
    journal.fail_reads(true);
    (engine, journal)
}

#[test]
fn one_of_several_requests_fails_alone() {
    let (engine, journal) = unreadable();
    let commands = || vec![payment("world", "users:1", "a"), revert(1), payment("world", "users:1", "b")];
    let outcomes = apply(&engine, commands(), Atomicity::Independent, Mode::Commit).expect("outcomes");
    assert!(
        matches!(outcomes[..], [Outcome::Done(_), Outcome::Failed(ReadError::Io { .. }), Outcome::Done(_)]),
        "{outcomes:?}"
    );
    let commands = || vec![payment("world", "users:1", "c"), revert(1), payment("world", "users:1", "d")];
    let outcomes = apply(&engine, commands(), Atomicity::StopAtRefusal, Mode::Commit).expect("outcomes");
    assert!(
        matches!(outcomes[..], [Outcome::Done(_), Outcome::Failed(_), Outcome::Cancelled]),
        "{outcomes:?}"
    );
    journal.fail_reads(false);
    assert_eq!(engine.stopped(), None);
    let outcomes = apply(&engine, vec![revert(1)], Atomicity::Independent, Mode::Commit).expect("outcomes");
    assert!(matches!(outcomes[..], [Outcome::Done(_)]), "{outcomes:?}");
}

/// Fails each read that deciding the command needs, one after the other. Returns how many there were.
fn fail_each_read(engine: &Engine, command: &Command) -> u64 {
    for nth in 1.. {
        engine.fail_decision_read(nth);
        let answer = apply(engine, vec![command.clone()], Atomicity::Independent, Mode::Commit);
        assert_eq!(engine.stopped(), None, "read {nth} of {command:?}");
        if engine.fail_decision_read(0) {
            assert!(matches!(answer.as_deref(), Ok([Outcome::Done(_)])), "{answer:?}");
            return nth - 1;
        }
        assert!(matches!(answer, Err(WriteError::Read(_))), "{answer:?}");
    }
    unreachable!("there are fewer reads")
}

#[test]
fn changes_of_transactions_fail_before_they_begin() {
    let (engine, journal) = unreadable();
    journal.fail_reads(false);
    let mut metadata = Metadata::EMPTY;
    metadata.insert_text("note", "a");
    let target = Target::Transaction(TransactionId::new(1));
    let reads = fail_each_read(&engine, &Command::SetMetadata { target, metadata });
    assert!(reads >= 2, "{reads}: the original, and what happened to it since");
    let reads = fail_each_read(&engine, &revert(2));
    assert!(reads >= 2, "{reads}: the original, and what happened to it since");
}

#[test]
fn an_atomic_submission_fails_as_a_whole() {
    let (engine, journal) = unreadable();
    let next = engine.view().next;
    let commands = || vec![payment("world", "users:1", "a"), revert(1)];
    for (atomicity, mode) in [
        (Atomicity::AllOrNothing, Mode::Commit),
        (Atomicity::AsOne, Mode::Commit),
        (Atomicity::Independent, Mode::DryRun),
    ] {
        let answer = apply(&engine, commands(), atomicity, mode);
        assert!(matches!(answer, Err(WriteError::Read(_))), "{answer:?}");
    }
    assert_eq!((engine.view().next, engine.stopped()), (next, None));
    journal.fail_reads(false);
    // The reference is still free.
    let outcomes = apply(&engine, commands(), Atomicity::AllOrNothing, Mode::Commit).expect("outcomes");
    assert!(matches!(outcomes[..], [Outcome::Done(_), Outcome::Done(_)]), "{outcomes:?}");
}

#[test]
fn a_single_request_answers_the_read_error() {
    let (engine, journal) = unreadable();
    let answer = apply(&engine, vec![revert(1)], Atomicity::Independent, Mode::Commit);
    assert!(matches!(answer, Err(WriteError::Read(_))), "{answer:?}");
    journal.fail_reads(false);
    let outcomes = apply(&engine, vec![revert(1)], Atomicity::Independent, Mode::Commit).expect("outcomes");
    assert!(matches!(outcomes[..], [Outcome::Done(_)]), "{outcomes:?}");
}

#[test]
fn a_dry_run_that_cannot_be_told_wrote_nothing() {
    let (engine, journal) = unreadable();
    journal.fail_reads(false);
    let keyed = |mode| {
        let request = Request::once("once".parse().expect("a key"), payment("world", "users:1", ""));
        let (requests, atomicity) = (vec![request], Atomicity::Independent);
        let submission =
            Submission { ledger: main_ledger(), requests, atomicity, mode, detail: Detail::Entry };
        run(&engine, 1, |done| WorkItem::Apply(submission, Programs::default(), done))
    };
    keyed(Mode::Commit).expect("outcomes");
    journal.fail_reads(true);
    let answer = keyed(Mode::DryRun);
    assert!(matches!(answer, Err(WriteError::Read(_))), "{answer:?}");
    let answer = keyed(Mode::Commit);
    assert!(matches!(answer, Err(WriteError::OutcomeUnknown { .. })), "{answer:?}");
    assert_eq!(engine.stopped(), None);
}
