//! A store on a simulated disk, its work, its judge, and what becomes of them when the power fails.

use std::path::Path;
use std::sync::Arc;

use ledger_core::Timestamp;
use ledger_core::schema::Enforcement;

use super::{Dice, Disk, Faults, Judge, SetClock, SimDisk, Step, Tally, Workload, fail_decision_read};
use crate::error::{OpenError, WriteError};
use crate::options::Options;
use crate::read::Snapshot;
use crate::store::Store;
use crate::verify::{VerifyReport, ViolationCode};

/// How a store is opened, and how much is asked of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) memory_budget: usize,
    pub(super) segment_bytes: u64,
    pub(super) enforcement: Enforcement,
    /// Questions after one step in so many; none for 0.
    pub(super) asks_one_in: u64,
    /// A read on which the writer decides fails in one step in so many; never for 0.
    pub(super) fails_reads_one_in: u64,
    /// The index is removed before one opening in so many; never for 0.
    pub(super) rebuilds_one_in: u64,
    pub(super) lying_syncs: bool,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// How many steps were acknowledged.
    pub acknowledged: u64,
    /// How many questions were asked.
    pub questions: u64,
    /// How often the power failed.
    pub cuts: u64,
    /// How often a step with an unknown outcome was found to have happened.
    pub unknown_kept: u64,
    /// How many steps failed since something could not be read.
    pub unread: u64,
    /// How often the store was opened.
    pub openings: u64,
    /// What of it was rare.
    pub tally: Tally,
}

impl Done {
    /// Adds what was done elsewhere.
    pub fn add(&mut self, other: Self) {
        self.acknowledged += other.acknowledged;
        self.questions += other.questions;
        self.cuts += other.cuts;
        self.unknown_kept += other.unknown_kept;
        self.unread += other.unread;
        self.openings += other.openings;
        self.tally.add(other.tally);
    }
}

pub(super) struct Rig {
    pub(super) disk: SimDisk,
    pub(super) work: Workload<'static>,
    pub(super) done: Done,
    /// What decides of everything but the work.
    pub(super) dice: Dice<'static>,
    settings: Settings,
    clock: Arc<SetClock>,
    /// What is acknowledged.
    certain: Judge,
    /// That and the step whose outcome is unknown.
    possible: Option<Judge>,
}

impl Rig {
    pub(super) fn new(work: Workload<'static>, dice: Dice<'static>, settings: Settings) -> Self {
        Self {
            disk: SimDisk::with_faults(Faults { lying_syncs: settings.lying_syncs, ..Faults::default() }),
            work,
            done: Done::default(),
            dice,
            settings,
            clock: Arc::default(),
            certain: Judge::enforcing(settings.enforcement),
            possible: None,
        }
    }

    /// What was done, in all.
    pub(super) fn done(self) -> Done {
        Done { tally: self.certain.tally, ..self.done }
    }

    /// Lets the power fail at one of the next `within` syncs.
    pub(super) fn cut_within(&mut self, within: u64) {
        let cut_at_sync = Some(self.disk.syncs() + 1 + self.dice.below(within));
        let lying_syncs = self.settings.lying_syncs;
        self.disk.set_faults(Faults { cut_at_sync, lying_syncs, ..Faults::default() });
    }

    /// Lets the power stay on.
    pub(super) fn cut_no_more(&mut self) {
        let lying_syncs = self.settings.lying_syncs;
        self.disk.set_faults(Faults { lying_syncs, ..Faults::default() });
    }

    /// Turns the power on again: what survives of what no sync covered follows from the seed.
    pub(super) fn power_on(&mut self, seed: u64) {
        self.disk = self.disk.after_power_cut(seed);
        self.done.cuts += 1;
    }

    fn open(&mut self) -> Result<Store, OpenError> {
        let options = Options {
            memory_budget: self.settings.memory_budget,
            segment_bytes: self.settings.segment_bytes,
            schema_enforcement: self.settings.enforcement,
            clock: self.clock.clone(),
            ..Options::default()
        };
        let disk: Arc<dyn Disk> = Arc::new(self.disk.clone());
        self.done.openings += 1;
        Store::open_on_disk(disk, Path::new("data"), &options)
    }

