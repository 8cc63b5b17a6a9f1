//! A journal in memory whose behaviour a test controls.

use std::collections::BTreeSet;

use ledger_journal::{
    Chunk, ChunkDraft, Freed, Head, Identity, Journal, JournalError, JournalReader, MemoryJournal, Position,
    SectionId,
};
use parking_lot::{Condvar, Mutex};

/// An observer that is called during an append.
type AppendObserver = Box<dyn Fn(Head) + Send>;

/// A journal in memory that can hold appends, fail appends and reads, and call observers.
pub(super) struct ScriptedJournal {
    inner: MemoryJournal,
    script: Mutex<Script>,
    changed: Condvar,
}

#[derive(Default)]
struct Script {
    held: bool,
    fail_appends: bool,
    fail_reads: bool,
    /// Number of running appends.
    under_way: usize,
    look: Option<AppendObserver>,
    before_scan: Option<Box<dyn FnOnce() + Send>>,
}

impl ScriptedJournal {
    pub(super) fn new(identity: Identity) -> Self {
        Self { inner: MemoryJournal::new(identity), script: Mutex::default(), changed: Condvar::new() }
    }

    /// Holds appends until [`ScriptedJournal::release`].
    pub(super) fn hold(&self) {
        self.script.lock().held = true;
    }

    /// Lets held appends continue.
    pub(super) fn release(&self) {
        self.script.lock().held = false;
        self.changed.notify_all();
    }

    /// Waits until an append is running.
    pub(super) fn wait_for_append(&self) {
        let mut script = self.script.lock();
        while script.under_way == 0 {
            self.changed.wait(&mut script);
        }
    }

    /// Sets whether appends fail with an unknown outcome. Unlike a journal on a disk, this one accepts appends after a
    /// failed one, so only the engine can stop the writing.
    pub(super) fn fail_appends(&self, fail: bool) {
        self.script.lock().fail_appends = fail;
    }

    /// Sets whether reads fail.
    pub(super) fn fail_reads(&self, fail: bool) {
        self.script.lock().fail_reads = fail;
    }

    /// Calls `look` twice in every append, before and after the entries are added, with the head before the append.
    pub(super) fn look(&self, look: impl Fn(Head) + Send + 'static) {
        self.script.lock().look = Some(Box::new(look));
    }

    /// Calls `act` once, before the next scan.
    pub(super) fn before_scan(&self, act: impl FnOnce() + Send + 'static) {
        self.script.lock().before_scan = Some(Box::new(act));
    }

    fn show(&self) {
        let look = self.script.lock().look.take();
        if let Some(look) = look {
            look(self.inner.head());
            self.script.lock().look = Some(look);
        }
    }

    fn unread(&self) -> Result<(), JournalError> {
        if self.script.lock().fail_reads {
            return Err(JournalError::Storage {
                path: "memory".into(),
                action: "read",
                cause: std::io::Error::other("injected failure of a read"),
            });
        }
        Ok(())
    }
}

impl JournalReader for ScriptedJournal {
    fn head(&self) -> Head {
        self.inner.head()
    }

    fn read(&self, at: Position) -> Result<Option<Chunk>, JournalError> {
        self.unread()?;
        self.inner.read(at)
    }

    fn scan(&self, from: Position, max_bytes: usize) -> Result<Vec<Chunk>, JournalError> {
        self.unread()?;
        let act = self.script.lock().before_scan.take();
        if let Some(act) = act {
            act();
        }
        self.inner.scan(from, max_bytes)
    }
}

impl Journal for ScriptedJournal {
    fn append(&self, expected: Position, chunks: &[ChunkDraft]) -> Result<Head, JournalError> {
        let mut script = self.script.lock();
        script.under_way += 1;
        self.changed.notify_all();
        while script.held {
            self.changed.wait(&mut script);
        }
        script.under_way -= 1;
        let fails = script.fail_appends;
        drop(script);
        if fails {
            return Err(JournalError::OutcomeUnknown {
                path: "memory".into(),
                position: expected,
                cause: std::io::Error::other("injected failure of an append"),
            });
        }
        self.show();
        let before = self.inner.head();
        let head = self.inner.append(expected, chunks)?;
        // The append has not returned, so no reader may see the new entries yet.
        if let Some(look) = &self.script.lock().look {
            look(before);
        }
        Ok(head)
    }

    fn remove_sections(
        &self,
        removed: &BTreeSet<SectionId>,
        should_stop: &dyn Fn() -> bool,
    ) -> Result<Freed, JournalError> {
        self.inner.remove_sections(removed, should_stop)
    }
}
