//! Opening: which index goes with the journal, and what happens to one that does not.
//!
//! | The index | What happens |
//! |---|---|
//! | goes with the journal | it is used, and what it lacks is replayed |
//! | is absent, of another format, store or history | it is built again |
//! | is damaged | it is kept under [`DAMAGED`] and built again |
//! | cannot be read, since the disk refuses | opening fails, and nothing changes |
//! | is ahead of the journal | opening fails: acknowledged entries are missing from the journal |
//!
//! A new index is built beside the old one and takes its name when the whole journal is in it. So a journal that turns
//! out to be damaged, or a disk that fails meanwhile, costs no index.

use std::fmt::Display;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use ledger_index::{IndexError, IndexFile, IndexOptions, IndexSnapshot};
use ledger_journal::disk::{Disk, OpenMode};
use ledger_journal::{ChainHash, Identity, JournalReader, Position};

use crate::backend::backend;
use crate::directory::DataDirectory;
use crate::error::{OpenError, ReadError};
use crate::flush::Watermark;
use crate::options::Shares;
use crate::recovery::{self, Recovered};

/// The name of the index.
const INDEX: &str = "index.redb";
/// The name under which a new index is built.
const NEW: &str = "index.redb.new";
/// The name under which an index is kept that was damaged: the last one, for whoever wants to know what happened.
const DAMAGED: &str = "index.redb.damaged";

/// An index that goes with the journal.
pub(crate) struct Opened {
    pub(crate) index: IndexFile,
    pub(crate) recovered: Recovered,
    /// Why it was built from nothing, if it was.
    pub(crate) rebuilt: Option<Rebuilt>,
}

/// Why an index was built from nothing.
#[derive(Debug)]
pub(crate) struct Rebuilt {
    pub(crate) reason: String,
    /// Whether stored bytes of the old one were not what was written.
    pub(crate) is_damage: bool,
}

/// Why an index is not used.
pub(crate) enum Unusable {
    /// It is no index of this journal, and none that is damaged.
    Other(&'static str),
    /// It is damaged, or the journal is: the one that is built again tells.
    Damaged(String),
    /// It must stay as it is.
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
            OpenError::Damaged { reason } => Self::Damaged(reason),
            error => Self::Refused(error),
        }
    }
}

/// The directory of an index, and the files in it by their part.
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

    /// Opens the index that is in place.
    pub(crate) fn open(&self) -> Result<IndexFile, Unusable> {
        Ok(IndexFile::open(self.backend(INDEX, OpenMode::Existing)?, self.options)?)
    }

    /// Makes an index beside the one in place, which one that was left unfinished makes way for.
    ///
    /// # Errors
    ///
    /// [`OpenError::Io`] if the disk refuses.
    pub(crate) fn create(&self) -> Result<IndexFile, OpenError> {
        self.discard_new()?;
        let backend = self.backend(NEW, OpenMode::CreateNew).map_err(|unusable| match unusable {
            Unusable::Refused(error) => error,
            Unusable::Damaged(reason) => self.failed(NEW, &reason),
            Unusable::Other(reason) => self.failed(NEW, &reason),
        })?;
        Ok(IndexFile::create(backend, self.options)?)
    }

    /// Removes an index that was not finished.
    ///
    /// # Errors
    ///
    /// [`OpenError::Io`] if the disk refuses.
    pub(crate) fn discard_new(&self) -> Result<(), OpenError> {
        match self.disk.remove(&self.dir.join(NEW)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failed(NEW, &error)),
            _ => Ok(()),
        }
    }

    /// Takes the name from the index in place, if it has it still, so that no opening uses it. There is at most one that
    /// is kept so.
    ///
    /// # Errors
    ///
    /// [`OpenError::Io`] if the disk refuses.
    pub(crate) fn set_aside(&self) -> Result<(), OpenError> {
        if self.exists(INDEX)? { self.rename(INDEX, DAMAGED) } else { Ok(()) }
    }

    /// Gives the name of the index to the new one, in place of one that has it.
    ///
    /// # Errors
    ///
    /// [`OpenError::Io`] if the disk refuses.
    pub(crate) fn put_in_place(&self) -> Result<(), OpenError> {
        self.rename(NEW, INDEX)
    }

    /// Makes the names durable.
    ///
    /// # Errors
    ///
    /// [`OpenError::Io`] if the disk refuses.
    pub(crate) fn sync_names(&self) -> Result<(), OpenError> {
        self.disk.sync_dir(&self.dir).map_err(|error| self.failed(INDEX, &error))
    }

    /// Gives an index that was set aside its name back, as far as the disk lets that be done.
    pub(crate) fn put_back(&self) {
        let _ = self.rename(DAMAGED, INDEX);
    }

    fn backend(&self, name: &str, mode: OpenMode) -> Result<impl redb::StorageBackend + use<>, Unusable> {
        backend(&*self.disk, &self.dir.join(name), mode).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => Unusable::damaged(&error),
            _ => Unusable::Refused(self.failed(name, &error)),
        })
    }

    fn exists(&self, name: &str) -> Result<bool, OpenError> {
        self.disk.exists(&self.dir.join(name)).map_err(|error| self.failed(name, &error))
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), OpenError> {
        let renamed = self.disk.rename(&self.dir.join(from), &self.dir.join(to));
        renamed.map_err(|error| self.failed(from, &error))
    }

    fn failed(&self, name: &str, error: &dyn Display) -> OpenError {
        OpenError::Io { reason: format!("{}: {error}", self.dir.join(name).display()) }
    }
}

