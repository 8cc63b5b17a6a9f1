//! Model runs: random work of every kind with random questions in between. Every answer is compared with that of the
//! model, while the store is flushed, closed, opened, rebuilt and loses its power.

use ledger_core::schema::Enforcement;

use crate::campaign::in_parallel;
use crate::failure::Failure;
use crate::harness::{Harness, Settings, WorkCounts};
use crate::{Rng, Workload};

/// A series of runs, until enough commands were executed.
#[derive(Clone, Copy, Debug)]
pub struct ModelRuns {
    /// Seed of the first run. The seeds of the others follow it.
    pub first_seed: u64,
    /// Minimum number of commands in all runs.
    pub commands: u64,
    /// Approximate number of commands per run. The model walks whole logs, so the time of a run grows with the
    /// square of this.
    pub commands_each: u64,
    /// Number of runs at the same time.
    pub threads: usize,
}

impl ModelRuns {
    /// Executes all runs. Passes the seed and result of each to `each`, one at a time and in any order.
    pub fn run(&self, each: impl FnMut(u64, Result<WorkCounts, Failure>) + Send) {
        let runs = self.commands.div_ceil(self.commands_each.max(1));
        let work = |run| {
            let seed = self.first_seed + run;
            (seed, model_run(seed, self.commands_each))
        };
        in_parallel(runs, self.threads, work, each);
    }
}

/// Executes one run of about `commands` commands. Equal seeds do the same work, but the state of memory and files
/// also depends on the threads.
///
/// # Errors
///
/// Fails if the store differs from the model. The error names the difference.
pub fn model_run(seed: u64, commands: u64) -> Result<WorkCounts, Failure> {
    let mut rng = Rng::from_seed(seed ^ 0x7e57_0000_0000);
    let settings = Settings {
        // With the smallest budget, a flush happens every few commands, and there are many runs.
        memory_budget: rng.pick(&[64 << 10, 2 << 20, 16 << 20]),
        segment_bytes: 64 << 10,
        enforcement: rng.pick(&[Enforcement::Audit, Enforcement::Audit, Enforcement::Strict]),
        asks_one_in: 6,
        fails_reads_one_in: rng.pick(&[0, 0, 3]),
        rebuilds_one_in: 8,
        lying_syncs: false,
    };
    let work = Workload::with_accounts(Rng::from_seed(seed), rng.pick(&[0, 0, 40, 400]));
    let mut harness = Harness::new(work, rng, settings);
    let mut cuts = 0;
    while harness.work.commands() < commands {
        if harness.rng.one_in(3) {
            harness.cut_within_syncs(60);
        }
        let steps = 20 + harness.rng.below(60);
        harness.work(steps)?;
        if harness.disk.power_is_off() {
            cuts += 1;
            harness.power_on(seed.wrapping_mul(31).wrapping_add(cuts));
        }
        harness.cancel_cut();
        let now = harness.work.tick();
        if !harness.recover(now, 0)? {
            return Err("the power failed although it was on".into());
        }
    }
    Ok(harness.into_counts())
}
