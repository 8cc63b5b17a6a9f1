//! An index that fails while the store runs is opened anew or built again, and the store goes on.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use ledger_core::{Command, CreateTransaction, LedgerName, LedgerOptions, Posting, Postings, Timestamp};
use ledger_store::testing::{Dice, Disk, Faults, Judge, SetClock, SimDisk, Step, Workload};
use ledger_store::{
    Atomicity, Detail, IndexEvent, IndexStatus, Mode, Options, Request, Store, Submission, ViolationCode,
    WriteError,
};

use super::recovery::{DAMAGED, INDEX, path};

/// What the thread that mends the index has to do with: long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(25);

/// A store that keeps little in memory, so that it reads the index from the disk.
struct Running {
    disk: SimDisk,
    judge: Judge,
    clock: Arc<SetClock>,
    work: Workload<'static>,
    memory: usize,
}

impl Running {
    /// A closed store with some work in it.
    fn new(seed: u64, steps: u32) -> Self {
        let mut running = Self {
            disk: SimDisk::new(),
            judge: Judge::default(),
            clock: Arc::default(),
            work: Workload::new(Dice::from_seed(seed)),
            memory: 64 << 10,
        };
        let store = running.open();
        running.work(&store, steps);
        store.close().expect("it closes");
        running
    }

    fn copy(&self) -> Self {
        Self {
            disk: self.disk.copy(),
            judge: self.judge.clone(),
            clock: self.clock.clone(),
            work: self.work.clone(),
            memory: self.memory,
        }
    }

    fn open(&self) -> Store {
        let mut options = Options::default();
        options.memory_budget = self.memory;
        options.clock = self.clock.clone();
        let disk: Arc<dyn Disk> = Arc::new(self.disk.clone());
        Store::open_on_disk(disk, Path::new("data"), &options).expect("it opens")
    }

    fn step(&mut self, store: &Store, step: &Step, now: Timestamp) -> Option<WriteError> {
        self.clock.set(now);
        self.judge.step(store, step, now).expect("it answers as the model does")
    }

    #[track_caller]
    fn work(&mut self, store: &Store, steps: u32) {
        for _ in 0..steps {
            let (now, step) = (self.work.tick(), self.work.step());
            assert_eq!(self.step(store, &step, now), None);
        }
    }

    /// Works although commands may be refused for a while: they did not happen then.
    #[track_caller]
    fn work_patiently(&mut self, store: &Store, steps: u32) {
        let until = Instant::now() + PATIENCE;
        for _ in 0..steps {
            let (now, step) = (self.work.tick(), self.work.step());
            loop {
                let before = self.judge.clone();
                match self.step(store, &step, now) {
                    None => break,
                    Some(WriteError::Read(_) | WriteError::Storage { .. } | WriteError::NoRoom) => {
                        assert!(Instant::now() < until, "it goes on refusing");
                        self.judge = before;
                        std::thread::yield_now();
                    }
                    Some(error) => panic!("{error}"),
                }
            }
        }
    }

    /// Compares everything; a read that is refused while the file is opened anew is asked again.
    fn compare_patiently(&mut self, store: &Store) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        loop {
            let compared = self.judge.compare(store);
            let is_refused = compared
                .as_ref()
                .is_err_and(|difference| difference.contains("the index cannot be accessed"));
            if !is_refused || Instant::now() > until {
                return compared;
            }
            std::thread::yield_now();
        }
    }

    /// Everything is there, also in the index alone, and after closing and opening.
    #[track_caller]
    fn check(&mut self, store: Store, rebuilt: usize) {
        store.flush();
        assert_eq!(self.compare_patiently(&store), Ok(()));
        let report = store.verify().expect("there is room");
        let found: Vec<_> = report.violations.iter().map(|violation| violation.code).collect();
        let expected = vec![ViolationCode::IndexRebuilt; rebuilt];
        assert!(report.complete && found == expected, "{}", report.to_json_lines());
        let status = store.status();
        assert_eq!((status.stopped, status.index.rebuilding, status.index.unavailable), (None, None, None));
        assert_eq!(status.index.rebuilt.len(), rebuilt, "{:?}", status.index.rebuilt);
        store.close().expect("it closes");
        drop(store);
        let store = self.open();
        assert_eq!((store.opening().replayed, &store.opening().rebuilt), (0, &None));
        assert_eq!(self.judge.compare(&store), Ok(()));
        self.work(&store, 10);
        assert_eq!(self.judge.compare(&store), Ok(()));
    }

    /// Changes the last byte of each value, so that hardly any read goes well.
    fn damage(&self) {
        let mut bytes = self.disk.bytes(path(INDEX)).expect("there is an index");
        for page in (PAGE..=bytes.len() - PAGE).step_by(PAGE) {
            for end in value_ends(&bytes[page..]) {
                bytes[page + end - 1] ^= 1;
            }
        }
        let file =
            self.disk.open(path(INDEX), ledger_store::testing::OpenMode::Existing).expect("it is there");
        file.write_at(0, &bytes).expect("the disk takes it");
    }
}

