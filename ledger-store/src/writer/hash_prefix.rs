//! Entries of hash tables that contain a slot and a hash prefix, so that most lookups need not access the slot.

/// A slot and the prefix of the hash of its content: the upper half. The prefix skips most other slots without accessing
/// them, and lets the table grow without accessing any.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The upper half of the hash.
    pub(super) prefix: u32,
    /// The slot.
    pub(super) slot: u32,
}

impl Entry {
    pub(super) fn new(hash: u64, slot: u32) -> Self {
        Self { prefix: prefix(hash), slot }
    }

    /// Returns the hash for the table, computed from the stored prefix.
    pub(super) fn place(self) -> u64 {
        spread(u64::from(self.prefix) << 32)
    }
}

/// Returns the prefix of a hash.
pub(super) fn prefix(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// Returns a hash of the prefix of another hash, which is good in all bits that a table uses.
pub(super) fn spread(hash: u64) -> u64 {
    (hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
