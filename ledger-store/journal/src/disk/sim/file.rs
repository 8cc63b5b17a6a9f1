//! A file of the simulated disk, and the bytes of it that survive a power cut.

/// The size of a sector in bytes, which a disk writes entirely or not at all.
const SECTOR_BYTES: usize = 512;

/// The bytes of a file, synced and unsynced.
#[derive(Debug, Default)]
pub(super) struct FileState {
    /// The bytes as programs see them.
    pub(super) bytes: Vec<u8>,
    /// The durable bytes, without the pending changes.
    pub(super) synced: Vec<u8>,
    /// Changes since the last sync, which the next sync makes durable.
    pub(super) pending: Vec<Change>,
}

/// A change of a file.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Write { offset: usize, data: Vec<u8> },
    SetLen(usize),
}

impl Change {
    /// Returns the length that the change requires of the file. A full disk refuses the change if the file is shorter.
    pub(super) fn end(&self) -> usize {
        match self {
            Self::Write { offset, data } => offset + data.len(),
            Self::SetLen(len) => *len,
        }
    }

    pub(super) fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Write { offset, data } => put(bytes, *offset, data),
            Self::SetLen(len) => bytes.resize(*len, 0),
        }
    }
}

/// Writes `data` at `offset`, extending `bytes` with zeros if necessary.
fn put(bytes: &mut Vec<u8>, offset: usize, data: &[u8]) {
    let end = offset + data.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[offset..end].copy_from_slice(data);
}

impl FileState {
    /// Returns the bytes that programs read after the page cache has dropped its clean pages. They differ from `bytes`
    /// after a failed sync, which marks pages as clean although their changes are lost.
    pub(super) fn uncached(&self) -> Vec<u8> {
        let mut bytes = self.synced.clone();
        for change in &self.pending {
            change.apply(&mut bytes);
        }
        bytes
    }

    /// Returns bytes that may survive a power cut.
    pub(super) fn survivor(&self, keep_percent: u64, random: &mut Random) -> Vec<u8> {
        let mut bytes = self.synced.clone();
        let mut changes: Vec<&Change> = self.pending.iter().collect();
        if random.percent(50) {
            for i in 1..changes.len() {
                if random.percent(25) {
                    changes.swap(i - 1, i);
                }
            }
        }
        for change in changes {
            if !random.percent(keep_percent) {
                continue;
            }
            match change {
                Change::Write { offset, data } if random.percent(30) => {
                    // The change is torn. Sectors count from the start of the file.
                    let mut at = 0;
                    while at < data.len() {
                        let piece = (SECTOR_BYTES - (offset + at) % SECTOR_BYTES).min(data.len() - at);
                        if random.percent(50) {
                            put(&mut bytes, offset + at, &data[at..at + piece]);
                        }
                        at += piece;
                    }
                }
                whole => whole.apply(&mut bytes),
            }
        }
        bytes
    }
}

/// `SplitMix64`: small, and good enough to choose what survives a power cut.
#[derive(Debug)]
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub(super) fn percent(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }
}
