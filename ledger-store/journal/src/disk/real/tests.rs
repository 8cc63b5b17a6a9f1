use std::fs;
use std::io;
use std::path::Path;

use super::RealDisk;
#[cfg(target_os = "linux")]
use super::file::open_direct;
use super::file::options;
#[cfg(target_os = "linux")]
use crate::disk::DiskFile;
use crate::disk::{AlignedBuffer, BLOCK_BYTES, Disk, DiskLock, LockOutcome, OpenMode, Space, temporary_name};

/// Says that the running test is skipped, because the file system of this directory lacks something. The harness does
/// not capture this line.
#[cfg(target_os = "linux")]
fn skipped(directory: &Path, lack: &str) {
    use std::io::Write as _;
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    let line = format!("skipped: {name}: the file system of {} {lack}", directory.display());
    writeln!(io::stderr(), "{line}").expect("it is open");
}

#[test]
fn durable_writes_and_space_set_aside_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    drop(RealDisk.open(&path, OpenMode::CreateNew).unwrap());
    let file = RealDisk.open_durable(&path).unwrap();
    file.set_aside(0, 1 << 20, Space::Zeroed).unwrap();
    assert_eq!(file.len().unwrap(), 1 << 20);
    let mut buffer = AlignedBuffer::default();
    buffer.reserve(3 * BLOCK_BYTES);
    buffer.end().extend_from_slice(&[7; 5000]);
    buffer.pad_to_block();
    file.write_durably(8192, buffer.bytes()).unwrap();
    file.write_durably(3, b"not aligned").unwrap();
    file.set_aside(1 << 20, (1 << 20) + 5000, Space::Promised).unwrap();
    file.forget_cached().unwrap();
    let mut read = vec![1; (1 << 20) + 5000];
    file.read_at(0, &mut read).unwrap();
    assert_eq!(read[3..14], *b"not aligned");
    assert_eq!(read[8192..13_192], [7; 5000]);
    assert!(read[13_192..].iter().all(|byte| *byte == 0));
    assert_eq!(RealDisk.boot_id(), RealDisk.boot_id());
}

/// Returns how many bytes this thread dropped from the page cache before they were on disk. `None` if the system does
/// not count them.
#[cfg(target_os = "linux")]
fn dropped_unwritten() -> Option<u64> {
    let counts = fs::read_to_string("/proc/thread-self/io").ok()?;
    counts.lines().find_map(|line| line.strip_prefix("cancelled_write_bytes: "))?.parse().ok()
}

/// Writes some bytes and truncates them. Returns how many of them were not on disk by then.
#[cfg(target_os = "linux")]
fn unwritten_after(file: &dyn DiskFile, write: impl FnOnce(&dyn DiskFile, &[u8])) -> Option<u64> {
    let mut bytes = AlignedBuffer::default();
    bytes.reserve(64 * BLOCK_BYTES);
    bytes.end().extend_from_slice(&vec![7; 64 * BLOCK_BYTES]);
    write(file, bytes.bytes());
    let before = dropped_unwritten()?;
    file.set_len(0).unwrap();
    Some(dropped_unwritten()? - before)
}

/// Only the kernel knows whether a sync wrote anything. It counts the bytes that are truncated before they were
/// written.
#[cfg(target_os = "linux")]
#[test]
fn synced_bytes_are_on_the_disk() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("file");
    let file = RealDisk.open(&path, OpenMode::CreateNew).unwrap();
    let unsynced = unwritten_after(&*file, |file, bytes| file.write_at(0, bytes).unwrap());
    if unsynced.is_none_or(|bytes| bytes == 0) {
        skipped(home.path(), "does not count unwritten bytes");
        return;
    }
    let synced = unwritten_after(&*file, |file, bytes| {
        file.write_at(0, bytes).unwrap();
        file.sync().unwrap();
    });
    assert_eq!(synced, Some(0), "a sync");
    let durable = RealDisk.open_durable(&path).unwrap();
    for (offset, file) in [(0, &durable), (3, &durable), (0, &file)] {
        let written = unwritten_after(&**file, |file, bytes| file.write_durably(offset, bytes).unwrap());
        assert_eq!(written, Some(0), "a durable write at {offset}");
    }
}

/// A direct write leaves nothing in the page cache, so only the flags of its descriptor show that the disk must have
/// written the bytes when the write returns.
#[cfg(target_os = "linux")]
#[test]
fn direct_writes_are_opened_to_be_durable() {
    use rustix::fs::{OFlags, fcntl_getfl};
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("file");
    fs::write(&path, [0; BLOCK_BYTES]).unwrap();
    let Some(direct) = open_direct(&path) else {
        skipped(home.path(), "offers no direct writes");
        return;
    };
    let flags = fcntl_getfl(&direct).unwrap();
    assert!(flags.contains(OFlags::DIRECT | OFlags::DSYNC), "{flags:?}");
}

