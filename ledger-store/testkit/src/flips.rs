//! Bit-flip campaigns: a store with one flipped bit in its files must refuse, mend or report it, or answer as before.
//!
//! A campaign works with a store and leaves it in one of three ways: closed, killed, or by a power cut. It then flips
//! one bit of one file, opens the store and asks every kind of question. A flip is silent if an answer is wrong or if
//! acknowledged data is missing without a report, even if `verify` would find it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ledger_store::{Options, Store, ViolationCode};

use crate::campaign::in_parallel;
use crate::failure::Failure;
use crate::{DamagedAnswers, Disk, Oracle, Rng, SetClock, SimDisk, Step, Workload};

/// The way in which a store was left before the flip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ShutdownKind {
    /// The store was closed.
    Closed,
    /// The process of the store was killed.
    Killed,
    /// The power failed.
    PowerCut,
}

/// The file that was damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DamagedFile {
    /// The segment of the journal that is being written.
    LastSegment,
    /// A sealed segment of the journal.
    SealedSegment,
    /// `HEAD`, the file that records the acknowledged end of the journal.
    Head,
    /// The index.
    Index,
    /// The manifest or the secret.
    Identity,
}

/// The result of a flip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlipOutcome {
    /// The store refused to open, with any error.
    Refused,
    /// The store rebuilt the index and reported it, and every answer is right.
    Repaired,
    /// The store dropped the end of the journal as a torn write that may have been acknowledged, and `verify` reports
    /// it.
    Dropped,
    /// Some questions got an error that names the damage. All other answers are right.
    Reported,
    /// Every answer is as before the flip.
    Harmless,
    /// An answer is wrong, or data is missing without a report.
    Silent(String),
}

/// Numbers of results, by damaged file and by the way in which the store was left.
#[derive(Clone, Debug, Default)]
pub struct FlipCounts {
    /// The counts have the order of [`FlipOutcome`].
    rows: BTreeMap<(DamagedFile, ShutdownKind), [u64; 6]>,
}

impl FlipCounts {
    /// Counts the result of a flip.
    pub fn add(&mut self, damaged: DamagedFile, left: ShutdownKind, flipped: &FlipOutcome) {
        let column = match flipped {
            FlipOutcome::Refused => 0,
            FlipOutcome::Repaired => 1,
            FlipOutcome::Dropped => 2,
            FlipOutcome::Reported => 3,
            FlipOutcome::Harmless => 4,
            FlipOutcome::Silent(_) => 5,
        };
        self.rows.entry((damaged, left)).or_default()[column] += 1;
    }
}

/// Prints the numbers as a table in Markdown, with a column for each [`FlipOutcome`] in the order of the type.
impl fmt::Display for FlipCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| File | Left | Flips | Refused | Mended | Dropped, told | Error | Right | Silent |")?;
        writeln!(f, "|---|---|---|---|---|---|---|---|---|")?;
        for ((damaged, left), counts) in &self.rows {
            let flips: u64 = counts.iter().sum();
            let counts: Vec<String> = counts.iter().map(u64::to_string).collect();
            writeln!(f, "| {damaged:?} | {left:?} | {flips} | {} |", counts.join(" | "))?;
        }
        Ok(())
    }
}

/// Flips `flips` bits, some hundred in each of several stores. Passes the result of each to `each`, in any order.
pub fn flips(
    first_seed: u64,
    flips: u64,
    threads: usize,
    each: impl FnMut(DamagedFile, ShutdownKind, FlipOutcome) + Send,
) {
    let stores = flips.div_ceil(FLIPS_OF_A_STORE);
    let mut each = each;
    in_parallel(
        stores,
        threads,
        |store| {
            let seed = first_seed + store;
            let wanted = FLIPS_OF_A_STORE.min(flips - store * FLIPS_OF_A_STORE);
            (seed, flips_of_a_store(seed, wanted))
        },
        |_, results| results.into_iter().for_each(|(damaged, left, flipped)| each(damaged, left, flipped)),
    );
}

/// Number of flips in one store.
const FLIPS_OF_A_STORE: u64 = 200;
/// Number of steps of work before the flips.
const STEPS: u64 = 150;

fn flips_of_a_store(seed: u64, flips: u64) -> Vec<(DamagedFile, ShutdownKind, FlipOutcome)> {
    let mut rng = Rng::from_seed(seed ^ 0x666c_6970);
    let sound = match SoundStore::new(seed) {
        Ok(sound) => sound,
        Err(failure) => {
            return vec![(
                DamagedFile::Index,
                ShutdownKind::Closed,
                FlipOutcome::Silent(failure.to_string()),
            )];
        }
    };
    (0..flips).map(|_| sound.flip(&mut rng)).collect()
}

/// A sound store, as it was left in each way.
struct SoundStore {
    /// The disk after each way of leaving the store.
    disks: [(ShutdownKind, SimDisk); 3],
    oracle: Oracle,
    work: Workload<'static>,
}

