//! The disk that the file system offers.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use parking_lot::Mutex;

use super::aligned::is_aligned;
use super::{
    AlignedBuffer, BLOCK_BYTES, BootId, Disk, DiskDir, DiskFile, DiskLock, DiskRoom, LockOutcome, OpenMode,
    Space,
};

/// Most bytes of the description of a lock's holder.
const MAX_HOLDER_BYTES: u64 = 256;

/// Space that is set aside is filled with zeros in writes of this many bytes, between which other writes to the file
/// get their turn.
const ZEROS_BYTES: usize = 256 << 10;

/// The file system of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

/// An open file of the file system.
#[derive(Debug)]
struct RealFile {
    file: File,
    /// The same file past the page cache, where the file system offers that and it was asked for.
    direct: Option<File>,
    /// Whether a sync has failed. The system tells a failure to one sync only, so nobody may take the success of the
    /// next one for their own.
    has_failed: Mutex<bool>,
}

/// An open directory; `None` where directories cannot be opened.
#[derive(Debug)]
struct RealDir(Option<File>);

impl DiskDir for RealDir {
    fn sync(&self) -> io::Result<()> {
        self.0.as_ref().map_or(Ok(()), File::sync_all)
    }
}

/// The operating system frees the locks when the files are closed, also for a
/// process that is killed.
#[derive(Debug)]
struct RealLock {
    /// The directory; `None` where directories cannot be locked.
    _dir: Option<File>,
    /// The file with the holder's text; `None` if it cannot be written.
    _text: Option<File>,
}

impl DiskLock for RealLock {}

/// Options for files that only their owner may read and write.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// The same, but a symbolic link is refused: whoever could put one in the place of a file would have another file of the
/// process's owner written over.
fn without_links(mut options: OpenOptions) -> OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        rustix::fs::OFlags::NOFOLLOW.bits().cast_signed(),
    );
    options
}

impl Disk for RealDisk {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name())).collect()
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        fs::exists(path)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
        let file = match mode {
            OpenMode::CreateNew => options().create_new(true).open(path)?,
            OpenMode::Existing => options().open(path)?,
        };
        Ok(Box::new(RealFile { file, direct: None, has_failed: Mutex::default() }))
    }

    fn open_durable(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file = options().open(path)?;
        Ok(Box::new(RealFile { file, direct: open_direct(path), has_failed: Mutex::default() }))
    }

    #[cfg(target_os = "linux")]
    fn boot_id(&self) -> Option<BootId> {
        let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
        (digits.len() == 32).then_some(())?;
        u128::from_str_radix(&digits, 16).ok().map(|number| BootId(number.to_be_bytes()))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    #[cfg(unix)]
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }

    #[cfg(unix)]
    fn open_dir(&self, dir: &Path) -> io::Result<Box<dyn DiskDir>> {
        Ok(Box::new(RealDir(Some(File::open(dir)?))))
    }

    #[cfg(not(unix))]
    fn open_dir(&self, _dir: &Path) -> io::Result<Box<dyn DiskDir>> {
        Ok(Box::new(RealDir(None)))
    }

    /// Elsewhere a directory cannot be opened as a file, and the file system
    /// orders names itself.
    #[cfg(not(unix))]
    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }

    #[cfg(unix)]
    fn room(&self, dir: &Path) -> io::Result<Option<DiskRoom>> {
        let of = rustix::fs::statvfs(dir)?;
        let bytes = |blocks: u64| blocks.saturating_mul(of.f_frsize);
        Ok(Some(DiskRoom { total: bytes(of.f_blocks), free: bytes(of.f_bavail) }))
    }

    /// The lock is that of the directory itself, which cannot be deleted while
    /// a store is in it. The file with the text is locked too: releases before
    /// this one lock nothing else, and where directories cannot be locked it is
    /// all there is.
    fn lock(&self, dir: &Path, text: &Path, holder: &str) -> io::Result<LockOutcome> {
        let held = || Ok(LockOutcome::Held { holder: holder_in(text) });
        let dir = match lock_dir(dir)? {
            DirLock::Taken(dir) => Some(dir),
            DirLock::Held => return held(),
            DirLock::Impossible => None,
        };
        // Not truncated here: until the lock is ours the text is another's.
        let file = match without_links(options()).create(true).truncate(false).open(text) {
            Ok(file) => Some(file),
            Err(error) if fs::symlink_metadata(text).is_ok_and(|found| found.is_symlink()) => {
                let reason = format!("{} is a symbolic link", text.display());
                return Err(io::Error::new(error.kind(), reason));
            }
            // The directory is locked; only the text is missing.
            Err(error) if dir.is_some() && is_not_writable(&error) => None,
            Err(error) => return Err(error),
        };
        if let Some(mut file) = file.as_ref() {
            if !try_lock(file)? {
                return held();
            }
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(holder.as_bytes())?;
        }
        Ok(LockOutcome::Taken(Box::new(RealLock { _dir: dir, _text: file })))
    }
}

