//! The store: a directory with a journal, an index of it, and the threads that keep both.

mod report;
mod running;
#[cfg(test)]
mod tests;
mod writes;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use ledger_journal::disk::{Disk, RealDisk};
use ledger_journal::{ChainHash, Journal, Position, SegmentOptions};

pub use self::report::{Opening, Status};
use self::running::Running;
pub(crate) use self::writes::LEDGER_WORK_BYTES;
use crate::directory::DataDirectory;
use crate::engine::{Engine, IndexEvent};
use crate::error::{OpenError, ReadError, WriteError};
use crate::opening::{self, IndexHome, Opened};
use crate::options::Options;
use crate::progress::LongWork;
use crate::read::Snapshot;
use crate::readers::Readers;
use crate::room::Room;
use crate::watch::CommitWatch;
use crate::workspace;

/// An open store. Cheap to clone; all clones are the same store.
///
/// It is closed when the last clone is dropped, or by [`Store::close`].
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Arc<Engine>,
    running: Arc<Running>,
    readers: Arc<Readers>,
    opening: Opening,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("status", &self.status()).finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the store in a directory, or makes one of a directory that is absent or empty.
    ///
    /// # Errors
    ///
    /// See [`OpenError`]. A directory that is refused is left as it was.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::open_with(path, &Options::default())
    }

    /// Opens a store with options.
    ///
    /// # Errors
    ///
    /// As [`Store::open`].
    pub fn open_with(path: impl AsRef<Path>, options: &Options) -> Result<Self, OpenError> {
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        Self::open_on(&disk, path.as_ref(), options)
    }

    /// Opens a store on a disk of the caller's, for tests.
    ///
    /// # Errors
    ///
    /// As [`Store::open`].
    #[cfg(feature = "testing")]
    #[expect(clippy::needless_pass_by_value, reason = "the store keeps the disk")]
    pub fn open_on_disk(disk: Arc<dyn Disk>, path: &Path, options: &Options) -> Result<Self, OpenError> {
        Self::open_on(&disk, path, options)
    }

    pub(crate) fn open_on(disk: &Arc<dyn Disk>, path: &Path, options: &Options) -> Result<Self, OpenError> {
        let shares = options.shares();
        let directory = DataDirectory::open(disk.clone(), path)?;
        let segments = SegmentOptions {
            segment_bytes: options.segment_bytes,
            cache_bytes: shares.journal_cache,
            space_bytes: SegmentOptions::default().space_bytes.min(options.segment_bytes),
            ..SegmentOptions::default()
        };
        let journal = directory.open_journal(segments)?;
        let dropped_tail = journal.dropped();
        let journal: Arc<dyn Journal> = Arc::new(journal);
        workspace::clear(&directory).map_err(|error| OpenError::Io { reason: error.to_string() })?;
        let home = IndexHome::new(&directory, shares);
        let watched = options.progress.watch(journal.clone(), LongWork::Recovery);
        let Opened { index, recovered, rebuilt } = opening::open(&directory, &home, &watched, shares)?;
        let opening = Opening::new(recovered.replayed, rebuilt, dropped_tail);
        let room = Room::new(disk.clone(), path.to_owned(), options.free_space_floor);
        let identity = directory.identity().clone();
        let engine = Engine::new(journal, index, identity, options, recovered).on_disk(room, home);
        Ok(Self::start(engine, Some(directory), opening))
    }

    /// A store in memory: everything but durable. For tests and trials.
    pub fn in_memory() -> Self {
        Self::in_memory_with(&Options::default())
    }

    /// A store in memory with options.
    ///
    /// # Panics
    ///
    /// If the system has no random numbers to give.
    pub fn in_memory_with(options: &Options) -> Self {
        Self::start(Engine::in_memory(options), None, Opening::new(0, None, None))
    }

    fn start(engine: Engine, directory: Option<DataDirectory>, opening: Opening) -> Self {
        let engine = Arc::new(engine);
        let running = Running::start(&engine, directory);
        let (running, readers) = (Arc::new(running), Arc::default());
        Self { inner: Arc::new(Inner { engine, running, readers, opening }) }
    }

    /// The report of the opening of this store.
    pub fn opening(&self) -> &Opening {
        &self.inner.opening
    }

    /// How this store stands.
    pub fn status(&self) -> Status {
        let engine = &self.inner.engine;
        let head = engine.journal.head();
        Status {
            entries: head.next.get() - 1,
            chain: head.chain.to_string(),
            commits: engine.commits.load(std::sync::atomic::Ordering::Relaxed),
            stopped: engine.stopped(),
            index: engine.index_status(),
        }
    }

    /// Waits until this store takes no more writes, and returns why; `None` if it was closed. After a failure of the disk
    /// only opening the store again tells what is recorded, so a program that does nothing else should end here.
    ///
    /// ```
    /// let store = ledger_store::Store::in_memory();
    /// let watched = store.clone();
    /// let watcher = std::thread::spawn(move || watched.wait_until_stopped());
    /// store.close()?;
    /// assert_eq!(watcher.join().unwrap(), None);
    /// # Ok::<(), ledger_store::WriteError>(())
    /// ```
    pub fn wait_until_stopped(&self) -> Option<String> {
        self.inner.engine.wait_until_stopped()
    }

    /// Calls `watcher` for whatever happens to the index of this store while it is open: first for what has happened
    /// since the opening. There is one watcher; another takes its place. It is called by threads of the store: it must be
    /// quick, and must not use the store.
    pub fn watch_index(&self, watcher: impl Fn(&IndexEvent) + Send + 'static) {
        self.inner.engine.mending.watch(watcher);
    }

    /// The hash of the first entries, as [`Status::chain`] told when there were so many; `None` if there are not as
    /// many, or there never were just as many between two commits. It is read from what is stored, and compared with
    /// what was kept elsewhere it tells if history was rewritten since.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the journal cannot be read there.
    pub fn chain_at(&self, entries: u64) -> Result<Option<String>, ReadError> {
        let engine = &self.inner.engine;
        let Some(last) = Position::new(entries) else {
            return Ok(Some(ChainHash::genesis(engine.identity.store).to_string()));
        };
        let chunk = engine.journal.read(last)?.filter(|chunk| chunk.next() == last.next());
        Ok(chunk.map(|chunk| chunk.chain().to_string()))
    }

    /// The store as it is now: everything that is acknowledged, unchanging. Costs about as much as cloning an
    /// `Arc`.
    pub fn snapshot(&self) -> Snapshot {
        let engine = &self.inner.engine;
        Snapshot::new(
            engine.journal.clone(),
            engine.view(),
            engine.directory.clone(),
            engine.fingerprints.clone(),
            engine.hashes.clone(),
        )
    }

    /// Calls `wake` after every commit, once readers see it, until what is returned is dropped. It is called by the
    /// thread that commits: it must be quick, and must not use the store. With [`Snapshot::feed`] it makes a
    /// consumer that is told of new logs and holds up no writer:
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = ledger_store::Store::in_memory();
    /// // One place: a consumer that is behind need not be told twice.
    /// let (wake, woken) = std::sync::mpsc::sync_channel(1);
    /// let watch = store.watch_commits(move || {
    ///     let _ = wake.try_send(());
    /// });
    /// let mut at = store.snapshot().feed_end();
    ///
    /// store.ledger("main")?.transaction().posting("world", "users:001", 100, "USD/2").commit()?;
    /// while at < store.snapshot().feed_end() {
    ///     woken.recv()?;
    ///     let part = store.snapshot().feed(at)?;
    ///     for log in &part.logs {
    ///         println!("{} {}", log.ledger, log.log.entry.id.get());
    ///     }
    ///     at = part.next; // to be kept where it survives a restart, once the logs have been passed on
    /// }
    /// # drop(watch);
    /// # Ok(())
    /// # }
    /// ```
    pub fn watch_commits(&self, wake: impl Fn() + Send + Sync + 'static) -> CommitWatch {
        self.inner.engine.watchers.add(Box::new(wake))
    }

    /// A secret of this store with which a server authenticates cursors. It is the same each time the store is
    /// opened, and tells nothing of the store's other secrets.
    pub fn cursor_key(&self) -> [u8; 32] {
        let secret = &self.inner.engine.identity.secret;
        let mut key = [0; 32];
        key[..16].copy_from_slice(&secret.digest(&[b"cursors 1"]));
        key[16..].copy_from_slice(&secret.digest(&[b"cursors 2"]));
        key
    }

    /// The engine, for reads.
    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.inner.engine
    }

    /// The threads of reads that must not block their callers.
    pub(crate) fn readers(&self) -> &Arc<Readers> {
        &self.inner.readers
    }

    /// The directory, unless the store is in memory.
    pub(crate) fn directory(&self) -> Option<&DataDirectory> {
        self.inner.running.directory()
    }

    /// Writes everything that gathered in memory into the index, so that the next opening has nothing to
    /// replay. What was acknowledged is durable without it.
    ///
    /// While the index cannot be written (see [`Status::index`]) this does nothing.
    pub fn flush(&self) {
        self.flush_all();
    }

    /// Does as [`Store::flush`], and says whether it could.
    pub(crate) fn flush_all(&self) -> bool {
        let engine = &self.inner.engine;
        engine.hashes.wait(engine.view().next, || engine.stopped().is_some() || engine.is_stopping());
        engine.flush_what_gathered();
        engine.wait_for_flushes()
    }

    /// Finishes what waits, flushes, and takes no more writes. Reads go on. Dropping the last clone does the
    /// same.
    ///
    /// In a callback of [`Store::submit`] or [`Store::watch_commits`] neither can wait for what called it: then another
    /// thread closes the store, and until it is done the directory stays locked.
    ///
    /// # Errors
    ///
    /// [`WriteError::Stopped`] if an earlier commit had failed; then the next opening recovers.
    pub fn close(&self) -> Result<(), WriteError> {
        self.inner.running.close();
        match self.inner.engine.stopped() {
            None => Ok(()),
            Some(reason) => Err(WriteError::Stopped { reason }),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.running.close();
    }
}
