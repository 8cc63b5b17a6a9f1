//! A store answers like the model, even after it was closed, opened or rebuilt, or lost its power.
//! `cargo run --release -p ledger-testkit --bin model_runs` compares a hundred thousand commands.

use std::path::Path;
use std::sync::Arc;

use ledger_store::{Options, Store};
use ledger_testkit::{Disk, ModelRuns, Oracle, Rng, SetClock, SimDisk, Step, WorkCounts, Workload};

fn options(clock: &Arc<SetClock>) -> Options {
    let mut options = Options::default();
    options.memory_budget = 2 << 20;
    options.segment_bytes = 64 << 10;
    options.clock = clock.clone();
    options
}

#[test]
fn random_work_matches_the_model() {
    for seed in 0..12 {
        let clock = Arc::<SetClock>::default();
        let disk = SimDisk::new();
        let open = || {
            let disk: Arc<dyn Disk> = Arc::new(disk.clone());
            Store::open_on_disk(disk, Path::new("data"), &options(&clock)).expect("the store opens")
        };
        let mut store = Some(open());
        let mut work = Workload::new(Rng::from_seed(seed));
        let mut oracle = Oracle::default();
        for _ in 0..120 {
            let now = work.tick();
            let step = work.step();
            clock.set(now);
            if matches!(step, Step::Reopen) {
                drop(store.take());
                let again = open();
                assert_eq!((again.opening().replayed, &again.opening().rebuilt), (0, &None), "seed {seed}");
                store = Some(again);
            }
            let store = store.as_ref().expect("an open store");
            assert_eq!(oracle.step(store, &step, now), Ok(None), "seed {seed}");
        }
        drop(store);
        let store = open();
        assert_eq!(oracle.compare(&store), Ok(()), "seed {seed}");
        let report = store.verify().expect("the verification runs");
        assert!(report.is_clean(), "seed {seed}: {}", report.to_json_lines());
        assert_eq!(report.entries, store.status().entries);
        assert_eq!(report.head, store.status().chain);
    }
}

#[test]
fn random_questions_match_model_through_power_cuts() {
    let runs = ModelRuns { first_seed: 0, commands: 20_000, commands_each: 400, threads: 2 };
    let (mut done, mut failed) = (WorkCounts::default(), Vec::new());
    runs.run(|seed, result| match result {
        Ok(more) => done.add(more),
        Err(differs) => failed.push(format!("seed {seed}: {differs}")),
    });
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(done.failed_reads > 50, "{done:?}");
    assert!(done.cuts > 0 && done.questions > 100_000, "{done:?}");
    // Every kind of work occurred, and most of it found its ledger.
    let counters = done.counters;
    let rare = [
        counters.joined,
        counters.joined_undone,
        counters.joined_replayed,
        counters.removed,
        counters.names_reused,
    ];
    assert!(rare.iter().all(|count| *count > 20) && counters.without_features > 100, "{counters:?}");
    assert!(counters.not_found * 4 < counters.submissions, "{counters:?}");
}
