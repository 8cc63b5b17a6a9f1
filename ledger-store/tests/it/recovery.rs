//! Opening a store: the opening updates the index from the journal, rebuilds it, or refuses the store.

use std::path::Path;
use std::sync::Arc;

use ledger_store::{OpenError, Options, Store, ViolationCode};
use ledger_testkit::{Disk, Faults, Oracle, Rng, SetClock, SimDisk, Workload};

pub(super) const INDEX: &str = "data/index/index.redb";
pub(super) const DAMAGED: &str = "data/index/index.redb.damaged";
pub(super) const JOURNAL: &str = "data/journal/00000000000000000001.log";
pub(super) const HEAD: &str = "data/journal/HEAD";

/// A disk with a store, and the content that the store must have.
pub(super) struct StoreFixture {
    pub(super) disk: SimDisk,
    pub(super) clock: Arc<SetClock>,
    pub(super) oracle: Oracle,
    pub(super) work: Workload<'static>,
}

impl StoreFixture {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            disk: SimDisk::new(),
            clock: Arc::default(),
            oracle: Oracle::default(),
            work: Workload::new(Rng::from_seed(seed)),
        }
    }

    /// Returns the current state on another disk.
    pub(super) fn copy(&self) -> Self {
        Self {
            disk: self.disk.synced_copy(),
            clock: self.clock.clone(),
            oracle: self.oracle.clone(),
            work: self.work.clone(),
        }
    }

    pub(super) fn open(&self) -> Result<Store, OpenError> {
        let mut options = Options::default();
        options.clock = self.clock.clone();
        let disk: Arc<dyn Disk> = Arc::new(self.disk.clone());
        Store::open_on_disk(disk, Path::new("data"), &options)
    }

    #[track_caller]
    fn work(&mut self, store: &Store, steps: u32) {
        for _ in 0..steps {
            let now = self.work.tick();
            self.clock.set(now);
            let step = self.work.step();
            assert_eq!(self.oracle.step(store, &step, now), Ok(None));
        }
    }

    /// Does some work and closes the store.
    #[track_caller]
    pub(super) fn with(mut self, steps: u32) -> Self {
        let store = self.open().expect("the store opens");
        self.work(&store, steps);
        store.close().expect("the store closes");
        drop(store);
        self
    }

    /// Opens the store. It must have the expected content, verify and continue.
    #[track_caller]
    pub(super) fn check(&mut self) -> Store {
        let store = self.check_but(&[]);
        assert!(!store.opening().was_damaged);
        store
    }

    /// Checks like [`StoreFixture::check`], but the verification must find exactly the expected violations.
    #[track_caller]
    pub(super) fn check_but(&mut self, expected: &[ViolationCode]) -> Store {
        let store = self.open().expect("the store opens");
        assert_eq!(self.oracle.compare(&store), Ok(()));
        let report = store.verify().expect("the verification runs");
        let found: Vec<_> = report.violations.iter().map(|violation| violation.code).collect();
        assert!(report.complete && found == expected, "{}", report.to_json_lines());
        self.work(&store, 20);
        assert_eq!(self.oracle.compare(&store), Ok(()));
        store
    }

    /// Checks like [`StoreFixture::check`] after an opening that must have rebuilt an index without damage.
    #[track_caller]
    pub(super) fn check_rebuilt(&mut self) {
        let store = self.check();
        assert!(store.opening().rebuilt.is_some(), "it was not built again");
        assert!(!self.disk.exists(path(DAMAGED)).expect("the disk answers"));
    }

    /// Checks like [`StoreFixture::check`] after an opening that must have rebuilt a damaged index. The damaged file is
    /// kept and reported.
    #[track_caller]
    pub(super) fn check_mended(&mut self) {
        let before = self.disk.bytes(path(INDEX)).expect("there is an index");
        let store = self.check_but(&[ViolationCode::IndexRebuilt]);
        assert!(store.opening().rebuilt.is_some() && store.opening().was_damaged, "{:?}", store.opening());
        assert_eq!(self.disk.bytes(path(DAMAGED)).expect("the damaged file is kept").len(), before.len());
    }

    #[track_caller]
    pub(super) fn check_refused(&self) -> OpenError {
        self.open().expect_err("the store must be refused")
    }
}

pub(super) fn path(path: &str) -> &Path {
    Path::new(path)
}

#[test]
fn replays_nothing_after_a_clean_close() {
    let mut fixture = StoreFixture::new(1).with(60);
    let store = fixture.check();
    assert_eq!((store.opening().replayed, &store.opening().rebuilt), (0, &None));
}

