//! Positions of entries, and the hash of everything before one.

use std::fmt;

use super::StoreId;

/// The place of an entry in the journal: 1 for the first, gapless.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(u64);

impl Position {
    /// The place of the first entry of every journal.
    pub const FIRST: Self = Self(1);

    /// The position with this number; zero is none.
    pub const fn new(number: u64) -> Option<Self> {
        if number == 0 { None } else { Some(Self(number)) }
    }

    /// The number, at least 1.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The position after this one.
    ///
    /// # Panics
    ///
    /// After 2^64 - 1 entries, which no journal reaches; stored numbers are
    /// checked with `Position::after`.
    #[must_use]
    pub fn next(self) -> Self {
        self.after(1).expect("a journal does not reach 2^64 entries")
    }

    /// The position that follows `entries` entries of which this is the
    /// first, or `None` beyond 2^64 - 1.
    pub(crate) const fn after(self, entries: u32) -> Option<Self> {
        match self.0.checked_add(entries as u64) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}", self.0)
    }
}

/// Names the bucket or domain that a section of a chunk belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SectionId(pub u32);

/// The hash of a chunk and, through the one before it, of all history up to
/// there.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChainHash(pub [u8; 32]);

impl ChainHash {
    /// The hash before the first chunk of a store. It depends on the store, so
    /// that no two stores share a chain.
    pub fn genesis(store: StoreId) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"ledger journal genesis");
        hasher.update(&store.0);
        Self(*hasher.finalize().as_bytes())
    }
}

impl fmt::Display for ChainHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ChainHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChainHash({self})")
    }
}

/// Where a journal ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The position that the next entry gets.
    pub next: Position,
    /// The hash of everything before it.
    pub chain: ChainHash,
}
