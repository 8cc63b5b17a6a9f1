//! Positions of entries, and the chain hash of everything before a position.

use std::fmt;

use super::StoreId;

/// The number of an entry in the journal. The first entry has 1, and there are no gaps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(u64);

impl Position {
    /// The position of the first entry.
    pub const FIRST: Self = Self(1);

    /// Returns the position with a number, or `None` for zero.
    pub const fn new(number: u64) -> Option<Self> {
        if number == 0 { None } else { Some(Self(number)) }
    }

    /// Returns the number, which is at least 1.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the position after this one.
    ///
    /// # Panics
    ///
    /// Panics after 2^64 - 1 entries, which no journal reaches. Code that reads stored numbers uses `Position::after`.
    #[must_use]
    pub fn next(self) -> Self {
        self.after(1).expect("a journal does not reach 2^64 entries")
    }

    /// Returns the position after `entries` entries of which this is the first, or `None` beyond 2^64 - 1.
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

/// The number of the section of a chunk that holds the entries of one bucket, or those of the documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SectionId(pub u32);

/// The hash of a chunk that covers the hash of the chunk before it, and so the whole history.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChainHash(pub [u8; 32]);

impl ChainHash {
    /// Returns the hash before the first chunk of a store. It depends on the store, so no two stores share a chain.
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

/// The end of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The position of the next entry.
    pub next: Position,
    /// The chain hash of everything before it.
    pub chain: ChainHash,
}