/// Opens a file for writes that bypass the page cache and are durable when they return; `None` where the file system
/// offers no such writes.
#[cfg(target_os = "linux")]
fn open_direct(path: &Path) -> Option<File> {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt;
    let flags = (OFlags::DIRECT | OFlags::DSYNC).bits().cast_signed();
    let direct = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path).ok()?;
    // Some file systems take the flag and refuse the reads and writes, or want larger blocks.
    let mut block = AlignedBuffer::default();
    block.reserve(BLOCK_BYTES);
    block.end().push(0);
    block.pad_to_block();
    let start = block.end().len() - BLOCK_BYTES;
    std::os::unix::fs::FileExt::read_at(&direct, &mut block.end()[start..], 0).ok()?;
    Some(direct)
}

#[cfg(not(target_os = "linux"))]
fn open_direct(_path: &Path) -> Option<File> {
    None
}

/// Has the file system promise blocks for this part of a file; whether it does.
#[cfg(target_os = "linux")]
fn promise(file: &File, from: u64, to: u64) -> io::Result<bool> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::Errno;
    match fallocate(file, FallocateFlags::empty(), from, to - from) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(false),
        Err(error) => Err(error.into()),
        Ok(()) => Ok(true),
    }
}

#[cfg(not(target_os = "linux"))]
fn promise(_file: &File, _from: u64, _to: u64) -> io::Result<bool> {
    Ok(false)
}

#[cfg(unix)]
fn read_exact_at(file: &File, offset: u64, out: &mut [u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, out, offset)
}

#[cfg(unix)]
fn write_all_at(file: &File, offset: u64, data: &[u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, data, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut offset: u64, mut out: &mut [u8]) -> io::Result<()> {
    while !out.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, out, offset)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                out = &mut out[read..];
                offset += read as u64;
            }
        }
    }
    Ok(())
}

#[cfg(windows)]
fn write_all_at(file: &File, mut offset: u64, mut data: &[u8]) -> io::Result<()> {
    while !data.is_empty() {
        match std::os::windows::fs::FileExt::seek_write(file, data, offset)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => {
                data = &data[written..];
                offset += written as u64;
            }
        }
    }
    Ok(())
}

/// The result of locking a directory.
enum DirLock {
    #[cfg_attr(not(unix), expect(dead_code, reason = "a directory cannot be opened as a file there"))]
    Taken(File),
    #[cfg_attr(not(unix), expect(dead_code, reason = "a directory cannot be opened as a file there"))]
    Held,
    /// The system locks no directories. Then the file with the text is all
    /// there is.
    Impossible,
}

#[cfg(unix)]
fn lock_dir(dir: &Path) -> io::Result<DirLock> {
    let dir = File::open(dir)?;
    match try_lock(&dir) {
        Ok(true) => Ok(DirLock::Taken(dir)),
        Ok(false) => Ok(DirLock::Held),
        // NFS locks nothing that is not open for writing, and says so like
        // this.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::BADF.raw_os_error()) => {
            Ok(DirLock::Impossible)
        }
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(DirLock::Impossible),
        Err(error) => Err(error),
    }
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "it can fail on Unix")]
fn lock_dir(_dir: &Path) -> io::Result<DirLock> {
    Ok(DirLock::Impossible)
}

