//! A failure in the middle of applying an entry stops all writing.

use ledger_core::Timestamp;
use ledger_journal::JournalReader;
use ledger_journal::entry::{Body, Event, LogRecord, Record};

use super::*;

/// Makes the writer fail in the middle of applying the next logs of `main`, as if the journal had already used their
/// ids.
fn refuse_logs(engine: &Engine) {
    let log = LogRecord {
        ledger: 1,
        log: 1_000,
        date: Timestamp::from_micros(0),
        idempotency: None,
        schema_version: None,
        imported: false,
        event: Event::InsertedSchema { schema: "" },
    };
    let mut state = engine.decider.lock();
    let position = state.next;
    state.used_numbers.note(&Record { position, body: Body::Log(log) });
}

fn pay(engine: &Engine, payments: usize) -> Result<Vec<Outcome>, WriteError> {
    let commands = (0..payments).map(|_| payment("world", "users:1", "")).collect();
    apply(engine, commands, Atomicity::Independent, Mode::Commit)
}

#[track_caller]
fn check_stops(payments: usize) {
    let (engine, journal) = engine(&Options::default());
    let head = journal.head();
    refuse_logs(&engine);
    let answer = pay(&engine, payments);
    assert!(answer.is_err(), "{answer:?}");
    assert!(engine.stopped().is_some());
    let answer = pay(&engine, 1);
    assert!(matches!(answer, Err(WriteError::Stopped { .. })), "{answer:?}");
    assert_eq!((journal.head(), engine.view().next), (head, head.next));
}

#[test]
fn a_half_applied_command_stops_the_writing() {
    check_stops(1);
}

#[test]
fn one_half_applied_of_several_stops_the_writing() {
    check_stops(3);
}
