//! A store for criterion benchmarks.

use std::time::Instant;

use ledger_store::{Store, SystemClock, TimeSource};

use crate::Failure;
use crate::data_dir::DataDir;
use crate::embedded::Load;
use crate::in_flight::InFlight;
use crate::workload::{Content, Profile, Workload, ledger_name, submission};

/// A store on disk with funded accounts, and more transactions for it. Its directory is removed with it.
pub struct BenchStore {
    /// The store.
    pub store: Store,
    /// Further transactions for the store.
    pub workload: Workload,
    // Dropped last, so that the store closes before its directory is removed.
    _data_dir: DataDir,
}

impl BenchStore {
    /// Creates a store with this many funded accounts and random transactions.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be opened or refuses a write.
    pub fn new(content: Content, accounts: u64, transactions: u64) -> Result<Self, Failure> {
        let data_dir = DataDir::new(None)?;
        let profile = Profile { accounts, content, ..Profile::default() };
        let load = Load { profile: profile.clone(), ..Load::default() };
        let mut workload = Workload::new(profile, 1);
        let store = Store::open_with(data_dir.path().join("store"), &load.options())?;
        store.create_ledger(ledger_name(), load.profile.ledger_options())?;
        let submissions = InFlight::new(4);
        for requests in workload.funding(8192) {
            submissions.wait()?;
            submissions.submit(&store, submission(requests), Instant::now());
        }
        let mut left = transactions;
        while left > 0 {
            let size = left.min(8192);
            submissions.wait()?;
            submissions.submit(
                &store,
                submission(workload.batch(size as usize, SystemClock.now())),
                Instant::now(),
            );
            left -= size;
        }
        submissions.finish()?;
        store.flush();
        Ok(Self { store, workload, _data_dir: data_dir })
    }
}

/// Returns whether criterion makes a short pass, as with `cargo bench -- --test` or `cargo test --benches`.
/// Benchmarks then prepare little data.
pub fn is_short_pass() -> bool {
    let asked = |option| std::env::args().any(|argument| argument == option);
    asked("--test") || !asked("--bench")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_the_requested_transactions() {
        let bench = BenchStore::new(Content::Rich, 10, 30).expect("a store");
        let view = bench.store.snapshot().ledger(&ledger_name()).expect("the ledger");
        assert_eq!(view.stats().expect("readable").transactions, 40);
    }
}
