//! Power cuts with several writers: the whole engine with its queue, its pipeline and all of its threads.
//!
//! Each writer keeps several submissions in flight. The power fails at some sync of some thread. For each writer, the
//! surviving store must have a prefix of its submissions in their order. The prefix includes every acknowledged
//! submission and no refused one. Atomic submissions happened entirely or not at all.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use ledger_core::{
    AccountAddress, Amount, Command, CreateTransaction, LedgerName, LedgerOptions, LogPayload, Posting,
    Postings,
};
use ledger_store::{Atomicity, Detail, Mode, Options, Outcome, Request, Store, Submission, WriteError};

use crate::failure::Failure;
use crate::harness::{WorkCounts, is_intact_but_for_torn_tail};
use crate::{Disk, Faults, Rng, SimDisk, logs};

/// Number of writers in a run.
const WRITERS: u64 = 4;
/// Maximum number of submissions per writer before the first cut.
const SUBMISSIONS: u64 = 60;
/// Number of submissions per writer after each cut.
const SUBMISSIONS_AFTER: u64 = 4;

/// The outcome of a submission, as far as its writer knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KnownOutcome {
    /// The submission was acknowledged.
    Done,
    /// The submission was refused, or certainly not started.
    NotDone,
    /// The outcome is unknown.
    Unknown,
}

/// The submissions of a writer, in order.
type History = Vec<SentSubmission>;

/// A submission, and its outcome as far as its writer knows.
#[derive(Clone, Debug)]
struct SentSubmission {
    /// The references of its transactions.
    references: Vec<String>,
    /// True if the rules refuse the submission in any case.
    is_refused: bool,
    known: KnownOutcome,
}

/// Executes one run. Equal seeds submit the same, but the submission at which the power fails depends on the threads.
///
/// # Errors
///
/// Fails if the surviving store lacks an acknowledged submission or has a refused one. The error names the difference.
pub fn power_cut_under_writers(seed: u64, lying_syncs: bool) -> Result<WorkCounts, Failure> {
    let mut rng = Rng::from_seed(seed ^ 0x0077_7269_7465_7273);
    let mut disk = SimDisk::with_faults(Faults { lying_syncs, ..Faults::default() });
    let mut done = WorkCounts::default();
    let mut histories: Vec<History> = vec![History::new(); WRITERS as usize];
    create_ledger(&disk)?;
    cut_within_syncs(&disk, lying_syncs, 120, &mut rng);
    let mut submissions = SUBMISSIONS;
    for depth in 0..3 {
        let before = disk.clone();
        match open(&disk) {
            Ok(store) => {
                check(&store, &mut histories, &mut done)?;
                write(&store, &mut histories, submissions, seed, &mut done)?;
                // Closing fails if the power failed. The next opening shows the state.
                let _ = store.close();
            }
            Err(_) if disk.power_is_off() => {}
            Err(error) => return Err(error),
        }
        disk = before.after_power_cut(seed.wrapping_mul(31).wrapping_add(depth));
        done.cuts += 1;
        submissions = SUBMISSIONS_AFTER;
        if depth == 0 && rng.one_in(2) {
            cut_within_syncs(&disk, lying_syncs, 30, &mut rng);
        }
    }
    let store = open(&disk)?;
    check(&store, &mut histories, &mut done)?;
    let report = store.verify()?;
    if !is_intact_but_for_torn_tail(&report) {
        return Err(format!("it does not verify:\n{}", report.to_json_lines()).into());
    }
    Ok(done)
}

fn main_ledger() -> LedgerName {
    LedgerName::parse("main").expect("`main` is a well-formed name")
}

/// Creates a store with one ledger on a disk, and makes all of it durable.
fn create_ledger(disk: &SimDisk) -> Result<(), Failure> {
    let store = open(disk)?;
    store.create_ledger(main_ledger(), LedgerOptions::default())?;
    Ok(store.close()?)
}

fn cut_within_syncs(disk: &SimDisk, lying_syncs: bool, within: u64, rng: &mut Rng<'_>) {
    let cut_at_sync = Some(disk.syncs() + 1 + rng.below(within));
    disk.set_faults(Faults { cut_at_sync, lying_syncs, ..Faults::default() });
}

