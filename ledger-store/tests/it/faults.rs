//! A read that fails while a command is decided fails only that command.

use std::path::Path;
use std::sync::Arc;

use ledger_core::Timestamp;
use ledger_store::{Options, Store, WriteError};
use ledger_testkit::{Disk, Faults, Oracle, Rng, SetClock, SimDisk, Step, Workload, fail_decision_read};

/// A closed store and its expected state.
#[derive(Clone)]
struct StoreFixture {
    disk: SimDisk,
    oracle: Oracle,
    clock: Arc<SetClock>,
}

impl StoreFixture {
    fn open(&self) -> Store {
        let mut options = Options::default();
        // With this little memory, the writer reads most data for decisions from the disk.
        options.memory_budget = 64 << 10;
        options.segment_bytes = 64 << 10;
        options.clock = self.clock.clone();
        let disk: Arc<dyn Disk> = Arc::new(self.disk.clone());
        Store::open_on_disk(disk, Path::new("data"), &options).expect("the store opens")
    }

    /// Returns a copy of the closed store.
    fn copy(&self) -> Self {
        Self { disk: self.disk.synced_copy(), ..self.clone() }
    }

    fn step(&mut self, store: &Store, step: &Step, now: Timestamp) -> Option<WriteError> {
        self.clock.set(now);
        self.oracle.step(store, step, now).expect("the answers of the model")
    }

    fn check(&self, store: Store) {
        self.oracle.compare(&store).expect("the store equals the model");
        assert_eq!(store.status().stopped, None);
        drop(store);
        self.oracle.compare(&self.open()).expect("the reopened store equals the model");
    }
}

/// Returns a store after some work, and further work for it.
fn worked(seed: u64, steps: u64) -> (StoreFixture, Workload<'static>) {
    let mut work = Workload::new(Rng::from_seed(seed));
    let mut fixture = StoreFixture { disk: SimDisk::new(), oracle: Oracle::default(), clock: Arc::default() };
    let store = fixture.open();
    for _ in 0..steps {
        let (now, step) = (work.tick(), work.step());
        assert_eq!(fixture.step(&store, &step, now), None, "seed {seed}");
    }
    drop(store);
    (fixture, work)
}

#[test]
fn a_failed_read_fails_one_command() {
    let mut failed = 0;
    for seed in 0..4 {
        let (mut fixture, mut work) = worked(seed, 80);
        for _ in 0..16 {
            let (now, step) = (work.tick(), work.step());
            for nth in 1.. {
                let mut tried = fixture.copy();
                let store = tried.open();
                fail_decision_read(&store, nth);
                let error = tried.step(&store, &step, now);
                let was_read = !fail_decision_read(&store, 0);
                if let Some(error) = error {
                    assert!(was_read && matches!(error, WriteError::Read(_)), "{error:?}");
                    tried.oracle = fixture.oracle.clone();
                    tried.oracle.compare(&store).expect("nothing of it happened");
                    assert_eq!(tried.step(&store, &step, now), None, "it can be tried again");
                    failed += 1;
                }
                tried.check(store);
                if !was_read {
                    fixture = tried;
                    break;
                }
            }
        }
    }
    assert!(failed > 60, "{failed}");
}

#[test]
fn a_disk_that_fails_a_read_once_loses_nothing() {
    let (fixture, work) = worked(7, 120);
    for nth in (1..200).step_by(5) {
        let (mut tried, mut work) = (fixture.copy(), work.clone());
        let store = tried.open();
        tried.disk.set_faults(Faults { fail_read: Some(tried.disk.reads() + nth), ..Faults::default() });
        for _ in 0..6 {
            let (now, step) = (work.tick(), work.step());
            let before = tried.oracle.clone();
            match tried.step(&store, &step, now) {
                None => {}
                Some(WriteError::Read(_)) => tried.oracle = before,
                Some(error) => panic!("read {nth}: {error}"),
            }
        }
        tried.disk.set_faults(Faults::default());
        tried.check(store);
    }
}
