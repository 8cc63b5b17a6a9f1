//! Power cuts under several writers: the engine as it ships, with its queue, its pipeline and all of its threads at work.
//!
//! Each writer keeps several submissions on their way. The power fails at some sync of some thread. What is found then
//! must be a beginning of what was submitted, in the order of each writer, with everything that was acknowledged and
//! nothing that was refused; atomic submissions whole or not at all.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use ledger_core::{
    AccountAddress, Amount, Command, CreateTransaction, LedgerName, LedgerOptions, LogPayload, Posting,
    Postings,
};

use super::rig::{Done, is_whole};
use super::{Dice, Disk, Faults, SimDisk, logs};
use crate::error::WriteError;
use crate::options::Options;
use crate::store::Store;
use crate::submission::{Atomicity, Detail, Mode, Outcome, Request, Submission};

/// Writers of one run.
const WRITERS: u64 = 4;
/// Submissions of a writer before the first cut, at most.
const SUBMISSIONS: u64 = 60;
/// Submissions of a writer after each cut.
const SUBMISSIONS_AFTER: u64 = 4;

/// What a writer knows of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// It was acknowledged.
    Done,
    /// It was refused, or certainly not begun.
    NotDone,
    /// The outcome is unknown.
    Unknown,
}

/// The submissions of a writer, in order.
type History = Vec<Sent>;

/// A submission, and what its writer knows of it.
#[derive(Clone, Debug)]
struct Sent {
    /// The references of its transactions.
    references: Vec<String>,
    /// Whether the rules refuse it, whatever else happens.
    is_refused: bool,
    known: Known,
}

/// One run. Equal seeds submit the same; at which of it the power fails depends on the threads.
///
/// # Errors
///
/// What the surviving store lacks, or has too much.
pub fn power_cut_under_writers(seed: u64, lying_syncs: bool) -> Result<Done, String> {
    let mut dice = Dice::from_seed(seed ^ 0x0077_7269_7465_7273);
    let mut disk = SimDisk::with_faults(Faults { lying_syncs, ..Faults::default() });
    let mut done = Done::default();
    let mut histories: Vec<History> = vec![History::new(); WRITERS as usize];
    create_ledger(&disk)?;
    cut_within(&disk, lying_syncs, 120, &mut dice);
    let mut submissions = SUBMISSIONS;
    for depth in 0..3 {
        let before = disk.clone();
        match open(&disk) {
            Ok(store) => {
                check(&store, &mut histories, &mut done)?;
                write(&store, &mut histories, submissions, seed, &mut done)?;
                // It fails if the power did; then the next opening tells.
                let _ = store.close();
            }
            Err(_) if disk.power_is_off() => {}
            Err(error) => return Err(error),
        }
        disk = before.after_power_cut(seed.wrapping_mul(31).wrapping_add(depth));
        done.cuts += 1;
        submissions = SUBMISSIONS_AFTER;
        if depth == 0 && dice.one_in(2) {
            cut_within(&disk, lying_syncs, 30, &mut dice);
        }
    }
    let store = open(&disk)?;
    check(&store, &mut histories, &mut done)?;
    let report = store.verify().map_err(|error| error.to_string())?;
    if !is_whole(&report) {
        return Err(format!("it does not verify:\n{}", report.to_json_lines()));
    }
    Ok(done)
}

fn main_ledger() -> LedgerName {
    LedgerName::parse("main").expect("a name")
}

/// A disk with a store that has one ledger, all of it durable.
fn create_ledger(disk: &SimDisk) -> Result<(), String> {
    let store = open(disk)?;
    store.create_ledger(main_ledger(), LedgerOptions::default()).map_err(|error| error.to_string())?;
    store.close().map_err(|error| error.to_string())
}

fn cut_within(disk: &SimDisk, lying_syncs: bool, within: u64, dice: &mut Dice<'_>) {
    let cut_at_sync = Some(disk.syncs() + 1 + dice.below(within));
    disk.set_faults(Faults { cut_at_sync, lying_syncs, ..Faults::default() });
}

fn open(disk: &SimDisk) -> Result<Store, String> {
    // Small shares: flushes and merges go on beside the writers, and the queue fills.
    let options = Options { memory_budget: 4 << 20, segment_bytes: 256 << 10, ..Options::default() };
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    Store::open_on_disk(disk, Path::new("data"), &options)
        .map_err(|error| format!("it does not open: {error}"))
}

/// Lets all writers submit beside each other, until they have done so or the store takes no more.
fn write(
    store: &Store,
    histories: &mut [History],
    submissions: u64,
    seed: u64,
    done: &mut Done,
) -> Result<(), String> {
    let outcomes: Vec<Result<u64, String>> = thread::scope(|scope| {
        let writers = histories.iter_mut().enumerate().map(|(writer, history)| {
            scope.spawn(move || write_one(store, writer as u64, history, submissions, seed))
        });
        let writers: Vec<_> = writers.collect();
        writers.into_iter().map(|writer| writer.join().expect("a writer does not panic")).collect()
    });
    for outcome in outcomes {
        done.acknowledged += outcome?;
    }
    Ok(())
}

type Told = (usize, Result<Vec<Outcome>, WriteError>);

