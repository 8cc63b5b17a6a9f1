//! Power-cut campaigns: random work on a simulated disk whose power fails at some sync, and checks of what survives.
//!
//! For each seed, a run works until the power fails. Writes that no sync covered survive at random: dropped, reordered
//! or torn. The store that opens on the disk must have every acknowledged step and no refused one. A step with an
//! unknown outcome must have happened entirely or not at all. The store must answer, verify and continue like the
//! model, through a second cut while it is opened or used.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use ledger_core::schema::Enforcement;
use parking_lot::Mutex;

use crate::failure::Failure;
use crate::harness::{Harness, Settings, WorkCounts};
use crate::writers::power_cut_under_writers;
use crate::{Rng, Workload};

/// A series of runs, each with its own seed.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    /// Seed of the first run. The seeds of the others follow it.
    pub first_seed: u64,
    /// Number of runs.
    pub runs: u64,
    /// True if syncs do nothing. The runs must then fail, which shows that the campaign notices lost writes.
    pub lying_syncs: bool,
    /// The work before and after the cuts.
    pub scenario: Scenario,
    /// Number of runs at the same time. It can exceed the number of processors, because a run mostly waits.
    pub threads: usize,
}

/// The work in the runs of a [`Campaign`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// Random work of every kind, one step at a time, compared with the model.
    Steps,
    /// Transactions of several writers, each with several submissions in flight.
    Writers,
}

impl Campaign {
    /// Executes all runs. Passes the seed and result of each to `each`, one at a time and in any order.
    pub fn run(&self, each: impl FnMut(u64, Result<WorkCounts, Failure>) + Send) {
        in_parallel(
            self.runs,
            self.threads,
            |run| {
                let seed = self.first_seed + run;
                let result = match self.scenario {
                    Scenario::Steps => power_cut(seed, self.lying_syncs),
                    Scenario::Writers => power_cut_under_writers(seed, self.lying_syncs),
                };
                (seed, result)
            },
            each,
        );
    }
}

/// Executes pieces of work on several threads. Passes the result of each to `each`, one at a time and in any order.
pub(crate) fn in_parallel<T>(
    pieces: u64,
    threads: usize,
    work: impl Fn(u64) -> (u64, T) + Sync,
    each: impl FnMut(u64, T) + Send,
) {
    let next = AtomicU64::new(0);
    let each = Mutex::new(each);
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                loop {
                    let piece = next.fetch_add(1, Ordering::Relaxed);
                    if piece >= pieces {
                        return;
                    }
                    let (seed, result) = work(piece);
                    each.lock()(seed, result);
                }
            });
        }
    });
}

/// Maximum number of steps before the first cut. Bounds the time of a run.
const STEPS_MAX: u64 = 60;
/// Number of steps after a cut. They show that the store continues.
const STEPS_AFTER: u64 = 6;

/// Executes one run. Equal seeds do the same work, but the step at which the power fails also depends on the threads.
///
/// # Errors
///
/// Fails if the surviving store differs from the model. The error names the difference.
pub fn power_cut(seed: u64, lying_syncs: bool) -> Result<WorkCounts, Failure> {
    let settings = Settings {
        memory_budget: 2 << 20,
        segment_bytes: 64 << 10,
        enforcement: if seed % 4 == 3 { Enforcement::Strict } else { Enforcement::Audit },
        asks_one_in: 0,
        fails_reads_one_in: 0,
        rebuilds_one_in: 0,
        lying_syncs,
    };
    let rng = Rng::from_seed(seed ^ 0x5eed_0000_0000);
    let mut harness = Harness::new(Workload::new(Rng::from_seed(seed)), rng, settings);
    // This cut comes before the end of most work. Creating a store takes about the first twelve syncs.
    harness.cut_within_syncs(160);
    harness.work(STEPS_MAX)?;
    for depth in 0..3 {
        harness.power_on(seed.wrapping_mul(31).wrapping_add(depth));
        if depth < 2 && harness.rng.below(2) == 0 {
            // The power fails again while the store opens, or soon after.
            harness.cut_within_syncs(24);
        }
        let now = harness.work.tick();
        if harness.recover(now, STEPS_AFTER)? {
            return Ok(harness.into_counts());
        }
    }
    Err("the power failed although it was on".into())
}
