//! Fuzz target: a store answers random commands like the reference model, and passes its verification.

use std::sync::Arc;

use ledger_store::{Options, Store};
use ledger_testkit::{Oracle, Rng, SetClock, Step, Workload};

/// Reads a sequence of choices that determine the commands.
pub fn run(data: &[u8]) {
    let clock = Arc::<SetClock>::default();
    let mut options = Options::default();
    options.memory_budget = 2 << 20;
    options.clock = clock.clone();
    let store = Store::in_memory_with(&options);
    let mut oracle = Oracle::default();
    let mut work = Workload::new(Rng::from_bytes(data));
    // The model walks whole logs, so the time grows with the square of the work.
    for _ in 0..200 {
        if work.is_exhausted() {
            break;
        }
        let now = work.tick();
        let step = work.step();
        if matches!(step, Step::Reopen) {
            continue;
        }
        clock.set(now);
        assert_eq!(oracle.step(&store, &step, now), Ok(None));
    }
    assert_eq!(oracle.compare(&store), Ok(()));
    let report = store.verify().expect("memory takes a second index");
    assert!(report.is_clean(), "{}", report.to_json_lines());
}
