//! Free disk space: refuses writes before the disk is full.
//!
//! The floor is the number of bytes that new writes must leave free, so that flushes in progress have space. Below it,
//! the engine refuses writes before it processes them. Reads and writes in flight continue. The engine accepts writes
//! again as soon as enough space is free.

use std::path::PathBuf;
use std::sync::Arc;

use ledger_journal::disk::{Disk, DiskSpace};

/// The default floor is the size of the disk divided by this.
const FLOOR_DIVISOR: u64 = 20;
/// Minimum default floor, in bytes. Enough for two writer batches and their pages.
const FLOOR_MIN: u64 = 4 << 20;
/// Maximum default floor, in bytes. Enough for the flushes in progress, which do not grow with the disk.
const FLOOR_MAX: u64 = 256 << 20;

/// Tells whether the disk of a store has too little free space for more writes.
#[derive(Debug)]
pub(crate) struct FreeSpace {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    /// The number of bytes that must stay free. `None` computes it from the size of the disk.
    floor: Option<u64>,
}

impl FreeSpace {
    pub(crate) const fn new(disk: Arc<dyn Disk>, dir: PathBuf, floor: Option<u64>) -> Self {
        Self { disk, dir, floor }
    }

    /// Returns whether the free space is below the floor. False for a disk that cannot report its free space.
    pub(crate) fn is_low(&self) -> bool {
        let space = self.disk.space(&self.dir).ok().flatten();
        space.is_some_and(|space| space.free < self.floor.unwrap_or_else(|| floor_of(space)))
    }
}

/// Returns the default floor of a disk, in bytes.
fn floor_of(space: DiskSpace) -> u64 {
    (space.total / FLOOR_DIVISOR).clamp(FLOOR_MIN, FLOOR_MAX)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ledger_journal::disk::{Faults, RealDisk, SimDisk};

    use super::*;

    #[test]
    fn default_floor_follows_disk_size_within_bounds() {
        let floor = |total| floor_of(DiskSpace { total, free: 0 });
        assert_eq!([floor(1 << 20), floor(1 << 30), floor(1 << 40)], [FLOOR_MIN, (1 << 30) / 20, FLOOR_MAX]);
    }

    #[test]
    fn is_not_low_if_disk_cannot_report_space() {
        let disk = SimDisk::new();
        let is_low = |floor| FreeSpace::new(Arc::new(disk.clone()), PathBuf::from("data"), floor).is_low();
        assert!(!is_low(Some(u64::MAX)));
        disk.set_faults(Faults { space: Some(DiskSpace { total: 1 << 40, free: 100 }), ..Faults::default() });
        assert_eq!(
            [is_low(None), is_low(Some(101)), is_low(Some(100)), is_low(Some(0))],
            [true, true, false, false]
        );
    }

    #[cfg(unix)]
    #[test]
    fn real_disk_reports_free_space() {
        let space = RealDisk.space(Path::new(".")).expect("readable").expect("reported");
        assert!(space.total > 0 && space.free <= space.total, "{space:?}");
        assert!(RealDisk.space(Path::new("no such directory")).is_err());
    }
}
