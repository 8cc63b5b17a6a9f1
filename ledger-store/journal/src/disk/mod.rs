//! The disk below the store, as a trait, so that tests can simulate failures.
//!
//! [`RealDisk`] is the file system. `SimDisk` (feature `testing`) is in memory, distinguishes synced from unsynced
//! data, and loses power on demand.
//!
//! Nothing is durable until it was synced: [`DiskFile::sync`] makes the bytes and the length of a file durable, and
//! [`Disk::sync_dir`] makes its name durable.

mod aligned;
mod real;
#[cfg(any(test, feature = "testing"))]
mod sim;

use std::ffi::OsString;
use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};

pub use self::aligned::{AlignedBuffer, BLOCK_BYTES};
pub use self::real::RealDisk;
#[cfg(any(test, feature = "testing"))]
pub use self::sim::{Faults, SimDisk};

/// Opens a new file or an existing one. There is no "either": if a file that must exist does not, that is damage and
/// never a fresh start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// The file must not exist. It is created empty.
    CreateNew,
    /// The file must exist.
    Existing,
}

/// The space on a file system, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSpace {
    /// Total size.
    pub total: u64,
    /// Space that a process without privileges can still use.
    pub free: u64,
}

/// Identifies one boot of the machine, from its start until it goes down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BootId(pub [u8; 16]);

/// The operations of a file system that a store needs.
pub trait Disk: Send + Sync + Debug {
    /// Creates a directory that only its owner may enter.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` if the name exists, and the errors of the file system.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Returns the names in a directory, in any order.
    ///
    /// # Errors
    ///
    /// `NotFound` if the directory does not exist, and the errors of the file system.
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>>;

    /// Returns whether a file or directory exists.
    ///
    /// # Errors
    ///
    /// The errors of the file system.
    fn exists(&self, path: &Path) -> io::Result<bool>;

    /// Opens a file for reading and writing. Only the owner may access new files.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` or `NotFound` if `mode` requires the contrary, and the errors of the file system.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn DiskFile>>;

    /// Opens an existing file for writes by [`DiskFile::write_durably`].
    ///
    /// # Errors
    ///
    /// The errors of [`Disk::open`].
    fn open_durable(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.open(path, OpenMode::Existing)
    }

    /// Returns the current boot of the machine. Unsynced writes survive the end of a process, but not the end of the
    /// boot. `None` if the system does not report it.
    fn boot_id(&self) -> Option<BootId> {
        None
    }

    /// Removes a file.
    ///
    /// # Errors
    ///
    /// `NotFound` if the file does not exist, and the errors of the file system.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Renames a file within its directory, in one step. Replaces an existing file of the new name.
    ///
    /// # Errors
    ///
    /// `NotFound` if the file does not exist, and the errors of the file system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Makes the names in a directory durable.
    ///
    /// # Errors
    ///
    /// The error of the file system, if it cannot guarantee durability. Do not try again: a later success does not
    /// cover what the failed sync lost.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Opens a directory in which names will change, so that syncing it needs no further file descriptor.
    ///
    /// # Errors
    ///
    /// The errors of the file system, for example if the process has no file descriptors left.
    fn open_dir(&self, dir: &Path) -> io::Result<Box<dyn DiskDir>>;

    /// Returns the space on the file system of a directory, or `None` if it is unknown.
    ///
    /// # Errors
    ///
    /// The errors of the file system.
    fn space(&self, _dir: &Path) -> io::Result<Option<DiskSpace>> {
        Ok(None)
    }

    /// Locks a directory, so that at most one store has it open, and writes `holder` to the file `text`, so that
    /// others can say who holds the lock. Deleting or replacing that file does not release the lock. Locking requires
    /// only the right to read the directory. The operating system releases the lock when the process ends for any
    /// reason.
    ///
    /// # Errors
    ///
    /// The error of the file system, if it cannot lock. The store must not be opened then.
    fn lock(&self, dir: &Path, text: &Path, holder: &str) -> io::Result<LockOutcome>;

