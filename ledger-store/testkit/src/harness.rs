//! The test harness: a store on a simulated disk with random work, its oracle, and its restarts after power cuts.

use std::path::Path;
use std::sync::Arc;

use ledger_core::Timestamp;
use ledger_core::schema::Enforcement;
use ledger_store::{
    OpenError, Options, Outcome, ReadError, Snapshot, Store, VerifyReport, ViolationCode, WriteError,
};

use crate::failure::Failure;
use crate::{Counters, Disk, Faults, Oracle, Rng, SetClock, SimDisk, Step, Workload, fail_decision_read};

/// Options of a store under test, and how often the harness asks it questions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// [`Options::memory_budget`] of the store.
    pub(crate) memory_budget: usize,
    /// [`Options::segment_bytes`] of the store.
    pub(crate) segment_bytes: u64,
    /// How strictly the store enforces schemas.
    pub(crate) enforcement: Enforcement,
    /// Average number of steps from one question to the next; 0 for no questions.
    pub(crate) asks_one_in: u64,
    /// Average number of steps from one failed read of the writer to the next; 0 for none.
    pub(crate) fails_reads_one_in: u64,
    /// Average number of openings from one removal of the index to the next; 0 for none.
    pub(crate) rebuilds_one_in: u64,
    /// True if syncs of the disk do nothing.
    pub(crate) lying_syncs: bool,
}

/// Counts the work of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkCounts {
    /// Number of acknowledged steps.
    pub acknowledged: u64,
    /// Number of questions.
    pub questions: u64,
    /// Number of power cuts.
    pub cuts: u64,
    /// Number of steps with an unknown outcome that turned out to have happened.
    pub unknown_kept: u64,
    /// Number of steps that failed because a read failed.
    pub failed_reads: u64,
    /// Number of openings of the store.
    pub openings: u64,
    /// Numbers of rare events.
    pub counters: Counters,
}

impl WorkCounts {
    /// Adds the numbers of another run.
    pub fn add(&mut self, other: Self) {
        self.acknowledged += other.acknowledged;
        self.questions += other.questions;
        self.cuts += other.cuts;
        self.unknown_kept += other.unknown_kept;
        self.failed_reads += other.failed_reads;
        self.openings += other.openings;
        self.counters.add(other.counters);
    }
}

/// A store under test with its simulated disk, its random work and the expected state.
pub(crate) struct Harness {
    pub(crate) disk: SimDisk,
    pub(crate) work: Workload<'static>,
    pub(crate) counts: WorkCounts,
    /// Decides everything except the work.
    pub(crate) rng: Rng<'static>,
    settings: Settings,
    clock: Arc<SetClock>,
    /// The state after all acknowledged steps.
    certain: Oracle,
    /// The states that the store may have if the last step, whose outcome is unknown, took effect.
    possible: Vec<Oracle>,
}

impl Harness {
    pub(crate) fn new(work: Workload<'static>, rng: Rng<'static>, settings: Settings) -> Self {
        Self {
            disk: SimDisk::with_faults(Faults { lying_syncs: settings.lying_syncs, ..Faults::default() }),
            work,
            counts: WorkCounts::default(),
            rng,
            settings,
            clock: Arc::default(),
            certain: Oracle::enforcing(settings.enforcement),
            possible: Vec::new(),
        }
    }

    /// Ends the run, and returns the counts of its work.
    pub(crate) fn into_counts(self) -> WorkCounts {
        WorkCounts { counters: self.certain.counters, ..self.counts }
    }

    /// Makes the power fail at one of the next `within` syncs of the disk, at random.
    pub(crate) fn cut_within_syncs(&mut self, within: u64) {
        let cut_at_sync = Some(self.disk.syncs() + 1 + self.rng.below(within));
        let lying_syncs = self.settings.lying_syncs;
        self.disk.set_faults(Faults { cut_at_sync, lying_syncs, ..Faults::default() });
    }

