//! A store for criterion benchmarks.

use std::time::Instant;

use ledger_store::{Store, SystemClock, TimeSource};

use crate::Failure;
use crate::embedded::Load;
use crate::flight::Flight;
use crate::place::Place;
use crate::workload::{Profile, Shape, Workload, ledger_name, submission};

/// A store on disk with funded accounts, and more transactions for it. Its directory vanishes with it.
pub struct BenchStore {
    /// The store.
    pub store: Store,
    /// The stream of transactions.
    pub workload: Workload,
    // The store is closed before its directory is removed.
    _place: Place,
}

impl BenchStore {
    /// A store with so many funded accounts and random transactions.
    ///
    /// # Errors
    ///
    /// What opening or writing may meet.
    pub fn new(shape: Shape, accounts: u64, transactions: u64) -> Result<Self, Failure> {
        let place = Place::new(None)?;
        let profile = Profile { accounts, shape, ..Profile::default() };
        let load = Load { profile: profile.clone(), ..Load::default() };
        let mut workload = Workload::new(profile, 1);
        let store = Store::open_with(place.path().join("store"), &load.options())?;
        store.create_ledger(ledger_name(), load.profile.ledger_options())?;
        let flight = Flight::new(4);
        for requests in workload.funding(8192) {
            flight.wait()?;
            flight.submit(&store, submission(requests), Instant::now());
        }
        let mut left = transactions;
        while left > 0 {
            let size = left.min(8192);
            flight.wait()?;
            flight.submit(
                &store,
                submission(workload.batch(size as usize, SystemClock.now())),
                Instant::now(),
            );
            left -= size;
        }
        flight.finish()?;
        store.flush();
        Ok(Self { store, workload, _place: place })
    }
}

/// Whether criterion makes a short pass, as with `cargo bench -- --test` or `cargo test --benches`: then a
/// benchmark prepares little.
pub fn is_short_pass() -> bool {
    let asked = |option| std::env::args().any(|argument| argument == option);
    asked("--test") || !asked("--bench")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_what_it_was_asked_for() {
        let bench = BenchStore::new(Shape::Rich, 10, 30).expect("a store");
        let view = bench.store.snapshot().ledger(&ledger_name()).expect("the ledger");
        assert_eq!(view.stats().expect("readable").transactions, 40);
    }
}