    /// Reads a small file completely.
    ///
    /// # Errors
    ///
    /// `InvalidData` if the file has more than `max_bytes`, and the errors of [`Disk::open`].
    fn read_small(&self, path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
        let file = self.open(path, OpenMode::Existing)?;
        let len = file.len()?;
        if len > max_bytes {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("it has {len} bytes")));
        }
        let mut bytes = vec![0; usize::try_from(len).map_err(io::Error::other)?];
        file.read_at(0, &mut bytes)?;
        Ok(bytes)
    }

    /// Replaces the content of a small file, durably and in one step: after a power cut it has either the old or the
    /// new bytes.
    ///
    /// # Errors
    ///
    /// The error of the failed step. The file then has either the old or the new bytes.
    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let temporary = temporary_name(path);
        if self.exists(&temporary)? {
            self.remove(&temporary)?;
        }
        let file = self.open(&temporary, OpenMode::CreateNew)?;
        file.write_at(0, bytes)?;
        file.sync()?;
        drop(file);
        self.rename(&temporary, path)?;
        self.sync_dir(parent(path))
    }
}

/// The kinds of space that [`DiskFile::set_aside`] prepares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Written as zeros, so that a later write need not allocate blocks. For small writes, which take half as long
    /// then.
    Zeroed,
    /// Allocated by the file system. For large writes, for which writing zeros first would cost too much.
    Promised,
}

/// An open file.
#[allow(clippy::len_without_is_empty, reason = "asking the system for the length can fail")]
pub trait DiskFile: Send + Sync + Debug {
    /// Returns its length in bytes.
    ///
    /// # Errors
    ///
    /// The errors of the file system.
    fn len(&self) -> io::Result<u64>;

    /// Fills `out` with the bytes from `offset` on.
    ///
    /// # Errors
    ///
    /// `UnexpectedEof` if the file is too short, and the errors of the file system.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;

    /// Writes all of `data` at `offset`.
    ///
    /// # Errors
    ///
    /// The errors of the file system. Any part of the data may have been written.
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()>;

    /// Writes all of `data` at `offset`. The data and the length of the file are durable when this returns. Bypasses
    /// the page cache if possible, so that readers of the file do not see a failed write.
    ///
    /// # Errors
    ///
    /// The errors of the file system. Any part of the data may have been written. Do not try again.
    fn write_durably(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.write_at(offset, data)?;
        self.sync()
    }

    /// Prepares space: extends the file to `to` and makes it read as zeros from `from` on. That range must not hold
    /// data yet.
    ///
    /// # Errors
    ///
    /// The errors of the file system, for example if it is full. The bytes before `from` are unchanged.
    fn set_aside(&self, from: u64, to: u64, _space: Space) -> io::Result<()> {
        debug_assert!(from <= to);
        if self.len()? < to {
            self.set_len(to)?;
        }
        self.sync()
    }

    /// Drops the file's pages from the page cache, so that the next reads access the disk. Call it after a sync.
    ///
    /// # Errors
    ///
    /// The errors of the file system.
    fn forget_cached(&self) -> io::Result<()> {
        Ok(())
    }

    /// Truncates the file, or extends it with zeros.
    ///
    /// # Errors
    ///
    /// The errors of the file system.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Makes its bytes and its length durable.
    ///
    /// # Errors
    ///
    /// The error of the file system, if it cannot guarantee durability. Do not try again: a later success does not
    /// cover what the failed sync lost.
    fn sync(&self) -> io::Result<()>;
}

/// An open directory.
pub trait DiskDir: Send + Sync + Debug {
    /// Makes the names in the directory durable.
    ///
    /// # Errors
    ///
    /// The errors of [`Disk::sync_dir`].
    fn sync(&self) -> io::Result<()>;
}

/// A lock that is released when it is dropped.
pub trait DiskLock: Send + Sync + Debug {}

/// The result of [`Disk::lock`].
#[derive(Debug)]
pub enum LockOutcome {
    /// This process holds the lock until the value is dropped.
    Taken(Box<dyn DiskLock>),
    /// Another holder has the lock.
    Held {
        /// The holder's description of itself.
        holder: String,
    },
}

/// Reads like [`DiskFile::read_at`], and repeats a failed read once: disks can fail briefly, and some callers cannot
/// retry.
///
/// # Errors
///
/// The errors of [`DiskFile::read_at`].
pub fn read_with_retry(file: &dyn DiskFile, offset: u64, out: &mut [u8]) -> io::Result<()> {
    file.read_at(offset, out).or_else(|_| file.read_at(offset, out))
}

/// Returns the directory of a path; `.` for a bare name.
pub fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        Some(_) => Path::new("."),
        None => path,
    }
}

/// Returns the name of a file until it is complete. Files with such names may be deleted.
pub fn temporary_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(TEMPORARY_SUFFIX);
    PathBuf::from(name)
}

/// The suffix of [`temporary_name`].
pub(crate) const TEMPORARY_SUFFIX: &str = ".new";
