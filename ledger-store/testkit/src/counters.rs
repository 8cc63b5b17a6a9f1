//! Counters of rare events in random work.

/// Counts events that random work might never cause. Tests check that they occurred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Number of submissions.
    pub submissions: u64,
    /// Number of submissions to a ledger that did not exist.
    pub not_found: u64,
    /// Number of submissions of several commands under one key that were recorded.
    pub joined: u64,
    /// Number of submissions of several commands under one key that were undone, because one command was refused.
    pub joined_undone: u64,
    /// Number of submissions of several commands under one key that were replays of an earlier outcome.
    pub joined_replayed: u64,
    /// Number of ledgers that were permanently removed.
    pub removed: u64,
    /// Number of ledgers that were created with the name of a removed one.
    pub names_reused: u64,
    /// Number of ledgers that were created without some feature.
    pub without_features: u64,
}

impl Counters {
    /// Adds the numbers of another run.
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
