//! Chooses the index for an opening, and decides what happens to one that does not match the journal.
//!
//! | The index | Action |
//! |---|---|
//! | matches the journal | it is used, and the entries that it lacks are replayed |
//! | is absent, or of another format, store or history | it is rebuilt |
//! | is damaged | it is rebuilt, and the damaged file is kept under the name [`DAMAGED`] |
//! | cannot be read because the disk refuses | opening fails without changes |
//! | is ahead of the journal | opening fails: the journal lacks acknowledged entries |
//!
//! A new index is built beside the old one, and takes over its name once it holds the whole journal. So if the journal
//! turns out to be damaged, or the disk fails meanwhile, the old index survives.
//!
//! [`IndexHome`] also serves the repair of an index that fails while the store runs (`engine::index_repair`).

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use ledger_index::{IndexError, IndexFile, IndexOptions, IndexSnapshot};
use ledger_journal::disk::{Disk, OpenMode};
use ledger_journal::{ChainHash, Identity, JournalReader, Position};

use crate::cause::Cause;
use crate::directory::DataDirectory;
use crate::disk_backend::DiskBackend;
use crate::error::{OpenError, ReadError};
use crate::flush::Watermark;
use crate::options::Shares;
use crate::recovery::{self, Recovered};

/// The file name of the index.
const INDEX: &str = "index.redb";
/// The file name of an index that is being built.
const NEW: &str = "index.redb.new";
/// The file name under which the last damaged index is kept for analysis.
const DAMAGED: &str = "index.redb.damaged";

/// An open index that matches the journal.
pub(crate) struct Opened {
    pub(crate) index: IndexFile,
    pub(crate) recovered: Recovered,
    /// The reason why the index was rebuilt, if it was.
    pub(crate) rebuilt: Option<RebuildReason>,
}

/// The reason why an index was rebuilt.
#[derive(Debug)]
pub(crate) struct RebuildReason {
    pub(crate) reason: String,
    /// True if the old index was damaged, in contrast to missing or outdated.
    pub(crate) is_damage: bool,
}

/// The reason why an index cannot be used.
pub(crate) enum Unusable {
    /// The index is not damaged, but has another format or does not belong to this journal.
    Other(&'static str),
    /// The index is damaged, or the journal is. Rebuilding the index shows which.
    Damaged(String),
    /// The opening fails, and the index must not be changed.
    Refused(OpenError),
}

impl Unusable {
    fn damaged(error: &impl ToString) -> Self {
        Self::Damaged(error.to_string())
    }
}

impl From<IndexError> for Unusable {
    fn from(error: IndexError) -> Self {
        match error {
            IndexError::OtherFormat => Self::Other("it is of another format"),
            error if error.is_of_the_disk() => Self::Refused(error.into()),
            error => Self::damaged(&error),
        }
    }
}

impl From<OpenError> for Unusable {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Damaged(cause) => Self::Damaged(cause.to_string()),
            error => Self::Refused(error),
        }
    }
}

/// The directory of the index, with operations on its files by role.
pub(crate) struct IndexHome {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    options: IndexOptions,
}

impl IndexHome {
    pub(crate) fn new(directory: &DataDirectory, shares: Shares) -> Self {
        let options = IndexOptions { cache_bytes: shares.index_cache, filter_bytes: shares.filters };
        Self { disk: directory.disk().clone(), dir: directory.index_dir(), options }
    }

    /// Opens the current index.
    pub(crate) fn open(&self) -> Result<IndexFile, Unusable> {
        Ok(IndexFile::open(self.backend(INDEX, OpenMode::Existing)?, self.options)?)
    }

    /// Creates a new index beside the current one. Replaces an unfinished new index.
    ///
    /// # Errors
    ///
    /// [`OpenError::Io`] if the disk refuses.
    pub(crate) fn create(&self) -> Result<IndexFile, OpenError> {
        self.discard_new()?;
        let backend = self.backend(NEW, OpenMode::CreateNew).map_err(|unusable| match unusable {
            Unusable::Refused(error) => error,
            Unusable::Damaged(reason) => self.failed(NEW, io::Error::other(reason)),
            Unusable::Other(reason) => self.failed(NEW, io::Error::other(reason)),
        })?;
        Ok(IndexFile::create(backend, self.options)?)
    }

    /// Removes an unfinished new index, if there is one.
    ///
    /// # Errors
    ///
    /// [`OpenError::Io`] if the disk refuses.
    pub(crate) fn discard_new(&self) -> Result<(), OpenError> {
        match self.disk.remove(&self.dir.join(NEW)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failed(NEW, error)),
            _ => Ok(()),
        }
    }

    /// Renames the current index, if it exists, to [`DAMAGED`], so that no opening uses it. It replaces an index that
    /// was set aside earlier.
    ///
    /// # Errors
    ///
    /// [`OpenError::Io`] if the disk refuses.
    pub(crate) fn set_aside(&self) -> Result<(), OpenError> {
        if self.exists(INDEX)? { self.rename(INDEX, DAMAGED) } else { Ok(()) }
    }

    /// Gives the new index the name of the current one, which it replaces.
    ///
    /// # Errors
    ///
    /// [`OpenError::Io`] if the disk refuses.
    pub(crate) fn put_in_place(&self) -> Result<(), OpenError> {
        self.rename(NEW, INDEX)
    }

    /// Makes the file names durable.
    ///
    /// # Errors
    ///
    /// [`OpenError::Io`] if the disk refuses.
    pub(crate) fn sync_names(&self) -> Result<(), OpenError> {
        self.disk.sync_dir(&self.dir).map_err(|error| self.failed(INDEX, error))
    }

    /// Gives an index that was set aside its name back. Ignores errors.
    pub(crate) fn put_back(&self) {
        let _ = self.rename(DAMAGED, INDEX);
    }

    fn backend(&self, name: &str, mode: OpenMode) -> Result<DiskBackend, Unusable> {
        DiskBackend::open(&*self.disk, &self.dir.join(name), mode).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => Unusable::damaged(&error),
            _ => Unusable::Refused(self.failed(name, error)),
        })
    }

    fn exists(&self, name: &str) -> Result<bool, OpenError> {
        self.disk.exists(&self.dir.join(name)).map_err(|error| self.failed(name, error))
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), OpenError> {
        let renamed = self.disk.rename(&self.dir.join(from), &self.dir.join(to));
        renamed.map_err(|error| self.failed(from, error))
    }

    fn failed(&self, name: &str, error: io::Error) -> OpenError {
        OpenError::Io(Cause::within(&self.dir.join(name).display().to_string(), error))
    }
}

