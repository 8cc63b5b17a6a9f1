//! Embedded, durable double-entry ledger.

#[allow(dead_code, reason = "the writer and the readers above use it")]
mod codec;
#[allow(dead_code, reason = "the store above opens it")]
mod directory;
#[allow(dead_code, unused_imports, reason = "the writer and the readers above use it")]
#[cfg_attr(not(feature = "testing"), allow(unreachable_pub, reason = "public for tests alone"))]
mod disk;
#[allow(dead_code, unused_imports, reason = "the writer and the readers above use it")]
mod journal;
#[allow(dead_code, reason = "the store above opens it")]
mod manifest;

/// A disk that tests control: feature `testing` only, and no part of the
/// stable interface.
#[cfg(feature = "testing")]
pub mod testing {
    pub use crate::disk::{Disk, DiskFile, DiskLock, Faults, LockOutcome, OpenMode, RealDisk, SimDisk};
}
