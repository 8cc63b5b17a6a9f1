//! The data directory of a store: its files, its lock, and its creation.
//!
//! ```text
//! MANIFEST   store id, format version, and a check of the secret: text
//! SECRET     32 random bytes
//! LOCK       names the process that has the store open; the lock itself is on the directory
//! journal/   the segments of the journal: the truth
//! index/     projections, which can be rebuilt
//! ```
//!
//! Opening an absent or empty directory creates a store in it. The manifest is written last. A directory without a
//! manifest is not a store. Files that an interrupted creation may leave are overwritten; any other file makes the
//! opening fail. A directory with a manifest is a store, and opening it never replaces a missing file.

mod manifest;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ledger_journal::disk::{Disk, DiskLock, LockOutcome, parent, temporary_name};
use ledger_journal::{Identity, JournalError, Secret, SegmentOptions, SegmentedJournal};

use self::manifest::{FORMAT_VERSION, MAX_MANIFEST_BYTES, Manifest, secret_check};

const MANIFEST: &str = "MANIFEST";
const SECRET: &str = "SECRET";
const LOCK: &str = "LOCK";
const JOURNAL: &str = "journal";
const INDEX: &str = "index";

/// Returns whether a directory of the file system contains a store, which may be damaged.
pub(crate) fn contains_store(path: &Path) -> bool {
    path.join(MANIFEST).exists()
}

/// The reason why a data directory cannot be opened.
#[derive(Debug)]
pub(crate) enum DirectoryError {
    /// Another process, or another handle in this process, has the store open.
    InUse {
        /// The directory.
        path: PathBuf,
        /// The holder's own description, such as its process id.
        holder: String,
    },
    /// The directory holds files but no store.
    NotAStore {
        /// The directory.
        path: PathBuf,
        /// One of the files.
        found: String,
    },
    /// The directory should become a store, and is one already.
    Exists {
        /// The directory.
        path: PathBuf,
    },
    /// A file of the store is missing.
    Missing {
        /// The path where the file should be.
        path: PathBuf,
    },
    /// A file of the store does not contain what was written.
    Damaged {
        /// The file.
        path: PathBuf,
        /// The broken rule.
        what: &'static str,
    },
    /// A newer version of this software wrote the store.
    NewerFormat {
        /// The manifest.
        path: PathBuf,
        /// The format version in the manifest.
        found: u32,
        /// The newest format version that this software reads.
        supported: u32,
    },
    /// The disk failed or refused an access.
    Storage {
        /// The file or directory.
        path: PathBuf,
        /// The attempted action.
        action: &'static str,
        /// The error of the disk.
        cause: io::Error,
    },
    /// The first segment of the journal could not be created.
    Journal(JournalError),
}

impl fmt::Display for DirectoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse { path, holder } if holder.is_empty() => {
                write!(f, "{} is held by another process", path.display())
            }
            Self::InUse { path, holder } => write!(f, "{} is held by {holder}", path.display()),
            Self::NotAStore { path, found } => {
                write!(f, "{} is not a store, and not empty: it has {found}", path.display())
            }
            Self::Exists { path } => write!(f, "{} is a store already", path.display()),
            Self::Missing { path } => write!(f, "{} is missing", path.display()),
            Self::Damaged { path, what } => write!(f, "{} is damaged: {what}", path.display()),
            Self::NewerFormat { path, found, supported } => write!(
                f,
                "{} has format version {found}; this version reads up to {supported}",
                path.display()
            ),
            Self::Storage { path, action, cause } => {
                write!(f, "cannot {action} {}: {cause}", path.display())
            }
            Self::Journal(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for DirectoryError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Storage { cause, .. } => Some(cause),
            Self::Journal(error) => Some(error),
            Self::InUse { .. }
            | Self::NotAStore { .. }
            | Self::Exists { .. }
            | Self::Missing { .. }
            | Self::Damaged { .. }
            | Self::NewerFormat { .. } => None,
        }
    }
}

/// An open data directory. It is locked while this value lives.
#[derive(Debug)]
pub(crate) struct DataDirectory {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    identity: Identity,
    _lock: Box<dyn DiskLock>,
}