fn open(disk: &SimDisk) -> Result<Store, Failure> {
    // The memory budget is small, so that flushes and merges run while the writers work, and the queue fills.
    let mut options = Options::default();
    options.memory_budget = 4 << 20;
    options.segment_bytes = 256 << 10;
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    Store::open_on_disk(disk, Path::new("data"), &options)
        .map_err(|error| Failure::from(error).during("when it was opened"))
}

/// Lets all writers submit in parallel, until they are done or the store accepts no more.
fn write(
    store: &Store,
    histories: &mut [History],
    submissions: u64,
    seed: u64,
    done: &mut WorkCounts,
) -> Result<(), Failure> {
    let outcomes: Vec<Result<u64, Failure>> = thread::scope(|scope| {
        let writers = histories.iter_mut().enumerate().map(|(writer, history)| {
            scope.spawn(move || write_one(store, writer as u64, history, submissions, seed))
        });
        let writers: Vec<_> = writers.collect();
        writers
            .into_iter()
            .map(|writer| writer.join().expect("a writer returns its failures and does not panic"))
            .collect()
    });
    for outcome in outcomes {
        done.acknowledged += outcome?;
    }
    Ok(())
}

/// The index of a submission in the history of its writer, and the answer of the store.
type Answer = (usize, Result<Vec<Outcome>, WriteError>);

/// Lets one writer submit. Returns the number of acknowledged submissions.
fn write_one(
    store: &Store,
    writer: u64,
    history: &mut History,
    submissions: u64,
    seed: u64,
) -> Result<u64, Failure> {
    let mut rng = Rng::from_seed(seed ^ (writer << 32) ^ history.len() as u64);
    let (sender, answers): (Sender<Answer>, Receiver<Answer>) = channel();
    let in_flight_max = 1 + rng.below(12) as usize;
    let mut in_flight = 0;
    let mut acknowledged = 0;
    for _ in 0..submissions {
        let index = history.len();
        let (submission, sent) = submission(writer, index, &mut rng);
        history.push(sent);
        let sender = sender.clone();
        store.submit(submission, move |answer| {
            // A writer that gave up no longer receives answers.
            let _ = sender.send((index, answer));
        });
        in_flight += 1;
        while in_flight >= in_flight_max {
            acknowledged += take_answer(&answers, history)?;
            in_flight -= 1;
        }
    }
    while in_flight > 0 {
        acknowledged += take_answer(&answers, history)?;
        in_flight -= 1;
    }
    Ok(acknowledged)
}

/// Waits for an answer and records the outcome. Returns the number of acknowledged submissions.
fn take_answer(answers: &Receiver<Answer>, history: &mut History) -> Result<u64, Failure> {
    let (index, answer) = answers.recv().map_err(|_| "an answer was never given")?;
    let known = match answer {
        Ok(outcomes) if outcomes.iter().all(|outcome| matches!(outcome, Outcome::Done(_))) => {
            KnownOutcome::Done
        }
        Ok(outcomes) if outcomes.iter().any(|outcome| matches!(outcome, Outcome::Refused(_))) => {
            KnownOutcome::NotDone
        }
        Ok(outcomes) => {
            return Err(format!("an answer that is neither done nor refused: {outcomes:?}").into());
        }
        Err(WriteError::OutcomeUnknown { .. }) => KnownOutcome::Unknown,
        Err(_) => KnownOutcome::NotDone,
    };
    history[index].known = known;
    Ok(u64::from(known == KnownOutcome::Done))
}

