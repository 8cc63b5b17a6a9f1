//! What random work came to.

/// How much of what was judged was of a kind that random work might as well not come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Submissions.
    pub submissions: u64,
    /// Those to a ledger that was not there.
    pub not_found: u64,
    /// Several commands as one that were recorded.
    pub joined: u64,
    /// Those that were undone, since one of them was refused.
    pub joined_undone: u64,
    /// Those that were answered again.
    pub joined_replayed: u64,
    /// Ledgers that were removed for good.
    pub removed: u64,
    /// Ledgers that were created with the name of one that was removed.
    pub names_reused: u64,
    /// Ledgers that were created without some feature.
    pub without_features: u64,
}

impl Tally {
    /// Adds what was counted elsewhere.
    pub fn add(&mut self, other: Self) {
        self.submissions += other.submissions;
        self.not_found += other.not_found;
        self.joined += other.joined;
        self.joined_undone += other.joined_undone;
        self.joined_replayed += other.joined_replayed;
        self.removed += other.removed;
        self.names_reused += other.names_reused;
        self.without_features += other.without_features;
    }
}