/// The parameters of opening an index.
struct Opening<'a> {
    home: &'a IndexHome,
    journal: &'a Arc<dyn JournalReader>,
    identity: &'a Identity,
    shares: Shares,
}

/// Opens the index of a store, or rebuilds it.
///
/// # Errors
///
/// [`OpenError::Io`] if the disk refuses an access; [`OpenError::Damaged`] if the journal is damaged, or lacks entries
/// that the index has.
pub(crate) fn open(
    directory: &DataDirectory,
    home: &IndexHome,
    journal: &Arc<dyn JournalReader>,
    shares: Shares,
) -> Result<Opened, OpenError> {
    directory.make_index_dir()?;
    let opening = Opening { home, journal, identity: directory.identity(), shares };
    home.discard_new()?;
    if !home.exists(INDEX)? {
        let is_new = journal.head().next == Position::FIRST;
        let rebuilt = RebuildReason { reason: "there was none".to_owned(), is_damage: false };
        return opening.build((!is_new).then_some(rebuilt));
    }
    match opening.existing() {
        Ok((index, recovered)) => Ok(Opened { index, recovered, rebuilt: None }),
        Err(Unusable::Other(reason)) => {
            opening.build(Some(RebuildReason { reason: reason.to_owned(), is_damage: false }))
        }
        Err(Unusable::Damaged(reason)) => opening.build(Some(RebuildReason { reason, is_damage: true })),
        Err(Unusable::Refused(error)) => Err(error),
    }
}

impl Opening<'_> {
    /// Opens the current index and replays the entries that it lacks.
    fn existing(&self) -> Result<(IndexFile, Recovered), Unusable> {
        let index = self.home.open()?;
        let recovered = self.catch_up(&index);
        // Closing the file normally would commit to it, which can panic on damaged pages.
        let recovered = recovered.inspect_err(|_| index.abandon())?;
        Ok((index, recovered))
    }

    fn catch_up(&self, index: &IndexFile) -> Result<Recovered, Unusable> {
        let next = next_of(&index.snapshot()?, &**self.journal, self.identity)?;
        Ok(recovery::recover(self.journal, index, self.identity, self.shares, next)?)
    }

    /// Builds a new index from the whole journal, in place of the current one.
    fn build(&self, rebuilt: Option<RebuildReason>) -> Result<Opened, OpenError> {
        let index = self.home.create()?;
        let recovered = recovery::recover(self.journal, &index, self.identity, self.shares, Position::FIRST)
            .and_then(|recovered| self.put_in_place(rebuilt.as_ref()).map(|()| recovered));
        match recovered {
            Ok(recovered) => Ok(Opened { index, recovered, rebuilt }),
            Err(error) => {
                index.abandon();
                Err(error)
            }
        }
    }

    /// Gives the new index its name. Keeps a damaged old one.
    fn put_in_place(&self, rebuilt: Option<&RebuildReason>) -> Result<(), OpenError> {
        if rebuilt.is_some_and(|rebuilt| rebuilt.is_damage) {
            self.home.set_aside()?;
        }
        self.home.put_in_place()?;
        self.home.sync_names()
    }
}

/// Returns the position of the first entry that an index lacks, if the index matches the journal.
fn next_of(
    index: &IndexSnapshot,
    journal: &dyn JournalReader,
    identity: &Identity,
) -> Result<Position, Unusable> {
    // An index without a watermark holds no entries.
    let Some(watermark) = Watermark::read(index)? else { return Ok(Position::FIRST) };
    if watermark.store != identity.store {
        return Err(Unusable::Other("it belongs to another store"));
    }
    let head = journal.head();
    if watermark.next > head.next {
        let reason = format!(
            "the journal ends before entry {}, but entries up to {} were acknowledged: it was replaced by an \
             older copy or cut off",
            head.next,
            watermark.next.get() - 1
        );
        return Err(Unusable::Refused(OpenError::Damaged(reason.into())));
    }
    let chain = match Position::new(watermark.next.get() - 1) {
        None => ChainHash::genesis(identity.store),
        Some(last) => match journal.read(last).map_err(|error| OpenError::from(ReadError::from(error)))? {
            Some(chunk) if chunk.next() == watermark.next => chunk.chain(),
            _ => return Err(Unusable::Other("it ends within a chunk of the journal")),
        },
    };
    if chain == watermark.chain {
        Ok(watermark.next)
    } else {
        Err(Unusable::Other("it was made of another history"))
    }
}
