//! The end of a store when one of its threads panics: a fault of ours, after which nothing it left half done may
//! be built upon, and nobody may wait for it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Engine;
use super::work::FAULT;

/// Ends the writing when it is dropped by a panic. What is declared before it is let go of after that.
pub(super) struct StopOnPanic<'a> {
    engine: &'a Engine,
    /// Whether the writing thread was unwinding already: it may write while it cleans up.
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

impl Engine {
    /// Runs what a thread does. If it panics nothing more is written, and nobody waits for it.
    pub(crate) fn run_thread(&self, name: &str, run: fn(&Self)) {
        if catch_unwind(AssertUnwindSafe(|| run(self))).is_err() {
            self.stop_writing(&format!("{name} met a fault of this program"));
            // Who waits for the hashing thread looks up by itself.
            self.fail_flushes();
        }
    }

    /// Does one batch in a thread that has others to answer after it, whatever becomes of this one. If it left anything
    /// half done [`StopOnPanic`] has ended the writing, and to answer is all that the thread does from then on.
    pub(crate) fn outlive(&self, batch: impl FnOnce(&Self)) {
        // Who waited for it was told when the panic dropped what was to answer.
        let _ = catch_unwind(AssertUnwindSafe(|| batch(self)));
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;

    use ledger_core::{Command, CreateTransaction, LedgerName, LedgerOptions, Postings, Timestamp};

    use crate::engine::{Done, Engine, Work};
    use crate::error::WriteError;
    use crate::options::{Options, SystemClock, TimeSource};
    use crate::store::Store;
    use crate::submission::{Atomicity, Detail, Mode, Request, Submission};

    /// A clock that panics while it is told to: the writer reads it with the state in its hands.
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
        let (told, answer) = mpsc::channel();
        store.submit(payment(), move |answer| told.send(answer).expect("the test waits"));
        let answer = answer.recv().expect("an answer");
        assert!(matches!(answer, Err(WriteError::OutcomeUnknown { .. })), "{answer:?}");
        clock.0.store(false, Ordering::Relaxed);
        // By the thread that asks, and by the writer that has panicked once.
        let answer = store.apply(payment());
        assert!(matches!(answer, Err(WriteError::Stopped { .. })), "{answer:?}");
        let (told, answer) = mpsc::channel();
        store.submit(payment(), move |answer| told.send(answer).expect("the test waits"));
        let answer = answer.recv().expect("an answer");
        assert!(matches!(answer, Err(WriteError::Stopped { .. })), "{answer:?}");
        assert!(matches!(store.close(), Err(WriteError::Stopped { .. })));
    }

    /// Writes while its thread unwinds.
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
        let (told, answer) = mpsc::channel();
        store.submit(payment(), move |answer| {
            told.send(answer.is_ok()).expect("the test waits");
            panic!("the test panics here");
        });
        assert!(answer.recv().expect("an answer"));
        store.apply(payment()).expect("the store takes writes");
        store.close().expect("nothing has failed");
    }

    #[test]
    fn nobody_waits_for_a_flusher_that_panicked() {
        let engine = Engine::in_memory(&Options::default());
        let (told, answer) = mpsc::channel();
        let done = Done::new(move |answer| told.send(answer.is_ok()).expect("the test waits"));
        engine.submit_here(Work::CreateLedger(main_ledger(), LedgerOptions::default(), done), 1);
        assert!(answer.recv().expect("an answer"));
        engine.flush_what_gathered();
        engine.run_thread("the flusher", |_| panic!("the test panics here"));
        engine.wait_for_flushes();
        assert_eq!(engine.stopped().as_deref(), Some("the flusher met a fault of this program"));
    }
}
