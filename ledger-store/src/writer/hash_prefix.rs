//! Entries of hash tables that contain a slot and a hash prefix, so that most lookups need not access the slot.

/// A slot and half of the hash of its content. The half hash skips most other slots without accessing them, and lets
/// the table grow without accessing any.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The upper half of the hash.
    pub(super) hash: u32,
    /// The slot.
    pub(super) slot: u32,
}

impl Entry {
    pub(super) fn new(hash: u64, slot: u32) -> Self {
        Self { hash: half(hash), slot }
    }

    /// Returns the hash for the table, computed from the stored half.
    pub(super) fn place(self) -> u64 {
        spread(u64::from(self.hash) << 32)
    }
}

/// Returns the half of a hash that is stored.
pub(super) fn half(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// Returns a hash of the upper half of another hash, which is good in all bits that a table uses.
pub(super) fn spread(hash: u64) -> u64 {
    (hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