    /// Cancels the next power cut.
    pub(crate) fn cancel_cut(&mut self) {
        let lying_syncs = self.settings.lying_syncs;
        self.disk.set_faults(Faults { lying_syncs, ..Faults::default() });
    }

    /// Turns the power on again. The seed decides which writes without a sync survive.
    pub(crate) fn power_on(&mut self, seed: u64) {
        self.disk = self.disk.after_power_cut(seed);
        self.counts.cuts += 1;
    }

    /// Opens the store on the simulated disk.
    fn open(&mut self) -> Result<Store, OpenError> {
        let mut options = Options::default();
        options.memory_budget = self.settings.memory_budget;
        options.segment_bytes = self.settings.segment_bytes;
        options.schema_enforcement = self.settings.enforcement;
        options.clock = self.clock.clone();
        let disk: Arc<dyn Disk> = Arc::new(self.disk.clone());
        self.counts.openings += 1;
        Store::open_on_disk(disk, Path::new("data"), &options)
    }

    /// Opens the store. Returns `None` if the power failed meanwhile.
    fn open_or_cut(&mut self) -> Result<Option<Store>, Failure> {
        let rebuilds = self.settings.rebuilds_one_in;
        if rebuilds > 0 && self.rng.one_in(rebuilds) {
            // The store rebuilds the index from the journal. The file may not exist yet.
            let _ = self.disk.remove(Path::new("data/index/index.redb"));
        }
        match self.open() {
            Ok(store) => Ok(Some(store)),
            Err(_) if self.disk.power_is_off() => Ok(None),
            Err(error) => Err(Failure::from(error).during("when it was opened")),
        }
    }

    /// Works until the power fails or `steps` steps are done.
    pub(crate) fn work(&mut self, steps: u64) -> Result<(), Failure> {
        match self.open_or_cut()? {
            Some(store) => self.continue_with(store, steps),
            None => Ok(()),
        }
    }

    /// Works with an open store until the power fails or `steps` steps are done.
    fn continue_with(&mut self, mut store: Store, steps: u64) -> Result<(), Failure> {
        let mut earlier: Option<(Snapshot, Oracle)> = None;
        for _ in 0..steps {
            let now = self.work.tick();
            let step = self.work.step();
            if matches!(step, Step::Reopen) {
                earlier = None;
                drop(store);
                match self.open_or_cut()? {
                    Some(again) => store = again,
                    None => return Ok(()),
                }
                continue;
            }
            self.clock.set(now);
            let before = self.certain.snapshot_before(&step);
            let is_armed = self.arm_failed_read(&store);
            let stepped = self.certain.step(&store, &step, now);
            let has_failed = is_armed && disarm_failed_read(&store);
            if let Some(error) = stepped? {
                if matches!(error, WriteError::Read(_)) && !self.disk.power_is_off() {
                    // The step changed nothing, and the store continues.
                    self.certain.return_to(before);
                    let compared = self.certain.compare(&store);
                    if self.disk.power_is_off() {
                        // The power failed during the comparison. The next opening shows the state.
                        return Ok(());
                    }
                    compared.map_err(|failure| failure.during(format!("after {error}")))?;
                    self.counts.failed_reads += 1;
                    continue;
                }
                if !self.disk.power_is_off() {
                    return Err(
                        Failure::from(error).during("the store failed a step although the power is on")
                    );
                }
                let is_unknown = !matches!(error, WriteError::Stopped { .. } | WriteError::Storage { .. });
                if is_unknown {
                    self.possible = vec![self.certain.clone()];
                }
                self.certain.return_to(before);
                if is_unknown && has_failed {
                    self.possible.extend(states_after_failed_read(&self.certain, &step, now));
                }
                return Ok(());
            }
            self.counts.acknowledged += 1;
            let asks = self.settings.asks_one_in;
            if asks > 0 && self.rng.one_in(asks) {
                let snapshot = store.snapshot();
                let asked = self.certain.ask(&snapshot, &mut self.rng, now, 1);
                if !self.count_questions(asked)? {
                    return Ok(());
                }
                // Ask an earlier snapshot again, now that the store has moved on.
                if let Some((snapshot, oracle)) = &mut earlier {
                    oracle.forget_removed(&self.certain);
                    let asked = oracle.ask(snapshot, &mut self.rng, now, 1);
                    if !self.count_questions(asked)? {
                        return Ok(());
                    }
                }
                if self.rng.one_in(4) {
                    earlier = Some((snapshot, self.certain.clone()));
                }
            }
        }
        Ok(())
    }

