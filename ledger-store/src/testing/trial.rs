//! Trials: random work of any kind with random questions between, every answer compared with the model's, while the
//! store is flushed, closed, opened, rebuilt and cut from its power.

use ledger_core::schema::Enforcement;

use super::campaign::side_by_side;
use super::rig::{Done, Rig, Settings};
use super::{Dice, Workload};

/// Many trials, until so much was done.
#[derive(Clone, Copy, Debug)]
pub struct Trials {
    /// The seed of the first; the others follow it.
    pub first_seed: u64,
    /// How many commands are given in all, at least.
    pub commands: u64,
    /// How many commands one trial has, about. The model walks whole logs: longer trials cost their square.
    pub commands_each: u64,
    /// How many go on at once.
    pub threads: usize,
}

impl Trials {
    /// Runs all, and hands the seed and result of each to `each`, one at a time and in no order.
    pub fn run(&self, each: impl FnMut(u64, Result<Done, String>) + Send) {
        let trials = self.commands.div_ceil(self.commands_each.max(1));
        let work = |trial| {
            let seed = self.first_seed + trial;
            (seed, trial_of(seed, self.commands_each))
        };
        side_by_side(trials, self.threads, work, each);
    }
}

/// One trial of so many commands. Equal seeds do the same work; what stands where of it also depends on the threads.
///
/// # Errors
///
/// What differs from the model.
pub fn trial_of(seed: u64, commands: u64) -> Result<Done, String> {
    let mut dice = Dice::from_seed(seed ^ 0x7e57_0000_0000);
    let settings = Settings {
        // With the least memory every few commands are flushed, and runs are many.
        memory_budget: dice.pick(&[64 << 10, 2 << 20, 16 << 20]),
        segment_bytes: 64 << 10,
        enforcement: dice.pick(&[Enforcement::Audit, Enforcement::Audit, Enforcement::Strict]),
        asks_one_in: 6,
        fails_reads_one_in: dice.pick(&[0, 0, 3]),
        rebuilds_one_in: 8,
        lying_syncs: false,
    };
    let work = Workload::with_accounts(Dice::from_seed(seed), dice.pick(&[0, 0, 40, 400]));
    let mut rig = Rig::new(work, dice, settings);
    let mut cuts = 0;
    while rig.work.commands() < commands {
        if rig.dice.one_in(3) {
            rig.cut_within(60);
        }
        let steps = 20 + rig.dice.below(60);
        rig.work(steps)?;
        if rig.disk.power_is_off() {
            cuts += 1;
            rig.power_on(seed.wrapping_mul(31).wrapping_add(cuts));
        }
        rig.cut_no_more();
        let now = rig.work.tick();
        if !rig.recover(now, 0)? {
            return Err("the power failed although it was on".to_owned());
        }
    }
    Ok(rig.done())
}
