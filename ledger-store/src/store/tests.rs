//! Callbacks of the store that close it.

use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use ledger_core::{LedgerName, LedgerOptions};

use super::Store;
use crate::error::{OpenError, WriteError};
use crate::submission::{Atomicity, Detail, Mode, Submission};

fn main_ledger() -> LedgerName {
    LedgerName::parse("main").expect("a name")
}

fn nothing() -> Submission {
    Submission {
        ledger: main_ledger(),
        requests: Vec::new(),
        atomicity: Atomicity::Independent,
        mode: Mode::Commit,
        detail: Detail::Ids,
    }
}

/// Opens the store as soon as its directory is unlocked.
fn open_when_free(path: &Path) -> Store {
    let until = Instant::now() + Duration::from_mins(1);
    loop {
        match Store::open(path) {
            Ok(store) => return store,
            Err(OpenError::Locked { .. }) if Instant::now() < until => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_callback_may_drop_the_last_store() {
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path().join("data");
    for _ in 0..8 {
        let store = open_when_free(&path);
        let engine = Arc::downgrade(store.engine());
        let last = store.clone();
        let (drop_it, dropping) = mpsc::channel::<()>();
        let (told, dropped) = mpsc::channel();
        store.submit(nothing(), move |_| {
            dropping.recv().expect("the test tells when");
            drop(last);
            told.send(()).expect("the test waits");
        });
        drop(store);
        drop_it.send(()).expect("the callback waits");
        dropped.recv().expect("the callback returns");
        let again = open_when_free(&path);
        assert!(engine.upgrade().is_none(), "the lock is free, and a thread of the store is left");
        again.close().expect("nothing has failed");
    }
}

#[test]
fn a_callback_may_close_the_store() {
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path().join("data");
    let store = Store::open(&path).expect("it opens");
    let engine = Arc::downgrade(store.engine());
    let closing = store.clone();
    let (told, closed) = mpsc::channel();
    store.submit(nothing(), move |_| told.send(closing.close()).expect("the test waits"));
    closed.recv().expect("the callback returns").expect("nothing has failed");
    // This waits until the other close is done.
    store.close().expect("nothing has failed");
    let refused = store.create_ledger(main_ledger(), LedgerOptions::default());
    assert!(matches!(refused, Err(WriteError::Stopped { .. })), "{refused:?}");
    drop(store);
    let again = open_when_free(&path);
    assert!(engine.upgrade().is_none(), "the lock is free, and a thread of the store is left");
    drop(again);
}
