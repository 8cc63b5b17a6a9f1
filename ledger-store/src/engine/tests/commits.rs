//! Readers and writers during an append, and after a failed one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ledger_core::{Rejection, Timestamp};
use ledger_journal::JournalReader;

use super::*;
use crate::engine::lead::BATCH_BYTES;
use crate::engine::queue::PART_BYTES;
use crate::flush::Watermark;
use crate::options::TimeSource;

fn pay(engine: &Engine, reference: &str) -> Result<Vec<Outcome>, WriteError> {
    let payment = payment("world", "users:1", reference);
    apply(engine, vec![payment], Atomicity::Independent, Mode::Commit)
}

/// Returns a generous time limit for work like `work`, measured on this machine now. A test that waits this long does
/// not mistake a slow thread for a blocked one.
fn timeout_for(work: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    work();
    (begun.elapsed() * 20).max(Duration::from_millis(100))
}

/// A clock that counts its calls. The writer asks for the time once per batch, so a test sees how many batches were
/// begun.
#[derive(Default)]
struct Counting(AtomicU64);

impl Counting {
    fn wait_for(&self, asked: u64) {
        while self.0.load(Ordering::SeqCst) < asked {
            thread::yield_now();
        }
    }
}

impl TimeSource for Counting {
    fn now(&self) -> Timestamp {
        let asked = self.0.fetch_add(1, Ordering::SeqCst);
        Timestamp::from_micros(1_700_000_000_000_000 + asked as i64)
    }
}

/// Creates an engine with a counting clock.
fn counted() -> (Arc<Engine>, Arc<ScriptedJournal>, Arc<Counting>) {
    let clock = Arc::new(Counting::default());
    let options = Options { clock: clock.clone(), ..Options::default() };
    let (engine, journal) = engine(&options);
    (engine, journal, clock)
}

#[test]
fn readers_see_no_write_before_its_append_returns() {
    let (engine, journal) = engine(&Options::default());
    let reader = Arc::downgrade(&engine);
    let looks = Arc::new(AtomicU64::new(0));
    let looked = looks.clone();
    journal.look(move |head| {
        let view = reader.upgrade().expect("it is used").view();
        assert_eq!(view.next, head.next, "a reader sees what can still be lost");
        let logs = view.heads.get(1).map(|head| head.counters.next_log);
        assert_eq!(logs, Some(1 + looked.fetch_add(1, Ordering::SeqCst) / 2));
    });
    for _ in 0..3 {
        pay(&engine, "").expect("outcomes");
    }
    assert_eq!(looks.load(Ordering::SeqCst), 6, "twice in each append");
    assert_eq!(engine.view().next, journal.head().next);
}

#[test]
fn a_failed_append_stops_the_writing() {
    let (engine, journal) = engine(&Options::default());
    journal.fail_appends(true);
    let answer = pay(&engine, "");
    assert!(matches!(answer, Err(WriteError::OutcomeUnknown { .. })), "{answer:?}");
    journal.fail_appends(false);
    let answer = pay(&engine, "");
    assert!(matches!(answer, Err(WriteError::Stopped { .. })), "{answer:?}");
    assert!(engine.stopped().is_some());
    assert_eq!(engine.view().next, journal.head().next, "nothing is behind the failed append");
}

#[test]
fn refusals_decided_on_a_failed_batch_are_not_told() {
    let (engine, journal, clock) = counted();
    let asked = clock.0.load(Ordering::SeqCst);
    journal.hold();
    journal.fail_appends(true);
    thread::scope(|scope| {
        let first = scope.spawn(|| pay(&engine, "a"));
        journal.wait_for_append();
        // The queue is so long that the second batch is decided before the first is committed. It sees the reference
        // as taken.
        let second = scope.spawn(|| {
            let commands = vec![payment("world", "users:1", "a")];
            apply_sized(&engine, PART_BYTES, commands, Atomicity::Independent, Mode::Commit)
        });
        clock.wait_for(asked + 2);
        journal.release();
        let first = first.join().expect("it returns");
        assert!(matches!(first, Err(WriteError::OutcomeUnknown { .. })), "{first:?}");
        match second.join().expect("it returns") {
            Err(WriteError::Stopped { .. }) => {}
            Err(error) => panic!("{error}"),
            Ok(outcomes) => panic!("told as certain: {outcomes:?}"),
        }
    });
}

