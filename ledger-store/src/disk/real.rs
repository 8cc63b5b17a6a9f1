//! The disk that the file system offers.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use redb::StorageBackend;
use redb::backends::FileBackend;

use super::{Disk, DiskFile, DiskLock, DiskRoom, LockOutcome, OpenMode};

/// Who holds a lock is told in at most this many bytes.
const MAX_HOLDER_BYTES: u64 = 256;

/// The file system of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

/// An open file of the file system. The engine's own backend does positioned
/// reads and writes, and the flush, on every platform.
#[derive(Debug)]
struct RealFile(FileBackend);

/// The operating system frees the lock when the file is closed, also for a
/// process that is killed.
#[derive(Debug)]
struct RealLock {
    _file: File,
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
        let backend = FileBackend::new(file).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Box::new(RealFile(backend)))
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

    fn lock(&self, path: &Path, holder: &str) -> io::Result<LockOutcome> {
        // Not truncated here: until the lock is ours the text is another's.
        let mut file = options().create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => {
                file.set_len(0)?;
                file.rewind()?;
                file.write_all(holder.as_bytes())?;
                Ok(LockOutcome::Taken(Box::new(RealLock { _file: file })))
            }
            Err(TryLockError::WouldBlock) => {
                // Where locks are mandatory the text cannot be read; the
                // refusal stands without it.
                let mut text = Vec::new();
                let _ = file.take(MAX_HOLDER_BYTES).read_to_end(&mut text);
                Ok(LockOutcome::Held { holder: String::from_utf8_lossy(&text).trim().to_owned() })
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl DiskFile for RealFile {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, out)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::temporary_name;

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

        let lock = path.join("LOCK");
        let held = match disk.lock(&lock, "pid 1\n").unwrap() {
            LockOutcome::Taken(held) => held,
            LockOutcome::Held { holder } => panic!("held by {holder}"),
        };
        match disk.lock(&lock, "pid 2\n").unwrap() {
            LockOutcome::Held { holder } => assert_eq!(holder, "pid 1"),
            LockOutcome::Taken(_) => panic!("taken twice"),
        }
        drop(held);
        assert!(matches!(disk.lock(&lock, "pid 3\n").unwrap(), LockOutcome::Taken(_)));
    }
}