const PAGE: usize = 4096;

/// Where the values in a page end, if it is a leaf.
fn value_ends(page: &[u8]) -> Vec<usize> {
    let word =
        |at: usize| page.get(at..at + 4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")));
    let count = usize::from(u16::from_le_bytes([page[2], page[3]]));
    if page[0] != 1 || ![0, 255].contains(&page[1]) || 4 + 8 * count > PAGE {
        return Vec::new();
    }
    let ends: Vec<usize> =
        (0..count).filter_map(|entry| word(4 + 4 * (count + entry))).map(|end| end as usize).collect();
    let is_leaf = ends.is_sorted() && ends.iter().all(|end| (4 + 8 * count + 1..page.len()).contains(end));
    if is_leaf { ends } else { Vec::new() }
}

/// What happens to the index of a store.
fn watch(store: &Store) -> Receiver<IndexEvent> {
    let (tell, told) = channel();
    store.watch_index(move |event| {
        let _ = tell.send(event.clone());
    });
    told
}

/// Waits for an event.
#[track_caller]
fn wait_for(events: &Receiver<IndexEvent>, is_it: impl Fn(&IndexEvent) -> bool) -> IndexEvent {
    let until = Instant::now() + PATIENCE;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let event = events.recv_timeout(left).expect("it happens");
        if is_it(&event) {
            return event;
        }
    }
}

#[track_caller]
fn wait_until_rebuilt(events: &Receiver<IndexEvent>) {
    wait_for(events, |event| matches!(event, IndexEvent::Rebuilt { .. }));
}

#[test]
fn damage_that_a_read_meets_rebuilds_the_index() {
    let mut running = Running::new(31, 120);
    let store = running.open();
    let events = watch(&store);
    let length = running.disk.bytes(path(INDEX)).expect("there is an index").len();
    running.damage();
    // It asks for everything, so it meets damage; every answer before that is right.
    assert!(running.judge.compare(&store).is_err(), "nothing is damaged");
    wait_for(&events, |event| matches!(event, IndexEvent::Rebuilding { .. }));
    wait_until_rebuilt(&events);
    assert_eq!(running.judge.compare(&store), Ok(()));
    let kept = running.disk.bytes(path(DAMAGED)).expect("it is kept");
    assert!(kept.len() >= length);
    running.work(&store, 40);
    running.check(store, 1);
}

#[test]
fn writes_go_on_while_the_index_is_rebuilt() {
    for seed in 40..44 {
        let mut running = Running::new(seed, 100);
        let store = running.open();
        let events = watch(&store);
        running.damage();
        let _ = running.judge.compare(&store);
        // Flushes come between, into the old file and into the new one.
        for _ in 0..10 {
            running.work_patiently(&store, 6);
            store.flush();
        }
        wait_until_rebuilt(&events);
        running.work_patiently(&store, 20);
        running.check(store, 1);
    }
}

#[test]
fn damage_that_a_flush_meets_rebuilds_the_index() {
    let mut running = Running::new(32, 120);
    running.memory = 256 << 10;
    let store = running.open();
    let events = watch(&store);
    running.work(&store, 60);
    running.damage();
    store.flush();
    wait_until_rebuilt(&events);
    running.work(&store, 40);
    running.check(store, 1);
}

#[test]
fn an_index_that_is_damaged_again_is_rebuilt_again() {
    let mut running = Running::new(33, 60);
    let store = running.open();
    let events = watch(&store);
    for _ in 0..3 {
        running.damage();
        assert!(running.judge.compare(&store).is_err(), "nothing is damaged");
        wait_until_rebuilt(&events);
        running.work(&store, 20);
        store.flush();
    }
    running.check(store, 3);
}

