//! The room that is left on the disk.
//!
//! An index that meets a full disk ends the writing until the store is opened again. So writes are turned away before:
//! reads and the writes in flight go on, and others do as soon as there is room.

use std::path::PathBuf;
use std::sync::Arc;

use ledger_journal::disk::{Disk, DiskRoom};

/// Unless asked otherwise, one part in so many of the disk stays free,
const FLOOR_PART: u64 = 20;
/// but at least two batches of the writer and what their pages need,
const FLOOR_MIN: u64 = 4 << 20;
/// and at most this: it is room for the flushes that are under way, and they do not grow with the disk.
const FLOOR_MAX: u64 = 256 << 20;

/// Looks after the room on the disk of a store.
#[derive(Debug)]
pub(crate) struct Room {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    /// The bytes that stay free; by the size of the disk unless given.
    floor: Option<u64>,
}

impl Room {
    pub(crate) const fn new(disk: Arc<dyn Disk>, dir: PathBuf, floor: Option<u64>) -> Self {
        Self { disk, dir, floor }
    }

    /// Whether less is free than is to stay free. A disk that cannot tell has room.
    pub(crate) fn is_low(&self) -> bool {
        let room = self.disk.room(&self.dir).ok().flatten();
        room.is_some_and(|room| room.free < self.floor.unwrap_or_else(|| floor_of(room)))
    }
}

fn floor_of(room: DiskRoom) -> u64 {
    (room.total / FLOOR_PART).clamp(FLOOR_MIN, FLOOR_MAX)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ledger_journal::disk::{Faults, RealDisk, SimDisk};

    use super::*;

    #[test]
    fn the_floor_follows_the_disk_within_bounds() {
        let floor = |total| floor_of(DiskRoom { total, free: 0 });
        assert_eq!([floor(1 << 20), floor(1 << 30), floor(1 << 40)], [FLOOR_MIN, (1 << 30) / 20, FLOOR_MAX]);
    }

    #[test]
    fn a_disk_that_cannot_tell_has_room() {
        let disk = SimDisk::new();
        let is_low = |floor| Room::new(Arc::new(disk.clone()), PathBuf::from("data"), floor).is_low();
        assert!(!is_low(Some(u64::MAX)));
        disk.set_faults(Faults { room: Some(DiskRoom { total: 1 << 40, free: 100 }), ..Faults::default() });
        assert_eq!(
            [is_low(None), is_low(Some(101)), is_low(Some(100)), is_low(Some(0))],
            [true, true, false, false]
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_real_disk_tells_its_room() {
        let room = RealDisk.room(Path::new(".")).expect("it is told").expect("it is known");
        assert!(room.total > 0 && room.free <= room.total, "{room:?}");
        assert!(RealDisk.room(Path::new("no such directory")).is_err());
    }
}