impl DataDirectory {
    /// Opens the store in `path`. Creates a store if the directory is absent or empty; it is on disk when this
    /// returns. The parent directory must exist.
    ///
    /// # Errors
    ///
    /// Any [`DirectoryError`]. A refused directory is left unchanged, except for the lock file of a store.
    pub(crate) fn open(disk: Arc<dyn Disk>, path: &Path) -> Result<Self, DirectoryError> {
        let LockedDirectory { contents, is_new, lock } = hold(&*disk, path)?;
        let identity = match contents {
            Contents::Store => read_identity(&*disk, path)?,
            Contents::Nothing => {
                let identity = Identity::random().map_err(failed(path, "find random numbers for"))?;
                initialise(&disk, path, is_new, &identity)?;
                write_manifest(&*disk, path, &identity)?;
                identity
            }
        };
        Ok(Self { disk, path: path.to_owned(), identity, _lock: lock })
    }

    /// Opens the store in `path`, which must exist.
    ///
    /// # Errors
    ///
    /// The errors of [`DataDirectory::open`], and [`DirectoryError::Missing`] if there is no manifest.
    pub(crate) fn open_existing(disk: Arc<dyn Disk>, path: &Path) -> Result<Self, DirectoryError> {
        let manifest = path.join(MANIFEST);
        if !disk.exists(&manifest).map_err(failed(&manifest, "read"))? {
            return Err(DirectoryError::Missing { path: manifest });
        }
        Self::open(disk, path)
    }

    /// Begins a store with a given identity in an absent or empty directory. Nothing can open it until
    /// [`DataDirectory::write_manifest`].
    ///
    /// # Errors
    ///
    /// The errors of [`DataDirectory::open`], and [`DirectoryError::Exists`] if the directory is a store.
    pub(crate) fn begin(
        disk: Arc<dyn Disk>,
        path: &Path,
        identity: &Identity,
    ) -> Result<Self, DirectoryError> {
        let LockedDirectory { contents, is_new, lock } = hold(&*disk, path)?;
        if contents == Contents::Store {
            return Err(DirectoryError::Exists { path: path.to_owned() });
        }
        initialise(&disk, path, is_new, identity)?;
        Ok(Self { disk, path: path.to_owned(), identity: identity.clone(), _lock: lock })
    }

    /// Completes a store that [`DataDirectory::begin`] began.
    ///
    /// # Errors
    ///
    /// [`DirectoryError::Storage`].
    pub(crate) fn write_manifest(&self) -> Result<(), DirectoryError> {
        write_manifest(&*self.disk, &self.path, &self.identity)
    }

    /// Returns the disk that holds the directory.
    pub(crate) fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// Returns the identity that distinguishes this store from every other.
    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Returns the directory of the index.
    pub(crate) fn index_dir(&self) -> PathBuf {
        self.path.join(INDEX)
    }

    /// Creates the directory of the index if it was deleted. The index is then rebuilt.
    ///
    /// # Errors
    ///
    /// [`DirectoryError::Storage`].
    pub(crate) fn make_index_dir(&self) -> Result<(), DirectoryError> {
        let dir = self.index_dir();
        match self.disk.create_dir(&dir) {
            Ok(()) => self.disk.sync_dir(&self.path).map_err(failed(&self.path, "sync")),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(failed(&dir, "create")(error)),
        }
    }

    /// Opens the journal.
    ///
    /// # Errors
    ///
    /// As [`SegmentedJournal::open`].
    pub(crate) fn open_journal(&self, options: SegmentOptions) -> Result<SegmentedJournal, JournalError> {
        let dir = self.path.join(JOURNAL);
        SegmentedJournal::open(Arc::clone(&self.disk), dir, self.identity.clone(), options)
    }
}

fn failed<'a>(path: &'a Path, action: &'static str) -> impl Fn(io::Error) -> DirectoryError + use<'a> {
    move |cause| DirectoryError::Storage { path: path.to_owned(), action, cause }
}

/// A directory that this process has locked.
struct LockedDirectory {
    contents: Contents,
    /// True if this call created the directory.
    is_new: bool,
    lock: Box<dyn DiskLock>,
}

/// Creates a directory if it is absent, and locks it.
fn hold(disk: &dyn Disk, path: &Path) -> Result<LockedDirectory, DirectoryError> {
    let is_new = match disk.create_dir(path) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        Err(error) => return Err(failed(path, "create")(error)),
    };
    // Check before writing anything: not even a lock file belongs in a directory that is not a store.
    check_contents(disk, path)?;
    let lock_path = path.join(LOCK);
    let holder = format!("process {}\n", std::process::id());
    let lock = match disk.lock(path, &lock_path, &holder).map_err(failed(path, "lock"))? {
        LockOutcome::Taken(lock) => lock,
        LockOutcome::Held { holder } => {
            return Err(DirectoryError::InUse { path: path.to_owned(), holder });
        }
    };
    // Check again: the previous holder of the lock may have created a store.
    let contents = check_contents(disk, path)?;
    Ok(LockedDirectory { contents, is_new, lock })
}