/// The parts that are needed to open an index.
struct Opening<'a> {
    home: &'a IndexHome,
    journal: &'a Arc<dyn JournalReader>,
    identity: &'a Identity,
    shares: Shares,
}

/// Opens the index of a store, or builds one.
///
/// # Errors
///
/// [`OpenError::Io`] if the disk refuses; [`OpenError::Damaged`] if the journal is damaged, or lacks entries that the
/// index has.
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
        let rebuilt = Rebuilt { reason: "there was none".to_owned(), is_damage: false };
        return opening.build((!is_new).then_some(rebuilt));
    }
    match opening.existing() {
        Ok((index, recovered)) => Ok(Opened { index, recovered, rebuilt: None }),
        Err(Unusable::Other(reason)) => {
            opening.build(Some(Rebuilt { reason: reason.to_owned(), is_damage: false }))
        }
        Err(Unusable::Damaged(reason)) => opening.build(Some(Rebuilt { reason, is_damage: true })),
        Err(Unusable::Refused(error)) => Err(error),
    }
}

impl Opening<'_> {
    /// The index that is there, brought to the end of the journal.
    fn existing(&self) -> Result<(IndexFile, Recovered), Unusable> {
        let index = self.home.open()?;
        let recovered = self.bring_up(&index);
        // Closing it would write to it.
        let recovered = recovered.inspect_err(|_| index.abandon())?;
        Ok((index, recovered))
    }

    fn bring_up(&self, index: &IndexFile) -> Result<Recovered, Unusable> {
        let next = next_of(&index.snapshot()?, &**self.journal, self.identity)?;
        Ok(recovery::recover(self.journal, index, self.identity, self.shares, next)?)
    }

    /// A new index of the whole journal, in the place of the one that is there.
    fn build(&self, rebuilt: Option<Rebuilt>) -> Result<Opened, OpenError> {
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

    /// Gives the new index its name. One that is damaged is kept; there is at most one of them.
    fn put_in_place(&self, rebuilt: Option<&Rebuilt>) -> Result<(), OpenError> {
        if rebuilt.is_some_and(|rebuilt| rebuilt.is_damage) {
            self.home.set_aside()?;
        }
        self.home.put_in_place()?;
        self.home.sync_names()
    }
}

/// Before which position an index has everything, if it goes with the journal.
fn next_of(
    index: &IndexSnapshot,
    journal: &dyn JournalReader,
    identity: &Identity,
) -> Result<Position, Unusable> {
    // One that was never flushed into has nothing.
    let Some(watermark) = Watermark::read(index)? else { return Ok(Position::FIRST) };
    if watermark.store != identity.store {
        return Err(Unusable::Other("it belongs to another store"));
    }
    let head = journal.head();
    if watermark.next > head.next {
        return Err(Unusable::Refused(OpenError::Damaged {
            reason: format!(
                "the journal ends before entry {}, but entries up to {} were acknowledged: it was replaced by an \
                 older copy or cut off",
                head.next,
                watermark.next.get() - 1
            ),
        }));
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