#[test]
fn replays_entries_after_the_last_flush() {
    let mut fixture = StoreFixture::new(2).with(30);
    let store = fixture.open().expect("the store opens");
    fixture.work(&store, 5);
    let before = store.status().entries;
    fixture.work(&store, 25);
    // Use the disk of a killed process: it has everything that was written, but the store was not closed.
    let mut killed = fixture.copy();
    drop(store);
    let store = killed.check();
    assert!(before > 0 && store.opening().replayed > 0, "{:?}", store.opening());
    assert_eq!(store.opening().rebuilt, None);
}

#[test]
fn a_lost_or_damaged_index_is_built_again() {
    let fixture = StoreFixture::new(3).with(60);
    let mut deleted = fixture.copy();
    deleted.disk.remove(path(INDEX)).expect("there is an index");
    deleted.check_rebuilt();
    let bytes = fixture.disk.bytes(path(INDEX)).expect("there is an index");
    for length in [0, 1, 300, 4096, bytes.len() / 2, bytes.len() - 4096] {
        let mut cut = fixture.copy();
        cut.disk.set_bytes(path(INDEX), bytes[..length].to_vec()).expect("there is an index");
        cut.check_mended();
    }
    let mut garbage = fixture.copy();
    garbage.disk.set_bytes(path(INDEX), vec![0x5a; bytes.len()]).expect("there is an index");
    garbage.check_mended();
}

/// Flips a bit of a used byte and returns its offset. Most of a young file is reserved space that nothing reads.
pub(super) fn flip_a_bit(bytes: &mut [u8], rng: &mut Rng<'_>) -> usize {
    let used: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] != 0).collect();
    let at = used[(rng.below(1 << 32) as usize) % used.len()];
    bytes[at] ^= 1 << rng.below(8);
    at
}

#[test]
fn rebuilds_index_of_another_store() {
    let fixture = StoreFixture::new(5).with(40);
    let mut foreign = fixture.copy();
    let other = StoreFixture::new(6).with(40).disk.bytes(path(INDEX)).expect("there is an index");
    foreign.disk.set_bytes(path(INDEX), other).expect("there is an index");
    foreign.check_rebuilt();
}

#[test]
fn an_index_of_another_history_is_built_again() {
    let pay = |fixture: &StoreFixture, user: &str| {
        let store = fixture.open().expect("the store opens");
        let ledger = store.ledger("main").expect("a name");
        for _ in 0..5 {
            ledger.transaction().posting("world", user, 1, "USD").commit().expect("recorded");
        }
        store.close().expect("the store closes");
        store.status().entries
    };
    let fixture = StoreFixture::new(13);
    pay(&fixture, "users:0");
    // Two copies of one store continue, and both get the same number of entries.
    let other = fixture.copy();
    assert_eq!(pay(&fixture, "users:1"), pay(&other, "users:2"));
    let index = other.disk.bytes(path(INDEX)).expect("there is an index");
    fixture.disk.set_bytes(path(INDEX), index).expect("there is an index");
    let store = fixture.open().expect("the store opens");
    assert_eq!(store.opening().rebuilt.as_deref(), Some("it was made of another history"));
    let ledger = store.ledger("main").expect("a name");
    let balance = |user: &str| ledger.balance(user, "USD").expect("read");
    assert_eq!([balance("users:1"), balance("users:2")], [5, 0]);
    assert!(store.verify().expect("the verification runs").is_clean());
}

#[test]
fn an_older_copy_of_the_index_is_brought_up() {
    let fixture = StoreFixture::new(7).with(40);
    let older = fixture.disk.bytes(path(INDEX)).expect("there is an index");
    let mut fixture = fixture.with(40);
    fixture.disk.set_bytes(path(INDEX), older).expect("there is an index");
    let store = fixture.check();
    assert!(store.opening().replayed > 0);
    assert_eq!(store.opening().rebuilt, None);
}

#[test]
fn refuses_journal_without_acknowledged_entries() {
    let early = StoreFixture::new(8).with(30);
    let older = [JOURNAL, HEAD].map(|name| early.disk.bytes(path(name)).expect("there is a journal"));
    let mut fixture = early.with(30);
    let whole = [JOURNAL, HEAD].map(|name| fixture.disk.bytes(path(name)).expect("there is a journal"));
    // Replace first one file by an earlier version, then all files. The index still knows the end of the journal.
    for (name, older) in [JOURNAL, HEAD].into_iter().zip(older) {
        fixture.disk.set_bytes(path(name), older).expect("there is a journal");
        assert!(matches!(fixture.check_refused(), OpenError::Damaged { .. }));
    }
    match fixture.check_refused() {
        OpenError::Damaged(cause) => assert!(cause.as_str().contains("older copy"), "{cause}"),
        other => panic!("{other}"),
    }
    let lost = fixture.copy();
    lost.disk.remove(path(JOURNAL)).expect("there is a journal");
    assert!(matches!(lost.check_refused(), OpenError::Damaged { .. }));
    // The refusals changed nothing: with the right journal, the store has everything.
    for (name, whole) in [JOURNAL, HEAD].into_iter().zip(whole) {
        fixture.disk.set_bytes(path(name), whole).expect("there is a journal");
    }
    let store = fixture.check();
    assert_eq!(store.opening().rebuilt, None);
}

