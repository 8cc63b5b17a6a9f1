//! Stops all writes when a panic interrupts a write or ends a background thread. A panic is a bug and may leave the
//! store's state half changed, so no later write may build on it. Callers that wait for the thread get an error instead
//! of waiting forever.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Engine;
use super::work::FAULT;

/// Guard that stops all writes if a panic drops it. Declare it after the lock guards of the state that it protects:
/// local variables drop in reverse order, so the store stops before it releases the locks over half-changed state.
pub(super) struct StopOnPanic<'a> {
    engine: &'a Engine,
    /// True if the thread was already unwinding when it made the guard. A destructor of the application may write while
    /// its thread unwinds. That panic is not a bug in the store.
    was_panicking: bool,
}

impl<'a> StopOnPanic<'a> {
    pub(super) fn new(engine: &'a Engine) -> Self {
        Self { engine, was_panicking: std::thread::panicking() }
    }
}

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() && !self.was_panicking {
            self.engine.stop_writing(FAULT);
        }
    }
}

/// Runs the loop of a background thread. If it panics, stops all writes and wakes those who wait for a flush.
pub(crate) fn run_thread(engine: &Engine, name: &str, run: fn(&Engine)) {
    if catch_unwind(AssertUnwindSafe(|| run(engine))).is_err() {
        engine.stop_writing(&format!("{name} met a fault of this program"));
        // Nothing to wake for the hashing thread: those who wait for it check every 100 ms whether the store has
        // stopped or their time is up.
        engine.fail_flushes();
    }
}

/// Runs one batch, or a flush, and survives its panic, because the thread must still answer the callers of later
/// batches. If the panic left the state half changed, [`StopOnPanic`] has stopped all writes, and later callers
/// receive an error.
pub(crate) fn catch_panic(engine: &Engine, batch: impl FnOnce(&Engine)) {
    // Ignore the panic: unwinding dropped the batch's `Callback`s, which told its callers that the outcome is unknown.
    let _ = catch_unwind(AssertUnwindSafe(|| batch(engine)));
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;

    use ledger_core::{Command, CreateTransaction, LedgerName, LedgerOptions, Postings, Timestamp};

    use super::run_thread;
    use crate::engine::{Callback, Engine, WorkItem, flushes, lead};
    use crate::error::WriteError;
    use crate::options::{Options, SystemClock, TimeSource};
    use crate::store::Store;
    use crate::submission::{Atomicity, Detail, Mode, Request, Submission};

    /// A clock that panics while its flag is set. The writer reads the clock while it holds the lock of its state.
    #[derive(Default)]
    struct Trap(AtomicBool);

    impl TimeSource for Trap {
        fn now(&self) -> Timestamp {
            assert!(!self.0.load(Ordering::Relaxed), "the test panics here");
            SystemClock.now()
        }
    }

    fn main_ledger() -> LedgerName {
        LedgerName::parse("main").expect("a name")
    }

    fn payment() -> Submission {
        Submission {
            ledger: main_ledger(),
            requests: vec![Request::from(Command::CreateTransaction(CreateTransaction::of(
                Postings::default(),
            )))],
            atomicity: Atomicity::Independent,
            mode: Mode::Commit,
            detail: Detail::Ids,
        }
    }

    #[test]
    fn a_panic_while_deciding_ends_the_writing() {
        let clock = Arc::new(Trap::default());
        let store = Store::in_memory_with(&Options { clock: clock.clone(), ..Options::default() });
        store.create_ledger(main_ledger(), LedgerOptions::default()).expect("a new ledger");
        clock.0.store(true, Ordering::Relaxed);
        let (sender, receiver) = mpsc::channel();
        store.submit(payment(), move |answer| sender.send(answer).expect("the test waits"));
        let answer = receiver.recv().expect("an answer");
        assert!(matches!(answer, Err(WriteError::OutcomeUnknown { .. })), "{answer:?}");
        clock.0.store(false, Ordering::Relaxed);
        // The calling thread may run the first write itself. The writer thread, which has panicked once, runs the
        // second.
        let answer = store.apply(payment());
        assert!(matches!(answer, Err(WriteError::Stopped { .. })), "{answer:?}");
        let (sender, receiver) = mpsc::channel();
        store.submit(payment(), move |answer| sender.send(answer).expect("the test waits"));
        let answer = receiver.recv().expect("an answer");
        assert!(matches!(answer, Err(WriteError::Stopped { .. })), "{answer:?}");
        assert!(matches!(store.close(), Err(WriteError::Stopped { .. })));
    }

    /// Writes to a store in its destructor, while its thread unwinds.
    struct Cleaner<'a>(&'a Store);

    impl Drop for Cleaner<'_> {
        fn drop(&mut self) {
            self.0.apply(payment()).expect("the store takes writes");
        }
    }

    #[test]
    fn a_panic_of_the_application_is_none_of_the_store() {
        let store = Store::in_memory();
        store.create_ledger(main_ledger(), LedgerOptions::default()).expect("a new ledger");
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _cleaner = Cleaner(&store);
            panic!("the test panics here");
        }));
        assert!(panicked.is_err());
        let (sender, receiver) = mpsc::channel();
        store.submit(payment(), move |answer| {
            sender.send(answer.is_ok()).expect("the test waits");
            panic!("the test panics here");
        });
        assert!(receiver.recv().expect("an answer"));
        store.apply(payment()).expect("the store takes writes");
        store.close().expect("nothing has failed");
    }

    #[test]
    fn panicked_flusher_blocks_no_waiter() {
        let engine = Engine::in_memory(&Options::default());
        let (sender, receiver) = mpsc::channel();
        let done = Callback::new(move |answer| sender.send(answer.is_ok()).expect("the test waits"));
        lead::submit_here(&engine, WorkItem::CreateLedger(main_ledger(), LedgerOptions::default(), done), 1);
        assert!(receiver.recv().expect("an answer"));
        flushes::flush_pending(&engine);
        run_thread(&engine, "the flusher", |_| panic!("the test panics here"));
        flushes::wait_for_flushes(&engine);
        assert_eq!(engine.stopped().as_deref(), Some("the flusher met a fault of this program"));
    }
}
