//! Power cuts: random work on a simulated disk whose power fails at some sync, and what is found afterwards.
//!
//! For each seed the work is done until the power fails. What survives of the writes that no sync covered is
//! arbitrary: dropped, reordered, torn. The store that is opened on it must have every acknowledged step and
//! no refused one; the step whose outcome was unknown is there wholly or not at all. It must verify, and go on
//! as the model does, through a second cut while it is opened or worked with.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use ledger_core::Timestamp;
use parking_lot::Mutex;

use super::{Dice, Disk, Faults, Judge, SetClock, SimDisk, Step, Workload};
use crate::error::{OpenError, WriteError};
use crate::options::Options;
use crate::store::Store;

/// What a run found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// How many steps were acknowledged.
    pub acknowledged: u64,
    /// How often the power failed.
    pub cuts: u64,
    /// How often a step with an unknown outcome was found to have happened.
    pub unknown_kept: u64,
}

/// Many runs.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    /// The seed of the first; the others follow it.
    pub first_seed: u64,
    /// How many.
    pub runs: u64,
    /// Whether syncs do nothing: then runs must fail, or the campaign has no teeth.
    pub lying_syncs: bool,
    /// How many runs go on at once. A run waits more than it works, so there may be more than processors.
    pub threads: usize,
}

impl Campaign {
    /// Runs all, and hands the seed and result of each to `each`, one at a time and in no order.
    pub fn run(&self, each: impl FnMut(u64, Result<Cut, String>) + Send) {
        let next = AtomicU64::new(0);
        let each = Mutex::new(each);
        thread::scope(|scope| {
            for _ in 0..self.threads.max(1) {
                scope.spawn(|| {
                    loop {
                        let run = next.fetch_add(1, Ordering::Relaxed);
                        if run >= self.runs {
                            return;
                        }
                        let seed = self.first_seed + run;
                        let result = power_cut(seed, self.lying_syncs);
                        each.lock()(seed, result);
                    }
                });
            }
        });
    }
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
pub fn power_cut(seed: u64, lying_syncs: bool) -> Result<Cut, String> {
    let mut dice = Dice::from_seed(seed ^ 0x5eed_0000_0000);
    // Most of it is cut short; the syncs of creating a store are the first dozen.
    let cut_at_sync = Some(1 + dice.below(160));
    let disk = SimDisk::with_faults(Faults { cut_at_sync, lying_syncs, ..Faults::default() });
    let mut run = Run {
        disk,
        clock: Arc::default(),
        work: Workload::new(Dice::from_seed(seed)),
        certain: Judge::default(),
        possible: None,
        cut: Cut { acknowledged: 0, cuts: 1, unknown_kept: 0 },
    };
    run.work(STEPS_MAX)?;
    for depth in 0..3 {
        run.disk = run.disk.after_power_cut(seed.wrapping_mul(31).wrapping_add(depth));
        if depth < 2 && dice.below(2) == 0 {
            // The power fails again, while the store is opened or soon after.
            let cut_at_sync = Some(1 + dice.below(24));
            run.disk.set_faults(Faults { cut_at_sync, lying_syncs, ..Faults::default() });
        }
        if run.recover()? {
            return Ok(run.cut);
        }
        run.cut.cuts += 1;
    }
    Ok(run.cut)
}

struct Run {
    disk: SimDisk,
    clock: Arc<SetClock>,
    work: Workload<'static>,
    /// What is acknowledged.
    certain: Judge,
    /// That and the step whose outcome is unknown.
    possible: Option<Judge>,
    cut: Cut,
}

impl Run {
    fn open(&self) -> Result<Store, OpenError> {
        let options = Options {
            memory_budget: 2 << 20,
            segment_bytes: 64 << 10,
            clock: self.clock.clone(),
            ..Options::default()
        };
        let disk: Arc<dyn Disk> = Arc::new(self.disk.clone());
        Store::open_on_disk(disk, Path::new("data"), &options)
    }

    /// Opens the store, or finds that the power has failed meanwhile.
    fn open_or_cut(&self) -> Result<Option<Store>, String> {
        match self.open() {
            Ok(store) => Ok(Some(store)),
            Err(_) if self.disk.power_is_off() => Ok(None),
            Err(error) => Err(format!("it does not open: {error}")),
        }
    }

    /// Works until the power fails or `steps` are done.
    fn work(&mut self, steps: u64) -> Result<(), String> {
        match self.open_or_cut()? {
            Some(store) => self.go_on(store, steps),
            None => Ok(()),
        }
    }

    fn go_on(&mut self, mut store: Store, steps: u64) -> Result<(), String> {
        for _ in 0..steps {
            let now: Timestamp = self.work.tick();
            let step = self.work.step();
            if matches!(step, Step::Reopen) {
                drop(store);
                match self.open_or_cut()? {
                    Some(again) => store = again,
                    None => return Ok(()),
                }
                continue;
            }
            self.clock.set(now);
            let mut after = self.certain.clone();
            match after.step(&store, &step, now)? {
                None => self.certain = after,
                Some(error) => {
                    if !self.disk.power_is_off() {
                        return Err(format!("no answer although the power is on: {error}"));
                    }
                    if !matches!(error, WriteError::Stopped { .. }) {
                        self.possible = Some(after);
                    }
                    return Ok(());
                }
            }
            self.cut.acknowledged += 1;
        }
        Ok(())
    }

    /// Opens what survived, compares it and goes on; `false` if the power failed again.
    fn recover(&mut self) -> Result<bool, String> {
        let Some(store) = self.open_or_cut()? else { return Ok(false) };
        let certain = self.certain.compare(&store);
        let possible = self.possible.as_ref().map(|possible| possible.compare(&store));
        if self.disk.power_is_off() {
            // Reads have failed too; the next opening tells.
            return Ok(false);
        }
        match (certain, possible) {
            (Ok(()), _) => {}
            (Err(certain), None) => return Err(certain),
            (Err(certain), Some(Err(possible))) => {
                return Err(format!("neither: {certain}, nor: {possible}"));
            }
            (Err(_), Some(Ok(()))) => {
                self.certain = self.possible.take().expect("it was compared");
                self.cut.unknown_kept += 1;
            }
        }
        self.possible = None;
        let report = store.verify().map_err(|error| error.to_string());
        match report {
            Ok(report) if report.is_clean() => {}
            _ if self.disk.power_is_off() => {
                drop(store);
                return Ok(false);
            }
            Ok(report) => return Err(format!("it does not verify:\n{}", report.to_json_lines())),
            Err(error) => return Err(error),
        }
        self.go_on(store, STEPS_AFTER)?;
        if self.disk.power_is_off() {
            return Ok(false);
        }
        let Some(store) = self.open_or_cut()? else { return Ok(false) };
        let compared = self.certain.compare(&store);
        if self.disk.power_is_off() {
            return Ok(false);
        }
        compared.map(|()| true)
    }
}