fn write_one(
    store: &Store,
    writer: u64,
    history: &mut History,
    submissions: u64,
    seed: u64,
) -> Result<u64, String> {
    let mut dice = Dice::from_seed(seed ^ (writer << 32) ^ history.len() as u64);
    let (tell, told): (Sender<Told>, Receiver<Told>) = channel();
    let in_flight_max = 1 + dice.below(12) as usize;
    let mut in_flight = 0;
    let mut acknowledged = 0;
    for _ in 0..submissions {
        let place = history.len();
        let (submission, sent) = submission(writer, place, &mut dice);
        history.push(sent);
        let tell = tell.clone();
        store.submit(submission, move |answer| {
            // A writer that gave up does not listen any more.
            let _ = tell.send((place, answer));
        });
        in_flight += 1;
        while in_flight >= in_flight_max {
            acknowledged += take_answer(&told, history)?;
            in_flight -= 1;
        }
    }
    while in_flight > 0 {
        acknowledged += take_answer(&told, history)?;
        in_flight -= 1;
    }
    Ok(acknowledged)
}

/// Waits for an answer and notes what it says; how many submissions it acknowledges.
fn take_answer(told: &Receiver<Told>, history: &mut History) -> Result<u64, String> {
    let (place, answer) = told.recv().map_err(|_| "an answer was never given".to_owned())?;
    let known = match answer {
        Ok(outcomes) if outcomes.iter().all(|outcome| matches!(outcome, Outcome::Done(_))) => Known::Done,
        Ok(outcomes) if outcomes.iter().any(|outcome| matches!(outcome, Outcome::Refused(_))) => {
            Known::NotDone
        }
        Ok(outcomes) => return Err(format!("an answer that is none: {outcomes:?}")),
        Err(WriteError::OutcomeUnknown { .. }) => Known::Unknown,
        Err(_) => Known::NotDone,
    };
    history[place].known = known;
    Ok(u64::from(known == Known::Done))
}

/// Some transactions that happen together or not at all. The rules refuse one submission in seven.
fn submission(writer: u64, at: usize, dice: &mut Dice<'_>) -> (Submission, Sent) {
    let is_refused = dice.one_in(7);
    let count = 1 + dice.below(4);
    // Sometimes so much text that batches wait for each other.
    let note = "x".repeat(if dice.one_in(3) { 40_000 } else { 10 });
    let references: Vec<String> = (0..count).map(|i| format!("w{writer}-{at}-{i}")).collect();
    let requests = references.iter().enumerate().map(|(i, reference)| {
        let is_poor = is_refused && i + 1 == references.len();
        let source = if is_poor { format!("w{writer}:poor") } else { "world".to_owned() };
        let destination = format!("w{writer}:a{}", dice.below(6));
        let address = |text: &str| AccountAddress::parse(text).expect("an address");
        let posting = Posting {
            source: address(&source),
            destination: address(&destination),
            amount: Amount::from(1 + dice.below(1_000)),
            asset: "USD/2".parse().expect("an asset"),
        };
        let mut create = CreateTransaction::of(Postings::from(vec![posting]));
        create.reference = Some(reference.parse().expect("a reference"));
        create.metadata = [("note", note.as_str())].into_iter().collect();
        Request::from(Command::CreateTransaction(create))
    });
    let submission = Submission {
        ledger: main_ledger(),
        requests: requests.collect(),
        atomicity: Atomicity::AllOrNothing,
        mode: Mode::Commit,
        detail: if dice.one_in(2) { Detail::Entry } else { Detail::Ids },
    };
    (submission, Sent { references, is_refused, known: Known::Unknown })
}

/// Compares what a store holds with what the writers know, and tells them what became of the rest.
fn check(store: &Store, histories: &mut [History], done: &mut Done) -> Result<(), String> {
    let logs = logs(store).map_err(|error| error.to_string())?;
    let log = logs.get(&main_ledger()).map_or(&[][..], Vec::as_slice);
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for (place, entry) in log.iter().enumerate() {
        if let LogPayload::NewTransaction { transaction, .. } = &entry.payload {
            let reference = transaction.reference.as_ref().ok_or("a transaction without a reference")?;
            if places.insert(reference.as_str(), place).is_some() {
                return Err(format!("{reference} is there twice"));
            }
        }
    }
    let mut found = 0;
    for history in histories {
        found += check_writer(history, &places, done)?;
    }
    if found == places.len() { Ok(()) } else { Err("transactions that nobody submitted".to_owned()) }
}

/// The same for one writer; how many of its transactions there are.
fn check_writer(
    history: &mut History,
    places: &BTreeMap<&str, usize>,
    done: &mut Done,
) -> Result<usize, String> {
    let mut found = 0;
    let mut last = None;
    let mut gap: Option<Vec<String>> = None;
    for Sent { references, is_refused, known } in history {
        let here: Vec<usize> =
            references.iter().filter_map(|name| places.get(name.as_str()).copied()).collect();
        if !here.is_empty() && here.len() < references.len() {
            return Err(format!("of {references:?} only a part is there"));
        }
        let is_here = !here.is_empty();
        match known {
            Known::Done if !is_here => return Err(format!("{references:?} was acknowledged and is lost")),
            _ if is_here && *is_refused => return Err(format!("{references:?} breaks a rule and is there")),
            Known::NotDone if is_here => return Err(format!("{references:?} was refused and is there")),
            Known::Unknown if is_here => done.unknown_kept += 1,
            Known::Unknown if !*is_refused => gap = Some(references.clone()),
            Known::Done | Known::NotDone | Known::Unknown => {}
        }
        if let (true, Some(gap)) = (is_here, &gap) {
            return Err(format!(
                "{references:?} ({known:?}) is there, and {gap:?}, submitted before, is not"
            ));
        }
        for place in here {
            if last.is_some_and(|last| last >= place) {
                return Err(format!("{references:?} does not stand in the order of its writer"));
            }
            last = Some(place);
            found += 1;
        }
        *known = if is_here { Known::Done } else { Known::NotDone };
    }
    Ok(found)
}
