//! The way from the storage engine to its file, which can be shut for good.
//!
//! The storage engine refuses everything after the first failure of the disk, until the file is opened again. The
//! engine that gave up and its snapshots are still there then. Shut off from the file they can neither write into it
//! nor read pages that were given to something else since.

use std::fmt;
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;
use redb::StorageBackend;

use super::error::is_refusal;

/// Shared by the file and those who decide what becomes of it.
#[derive(Debug, Default)]
pub(super) struct Gate {
    /// Held for reading during every access, so that none is under way once the gate is shut.
    is_shut: RwLock<bool>,
    sync_failed: AtomicBool,
    refusal: OnceLock<Refusal>,
}

/// The disk's answer to an access that it refused.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    pub(super) kind: ErrorKind,
    pub(super) reason: String,
}

impl Gate {
    /// Lets nothing reach the file any more, and waits for what is under way.
    pub(super) fn shut(&self) {
        *self.is_shut.write() = true;
    }

    /// Whether a sync failed: it is not known any more which of the bytes that programs see are on the disk.
    pub(super) fn sync_failed(&self) -> bool {
        self.sync_failed.load(Relaxed)
    }

    /// The first access that the disk refused, if it refused any.
    ///
    /// The storage engine does not tell of every access that failed: not when it undoes a transaction, for example.
    pub(super) fn refusal(&self) -> Option<&Refusal> {
        self.refusal.get()
    }

    /// Lets an access reach the file, unless the gate is shut, and keeps the first refusal.
    pub(super) fn pass<T>(&self, access: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let is_shut = self.is_shut.read();
        if *is_shut {
            return Err(io::Error::other("the file was opened anew after a failure"));
        }
        access().inspect_err(|error| {
            if is_refusal(error.kind()) {
                let _ = self.refusal.set(Refusal { kind: error.kind(), reason: error.to_string() });
            }
        })
    }
}

/// A file behind a gate.
pub(super) struct Gated<B> {
    backend: B,
    gate: Arc<Gate>,
}

impl<B> Gated<B> {
    pub(super) fn new(backend: B, gate: Arc<Gate>) -> Self {
        Self { backend, gate }
    }
}

impl<B> fmt::Debug for Gated<B> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Gated").field("gate", &self.gate).finish_non_exhaustive()
    }
}

impl<B: StorageBackend> StorageBackend for Gated<B> {
    fn len(&self) -> io::Result<u64> {
        self.gate.pass(|| self.backend.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.gate.pass(|| self.backend.read(offset, out))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.gate.pass(|| self.backend.set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.gate.pass(|| {
            let synced = self.backend.sync_data();
            if synced.is_err() {
                self.gate.sync_failed.store(true, Relaxed);
            }
            synced
        })
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.gate.pass(|| self.backend.write(offset, data))
    }
}