    /// Opens the store, or finds that the power has failed meanwhile.
    fn open_or_cut(&mut self) -> Result<Option<Store>, String> {
        let rebuilds = self.settings.rebuilds_one_in;
        if rebuilds > 0 && self.dice.one_in(rebuilds) {
            // It is built again from the journal, if it was there.
            let _ = self.disk.remove(Path::new("data/index/index.redb"));
        }
        match self.open() {
            Ok(store) => Ok(Some(store)),
            Err(_) if self.disk.power_is_off() => Ok(None),
            Err(error) => Err(format!("it does not open: {error}")),
        }
    }

    /// Works until the power fails or `steps` are done.
    pub(super) fn work(&mut self, steps: u64) -> Result<(), String> {
        match self.open_or_cut()? {
            Some(store) => self.go_on(store, steps),
            None => Ok(()),
        }
    }

    fn go_on(&mut self, mut store: Store, steps: u64) -> Result<(), String> {
        let mut kept: Option<(Snapshot, Judge)> = None;
        for _ in 0..steps {
            let now = self.work.tick();
            let step = self.work.step();
            if matches!(step, Step::Reopen) {
                kept = None;
                drop(store);
                match self.open_or_cut()? {
                    Some(again) => store = again,
                    None => return Ok(()),
                }
                continue;
            }
            self.clock.set(now);
            let before = self.certain.moment_before(&step);
            let fails = self.settings.fails_reads_one_in;
            if fails > 0 && self.dice.one_in(fails) {
                fail_decision_read(&store, 1 + self.dice.below(8));
            }
            let stepped = self.certain.step(&store, &step, now);
            fail_decision_read(&store, 0);
            if let Some(error) = stepped? {
                if matches!(error, WriteError::Read(_)) && !self.disk.power_is_off() {
                    // Nothing of it happened, and the store goes on.
                    self.certain.go_back(before);
                    let compared = self.certain.compare(&store);
                    if self.disk.power_is_off() {
                        // It failed while the store was read; the next opening tells.
                        return Ok(());
                    }
                    compared.map_err(|differs| format!("{differs}\n  after {error}"))?;
                    self.done.unread += 1;
                    continue;
                }
                if !self.disk.power_is_off() {
                    return Err(format!("no answer although the power is on: {error}"));
                }
                if !matches!(error, WriteError::Stopped { .. } | WriteError::Storage { .. }) {
                    self.possible = Some(self.certain.clone());
                }
                self.certain.go_back(before);
                return Ok(());
            }
            self.done.acknowledged += 1;
            let asks = self.settings.asks_one_in;
            if asks > 0 && self.dice.one_in(asks) {
                let snapshot = store.snapshot();
                let asked = self.certain.ask(&snapshot, &mut self.dice, now, 1);
                if !self.take_answers(asked)? {
                    return Ok(());
                }
                // A snapshot is asked again when the store has gone on.
                if let Some((snapshot, judge)) = &mut kept {
                    judge.forget_removed(&self.certain);
                    let asked = judge.ask(snapshot, &mut self.dice, now, 1);
                    if !self.take_answers(asked)? {
                        return Ok(());
                    }
                }
                if self.dice.one_in(4) {
                    kept = Some((snapshot, self.certain.clone()));
                }
            }
        }
        Ok(())
    }

    /// Counts the questions that were answered as they must; `false` if the power has failed meanwhile.
    fn take_answers(&mut self, asked: Result<u64, String>) -> Result<bool, String> {
        match asked {
            Ok(asked) => self.done.questions += asked,
            Err(_) if self.disk.power_is_off() => return Ok(false),
            Err(differs) => return Err(differs),
        }
        Ok(true)
    }

    /// Opens what survived, compares it, asks it, and goes on for some steps; `false` if the power failed again.
    pub(super) fn recover(&mut self, now: Timestamp, steps: u64) -> Result<bool, String> {
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
                self.done.unknown_kept += 1;
            }
        }
        self.possible = None;
        let asked = self.certain.ask(&store.snapshot(), &mut self.dice, now, 1);
        if !self.take_answers(asked)? {
            return Ok(false);
        }
        let report = store.verify().map_err(|error| error.to_string());
        match report {
            Ok(report) if is_whole(&report) => {}
            _ if self.disk.power_is_off() => {
                drop(store);
                return Ok(false);
            }
            Ok(report) => return Err(format!("it does not verify:\n{}", report.to_json_lines())),
            Err(error) => return Err(error),
        }
        self.go_on(store, steps)?;
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

/// Whether nothing is wrong but that a power cut tore the write that was under way.
pub(super) fn is_whole(report: &VerifyReport) -> bool {
    report.complete && report.violations.iter().all(|violation| violation.code == ViolationCode::TornTail)
}
