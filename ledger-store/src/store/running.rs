//! Starts and ends the threads of an open store.

use std::sync::Arc;
use std::thread::{JoinHandle, ThreadId};

use parking_lot::Mutex;

use crate::directory::DataDirectory;
use crate::engine::{Engine, background, commit, flushes, hashing, index_repair, lead, panics};

/// The threads and resources of a running store. They end in a fixed order when it closes.
pub(super) struct Running {
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// The ids of the threads, known even while the threads are being joined.
    ids: Vec<ThreadId>,
    engine: Arc<Engine>,
    /// Holds the lock of the directory, so it is released last.
    directory: Option<DataDirectory>,
}

impl Running {
    /// Starts the threads of an engine.
    pub(super) fn start(engine: &Arc<Engine>, directory: Option<DataDirectory>) -> Self {
        let mut threads = Vec::new();
        let mut spawn = |name: &'static str, run: fn(&Engine)| {
            let engine = engine.clone();
            let run = move || panics::run_thread(&engine, name, run);
            let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run);
            threads.push(thread.expect("the operating system can start a thread"));
        };
        spawn("ledger-writer", lead::write_loop);
        spawn("ledger-committer", commit::commit_loop);
        spawn("ledger-flusher", background::flush_loop);
        spawn("ledger-space", background::space_loop);
        spawn("ledger-merger", background::merge_loop);
        spawn("ledger-hasher", hashing::hash_loop);
        spawn("ledger-mender", index_repair::repair_loop);
        let ids = threads.iter().map(|thread| thread.thread().id()).collect();
        Self { threads: Mutex::new(threads), ids, engine: engine.clone(), directory }
    }

    pub(super) fn directory(&self) -> Option<&DataDirectory> {
        self.directory.as_ref()
    }

    /// Closes the store and waits until it is closed. If a thread of the store calls this, as in a callback, a new
    /// thread closes the store instead, and the directory is unlocked soon after.
    pub(super) fn close(self: &Arc<Self>) {
        if !self.ids.contains(&std::thread::current().id()) {
            return self.end_threads();
        }
        self.engine.close_queue();
        let running = self.clone();
        let closer = std::thread::Builder::new().name("ledger-closer".to_owned());
        if closer.spawn(move || running.end_threads()).is_err() {
            // The threads keep running, so the directory must stay locked until the process ends.
            std::mem::forget(self.clone());
        }
    }

    /// Ends all threads, unless that was done already. Must not run on a thread of the store, which would wait for
    /// itself.
    fn end_threads(&self) {
        let mut threads = self.threads.lock();
        if threads.is_empty() {
            return;
        }
        self.engine.close_queue();
        let mut threads = threads.drain(..);
        // Join in starting order: first the writer, then the committer, which commits what the writer decided.
        let _ = threads.next().map(JoinHandle::join);
        self.engine.close_handover();
        let _ = threads.next().map(JoinHandle::join);
        if self.engine.stopped().is_none() {
            panics::catch_panic(&self.engine, flushes::flush_pending);
        }
        self.engine.stop_background();
        for thread in threads {
            let _ = thread.join();
        }
        // If the store stopped because of a failure, do not mark the journal as closed. The next opening then relies
        // only on what it finds on the disk.
        if self.engine.stopped().is_none()
            && let Err(error) = self.engine.journal.close()
        {
            self.engine.stop_writing(&error.to_string());
        }
    }
}