impl SoundStore {
    fn new(seed: u64) -> Result<Self, Failure> {
        let disk = SimDisk::new();
        let mut work = Workload::new(Rng::from_seed(seed));
        let mut oracle = Oracle::default();
        let clock = Arc::<SetClock>::default();
        let mut store = open(&disk, &clock)?;
        for step in 0..STEPS {
            let (now, next) = (work.tick(), work.step());
            clock.set(now);
            if matches!(next, Step::Reopen) || step == STEPS / 2 {
                store.close()?;
                // The store must release the directory before the next one opens it.
                drop(store);
                store = open(&disk, &clock)?;
            } else if let Some(error) = oracle.step(&store, &next, now)? {
                return Err(error.into());
            }
        }
        let killed = disk.synced_copy();
        store.close()?;
        drop(store);
        let closed = disk.synced_copy();
        // The power fails after the process was killed. No write is in flight, so everything is durable.
        let cut = killed.after_power_cut(seed);
        Ok(Self {
            disks: [
                (ShutdownKind::Closed, closed),
                (ShutdownKind::Killed, killed.synced_copy()),
                (ShutdownKind::PowerCut, cut),
            ],
            oracle,
            work,
        })
    }

    /// Flips a bit of a file and returns the result.
    fn flip(&self, rng: &mut Rng<'_>) -> (DamagedFile, ShutdownKind, FlipOutcome) {
        let (left, disk) = rng.pick(&self.disks);
        // A copy keeps the boot id of its disk, so the machine restarts only in a power cut.
        let disk = disk.synced_copy();
        let (damaged, path) = choose_file(&disk, rng);
        let mut bytes = disk.bytes(&path).unwrap_or_default();
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1);
        let within = if rng.one_in(10) { bytes.len() } else { used };
        let at = below(rng, within);
        bytes[at] ^= 1 << rng.below(8);
        let flipped = match disk.set_bytes(&path, bytes) {
            Ok(()) => self.open_and_query(&disk, rng),
            Err(error) => FlipOutcome::Silent(error.to_string()),
        };
        let flipped = match flipped {
            FlipOutcome::Silent(reason) => {
                FlipOutcome::Silent(format!("{} byte {at}, {left:?}: {reason}", path.display()))
            }
            other => other,
        };
        (damaged, left, flipped)
    }

    fn open_and_query(&self, disk: &SimDisk, rng: &mut Rng<'_>) -> FlipOutcome {
        let clock = Arc::<SetClock>::default();
        let mut work = self.work.clone();
        let now = work.tick();
        clock.set(now);
        let Ok(store) = open(disk, &clock) else { return FlipOutcome::Refused };
        let opening = store.opening().clone();
        if opening.dropped_tail.is_some_and(|dropped| dropped.may_have_been_acknowledged) {
            return match store.verify() {
                Ok(report) if report.violations.iter().any(|found| found.code == ViolationCode::TornTail) => {
                    FlipOutcome::Dropped
                }
                _ => FlipOutcome::Silent("a dropped tail is not among the findings".to_owned()),
            };
        }
        let mut answers = DamagedAnswers::default();
        let asked = answers.note(self.oracle.compare(&store)).and_then(|()| {
            let more = self.oracle.ask_damaged(&store.snapshot(), rng, now)?;
            answers.errors += more.errors;
            Ok(())
        });
        match asked {
            Err(failure) => FlipOutcome::Silent(failure.to_string()),
            Ok(()) if answers.errors > 0 => FlipOutcome::Reported,
            Ok(()) if opening.was_damaged => FlipOutcome::Repaired,
            Ok(()) => FlipOutcome::Harmless,
        }
    }
}

/// Returns a number below `limit`, which can be large.
fn below(rng: &mut Rng<'_>, limit: usize) -> usize {
    let any = rng.below(1 << 16) << 16 | rng.below(1 << 16);
    (any % limit.max(1) as u64) as usize
}

/// Picks a file at random. Files of the journal are more likely than others.
fn choose_file(disk: &SimDisk, rng: &mut Rng<'_>) -> (DamagedFile, PathBuf) {
    let journal = Path::new("data/journal");
    let names = disk.list(journal).unwrap_or_default();
    let mut segments: Vec<PathBuf> =
        names.iter().map(|name| journal.join(name)).filter(|path| path.extension().is_some()).collect();
    segments.sort();
    let last = segments.pop().expect("an opened journal has at least one segment");
    match rng.below(20) {
        0..7 => (DamagedFile::LastSegment, last),
        7..10 if !segments.is_empty() => (DamagedFile::SealedSegment, rng.pick(&segments)),
        7..12 => (DamagedFile::Head, journal.join("HEAD")),
        12 => (DamagedFile::Identity, Path::new("data").join(rng.pick(&["MANIFEST", "SECRET"]))),
        _ => (DamagedFile::Index, PathBuf::from("data/index/index.redb")),
    }
}

fn open(disk: &SimDisk, clock: &Arc<SetClock>) -> Result<Store, Failure> {
    let mut options = Options::default();
    options.memory_budget = 2 << 20;
    options.segment_bytes = 24 << 10;
    options.clock = clock.clone();
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    Ok(Store::open_on_disk(disk, Path::new("data"), &options)?)
}