#[test]
fn a_failed_read_does_not_end_the_writing() {
    let sound = Running::new(34, 100);
    let mut unavailable = 0;
    for nth in 1..60 {
        let mut running = sound.copy();
        let store = running.open();
        let events = watch(&store);
        let until = running.disk.reads() + nth;
        running.disk.set_faults(Faults { fail_reads_from: Some(until), ..Faults::default() });
        // Some of it is refused; the index and the journal cannot be read.
        let mut is_unknown = false;
        while running.disk.reads() <= until + 4 && !is_unknown {
            let (now, step) = (running.work.tick(), running.work.step());
            let before = running.judge.clone();
            match running.step(&store, &step, now) {
                None => {}
                Some(WriteError::Read(_) | WriteError::Storage { .. }) => running.judge = before,
                // Some of it was recorded, and the answer could not be read.
                Some(WriteError::OutcomeUnknown { .. }) => is_unknown = true,
                Some(error) => panic!("read {nth}: {error}"),
            }
            store.flush();
        }
        assert_eq!(store.status().stopped, None);
        running.disk.set_faults(Faults::default());
        settle(&store);
        assert!(running.disk.bytes(path(DAMAGED)).is_err(), "a failed read replaced the index");
        if is_unknown {
            assert!(store.verify().expect("there is room").is_clean());
            continue;
        }
        running.work_patiently(&store, 10);
        unavailable +=
            usize::from(events.try_iter().any(|event| matches!(event, IndexEvent::Unavailable { .. })));
        running.check(store, 0);
    }
    assert!(unavailable > 10, "{unavailable}");
}

/// Of so many accesses one is failed: all of them take a minute.
const STEP: usize = 3;

/// Fails accesses of a kind in turn while everything is flushed, until a flush meets none of them: how many there were.
fn fail_each_access(seed: u64, count: fn(&SimDisk) -> u64, fault: fn(u64) -> Faults) -> u64 {
    let mut sound = Running::new(seed, 15);
    sound.memory = 256 << 10;
    for nth in (1..).step_by(STEP) {
        let mut running = sound.copy();
        let store = running.open();
        running.work(&store, 12);
        let at = count(&running.disk) + nth;
        running.disk.set_faults(fault(at));
        store.flush();
        let is_met = count(&running.disk) >= at;
        running.disk.set_faults(Faults::default());
        settle(&store);
        running.check(store, 0);
        if !is_met {
            return nth - 1;
        }
    }
    unreachable!("a flush ends")
}

#[test]
fn a_flush_that_failed_anywhere_is_done_once() {
    let from = |read| Faults { fail_reads_from: Some(read), ..Faults::default() };
    let reads = fail_each_access(45, SimDisk::reads, from);
    let writes = fail_each_access(46, SimDisk::writes, |write| Faults {
        fail_write: Some(write),
        ..Faults::default()
    });
    assert!(reads > 5 && writes > 20, "{reads} reads, {writes} writes");
}

/// Waits until the index can be written.
#[track_caller]
fn settle(store: &Store) {
    let until = Instant::now() + PATIENCE;
    loop {
        store.flush();
        if store.status().index.unavailable.is_none() {
            return;
        }
        assert!(Instant::now() < until, "{:?}", store.status().index);
        std::thread::yield_now();
    }
}

/// A payment of 1 USD to an account of its own.
fn pay(store: &Store, number: u32) -> Result<(), WriteError> {
    let posting = Posting {
        source: "world".parse().expect("an address"),
        destination: format!("users:{number}").parse().expect("an address"),
        amount: 1_u64.into(),
        asset: "USD".parse().expect("an asset"),
    };
    let create = CreateTransaction::of(Postings::from(vec![posting]));
    store
        .apply(Submission {
            ledger: LedgerName::parse("payments").expect("a name"),
            requests: vec![Request::from(Command::CreateTransaction(create))],
            atomicity: Atomicity::Independent,
            mode: Mode::Commit,
            detail: Detail::Ids,
        })
        .map(drop)
}

#[test]
fn a_full_index_refuses_writes_until_there_is_room() {
    let mut running = Running::new(35, 1);
    running.memory = 1 << 20;
    let store = running.open();
    let events = watch(&store);
    store
        .create_ledger(LedgerName::parse("payments").expect("a name"), LedgerOptions::default())
        .expect("a new ledger");
    running.disk.set_full(Some(path(INDEX))).expect("there is an index");
    let mut paid = 0;
    let refused = loop {
        match pay(&store, paid) {
            Ok(()) => paid += 1,
            // The flush has just failed, and the file was not opened anew yet.
            Err(WriteError::Read(_)) => {}
            Err(error) => break error,
        }
        assert!(paid < 100_000, "the memory that waits for the index is not bounded");
    };
    assert_eq!(refused, WriteError::NoRoom);
    wait_for(&events, |event| matches!(event, IndexEvent::Unavailable { .. }));
    assert!(paid > 100, "{paid}");
    running.disk.set_full(None).expect("no file is named");
    let until = Instant::now() + PATIENCE;
    while let Err(error) = pay(&store, paid) {
        assert!(matches!(error, WriteError::NoRoom | WriteError::Read(_)), "{error}");
        assert!(Instant::now() < until, "it goes on refusing");
        std::thread::yield_now();
    }
    settle(&store);
    let ledger = store.ledger("payments").expect("a name");
    assert_eq!(ledger.balance("world", "USD").expect("read"), (-i64::from(paid) - 1).into());
    assert_eq!((store.status().stopped, store.status().index.rebuilt), (None, Vec::new()));
    assert!(store.verify().expect("there is room").is_clean());
}

