//! The threads of an open store, and its closing.

use std::sync::Arc;
use std::thread::{JoinHandle, ThreadId};

use parking_lot::Mutex;

use crate::directory::DataDirectory;
use crate::engine::Engine;

/// The parts that end when a store closes, in this order.
pub(super) struct Running {
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// The threads, also while they are being joined.
    ids: Vec<ThreadId>,
    engine: Arc<Engine>,
    /// Holds the lock of the directory, so it comes last.
    directory: Option<DataDirectory>,
}

impl Running {
    /// Starts the threads of an engine.
    pub(super) fn start(engine: &Arc<Engine>, directory: Option<DataDirectory>) -> Self {
        let mut threads = Vec::new();
        let mut spawn = |name: &'static str, run: fn(&Engine)| {
            let engine = engine.clone();
            let run = move || engine.run_thread(name, run);
            let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run);
            threads.push(thread.expect("the system has a thread to give"));
        };
        spawn("ledger-writer", Engine::write_loop);
        spawn("ledger-committer", Engine::commit_loop);
        spawn("ledger-flusher", Engine::flush_loop);
        spawn("ledger-space", Engine::space_loop);
        spawn("ledger-merger", Engine::merge_loop);
        spawn("ledger-hasher", Engine::hash_loop);
        spawn("ledger-mender", Engine::mend_loop);
        let ids = threads.iter().map(|thread| thread.thread().id()).collect();
        Self { threads: Mutex::new(threads), ids, engine: engine.clone(), directory }
    }

    pub(super) fn directory(&self) -> Option<&DataDirectory> {
        self.directory.as_ref()
    }

    /// Closes the store and waits for it. A thread of the store, as in a callback, leaves that to a thread of its own:
    /// the store closes, and gives back its directory, soon after.
    pub(super) fn close(self: &Arc<Self>) {
        if !self.ids.contains(&std::thread::current().id()) {
            return self.end_threads();
        }
        self.engine.close_queue();
        let running = self.clone();
        let closer = std::thread::Builder::new().name("ledger-closer".to_owned());
        if closer.spawn(move || running.end_threads()).is_err() {
            // The threads are left running, so the directory must stay locked until the process ends.
            std::mem::forget(self.clone());
        }
    }

    /// Ends all threads, unless somebody has. No thread of the store may call it: it would wait for itself.
    fn end_threads(&self) {
        let mut threads = self.threads.lock();
        if threads.is_empty() {
            return;
        }
        self.engine.close_queue();
        let mut threads = threads.drain(..);
        // In the order in which they were started: the writer, then who commits what it decides.
        let _ = threads.next().map(JoinHandle::join);
        self.engine.close_handover();
        let _ = threads.next().map(JoinHandle::join);
        if self.engine.stopped().is_none() {
            self.engine.outlive(Engine::flush_what_gathered);
        }
        self.engine.stop_background();
        for thread in threads {
            let _ = thread.join();
        }
        // A store that stopped by itself leaves the journal as one that was not closed: the next opening then trusts
        // nothing that it does not find on the disk.
        if self.engine.stopped().is_none()
            && let Err(error) = self.engine.journal.close()
        {
            self.engine.stop_writing(&error.to_string());
        }
    }
}
