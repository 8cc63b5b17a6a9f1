//! The lock on a store's directory.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use super::file::options;
use crate::disk::{DiskLock, LockOutcome};

/// Maximum size of the description of a lock's holder, in bytes.
const MAX_HOLDER_BYTES: u64 = 256;

/// The locked files. The operating system unlocks them when the process is killed.
#[derive(Debug)]
struct RealLock {
    /// The directory. `None` if directories cannot be locked.
    dir: Option<File>,
    /// The file with the holder's text. `None` if it cannot be written.
    text: Option<File>,
}

impl DiskLock for RealLock {}

impl Drop for RealLock {
    fn drop(&mut self) {
        // Closing a file does not unlock it while a child process that is being started still has a copy of the
        // descriptor. A file that cannot be unlocked is unlocked when the last copy is closed.
        for file in [&self.dir, &self.text].into_iter().flatten() {
            let _ = file.unlock();
        }
    }
}

/// Locks a directory, and writes `holder`, the description of this process, into a file.
///
/// The lock is on the directory itself, which cannot be deleted while it contains a store. The file with the text is
/// locked as well: earlier releases lock only that file, and if directories cannot be locked it is the only lock.
pub(super) fn lock(dir: &Path, holder_file: &Path, holder: &str) -> io::Result<LockOutcome> {
    let held = || Ok(LockOutcome::Held { holder: holder_in(holder_file) });
    let dir = match lock_dir(dir)? {
        DirLock::Taken(dir) => Some(dir),
        DirLock::Held => return held(),
        DirLock::Impossible => None,
    };
    // Do not truncate here: until this process holds the lock, the text belongs to another.
    let file = match without_links(options()).create(true).truncate(false).open(holder_file) {
        Ok(file) => Some(file),
        Err(error) if fs::symlink_metadata(holder_file).is_ok_and(|found| found.is_symlink()) => {
            let reason = format!("{} is a symbolic link", holder_file.display());
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
    Ok(LockOutcome::Taken(Box::new(RealLock { dir, text: file })))
}

/// Returns options that refuse symbolic links. Otherwise, an attacker who can place a link could make the process
/// overwrite another file of its owner.
#[cfg(unix)]
fn without_links(mut options: OpenOptions) -> OpenOptions {
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        rustix::fs::OFlags::NOFOLLOW.bits().cast_signed(),
    );
    options
}

/// The options as they are: only a privileged user makes symbolic links there.
#[cfg(not(unix))]
fn without_links(options: OpenOptions) -> OpenOptions {
    options
}

/// The result of locking a directory.
enum DirLock {
    #[cfg_attr(not(unix), expect(dead_code, reason = "a directory cannot be opened as a file there"))]
    Taken(File),
    #[cfg_attr(not(unix), expect(dead_code, reason = "a directory cannot be opened as a file there"))]
    Held,
    /// The system cannot lock directories. The lock is only on the file with the text.
    Impossible,
}

#[cfg(unix)]
fn lock_dir(dir: &Path) -> io::Result<DirLock> {
    let dir = File::open(dir)?;
    match try_lock(&dir) {
        Ok(true) => Ok(DirLock::Taken(dir)),
        Ok(false) => Ok(DirLock::Held),
        // NFS only locks files that are open for writing, and refuses others with this error.
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

/// Tries to lock a file. Returns whether this process now holds the lock.
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

/// Returns the description that the holder of a lock wrote. Empty if it is missing or cannot be read, as with mandatory
/// locks. The lock is refused regardless.
fn holder_in(holder_file: &Path) -> String {
    let mut bytes = Vec::new();
    let mut reading = OpenOptions::new();
    reading.read(true);
    if let Ok(file) = without_links(reading).open(holder_file) {
        let _ = file.take(MAX_HOLDER_BYTES).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_lock_is_free_despite_copied_descriptors() {
        let directory = tempfile::tempdir().expect("a directory");
        let open = |path: &Path| {
            let file = File::open(path).expect("it opens");
            assert!(try_lock(&file).expect("it can be locked"));
            file
        };
        let text = directory.path().join("LOCK");
        fs::write(&text, "").expect("written");
        let lock = RealLock { dir: Some(open(directory.path())), text: Some(open(&text)) };
        // A child process has such copies between its creation and the start of its program.
        let copy = |file: &Option<File>| file.as_ref().expect("it is open").try_clone().expect("a copy");
        let _copies = [copy(&lock.dir), copy(&lock.text)];
        drop(lock);
        open(directory.path());
        open(&text);
    }
}
