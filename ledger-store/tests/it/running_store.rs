//! A store on a simulated disk whose index fails while it runs.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use ledger_core::Timestamp;
use ledger_store::{IndexEvent, Options, Store, ViolationCode, WriteError};
use ledger_testkit::{Disk, Oracle, Rng, SetClock, SimDisk, Step, Workload};

use super::recovery::{INDEX, path};

/// Time limit for the thread that repairs the index: long enough for a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(25);

/// A store with little memory, so that it reads the index from the disk.
pub(crate) struct Running {
    pub(crate) disk: SimDisk,
    pub(crate) oracle: Oracle,
    pub(crate) clock: Arc<SetClock>,
    pub(crate) work: Workload<'static>,
    pub(crate) memory: usize,
}

impl Running {
    /// Creates a closed store with some work in it.
    pub(crate) fn new(seed: u64, steps: u32) -> Self {
        let mut running = Self {
            disk: SimDisk::new(),
            oracle: Oracle::default(),
            clock: Arc::default(),
            work: Workload::new(Rng::from_seed(seed)),
            memory: 64 << 10,
        };
        let store = running.open();
        running.work(&store, steps);
        store.close().expect("the store closes");
        running
    }

    pub(crate) fn copy(&self) -> Self {
        Self {
            disk: self.disk.synced_copy(),
            oracle: self.oracle.clone(),
            clock: self.clock.clone(),
            work: self.work.clone(),
            memory: self.memory,
        }
    }

    pub(crate) fn open(&self) -> Store {
        self.open_with(Options::default())
    }

    /// Opens the store with its own memory and clock, and other options.
    pub(crate) fn open_with(&self, mut options: Options) -> Store {
        options.memory_budget = self.memory;
        options.clock = self.clock.clone();
        let disk: Arc<dyn Disk> = Arc::new(self.disk.clone());
        Store::open_on_disk(disk, Path::new("data"), &options).expect("the store opens")
    }

    pub(crate) fn step(&mut self, store: &Store, step: &Step, now: Timestamp) -> Option<WriteError> {
        self.clock.set(now);
        self.oracle.step(store, step, now).expect("the answers of the model")
    }

    #[track_caller]
    pub(crate) fn work(&mut self, store: &Store, steps: u32) {
        for _ in 0..steps {
            let (now, step) = (self.work.tick(), self.work.step());
            assert_eq!(self.step(store, &step, now), None);
        }
    }

    /// Works even if commands are refused for a while, or answers cannot be read. Refused commands had no effect.
    #[track_caller]
    pub(crate) fn work_with_retry(&mut self, store: &Store, steps: u32) {
        let until = Instant::now() + TIMEOUT;
        for _ in 0..steps {
            let (now, step) = (self.work.tick(), self.work.step());
            loop {
                let before = self.oracle.clone();
                match self.step(store, &step, now) {
                    // The write is durable: a failed commit would stop the store.
                    None | Some(WriteError::OutcomeUnknown { .. }) => break,
                    Some(WriteError::Read(_) | WriteError::Storage { .. } | WriteError::DiskNearlyFull) => {
                        assert!(Instant::now() < until, "it goes on refusing");
                        self.oracle = before;
                        std::thread::yield_now();
                    }
                    Some(error) => panic!("{error}"),
                }
            }
        }
    }

    /// Compares everything. Repeats reads that are refused while the file is reopened.
    #[track_caller]
    fn compare_with_retry(&mut self, store: &Store) {
        let until = Instant::now() + TIMEOUT;
        while let Err(difference) = self.oracle.compare(store) {
            let is_refusal = difference.to_string().contains("the index cannot be accessed");
            assert!(is_refusal && Instant::now() < until, "{difference}");
            std::thread::yield_now();
        }
    }

    /// Checks that the store and its index are complete, before and after it is closed and reopened.
    #[track_caller]
    pub(crate) fn check(&mut self, store: Store, rebuilt: usize) {
        store.flush();
        self.compare_with_retry(&store);
        let report = store.verify().expect("the verification runs");
        let found: Vec<_> = report.violations.iter().map(|violation| violation.code).collect();
        let expected = vec![ViolationCode::IndexRebuilt; rebuilt];
        assert!(report.complete && found == expected, "{}", report.to_json_lines());
        let status = store.status();
        assert_eq!((status.stopped, status.index.rebuilding, status.index.unavailable), (None, None, None));
        assert_eq!(status.index.rebuilt.len(), rebuilt, "{:?}", status.index.rebuilt);
        store.close().expect("the store closes");
        drop(store);
        let store = self.open();
        assert_eq!((store.opening().replayed, &store.opening().rebuilt), (0, &None));
        assert_eq!(self.oracle.compare(&store), Ok(()));
        self.work(&store, 10);
        assert_eq!(self.oracle.compare(&store), Ok(()));
    }

    /// Changes the last byte of each value, so that hardly any read succeeds.
    pub(crate) fn damage(&self) {
        let mut bytes = self.disk.bytes(path(INDEX)).expect("there is an index");
        for page in (PAGE..=bytes.len() - PAGE).step_by(PAGE) {
            for end in value_ends(&bytes[page..]) {
                bytes[page + end - 1] ^= 1;
            }
        }
        let file = self.disk.open(path(INDEX), ledger_testkit::OpenMode::Existing).expect("the file exists");
        file.write_at(0, &bytes).expect("the disk takes it");
    }
}

const PAGE: usize = 4096;

/// Returns the end offsets of the values in a page, if it is a leaf.
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

/// Receives the events of the index of a store.
pub(crate) fn watch(store: &Store) -> Receiver<IndexEvent> {
    let (tell, told) = channel();
    store.watch_index(move |event| {
        let _ = tell.send(event.clone());
    });
    told
}

/// Waits for an event.
#[track_caller]
pub(crate) fn wait_for(events: &Receiver<IndexEvent>, is_it: impl Fn(&IndexEvent) -> bool) -> IndexEvent {
    let until = Instant::now() + TIMEOUT;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let event = events.recv_timeout(left).expect("an event");
        if is_it(&event) {
            return event;
        }
    }
}

#[track_caller]
pub(crate) fn wait_until_rebuilt(events: &Receiver<IndexEvent>) {
    wait_for(events, |event| matches!(event, IndexEvent::Rebuilt { .. }));
}

/// Waits until the index can be written.
#[track_caller]
pub(crate) fn settle(store: &Store) {
    let until = Instant::now() + TIMEOUT;
    loop {
        store.flush();
        if store.status().index.unavailable.is_none() {
            return;
        }
        assert!(Instant::now() < until, "{:?}", store.status().index);
        std::thread::yield_now();
    }
}
