//! Progress reports of long operations.

use std::fmt;
use std::sync::Arc;

use ledger_journal::{Chunk, Head, JournalError, JournalReader, Position};

/// An operation that takes long on a large store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LongWork {
    /// An opening adds entries of the journal to the index, or builds the index from nothing.
    Recovery,
    /// A running store builds its index from nothing.
    IndexRebuild,
    /// A verification reads the journal.
    VerifyJournal,
    /// A verification builds a second index.
    VerifyReplay,
    /// A restore, or the verification of a backup, reads the backup.
    ReadBackup,
    /// A backup or a restore copies entries.
    CopyJournal,
    /// A backup or a restore reads what it has copied.
    VerifyCopy,
}

impl LongWork {
    /// Returns a short text for a person, such as `reading the journal`.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Recovery => "recovering",
            Self::IndexRebuild => "rebuilding the index",
            Self::VerifyJournal => "reading the journal",
            Self::VerifyReplay => "replaying the journal",
            Self::ReadBackup => "reading the backup",
            Self::CopyJournal => "copying the journal",
            Self::VerifyCopy => "verifying the copy",
        }
    }
}

/// The progress of a long operation, in entries of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// The operation.
    pub work: LongWork,
    /// Number of entries that are done. For a recovery this includes those that the index had before.
    pub done: u64,
    /// Number of all entries.
    pub total: u64,
}

/// A callback for the progress of a store's long operations. By default there is none.
///
/// It is called several times a second on the thread that does the work, so it must return quickly.
///
/// # Examples
///
/// ```
/// use ledger_store::{Options, ProgressWatcher};
///
/// let mut options = Options::default();
/// options.progress =
///     ProgressWatcher::new(|progress| eprintln!("{}: {}", progress.work.text(), progress.done));
/// ```
#[derive(Clone, Default)]
pub struct ProgressWatcher(Option<Arc<dyn Fn(Progress) + Send + Sync>>);

impl ProgressWatcher {
    /// Creates a watcher from a function.
    pub fn new(watcher: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(watcher)))
    }

    /// Returns a journal whose scans report how far they have come.
    pub(crate) fn watch(&self, journal: Arc<dyn JournalReader>, work: LongWork) -> Arc<dyn JournalReader> {
        match &self.0 {
            None => journal,
            Some(watcher) => Arc::new(ObservedJournal { journal, work, watcher: watcher.clone() }),
        }
    }
}

impl fmt::Debug for ProgressWatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "ProgressWatcher(..)" } else { "ProgressWatcher(none)" })
    }
}

/// A journal that reports progress while it is scanned from one end to the other.
struct ObservedJournal {
    journal: Arc<dyn JournalReader>,
    work: LongWork,
    watcher: Arc<dyn Fn(Progress) + Send + Sync>,
}

impl JournalReader for ObservedJournal {
    fn head(&self) -> Head {
        self.journal.head()
    }

    fn read(&self, at: Position) -> Result<Option<Chunk>, JournalError> {
        self.journal.read(at)
    }

    fn scan(&self, from: Position, max_bytes: usize) -> Result<Vec<Chunk>, JournalError> {
        let entries_before = |position: Position| position.get() - Position::FIRST.get();
        let (done, total) = (entries_before(from), entries_before(self.head().next));
        (self.watcher)(Progress { work: self.work, done, total });
        self.journal.scan(from, max_bytes)
    }
}
