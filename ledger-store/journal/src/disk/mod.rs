//! The disk below the store, as a trait, so that tests can be cruel to it.
//!
//! [`RealDisk`] is the file system. `SimDisk` (feature `testing`) lives in
//! memory, knows what was synced and what was not, and loses power on demand.
//!
//! Nothing is durable until it was synced: the bytes and the length of a file
//! by [`DiskFile::sync`], its name by [`Disk::sync_dir`] on its directory.

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

/// Whether a file to be opened is new. There is no "either": a file that must
/// exist and does not is damage, never a fresh start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// It must not exist; it is created with no bytes.
    CreateNew,
    /// It must exist.
    Existing,
}

/// The room on a file system, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskRoom {
    /// How large it is.
    pub total: u64,
    /// Bytes that a process without privileges may still fill.
    pub free: u64,
}

/// Names one run of the machine, from when it was started until it goes down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BootId(pub [u8; 16]);

/// The operations of a file system that a store needs.
pub trait Disk: Send + Sync + Debug {
    /// Creates a directory that only its owner may enter.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` if there is anything of that name, and what the file
    /// system says.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// The names in a directory, in any order.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no such directory, and what the file system
    /// says.
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>>;

    /// Whether there is a file or directory of that name.
    ///
    /// # Errors
    ///
    /// If the file system cannot tell.
    fn exists(&self, path: &Path) -> io::Result<bool>;

    /// Opens a file for reading and writing. New ones are for their owner
    /// alone.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` or `NotFound` where `mode` demands the contrary, and
    /// what the file system says.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn DiskFile>>;

    /// Opens an existing file whose bytes are written by [`DiskFile::write_durably`].
    ///
    /// # Errors
    ///
    /// As [`Disk::open`].
    fn open_durable(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.open(path, OpenMode::Existing)
    }

    /// The present run of the machine: what was written outlives a process without a sync, but not this. `None` where
    /// the system does not tell.
    fn boot_id(&self) -> Option<BootId> {
        None
    }

    /// Removes a file.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is none, and what the file system says.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Gives a file another name in the same directory, in one step, in place
    /// of a file that has it.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is none, and what the file system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Makes the names in a directory durable.
    ///
    /// # Errors
    ///
    /// If the file system cannot promise it. Do not try again: a second
    /// success says nothing about what the first one lost.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Opens a directory whose names are going to change, so that syncing it needs no descriptor afterwards.
    ///
    /// # Errors
    ///
    /// Those of the file system, for example that the process has no descriptors left.
    fn open_dir(&self, dir: &Path) -> io::Result<Box<dyn DiskDir>>;

    /// The room on the file system of a directory; `None` where that cannot be
    /// told.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    fn room(&self, _dir: &Path) -> io::Result<Option<DiskRoom>> {
        Ok(None)
    }

    /// Locks a directory, so that at most one store has it open, and keeps
    /// `holder` in the file `text` for others to say who has it. Nobody can
    /// take the lock by deleting or replacing that file. Locking needs no more
    /// than the right to read the directory. The system frees the lock when
    /// the process ends, however it ends.
    ///
    /// # Errors
    ///
    /// If the file system cannot lock: then the store must not be opened.
    fn lock(&self, dir: &Path, text: &Path, holder: &str) -> io::Result<LockOutcome>;

    /// Reads a whole small file.
    ///
    /// # Errors
    ///
    /// `InvalidData` if it has more than `max_bytes`, and as [`Disk::open`].
    fn read_small(&self, path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
        let file = self.open(path, OpenMode::Existing)?;
        let len = file.len()?;
        if len > max_bytes {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("it has {len} bytes")));
        }
        let mut bytes = vec![0; len as usize];
        file.read_at(0, &mut bytes)?;
        Ok(bytes)
    }

    /// Gives a small file these bytes, durably and in one step: after a power
    /// cut it has the old bytes or the new ones.
    ///
    /// # Errors
    ///
    /// If any step fails; then the file is as it was, or as it should be.
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

/// The kinds of space that [`DiskFile::set_aside`] makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Written as zeros, so that a later write is no more than its own bytes: for small writes, which take half as
    /// long then.
    Zeroed,
    /// Promised by the file system: for large writes, which would have to wait for the zeros.
    Promised,
}

/// An open file.
#[allow(clippy::len_without_is_empty, reason = "the length is asked of the system and can fail")]
pub trait DiskFile: Send + Sync + Debug {
    /// Its length in bytes.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    fn len(&self) -> io::Result<u64>;

    /// Fills `out` from the byte at `offset` on.
    ///
    /// # Errors
    ///
    /// `UnexpectedEof` if the file ends before, and what the file system says.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;

    /// Writes all of `data` from the byte at `offset` on.
    ///
    /// # Errors
    ///
    /// Those of the file system; then any part may have been written.
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()>;

    /// Writes all of `data` from the byte at `offset` on; it is durable when this returns, with the length of the file.
    /// Where it can, it bypasses the page cache: a write that failed is then not seen by those who read the file.
    ///
    /// # Errors
    ///
    /// Those of the file system; then any part may have been written. Do not try again.
    fn write_durably(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.write_at(offset, data)?;
        self.sync()
    }

    /// Sets space aside: the file reaches to `to` then, and reads as zeros from `from` on. Nothing may be stored there
    /// yet.
    ///
    /// # Errors
    ///
    /// Those of the file system, for example that there is no room; what is before `from` is as it was.
    fn set_aside(&self, from: u64, to: u64, _space: Space) -> io::Result<()> {
        debug_assert!(from <= to);
        if self.len()? < to {
            self.set_len(to)?;
        }
        self.sync()
    }

    /// Forgets what the page cache holds of the file: the next reads ask the disk. To be called after a sync.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    fn forget_cached(&self) -> io::Result<()> {
        Ok(())
    }

    /// Cuts the file, or extends it by zeros.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Makes its bytes and its length durable.
    ///
    /// # Errors
    ///
    /// If the file system cannot promise it. Do not try again: a second
    /// success says nothing about what the first one lost.
    fn sync(&self) -> io::Result<()>;
}

/// An open directory.
pub trait DiskDir: Send + Sync + Debug {
    /// Makes the names in it durable.
    ///
    /// # Errors
    ///
    /// As [`Disk::sync_dir`].
    fn sync(&self) -> io::Result<()>;
}

/// A lock that is held until it is dropped.
pub trait DiskLock: Send + Sync + Debug {}

/// The result of [`Disk::lock`].
#[derive(Debug)]
pub enum LockOutcome {
    /// It is ours until the value is dropped.
    Taken(Box<dyn DiskLock>),
    /// Another has it.
    Held {
        /// The holder's description of itself.
        holder: String,
    },
}

/// Reads as [`DiskFile::read_at`] does, and tries a read that fails once more: a disk may fail one for a moment, and
/// some who read cannot try again themselves.
///
/// # Errors
///
/// As [`DiskFile::read_at`].
pub fn read_patiently(file: &dyn DiskFile, offset: u64, out: &mut [u8]) -> io::Result<()> {
    file.read_at(offset, out).or_else(|_| file.read_at(offset, out))
}

/// The directory that a path is in; `.` for a bare name.
pub fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        Some(_) => Path::new("."),
        None => path,
    }
}

/// The name that a file has until it is complete. Whatever bears it may be
/// deleted.
pub fn temporary_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(TEMPORARY_SUFFIX);
    PathBuf::from(name)
}

/// How [`temporary_name`] ends.
pub(crate) const TEMPORARY_SUFFIX: &str = ".new";
