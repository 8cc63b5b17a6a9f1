//! The faults that a test asks of a simulated disk.

use crate::disk::DiskRoom;

/// Faults to come. Operations are counted from 1, over all files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Power fails at this sync, before it takes effect.
    pub cut_at_sync: Option<u64>,
    /// This sync fails. The unsynced changes of its file are still seen, as if
    /// they were clean, and no later sync makes them durable: so do real
    /// kernels.
    pub fail_sync: Option<u64>,
    /// This write or change of length fails and has no effect.
    pub fail_write: Option<u64>,
    /// This read fails.
    pub fail_read: Option<u64>,
    /// This read fails, and all after it.
    pub fail_reads_from: Option<u64>,
    /// This opening of a file or a directory fails, as it does for a process without descriptors.
    pub fail_open: Option<u64>,
    /// No file can grow.
    pub is_full: bool,
    /// No file can be opened, since all are opened to be written too, and no name changes: so does a file system that is
    /// mounted for reading only.
    pub is_read_only: bool,
    /// Syncs succeed and do nothing. No store survives that: it shows that a
    /// test would notice a missing sync.
    pub lying_syncs: bool,
    /// The room that the disk reports.
    pub room: Option<DiskRoom>,
}