/// The content of a directory that may be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contents {
    /// The directory has a manifest, so it is a store.
    Store,
    /// The directory is empty, or has only files that an interrupted creation may leave.
    Nothing,
}

/// Returns whether a directory is a store or may become one. Refuses every other directory.
fn check_contents(disk: &dyn Disk, path: &Path) -> Result<Contents, DirectoryError> {
    let not_a_store = |found: String| DirectoryError::NotAStore { path: path.to_owned(), found };
    let list = |dir: &Path| {
        let names = disk.list(dir).map_err(failed(dir, "list"))?;
        Ok::<Vec<String>, _>(names.iter().map(|name| name.to_string_lossy().into_owned()).collect())
    };
    let names = list(path)?;
    if names.iter().any(|name| name == MANIFEST) {
        return Ok(Contents::Store);
    }
    for name in names {
        match name.as_str() {
            LOCK | SECRET => {}
            // A segment with a final name may hold entries. Then the manifest was lost.
            JOURNAL => {
                let is_other = |name: &String| !SegmentedJournal::is_unfinished_name(name);
                if let Some(found) = list(&path.join(JOURNAL))?.into_iter().find(is_other) {
                    return Err(not_a_store(format!("{JOURNAL}/{found}")));
                }
            }
            INDEX => {
                if let Some(found) = list(&path.join(INDEX))?.into_iter().next() {
                    return Err(not_a_store(format!("{INDEX}/{found}")));
                }
            }
            name if [SECRET, MANIFEST].iter().any(|of| temporary_name(Path::new(of)) == Path::new(name)) => {}
            _ => return Err(not_a_store(name)),
        }
    }
    Ok(Contents::Nothing)
}

/// Creates every file of a store except the manifest, which is written last.
fn initialise(
    disk: &Arc<dyn Disk>,
    path: &Path,
    is_new: bool,
    identity: &Identity,
) -> Result<(), DirectoryError> {
    for name in [JOURNAL, INDEX] {
        let dir = path.join(name);
        match disk.create_dir(&dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(failed(&dir, "create")(error));
            }
            _ => {}
        }
    }
    SegmentedJournal::initialise(Arc::clone(disk), path.join(JOURNAL), identity.clone())
        .map_err(DirectoryError::Journal)?;
    match disk.sync_dir(parent(path)) {
        // The directory existed, and its parent may not be read. Then making its name durable was up to its creator.
        Err(error) if !is_new && error.kind() == io::ErrorKind::PermissionDenied => {}
        synced => synced.map_err(failed(parent(path), "sync"))?,
    }
    let secret_path = path.join(SECRET);
    disk.replace(&secret_path, &identity.secret.0).map_err(failed(&secret_path, "write"))
}

/// Writes the manifest. Replacing a file syncs its directory, so all other names are durable before the manifest is.
fn write_manifest(disk: &dyn Disk, path: &Path, identity: &Identity) -> Result<(), DirectoryError> {
    let manifest_path = path.join(MANIFEST);
    let manifest = Manifest::text(identity);
    disk.replace(&manifest_path, manifest.as_bytes()).map_err(failed(&manifest_path, "write"))
}

/// Reads the manifest and the secret, and checks that they belong together.
fn read_identity(disk: &dyn Disk, path: &Path) -> Result<Identity, DirectoryError> {
    let read = |name: &str, max_bytes| {
        let path = path.join(name);
        disk.read_small(&path, max_bytes).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => DirectoryError::Missing { path },
            io::ErrorKind::InvalidData => DirectoryError::Damaged { path, what: "it is too long" },
            _ => failed(&path, "read")(error),
        })
    };
    let manifest_path = path.join(MANIFEST);
    let (store, check) = match Manifest::parse(&read(MANIFEST, MAX_MANIFEST_BYTES)?) {
        Ok(Manifest::Known { store, secret_check }) => (store, secret_check),
        Ok(Manifest::Newer(found)) => {
            return Err(DirectoryError::NewerFormat {
                path: manifest_path,
                found,
                supported: FORMAT_VERSION,
            });
        }
        Err(what) => return Err(DirectoryError::Damaged { path: manifest_path, what }),
    };
    let damaged = |what| DirectoryError::Damaged { path: path.join(SECRET), what };
    let secret = read(SECRET, 32)?;
    let secret = Secret(secret.try_into().map_err(|_| damaged("it does not have 32 bytes"))?);
    if secret_check(&secret) != check {
        return Err(damaged("it is not the secret of this store"));
    }
    Ok(Identity { store, secret })
}
