//! The faults that a test requests of a simulated disk.

use crate::disk::DiskSpace;

/// Faults that will occur. Operations are counted from 1, over all files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Power fails at this sync, before it takes effect.
    pub cut_at_sync: Option<u64>,
    /// This sync fails. Programs still see the unsynced changes of its file as if they were clean, and no later sync
    /// makes them durable. Real kernels behave the same way.
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
    /// The file system is read-only: no file can be opened for writing, and no name can change.
    pub is_read_only: bool,
    /// Syncs succeed without effect. No store survives that, so it shows that a test would notice a missing sync.
    pub lying_syncs: bool,
    /// The free space that the disk reports.
    pub space: Option<DiskSpace>,
}