#[test]
fn damaged_journal_is_refused_or_reported() {
    let fixture = StoreFixture::new(9).with(60);
    let bytes = fixture.disk.bytes(path(JOURNAL)).expect("there is a journal");
    let mut rng = Rng::from_seed(9);
    let mut refused = 0;
    for _ in 0..40 {
        let flipped = fixture.copy();
        let mut bytes = bytes.clone();
        let at = flip_a_bit(&mut bytes, &mut rng);
        flipped.disk.set_bytes(path(JOURNAL), bytes).expect("there is a journal");
        match flipped.open() {
            Err(OpenError::Damaged { .. } | OpenError::Io { .. } | OpenError::NewerFormat { .. }) => {
                refused += 1;
            }
            Err(other) => panic!("{other}"),
            Ok(store) => {
                let report = store.verify().expect("the verification runs");
                let compared = flipped.oracle.compare(&store);
                assert!(compared.is_ok() || !report.is_clean(), "silent damage at byte {at}: {compared:?}");
            }
        }
    }
    assert!(refused > 0, "no flipped bit was noticed");
}

#[test]
fn refuses_manifest_of_a_newer_release() {
    let fixture = StoreFixture::new(10).with(5);
    let manifest = path("data/MANIFEST");
    let text = String::from_utf8(fixture.disk.bytes(manifest).expect("a manifest")).expect("text");
    fixture.disk.set_bytes(manifest, text.replace("format 1", "format 9").into_bytes()).expect("a manifest");
    match fixture.check_refused() {
        OpenError::NewerFormat { found: 9, supported } => assert!(supported < 9),
        other => panic!("{other}"),
    }
}

#[test]
fn second_opening_names_the_lock_holder() {
    let fixture = StoreFixture::new(11);
    let store = fixture.open().expect("the store opens");
    match fixture.open().expect_err("the store is open") {
        OpenError::Locked { holder, .. } => {
            assert!(holder.contains(&std::process::id().to_string()), "{holder}");
        }
        other => panic!("{other}"),
    }
    drop(store);
    fixture.open().expect("the directory is free again");
}

#[test]
fn rebuilds_a_deleted_index_directory() {
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path().join("data");
    let pay = |store: &Store| {
        let ledger = store.ledger("main").expect("a name");
        ledger.transaction().posting("world", "a", 1, "USD").commit().expect("recorded")
    };
    let store = Store::open(&path).expect("the store opens");
    pay(&store);
    store.close().expect("the store closes");
    drop(store);
    std::fs::remove_dir_all(path.join("index")).expect("the directory is removed");
    let store = Store::open(&path).expect("the store opens");
    assert_eq!(store.opening().rebuilt.as_deref(), Some("there was none"));
    pay(&store);
    let ledger = store.ledger("main").expect("a name");
    assert_eq!(ledger.balance("a", "USD").expect("read"), 2);
    assert!(store.verify().expect("the verification runs").is_clean());
}

#[test]
fn failed_verification_reports_no_violation() {
    let fixture = StoreFixture::new(21).with(60);
    let store = fixture.open().expect("the store opens");
    let before = fixture.disk.writes();
    assert!(store.verify().expect("the verification runs").is_clean());
    let needed = fixture.disk.writes() - before;
    let mut refused = 0;
    for nth in (1..=needed).step_by(needed as usize / 40 + 1) {
        fixture
            .disk
            .set_faults(Faults { fail_write: Some(fixture.disk.writes() + nth), ..Faults::default() });
        match store.verify() {
            Ok(report) if report.complete => {
                assert!(report.is_clean(), "write {nth}: {}", report.to_json_lines());
            }
            Ok(report) => {
                assert!(!report.is_damaged(), "write {nth}: {}", report.to_json_lines());
                refused += 1;
            }
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 10, "{refused} of {needed}");
}

#[test]
fn removes_file_of_interrupted_verification() {
    let mut fixture = StoreFixture::new(12).with(10);
    let left = path("data/index/verify.redb");
    fixture.disk.open(left, ledger_testkit::OpenMode::CreateNew).expect("a new file");
    let store = fixture.check();
    assert!(!fixture.disk.exists(left).expect("the disk answers"));
    drop(store);
}
