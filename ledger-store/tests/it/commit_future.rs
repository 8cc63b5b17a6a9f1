//! Commits as futures, polled without any runtime.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use ledger_core::LedgerOptions;
use ledger_store::{
    AtomicWrite, Collection, DocumentAction, DocumentChange, Expected, IntoRequest, LedgerCommand,
    LedgerError, Outcome, Store, WriteError,
};

/// Wakes the thread that waits in [`block_on`].
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn future_resolves_to_the_commit() {
    let ledger = Store::in_memory().ledger("main").expect("a name");
    let pay = || ledger.transaction().posting("world", "a", 5, "USD").idempotency_key("k");
    let first = block_on(pay().commit_async()).expect("a commit that creates the ledger");
    assert_eq!((first.id.get(), first.replayed), (1, false));
    assert!(block_on(pay().commit_async()).expect("a replay").replayed);
    let conflict = block_on(pay().metadata("a", "b").commit_async());
    assert!(matches!(conflict, Err(LedgerError::IdempotencyConflict { .. })), "{conflict:?}");
    let malformed = block_on(ledger.transaction().posting("world", "a:", 5, "USD").commit_async());
    assert!(matches!(malformed, Err(LedgerError::Name(_))), "{malformed:?}");
    let reverted = block_on(ledger.revert(first.id).commit_async()).expect("the write succeeds");
    assert_eq!(reverted.id.get(), 2);
    let script = "send [USD 7] ( source = @world destination = @b )";
    assert_eq!(block_on(ledger.script(script).commit_async()).expect("the write succeeds").id.get(), 3);
}

#[test]
fn batch_resolves_to_its_answers() {
    let ledger = Store::in_memory().ledger("main").expect("a name");
    let pay = |from: &'static str| ledger.transaction().posting(from, "a", 5, "USD");
    let answers = block_on(ledger.batch().push(pay("world")).push(pay("b")).commit_async());
    let answers = answers.expect("the write succeeds");
    assert!(answers[0].is_ok() && answers[1].is_err(), "{answers:?}");
    let refused = block_on(ledger.batch().push(pay("world")).push(pay("b")).atomic().commit_async());
    assert!(matches!(refused, Err(LedgerError::Refused(_))), "{refused:?}");
    assert_eq!(ledger.balance("a", "USD").expect("the read succeeds"), 5);
}

#[test]
fn atomic_write_resolves_to_its_outcomes() {
    let store = Store::in_memory();
    let ledger = store.ledger("main").expect("a name");
    ledger.create(LedgerOptions::default()).expect("it is new");
    let collection = Collection::new(100).expect("a collection");
    let write = || AtomicWrite {
        documents: vec![DocumentChange {
            collection,
            key: b"wallet-1".to_vec(),
            expected: Expected::Absent,
            action: DocumentAction::Put { value: Vec::new(), keys: Vec::new() },
        }],
        commands: vec![LedgerCommand {
            ledger: ledger.name().clone(),
            request: ledger
                .transaction()
                .posting("world", "a", 5, "USD")
                .into_request()
                .expect("it is valid"),
        }],
    };
    let outcomes = block_on(store.write_atomically_async(write())).expect("it is written");
    assert!(matches!(outcomes[..], [Outcome::Done(_)]), "{outcomes:?}");
    let again = block_on(store.write_atomically_async(write()));
    assert!(matches!(again, Err(LedgerError::Write(WriteError::Document(_)))), "{again:?}");
    assert_eq!(ledger.balance("a", "USD").expect("it reads"), 5);
}

#[test]
fn dropped_future_does_not_cancel_the_write() {
    let store = Store::in_memory();
    let ledger = store.ledger("main").expect("a name");
    ledger.transaction().posting("world", "a", 1, "USD").commit().expect("the write succeeds");
    for _ in 0..10 {
        drop(ledger.transaction().posting("world", "a", 1, "USD").commit_async());
    }
    // Writes happen in order.
    block_on(ledger.transaction().posting("world", "a", 1, "USD").commit_async())
        .expect("the write succeeds");
    store.close().expect("nothing has failed");
    assert_eq!(ledger.balance("a", "USD").expect("the read succeeds"), 12);
    let closed = block_on(ledger.transaction().posting("world", "a", 1, "USD").commit_async());
    assert!(matches!(closed, Err(LedgerError::Write(WriteError::Stopped { .. }))), "{closed:?}");
}

#[test]
fn future_moves_between_threads() {
    fn moves(_: &(impl Future + Send + Unpin + 'static)) {}
    let ledger = Store::in_memory().ledger("main").expect("a name");
    let future = ledger.transaction().posting("world", "a", 5, "USD").commit_async();
    moves(&future);
    let id = std::thread::spawn(move || block_on(future)).join().expect("no panic").expect("accepted").id;
    assert_eq!(id.get(), 1);
}