#[test]
fn a_refusal_waits_for_what_it_was_decided_upon() {
    let (engine, journal, clock) = counted();
    let asked = clock.0.load(Ordering::SeqCst);
    journal.hold();
    thread::scope(|scope| {
        let first = scope.spawn(|| pay(&engine, "a"));
        journal.wait_for_append();
        let second = scope.spawn(|| {
            let commands = vec![payment("world", "users:1", "a")];
            apply_sized(&engine, PART_BYTES, commands, Atomicity::Independent, Mode::Commit)
        });
        clock.wait_for(asked + 2);
        journal.release();
        assert!(first.join().expect("it returns").is_ok());
        let outcomes = second.join().expect("it returns").expect("it is decided");
        assert!(matches!(outcomes[..], [Outcome::Refused(Rejection::ReferenceTaken { .. })]), "{outcomes:?}");
    });
}

#[test]
fn no_thread_decides_while_a_batch_waits() {
    let (engine, journal, clock) = counted();
    let timeout = timeout_for(|| assert!(pay(&engine, "").is_ok()));
    let asked = clock.0.load(Ordering::SeqCst);
    journal.hold();
    thread::scope(|scope| {
        let first = scope.spawn(|| pay(&engine, ""));
        journal.wait_for_append();
        let second = scope.spawn(|| {
            let commands = vec![payment("world", "users:1", "")];
            apply_sized(&engine, BATCH_BYTES, commands, Atomicity::Independent, Mode::Commit)
        });
        clock.wait_for(asked + 2);
        // If the lock were free, a third batch could commit before the second.
        let decider = engine.decider.try_lock_for(timeout).is_some();
        journal.release();
        assert!(!decider, "the decider was let go of before the turn was taken");
        assert!(first.join().expect("it returns").is_ok());
        assert!(second.join().expect("it returns").is_ok());
    });
    assert_eq!(engine.stopped(), None);
}

#[test]
fn a_flush_holds_the_batch_under_way_when_it_began() {
    let (engine, journal) = engine(&Options::default());
    let timeout = timeout_for(|| {
        thread::scope(|scope| {
            flushes::begin_flush(&engine, &mut engine.decider.lock());
            engine.flushes.lock().stop = true;
            scope.spawn(|| background::flush_loop(&engine));
        });
    });
    journal.hold();
    thread::scope(|scope| {
        let payment = scope.spawn(|| pay(&engine, "a"));
        journal.wait_for_append();
        flushes::begin_flush(&engine, &mut engine.decider.lock());
        engine.flushes.lock().stop = true;
        let flusher = scope.spawn(|| background::flush_loop(&engine));
        // A flusher that does not wait would end before the append returns.
        let begun = Instant::now();
        while begun.elapsed() < timeout && !flusher.is_finished() {
            thread::yield_now();
        }
        let has_waited = !flusher.is_finished();
        journal.release();
        assert!(has_waited, "the flush did not wait for the batch under way");
        payment.join().expect("it returns").expect("outcomes");
        flusher.join().expect("it ends");
    });
    let view = engine.view();
    assert!(view.memtables.is_empty(), "the flush holds everything");
    let through = Watermark::read(&view.index).expect("it is there").expect("it was written").next;
    assert_eq!(through, journal.head().next);
    let logs = view.table(|memtable| &memtable.logs);
    assert!(logs.get((1, 1)).expect("it can be read").is_some(), "the index has the log of the payment");
}
