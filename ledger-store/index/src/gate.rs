//! The access of redb to its file, which can be closed for good.
//!
//! After the first disk failure, redb refuses every access until the file is opened anew. The failed instance and its
//! snapshots still exist then. The gate cuts them off from the file, so that they cannot write to it, nor read pages
//! that the new instance has reused.
//!
//! The gate opens no file: it stands in front of the backend that the caller of [`IndexFile`](crate::IndexFile) passes.

use std::fmt;
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;
use redb::StorageBackend;

use super::error::is_refusal;

/// The gate of one opened file, shared by redb's backend and the index.
#[derive(Debug, Default)]
pub(super) struct Gate {
    /// Held for reading during every access, so that none is running once the gate is closed.
    is_shut: RwLock<bool>,
    sync_failed: AtomicBool,
    refusal: OnceLock<Refusal>,
}

/// The error of an access that the disk refused.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    pub(super) kind: ErrorKind,
    pub(super) reason: String,
}

impl Gate {
    /// Closes the gate, and waits for running accesses.
    pub(super) fn shut(&self) {
        *self.is_shut.write() = true;
    }

    /// Returns whether a sync failed. Then it is unknown which of the visible bytes are on disk.
    pub(super) fn sync_failed(&self) -> bool {
        self.sync_failed.load(Relaxed)
    }

    /// Returns the first access that the disk refused, if any.
    ///
    /// redb does not report every failed access, for example when it rolls a transaction back.
    pub(super) fn refusal(&self) -> Option<&Refusal> {
        self.refusal.get()
    }

    /// Runs an access unless the gate is closed, and keeps the first refusal.
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
