//! Tables of places: each is found by half of a hash, without a look at what lies there.

/// A place, and half of the hash of what lies there: most of what is not meant is passed over without a look at it, and
/// a table of these grows without one at any.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The upper half of the hash.
    pub(super) hash: u32,
    /// The place.
    pub(super) slot: u32,
}

impl Entry {
    pub(super) fn new(hash: u64, slot: u32) -> Self {
        Self { hash: half(hash), slot }
    }

    /// The hash by which it is placed in a table, of the half that is kept.
    pub(super) fn place(self) -> u64 {
        spread(u64::from(self.hash) << 32)
    }
}

/// The half of a hash that is kept.
pub(super) fn half(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// A hash of the upper half of another, good in all bits that a table looks at.
pub(super) fn spread(hash: u64) -> u64 {
    (hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
