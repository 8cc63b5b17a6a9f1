//! The data directory of a store: what it holds, who may open it, and how one
//! comes to be.
//!
//! ```text
//! MANIFEST   store id, format version, and a check of the secret: text
//! SECRET     32 random bytes
//! LOCK       says who has the store open; what is locked is the directory
//! journal/   the segments of the journal: the truth
//! index/     projections, which can be rebuilt
//! ```
//!
//! A directory that is absent or empty becomes a store when it is opened. The
//! manifest is written last. Without it there is no store, and what an
//! interrupted initialisation has left is written over; any other file makes
//! the directory somebody else's. With it there is one, and nothing is ever
//! created in the place of something that is missing.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ledger_journal::disk::{Disk, DiskLock, LockOutcome, parent, temporary_name};
use ledger_journal::{Identity, JournalError, Secret, SegmentOptions, SegmentedJournal};

use crate::manifest::{FORMAT_VERSION, MAX_MANIFEST_BYTES, Manifest, secret_check};

const MANIFEST: &str = "MANIFEST";
const SECRET: &str = "SECRET";
const LOCK: &str = "LOCK";
const JOURNAL: &str = "journal";
const INDEX: &str = "index";

/// Why a data directory cannot be opened.
#[derive(Debug)]
pub(crate) enum DirectoryError {
    /// Another process has the store open, or this one has, already.
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
    /// A file of the store is missing.
    Missing {
        /// Where it should be.
        path: PathBuf,
    },
    /// A file of the store is not what was written.
    Damaged {
        /// The file.
        path: PathBuf,
        /// The broken rule.
        what: &'static str,
    },
    /// The store was written by a newer version of this software.
    NewerFormat {
        /// The manifest.
        path: PathBuf,
        /// Its format version.
        found: u32,
        /// The newest that can be read.
        supported: u32,
    },
    /// The disk failed, or refused.
    Storage {
        /// The file or directory.
        path: PathBuf,
        /// The attempted action.
        action: &'static str,
        /// The disk's answer.
        cause: io::Error,
    },
    /// The first segment of the journal could not be made.
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
            | Self::Missing { .. }
            | Self::Damaged { .. }
            | Self::NewerFormat { .. } => None,
        }
    }
}

/// An open data directory. Nobody else can open it while this value lives.
#[derive(Debug)]
pub(crate) struct DataDirectory {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    identity: Identity,
    _lock: Box<dyn DiskLock>,
}

impl DataDirectory {
    /// Opens the store in `path`, or makes one of a directory that is absent
    /// or empty. A new store is on disk when this returns. The directory
    /// above must exist.
    ///
    /// # Errors
    ///
    /// Any [`DirectoryError`]. A directory that is refused is left as it was,
    /// but for the lock file of a store.
    pub(crate) fn open(disk: Arc<dyn Disk>, path: &Path) -> Result<Self, DirectoryError> {
        let Held { contents, is_new, lock } = hold(&*disk, path)?;
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

    /// Opens the store in `path`, which must be there.
    ///
    /// # Errors
    ///
    /// As [`DataDirectory::open`]; [`DirectoryError::Missing`] without a manifest.
    pub(crate) fn open_existing(disk: Arc<dyn Disk>, path: &Path) -> Result<Self, DirectoryError> {
        let manifest = path.join(MANIFEST);
        if !disk.exists(&manifest).map_err(failed(&manifest, "read"))? {
            return Err(DirectoryError::Missing { path: manifest });
        }
        Self::open(disk, path)
    }

    /// Begins a store with this identity in a directory that is absent or empty. It has no manifest, so nobody opens it
    /// before [`DataDirectory::write_manifest`].
    ///
    /// # Errors
    ///
    /// As [`DataDirectory::open`]; [`DirectoryError::NotAStore`] for a directory that has something.
    pub(crate) fn begin(
        disk: Arc<dyn Disk>,
        path: &Path,
        identity: &Identity,
    ) -> Result<Self, DirectoryError> {
        let Held { contents, is_new, lock } = hold(&*disk, path)?;
        if contents == Contents::Store {
            return Err(DirectoryError::NotAStore { path: path.to_owned(), found: MANIFEST.to_owned() });
        }
        initialise(&disk, path, is_new, identity)?;
        Ok(Self { disk, path: path.to_owned(), identity: identity.clone(), _lock: lock })
    }

    /// Completes a store that was begun.
    ///
    /// # Errors
    ///
    /// [`DirectoryError::Storage`].
    pub(crate) fn write_manifest(&self) -> Result<(), DirectoryError> {
        write_manifest(&*self.disk, &self.path, &self.identity)
    }

    /// The disk that the directory is on.
    pub(crate) fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// The identity, which tells this store from every other.
    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The directory of the projections.
    pub(crate) fn index_dir(&self) -> PathBuf {
        self.path.join(INDEX)
    }

    /// Makes the directory of the projections if somebody deleted it as a whole: they are built again.
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
struct Held {
    contents: Contents,
    /// Whether it was made by this call.
    is_new: bool,
    lock: Box<dyn DiskLock>,
}

/// Makes a directory if it is absent, and locks it.
fn hold(disk: &dyn Disk, path: &Path) -> Result<Held, DirectoryError> {
    let is_new = match disk.create_dir(path) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        Err(error) => return Err(failed(path, "create")(error)),
    };
    // Looked at before anything is written: not even a lock file belongs
    // in a directory that is somebody else's.
    check_contents(disk, path)?;
    let lock_path = path.join(LOCK);
    let holder = format!("process {}\n", std::process::id());
    let lock = match disk.lock(path, &lock_path, &holder).map_err(failed(path, "lock"))? {
        LockOutcome::Taken(lock) => lock,
        LockOutcome::Held { holder } => {
            return Err(DirectoryError::InUse { path: path.to_owned(), holder });
        }
    };
    // And again: whoever held the lock before may have made a store.
    let contents = check_contents(disk, path)?;
    Ok(Held { contents, is_new, lock })
}

/// The content of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contents {
    /// A manifest, and so a store.
    Store,
    /// Nothing but what an unfinished initialisation may leave.
    Nothing,
}

/// Tells a store from a directory that may become one; any other is refused.
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
            // A segment that has its name may hold entries, and then it is
            // the manifest that was lost.
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

/// Makes everything of a store but its manifest, which comes last.
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
        // A directory that was made for us, in one that we may not read: then
        // its name is the maker's business.
        Err(error) if !is_new && error.kind() == io::ErrorKind::PermissionDenied => {}
        synced => synced.map_err(failed(parent(path), "sync"))?,
    }
    let secret_path = path.join(SECRET);
    disk.replace(&secret_path, &identity.secret.0).map_err(failed(&secret_path, "write"))
}

/// Replacing a file syncs the directory: all other names are durable when the manifest gets its own.
fn write_manifest(disk: &dyn Disk, path: &Path, identity: &Identity) -> Result<(), DirectoryError> {
    let manifest_path = path.join(MANIFEST);
    let manifest = Manifest::text(identity);
    disk.replace(&manifest_path, manifest.as_bytes()).map_err(failed(&manifest_path, "write"))
}

/// Reads manifest and secret, which must belong together.
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

#[cfg(test)]
mod tests;