    /// Sometimes arms a failure of one of the decision's first 8 reads. Returns whether it armed one.
    fn arm_failed_read(&mut self, store: &Store) -> bool {
        let fails = self.settings.fails_reads_one_in;
        let is_armed = fails > 0 && self.rng.one_in(fails);
        if is_armed {
            fail_decision_read(store, 1 + self.rng.below(8));
        }
        is_armed
    }

    /// Counts the questions of a round if all answers were right. Returns `false` if the power failed meanwhile.
    fn count_questions(&mut self, asked: Result<u64, Failure>) -> Result<bool, Failure> {
        match asked {
            Ok(asked) => self.counts.questions += asked,
            Err(_) if self.disk.power_is_off() => return Ok(false),
            Err(differs) => return Err(differs),
        }
        Ok(true)
    }

    /// Opens the surviving store, compares it, asks it, and continues for some steps. Returns `false` if the power
    /// failed again.
    pub(crate) fn recover(&mut self, now: Timestamp, steps: u64) -> Result<bool, Failure> {
        let Some(store) = self.open_or_cut()? else { return Ok(false) };
        let certain = self.certain.compare(&store);
        let possible: Vec<_> = self.possible.iter().map(|possible| possible.compare(&store)).collect();
        if self.disk.power_is_off() {
            // The failed power makes reads fail, too. The next opening shows the state.
            return Ok(false);
        }
        if let Err(certain) = certain {
            match possible.iter().position(Result::is_ok) {
                Some(at) => {
                    self.certain = self.possible.swap_remove(at);
                    self.counts.unknown_kept += 1;
                }
                None if possible.is_empty() => return Err(certain),
                None => {
                    let differs = "the store has neither the acknowledged state nor a possible one";
                    return Err(format!("{differs}: {certain}; {possible:?}").into());
                }
            }
        }
        self.possible.clear();
        let asked = self.certain.ask(&store.snapshot(), &mut self.rng, now, 1);
        if !self.count_questions(asked)? {
            return Ok(false);
        }
        match store.verify() {
            Ok(report) if is_intact_but_for_torn_tail(&report) => {}
            _ if self.disk.power_is_off() => {
                drop(store);
                return Ok(false);
            }
            Ok(report) => return Err(format!("it does not verify:\n{}", report.to_json_lines()).into()),
            Err(error) => return Err(error.into()),
        }
        self.continue_with(store, steps)?;
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

/// Returns whether a report contains no violation, except for a write that a power cut tore.
pub(crate) fn is_intact_but_for_torn_tail(report: &VerifyReport) -> bool {
    report.complete && report.violations.iter().all(|violation| violation.code == ViolationCode::TornTail)
}

/// Cancels an armed failure of a read. Returns whether the read had already failed.
fn disarm_failed_read(store: &Store) -> bool {
    // `true` means that the failure was still armed.
    !fail_decision_read(store, 0)
}

/// Returns the possible states after a submission in which a read failed: one state for each command that may have
/// failed.
fn states_after_failed_read(oracle: &Oracle, step: &Step, now: Timestamp) -> Vec<Oracle> {
    let Step::Submit(submission) = step else { return Vec::new() };
    let state_if_failed_at = |at: usize| {
        let mut found = vec![Outcome::Cancelled; at];
        found.push(Outcome::Failed(ReadError::Io("injected".into())));
        let mut oracle = oracle.clone();
        oracle.simulate(submission, &found, now);
        oracle
    };
    (0..submission.requests.len()).map(state_if_failed_at).collect()
}