/// Returns some transactions that happen together or not at all. The rules refuse one submission in seven.
fn submission(writer: u64, at: usize, rng: &mut Rng<'_>) -> (Submission, SentSubmission) {
    let is_refused = rng.one_in(7);
    let count = 1 + rng.below(4);
    // A third of the notes is so long that batches wait for each other.
    let note = "x".repeat(if rng.one_in(3) { 40_000 } else { 10 });
    let references: Vec<String> = (0..count).map(|i| format!("w{writer}-{at}-{i}")).collect();
    let requests = references.iter().enumerate().map(|(i, reference)| {
        let is_poor = is_refused && i + 1 == references.len();
        let source = if is_poor { format!("w{writer}:poor") } else { "world".to_owned() };
        let destination = format!("w{writer}:a{}", rng.below(6));
        let address =
            |text: &str| AccountAddress::parse(text).expect("the addresses of the writers are well-formed");
        let posting = Posting {
            source: address(&source),
            destination: address(&destination),
            amount: Amount::from(1 + rng.below(1_000)),
            asset: "USD/2".parse().expect("`USD/2` is a well-formed asset"),
        };
        let mut create = CreateTransaction::of(Postings::from(vec![posting]));
        create.reference = Some(reference.parse().expect("the references of the writers are well-formed"));
        create.metadata = [("note", note.as_str())].into_iter().collect();
        Request::from(Command::CreateTransaction(create))
    });
    let submission = Submission {
        ledger: main_ledger(),
        requests: requests.collect(),
        atomicity: Atomicity::AllOrNothing,
        mode: Mode::Commit,
        detail: if rng.one_in(2) { Detail::Entry } else { Detail::Ids },
    };
    (submission, SentSubmission { references, is_refused, known: KnownOutcome::Unknown })
}

/// Compares the store with the knowledge of the writers. Records the outcome of the remaining submissions.
fn check(store: &Store, histories: &mut [History], done: &mut WorkCounts) -> Result<(), Failure> {
    let logs = logs(store)?;
    let log = logs.get(&main_ledger()).map_or(&[][..], Vec::as_slice);
    let mut positions: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, entry) in log.iter().enumerate() {
        if let LogPayload::NewTransaction { transaction, .. } = &entry.payload {
            let reference = transaction.reference.as_ref().ok_or("a transaction without a reference")?;
            if positions.insert(reference.as_str(), index).is_some() {
                return Err(format!("{reference} is there twice").into());
            }
        }
    }
    let mut found = 0;
    for history in histories {
        found += check_writer(history, &positions, done)?;
    }
    if found == positions.len() { Ok(()) } else { Err("transactions that nobody submitted".into()) }
}

/// Compares the store with the knowledge of one writer. Returns how many of its transactions the store has.
fn check_writer(
    history: &mut History,
    positions: &BTreeMap<&str, usize>,
    done: &mut WorkCounts,
) -> Result<usize, Failure> {
    let mut found = 0;
    let mut last = None;
    let mut gap: Option<Vec<String>> = None;
    for SentSubmission { references, is_refused, known } in history {
        let here: Vec<usize> =
            references.iter().filter_map(|name| positions.get(name.as_str()).copied()).collect();
        if !here.is_empty() && here.len() < references.len() {
            return Err(format!("of {references:?} only a part is there").into());
        }
        let is_here = !here.is_empty();
        match known {
            KnownOutcome::Done if !is_here => {
                return Err(format!("{references:?} was acknowledged and is lost").into());
            }
            _ if is_here && *is_refused => {
                return Err(format!("{references:?} breaks a rule and is there").into());
            }
            KnownOutcome::NotDone if is_here => {
                return Err(format!("{references:?} was refused and is there").into());
            }
            KnownOutcome::Unknown if is_here => done.unknown_kept += 1,
            KnownOutcome::Unknown if !*is_refused => gap = Some(references.clone()),
            KnownOutcome::Done | KnownOutcome::NotDone | KnownOutcome::Unknown => {}
        }
        if let (true, Some(gap)) = (is_here, &gap) {
            return Err(format!(
                "{references:?} ({known:?}) is there, and {gap:?}, submitted before, is not"
            )
            .into());
        }
        for index in here {
            if last.is_some_and(|last| last >= index) {
                return Err(format!("{references:?} is not in the order of its writer").into());
            }
            last = Some(index);
            found += 1;
        }
        *known = if is_here { KnownOutcome::Done } else { KnownOutcome::NotDone };
    }
    Ok(found)
}
