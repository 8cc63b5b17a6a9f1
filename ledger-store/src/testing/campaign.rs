//! Power cuts: random work on a simulated disk whose power fails at some sync, and what is found afterwards.
//!
//! For each seed the work is done until the power fails. What survives of the writes that no sync covered is
//! arbitrary: dropped, reordered, torn. The store that is opened on it must have every acknowledged step and
//! no refused one; the step whose outcome was unknown is there wholly or not at all. It must answer, verify, and go
//! on as the model does, through a second cut while it is opened or worked with.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use ledger_core::schema::Enforcement;
use parking_lot::Mutex;

use super::rig::{Done, Rig, Settings};
use super::writers::power_cut_under_writers;
use super::{Dice, Workload};

/// Many runs.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    /// The seed of the first; the others follow it.
    pub first_seed: u64,
    /// How many.
    pub runs: u64,
    /// Whether syncs do nothing: then runs must fail, or the campaign has no teeth.
    pub lying_syncs: bool,
    /// What is done before and after the cuts.
    pub work: Work,
    /// How many runs go on at once. A run waits more than it works, so there may be more than processors.
    pub threads: usize,
}

/// What the runs of a [`Campaign`] do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Random work of every kind, one step at a time, judged by the model.
    Steps,
    /// Transactions of several writers, each with several on their way.
    Writers,
}

impl Campaign {
    /// Runs all, and hands the seed and result of each to `each`, one at a time and in no order.
    pub fn run(&self, each: impl FnMut(u64, Result<Done, String>) + Send) {
        side_by_side(
            self.runs,
            self.threads,
            |run| {
                let seed = self.first_seed + run;
                let result = match self.work {
                    Work::Steps => power_cut(seed, self.lying_syncs),
                    Work::Writers => power_cut_under_writers(seed, self.lying_syncs),
                };
                (seed, result)
            },
            each,
        );
    }
}

/// Does pieces of work on several threads, and hands on what came of each, one at a time and in no order.
pub(super) fn side_by_side<T>(
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

/// No run has more steps before its first cut.
const STEPS_MAX: u64 = 60;
/// Steps after a cut, to see that the store goes on.
const STEPS_AFTER: u64 = 6;

/// One run. Equal seeds do the same work; at which of it the power fails also depends on the threads.
///
/// # Errors
///
/// What the surviving store lacks, or has too much, or did otherwise than the model.
pub fn power_cut(seed: u64, lying_syncs: bool) -> Result<Done, String> {
    let settings = Settings {
        memory_budget: 2 << 20,
        segment_bytes: 64 << 10,
        enforcement: if seed % 4 == 3 { Enforcement::Strict } else { Enforcement::Audit },
        asks_one_in: 0,
        fails_reads_one_in: 0,
        rebuilds_one_in: 0,
        lying_syncs,
    };
    let dice = Dice::from_seed(seed ^ 0x5eed_0000_0000);
    let mut rig = Rig::new(Workload::new(Dice::from_seed(seed)), dice, settings);
    // Most of it is cut short; the syncs of creating a store are the first dozen.
    rig.cut_within(160);
    rig.work(STEPS_MAX)?;
    for depth in 0..3 {
        rig.power_on(seed.wrapping_mul(31).wrapping_add(depth));
        if depth < 2 && rig.dice.below(2) == 0 {
            // The power fails again, while the store is opened or soon after.
            rig.cut_within(24);
        }
        let now = rig.work.tick();
        if rig.recover(now, STEPS_AFTER)? {
            return Ok(rig.done());
        }
    }
    Err("the power failed although it was on".to_owned())
}