/// Tries to lock a file; returns whether the lock is ours now.
fn try_lock(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn is_not_writable(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// The text that the holder of a lock wrote about itself; empty if that is gone or, as
/// where locks are mandatory, cannot be read. The refusal stands without it.
fn holder_in(text: &Path) -> String {
    let mut bytes = Vec::new();
    let mut reading = OpenOptions::new();
    reading.read(true);
    if let Ok(file) = without_links(reading).open(text) {
        let _ = file.take(MAX_HOLDER_BYTES).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

impl DiskFile for RealFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        read_exact_at(&self.file, offset, out)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        write_all_at(&self.file, offset, data)
    }

    fn write_durably(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        match &self.direct {
            Some(direct) if is_aligned(offset, data) => write_all_at(direct, offset, data),
            _ => {
                self.write_at(offset, data)?;
                self.sync()
            }
        }
    }

    fn set_aside(&self, from: u64, to: u64, space: Space) -> io::Result<()> {
        debug_assert!(from <= to);
        if promise(&self.file, from, to)? && space == Space::Promised {
            return self.sync();
        }
        let mut zeros = AlignedBuffer::default();
        zeros.reserve(ZEROS_BYTES);
        let filled = zeros.end().len() + ZEROS_BYTES;
        zeros.end().resize(filled, 0);
        let mut at = from;
        while at < to {
            let part = ZEROS_BYTES.min((to - at) as usize);
            let part = &zeros.bytes()[..part];
            match &self.direct {
                Some(direct) if is_aligned(at, part) => write_all_at(direct, at, part)?,
                _ => self.write_at(at, part)?,
            }
            at += part.len() as u64;
        }
        self.sync()
    }

    #[cfg(target_os = "linux")]
    fn forget_cached(&self) -> io::Result<()> {
        Ok(rustix::fs::fadvise(&self.file, 0, None, rustix::fs::Advice::DontNeed)?)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        let mut has_failed = self.has_failed.lock();
        if *has_failed {
            return Err(io::Error::other("an earlier sync of this file failed"));
        }
        let synced = self.file.sync_data();
        *has_failed = synced.is_err();
        synced
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::temporary_name;

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

    /// How many bytes of this thread were dropped from the page cache without ever being on the disk; `None` where the
    /// system does not count them.
    #[cfg(target_os = "linux")]
    fn dropped_unwritten() -> Option<u64> {
        let counts = fs::read_to_string("/proc/thread-self/io").ok()?;
        counts.lines().find_map(|line| line.strip_prefix("cancelled_write_bytes: "))?.parse().ok()
    }

    /// Writes some bytes and cuts them off again: how many of them were not on the disk by then.
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

    /// Only the kernel knows whether a sync wrote anything, and it tells: it counts the bytes that are cut off a file
    /// before they were written.
    #[cfg(target_os = "linux")]
    #[test]
    fn synced_bytes_are_on_the_disk() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file");
        let file = RealDisk.open(&path, OpenMode::CreateNew).unwrap();
        let unsynced = unwritten_after(&*file, |file, bytes| file.write_at(0, bytes).unwrap());
        if unsynced.is_none_or(|bytes| bytes == 0) {
            eprintln!("skipped: the file system of {} does not count unwritten bytes", home.path().display());
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

    /// A direct write leaves nothing in the page cache, so only the flags of its descriptor say that the disk itself
    /// must have written the bytes when the write returns.
    #[cfg(target_os = "linux")]
    #[test]
    fn direct_writes_are_opened_to_be_durable() {
        use rustix::fs::{OFlags, fcntl_getfl};
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file");
        fs::write(&path, [0; BLOCK_BYTES]).unwrap();
        let Some(direct) = open_direct(&path) else {
            eprintln!("skipped: the file system of {} offers no direct writes", home.path().display());
            return;
        };
        let flags = fcntl_getfl(&direct).unwrap();
        assert!(flags.contains(OFlags::DIRECT | OFlags::DSYNC), "{flags:?}");
    }

    /// The system refuses to sync this device. A success would mean that nobody asked it.
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
        // Nor does the message of a refusal show what is behind a link.
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
}