/// The system refuses to sync this device, so a success would mean that no sync was requested.
#[cfg(target_os = "linux")]
#[test]
fn a_refused_sync_is_told_and_remembered() {
    let device = Path::new("/dev/null");
    let open = || RealDisk.open(device, OpenMode::Existing).unwrap();
    let file = open();
    assert!(file.sync().unwrap_err().raw_os_error().is_some(), "the answer of the system");
    assert_eq!(file.sync().unwrap_err().raw_os_error(), None, "the system is not asked again");
    open().write_durably(0, b"bytes").unwrap_err();
    open().set_aside(0, 0, Space::Zeroed).unwrap_err();
    RealDisk.sync_dir(device).unwrap_err();
}

#[test]
fn files_and_locks_behave_as_the_trait_says() {
    let dir = tempfile::tempdir().unwrap();
    let disk = RealDisk;
    let path = dir.path().join("data");
    disk.create_dir(&path).unwrap();
    assert_eq!(disk.create_dir(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    let file = path.join("file");
    assert_eq!(disk.open(&file, OpenMode::Existing).unwrap_err().kind(), io::ErrorKind::NotFound);
    disk.replace(&file, b"first").unwrap();
    disk.replace(&file, b"second").unwrap();
    assert_eq!(disk.read_small(&file, 6).unwrap(), b"second");
    assert_eq!(disk.read_small(&file, 5).unwrap_err().kind(), io::ErrorKind::InvalidData);
    assert!(!disk.exists(&temporary_name(&file)).unwrap());
    assert_eq!(disk.open(&file, OpenMode::CreateNew).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    let open = disk.open(&file, OpenMode::Existing).unwrap();
    assert_eq!(open.read_at(4, &mut [0; 3]).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

fn lock(dir: &Path, holder: &str) -> LockOutcome {
    RealDisk.lock(dir, &dir.join("LOCK"), holder).unwrap()
}

fn taken(outcome: LockOutcome) -> Box<dyn DiskLock> {
    match outcome {
        LockOutcome::Taken(held) => held,
        LockOutcome::Held { holder } => panic!("held by {holder}"),
    }
}

fn holder(outcome: LockOutcome) -> String {
    match outcome {
        LockOutcome::Held { holder } => holder,
        LockOutcome::Taken(_) => panic!("taken twice"),
    }
}

#[test]
fn one_lock_is_given_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let held = taken(lock(dir.path(), "pid 1\n"));
    assert_eq!(holder(lock(dir.path(), "pid 2\n")), "pid 1");
    drop(held);
    taken(lock(dir.path(), "pid 3\n"));
}

#[cfg(unix)]
#[test]
fn deleting_the_text_frees_no_lock() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("data");
    let link = home.path().join("link");
    fs::create_dir(&dir).unwrap();
    std::os::unix::fs::symlink(&dir, &link).unwrap();
    let held = taken(lock(&dir, "pid 1\n"));
    for path in [&dir, &link] {
        fs::remove_file(dir.join("LOCK")).unwrap();
        assert_eq!(holder(lock(path, "pid 2\n")), "");
        fs::write(dir.join("LOCK"), "pid 7\n").unwrap();
        assert_eq!(holder(lock(path, "pid 2\n")), "pid 7");
    }
    drop(held);
    taken(lock(&link, "pid 3\n"));
}

#[cfg(unix)]
#[test]
fn opens_no_lock_file_through_a_link() {
    let home = tempfile::tempdir().unwrap();
    let (dir, other) = (home.path().join("data"), home.path().join("other"));
    fs::create_dir(&dir).unwrap();
    fs::write(&other, "precious").unwrap();
    std::os::unix::fs::symlink(&other, dir.join("LOCK")).unwrap();
    let refused = RealDisk.lock(&dir, &dir.join("LOCK"), "pid 1\n").unwrap_err();
    assert!(refused.to_string().contains("is a symbolic link"), "{refused}");
    assert_eq!(fs::read(&other).unwrap(), b"precious");
    // The error must not reveal the content behind a symbolic link either.
    fs::remove_file(dir.join("LOCK")).unwrap();
    let held = taken(lock(&dir, "pid 1\n"));
    fs::remove_file(dir.join("LOCK")).unwrap();
    std::os::unix::fs::symlink(&other, dir.join("LOCK")).unwrap();
    assert_eq!(holder(lock(&dir, "pid 2\n")), "");
    drop(held);
}

#[test]
fn a_holder_that_locks_only_the_text_counts() {
    let dir = tempfile::tempdir().unwrap();
    let older = options().create(true).truncate(false).open(dir.path().join("LOCK")).unwrap();
    older.try_lock().unwrap();
    holder(lock(dir.path(), "pid 2\n"));
    drop(older);
    taken(lock(dir.path(), "pid 2\n"));
}
