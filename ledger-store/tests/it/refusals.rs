//! Disks that refuse access: a read-only directory, and reads that fail during a verification.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ledger_store::{OpenError, Options, Store, VerifyReport, ViolationCode};
use ledger_testkit::{Disk, Faults, Oracle, Rng, SetClock, SimDisk, Workload};

const DATA: &str = "data";

fn options(clock: &Arc<SetClock>) -> Options {
    let mut options = Options::default();
    options.memory_budget = 64 << 10;
    options.segment_bytes = 64 << 10;
    options.clock = clock.clone();
    options
}

fn open(disk: &SimDisk) -> Result<Store, OpenError> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    Store::open_on_disk(disk, Path::new(DATA), &options(&Arc::default()))
}

/// Runs a random workload in a store that `open` opens, and closes the store.
fn run_workload(open: impl FnOnce(&Options) -> Store) {
    let clock: Arc<SetClock> = Arc::default();
    let store = open(&options(&clock));
    let (mut workload, mut oracle) = (Workload::new(Rng::from_seed(7)), Oracle::default());
    for _ in 0..60 {
        let (now, step) = (workload.tick(), workload.step());
        clock.set(now);
        assert_eq!(oracle.step(&store, &step, now).expect("the answers of the model"), None);
    }
}

fn closed_store() -> SimDisk {
    let disk = SimDisk::new();
    let on: Arc<dyn Disk> = Arc::new(disk.clone());
    run_workload(|options| Store::open_on_disk(on, Path::new(DATA), options).expect("the store opens"));
    disk
}

/// Returns whether all violations say that the disk failed, and none that data is damaged.
fn has_only_storage_errors(report: &VerifyReport) -> bool {
    report.violations.iter().all(|violation| violation.code == ViolationCode::StorageError)
}

#[test]
fn refuses_a_read_only_file_system() {
    let read_only = Faults { is_read_only: true, ..Faults::default() };
    let disk = closed_store();
    let before = disk.contents();
    disk.set_faults(read_only);
    let Err(OpenError::Io(reason)) = open(&disk) else { panic!("it is refused as an error of the disk") };
    assert!(reason.as_str().contains("data/MANIFEST") && reason.as_str().contains("read-only"), "{reason}");
    assert_eq!(disk.contents(), before, "nothing is changed");
    disk.set_faults(Faults::default());
    assert!(open(&disk).expect("the store opens").verify().expect("the verification runs").is_clean());

    let empty = SimDisk::with_faults(read_only);
    let Err(OpenError::Io(reason)) = open(&empty) else { panic!("it is refused as an error of the disk") };
    assert!(reason.as_str().contains(DATA), "{reason}");
    assert_eq!(empty.contents(), BTreeMap::new());
}

/// Returns the files below `directory` with their bytes.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("a name").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).expect("a file"));
        }
    }
    found
}

#[cfg(unix)]
#[test]
fn refuses_a_directory_it_may_not_write() {
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt as _;
    let home = tempfile::tempdir().expect("a directory");
    let data = home.path().join(DATA);
    run_workload(|options| Store::open_with(&data, options).expect("the store opens"));
    let before = files(&data);
    let directories = [data.join("journal"), data.join("index"), data.clone()];
    let allow = |directory: u32, file: u32| {
        let set = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("own files");
        };
        for path in before.keys() {
            set(path, file);
        }
        for path in &directories {
            set(path, directory);
        }
    };
    allow(0o500, 0o400);
    let may_write = fs::OpenOptions::new().write(true).open(data.join("MANIFEST")).is_ok();
    let opened = (!may_write).then(|| Store::open(&data).map(drop));
    let after = files(&data);
    allow(0o700, 0o600);
    let Some(opened) = opened else {
        // Write to the stream directly: the test harness hides what `eprintln!` prints.
        let line = "skipped: refuses_a_directory_it_may_not_write: this user may write files that are for reading only";
        writeln!(std::io::stderr(), "{line}").expect("it is open");
        return;
    };
    let Err(OpenError::Io(reason)) = opened else { panic!("{opened:?}") };
    assert!(reason.as_str().contains("MANIFEST") && reason.as_str().contains("denied"), "{reason}");
    assert_eq!(after, before, "nothing is changed");
}

#[test]
fn verification_reports_failed_read_as_disk_error() {
    let closed = closed_store();
    let mut incomplete = 0;
    // Each read in turn is the first one that fails, and all later ones fail as well.
    for nth in 1.. {
        let disk = closed.synced_copy();
        let store = open(&disk).expect("the store opens");
        let until = disk.reads() + nth;
        disk.set_faults(Faults { fail_reads_from: Some(until), ..Faults::default() });
        let verified = store.verify();
        let was_read = disk.reads() >= until;
        disk.set_faults(Faults::default());
        match verified {
            Ok(report) if was_read => {
                assert!(has_only_storage_errors(&report), "read {nth}: {report:#?}");
                assert_eq!(report.complete, report.violations.is_empty(), "read {nth}: {report:#?}");
                incomplete += usize::from(!report.complete);
            }
            Ok(report) => {
                assert!(report.is_clean(), "{report:#?}");
                break;
            }
            // `verify` could not create the second index, which it compares with that of the store.
            Err(_) => assert!(was_read),
        }
    }
    assert!(incomplete > 10, "{incomplete} verifications met a failed read");
}

#[test]
fn tells_an_unreadable_segment_from_a_damaged_one() {
    let disk = closed_store();
    let names = disk.contents();
    let segment = names.keys().find(|path| path.extension().is_some_and(|end| end == "log"));
    let segment = segment.expect("a segment").clone();
    let store = open(&disk).expect("the store opens");
    disk.set_unreadable(Some(&segment)).expect("the file exists");
    let report = store.verify().expect("the verification runs");
    disk.set_unreadable(None).expect("the file exists");
    assert!(has_only_storage_errors(&report) && !report.is_damaged() && !report.complete, "{report:#?}");
    assert!(report.to_json_lines().contains("\"STORAGE_ERROR\",\"entry\":1,"), "{report:#?}");
    drop(store);

    let mut bytes = names[&segment].clone();
    bytes[600] ^= 1;
    let store = open(&disk).expect("the store opens");
    disk.set_bytes(&segment, bytes).expect("the file exists");
    let report = store.verify().expect("the verification runs");
    assert!(report.is_damaged() && !report.complete, "{report:#?}");
    assert_eq!(report.violations[0].code, ViolationCode::RecordChecksum);
}