#[test]
fn a_failed_sync_of_the_index_rebuilds_it() {
    let sound = Running::new(36, 80);
    let mut rebuilt = 0;
    for (nth, is_cut) in (1..=4).flat_map(|nth| [(nth, false), (nth, true)]) {
        let mut running = sound.copy();
        running.memory = 8 << 20;
        let store = running.open();
        let events = watch(&store);
        running.work(&store, 30);
        let sync = running.disk.syncs() + nth;
        running.disk.set_faults(Faults { fail_sync: Some(sync), ..Faults::default() });
        store.flush();
        if store.status().index == IndexStatus::default() {
            assert!(running.disk.syncs() < sync + 4, "sync {nth} did not count");
            continue;
        }
        wait_until_rebuilt(&events);
        rebuilt += 1;
        running.work(&store, 20);
        if !is_cut {
            running.check(store, 1);
            continue;
        }
        for seed in 0..4 {
            let mut found = running.copy();
            found.disk = running.disk.after_power_cut(seed);
            assert_eq!(found.judge.compare(&found.open()), Ok(()));
        }
    }
    assert!(rebuilt > 0, "no sync of the index failed");
}

#[test]
fn a_rebuild_that_fails_is_tried_again() {
    let mut running = Running::new(37, 80);
    let store = running.open();
    let events = watch(&store);
    running.damage();
    running.disk.set_faults(Faults { is_full: true, ..Faults::default() });
    assert!(running.judge.compare(&store).is_err(), "nothing is damaged");
    wait_for(&events, |event| matches!(event, IndexEvent::RebuildFailed { .. }));
    assert!(running.disk.bytes(path(INDEX)).is_ok(), "the old index is still in its place");
    running.disk.set_faults(Faults::default());
    wait_until_rebuilt(&events);
    running.work_patiently(&store, 20);
    running.check(store, 1);
}

#[test]
fn a_power_cut_during_a_rebuild_loses_nothing() {
    let sound = Running::new(38, 60);
    let mut finished = false;
    for cut in 1..200 {
        let running = sound.copy();
        let store = running.open();
        let events = watch(&store);
        running.damage();
        let at = running.disk.syncs() + cut;
        running.disk.set_faults(Faults { cut_at_sync: Some(at), ..Faults::default() });
        let _ = running.judge.compare(&store);
        let ended = wait_for(&events, |event| {
            matches!(event, IndexEvent::Rebuilt { .. } | IndexEvent::RebuildFailed { .. })
        });
        finished = matches!(ended, IndexEvent::Rebuilt { .. }) && !running.disk.power_is_off();
        drop(store);
        for seed in 0..3 {
            let mut found = running.copy();
            found.disk = running.disk.after_power_cut(seed);
            let store = found.open();
            let events = watch(&store);
            if found.judge.compare(&store).is_err() {
                wait_until_rebuilt(&events);
            }
            assert_eq!(found.judge.compare(&store), Ok(()), "cut {cut}, seed {seed}");
        }
        if finished {
            break;
        }
    }
    assert!(finished, "the rebuild did not end");
}

#[test]
fn a_store_closes_while_its_index_is_rebuilt() {
    let running = Running::new(39, 150);
    let mut interrupted = 0;
    for _ in 0..10 {
        let copy = running.copy();
        let store = copy.open();
        let events = watch(&store);
        copy.damage();
        let _ = copy.judge.compare(&store);
        wait_for(&events, |event| matches!(event, IndexEvent::Rebuilding { .. }));
        store.close().expect("nothing has failed");
        interrupted += usize::from(store.status().index.rebuilt.is_empty());
        drop(store);
        let store = copy.open();
        let events = watch(&store);
        if copy.judge.compare(&store).is_err() {
            wait_until_rebuilt(&events);
            assert_eq!(copy.judge.compare(&store), Ok(()));
        }
    }
    println!("{interrupted} of 10 rebuilds were interrupted");
}
