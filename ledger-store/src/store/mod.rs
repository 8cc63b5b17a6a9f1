//! The public face of a store: opening and closing it, its status, snapshots, and callbacks. The files below hold the
//! other methods by subject, except those that answer with handles, futures or errors of ledgers (`ledger::store`).

mod async_calls;
mod backup;
mod import;
mod removal;
mod report;
mod running;
#[cfg(test)]
mod tests;
mod verify;
mod writes;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use ledger_core::Timestamp;
use ledger_journal::disk::{Disk, RealDisk};
use ledger_journal::{ChainHash, Journal, Position, SegmentOptions};

pub use self::backup::{BackupError, BackupReport, RestorePoint, RestorePointError};
pub use self::import::{ImportError, ImportReport};
pub use self::removal::Reclaimed;
pub use self::report::{Opening, Status};
use self::running::Running;
pub use self::verify::{VerifyError, VerifyReport};
pub(crate) use self::writes::LEDGER_WORK_BYTES;
use crate::cause::Cause;
use crate::commit_watch::CommitWatch;
use crate::directory::{self, DataDirectory};
use crate::engine::{Engine, IndexEvent, flushes};
use crate::error::{OpenError, ReadError, WriteError};
use crate::free_space::FreeSpace;
use crate::opening::{self, IndexHome, Opened};
use crate::options::Options;
use crate::progress::LongWork;
use crate::read::Snapshot;
use crate::readers::Readers;

/// An open store. A clone is cheap and refers to the same store.
///
/// The store closes when its last clone and its last [`Ledger`](crate::Ledger) are dropped, or by [`Store::close`].
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
    /// Returns whether a directory contains a store. [`Store::open`] would create one in a directory without.
    ///
    /// ```
    /// # let home = tempfile::tempdir()?;
    /// # let path = home.path().join("data");
    /// use ledger_store::Store;
    /// assert!(!Store::exists(&path));
    /// Store::open(&path)?.close()?;
    /// assert!(Store::exists(&path));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn exists(path: impl AsRef<Path>) -> bool {
        directory::contains_store(path.as_ref())
    }

    /// Opens the store in a directory. Creates a store if the directory is absent or empty. Blocks the thread;
    /// [`open_async`](Self::open_async) does not.
    ///
    /// # Errors
    ///
    /// See [`OpenError`]. A refused directory is left unchanged.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::open_with(path, &Options::default())
    }

    /// Opens a store with options. Blocks the thread; [`open_with_async`](Self::open_with_async) does not.
    ///
    /// # Errors
    ///
    /// The errors of [`Store::open`].
    pub fn open_with(path: impl AsRef<Path>, options: &Options) -> Result<Self, OpenError> {
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        Self::open_on(&disk, path.as_ref(), options)
    }

    /// Opens a store on a given disk, for tests.
    ///
    /// # Errors
    ///
    /// The errors of [`Store::open`].
    ///
    /// ```
    /// use ledger_store::prelude::*;
    /// use ledger_testkit::SimDisk;
    /// use std::{path::Path, sync::Arc};
    /// let disk = SimDisk::new();
    /// let store = Store::open_on_disk(Arc::new(disk.clone()), Path::new("data"), &Options::default())?;
    /// store.ledger("main")?.transaction().posting("world", "users:1", 5, "USD").commit()?;
    /// let disk = disk.after_power_cut(1);
    /// let store = Store::open_on_disk(Arc::new(disk), Path::new("data"), &Options::default())?;
    /// assert_eq!(store.ledger("main")?.transactions().count()?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
        verify::comparison_index::clear(&directory).map_err(|error| OpenError::Io(Cause::of(error)))?;
        let home = IndexHome::new(&directory, shares);
        let watched = options.progress.watch(journal.clone(), LongWork::Recovery);
        let Opened { index, recovered, rebuilt } = opening::open(&directory, &home, &watched, shares)?;
        let opening = Opening::new(recovered.replayed, rebuilt, dropped_tail);
        let free_space = FreeSpace::new(disk.clone(), path.to_owned(), options.free_space_floor);
        let identity = directory.identity().clone();
        let engine = Engine::new(journal, index, identity, options, recovered).on_disk(free_space, home);
        Ok(Self::start(engine, Some(directory), opening))
    }

    /// Creates a store in memory. Its data is lost when it closes; everything else works. For tests and experiments.
    pub fn in_memory() -> Self {
        Self::in_memory_with(&Options::default())
    }

    /// Creates a store in memory with options.
    ///
    /// # Panics
    ///
    /// Panics if the operating system cannot provide random numbers.
    pub fn in_memory_with(options: &Options) -> Self {
        Self::start(Engine::in_memory(options), None, Opening::new(0, None, None))
    }

    fn start(engine: Engine, directory: Option<DataDirectory>, opening: Opening) -> Self {
        let engine = Arc::new(engine);
        let running = Running::start(&engine, directory);
        let (running, readers) = (Arc::new(running), Arc::default());
        Self { inner: Arc::new(Inner { engine, running, readers, opening }) }
    }

    /// Returns the report of how this store was opened.
    pub fn opening(&self) -> &Opening {
        &self.inner.opening
    }

    /// Returns the current status of this store.
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

    /// Waits until this store stops accepting writes, and returns the reason; returns `None` if it was closed. After
    /// a disk failure, only reopening the store shows what is recorded, so a program that does nothing else should
    /// exit. Blocks the thread; [`wait_until_stopped_async`](Self::wait_until_stopped_async) does not.
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

    /// Registers a callback for events of the index while the store is open. It first receives the events since the
    /// opening. A second call replaces the callback. Threads of the store call it, so it must be quick and must not
    /// use the store.
    pub fn watch_index(&self, watcher: impl Fn(&IndexEvent) + Send + 'static) {
        self.inner.engine.repair.watch(watcher);
    }

    /// Returns the hash of the first `entries` entries, as [`Status::chain`] reported it when the store had that
    /// many. Returns `None` if there are fewer entries, or if no commit ended there. The hash is read from the stored
    /// data. Compare it with one that was kept elsewhere to detect rewritten history. Blocks the thread;
    /// [`chain_at_async`](Self::chain_at_async) does not.
    ///
    /// ```
    /// let store = ledger_store::Store::in_memory();
    /// assert_eq!((store.opening().replayed, store.opening().was_damaged), (0, false));
    /// store.watch_index(|event| eprintln!("{event:?}"));
    /// store.ledger("main")?.transaction().posting("world", "users:1", 5, "USD").commit()?;
    /// store.flush();
    /// let status = store.status();
    /// assert_eq!(store.chain_at(status.entries)?, Some(status.chain));
    /// # Ok::<(), ledger_store::LedgerError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ReadError`] if that part of the journal cannot be read.
    pub fn chain_at(&self, entries: u64) -> Result<Option<String>, ReadError> {
        let engine = &self.inner.engine;
        let Some(last) = Position::new(entries) else {
            return Ok(Some(ChainHash::genesis(engine.identity.store).to_string()));
        };
        let chunk = engine.journal.read(last)?.filter(|chunk| chunk.next() == last.next());
        Ok(chunk.map(|chunk| chunk.chain().to_string()))
    }

    /// Returns a snapshot of the store: everything acknowledged so far, unchanging. Costs about as much as cloning an
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

    /// Calls `wake` after every commit, once readers can see it, until the returned value is dropped. The committing
    /// thread calls it, so it must be quick and must not use the store. Together with [`Snapshot::feed`] it makes a
    /// consumer that learns of new logs and never delays a writer:
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = ledger_store::Store::in_memory();
    /// // Capacity 1: one pending signal is enough for a consumer that is behind.
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
    ///     at = part.next; // store it durably once the logs are processed
    /// }
    /// # drop(watch);
    /// # Ok(())
    /// # }
    /// ```
    pub fn watch_commits(&self, wake: impl Fn() + Send + Sync + 'static) -> CommitWatch {
        self.inner.engine.watchers.add(Box::new(wake))
    }

    /// The time by this store's clock ([`Options::clock`]), which also gives insertion dates.
    pub fn now(&self) -> Timestamp {
        self.inner.engine.clock.now()
    }

    /// Returns a secret of this store with which a server authenticates cursors. It is the same each time the store is
    /// opened, and reveals nothing about the store's other secrets.
    ///
    /// ```
    /// # let home = tempfile::tempdir()?;
    /// # let path = home.path().join("data");
    /// use ledger_store::Store;
    /// let key = Store::open(&path)?.cursor_key();
    /// assert_eq!(Store::open(&path)?.cursor_key(), key);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cursor_key(&self) -> [u8; 32] {
        let secret = &self.inner.engine.identity.secret;
        let mut key = [0; 32];
        key[..16].copy_from_slice(&secret.digest(&[b"cursors 1"]));
        key[16..].copy_from_slice(&secret.digest(&[b"cursors 2"]));
        key
    }

    /// Returns the engine, for reads.
    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.inner.engine
    }

    /// Returns the threads for reads that must not block their callers.
    pub(crate) fn readers(&self) -> &Arc<Readers> {
        &self.inner.readers
    }

    /// Returns the directory, or `None` if the store is in memory.
    pub(crate) fn directory(&self) -> Option<&DataDirectory> {
        self.inner.running.directory()
    }

    /// Writes everything in memory to the index, so that the next opening has nothing to replay. Acknowledged writes
    /// are durable without it. Blocks the thread; [`flush_async`](Self::flush_async) does not.
    ///
    /// While the index cannot be written (see [`Status::index`]) this does nothing.
    pub fn flush(&self) {
        self.flush_all();
    }

    /// Flushes as [`Store::flush`] does. Returns whether the flush succeeded.
    pub(crate) fn flush_all(&self) -> bool {
        let engine = &self.inner.engine;
        engine.hashes.wait(engine.view().next, || engine.stopped().is_some() || engine.is_stopping());
        flushes::flush_pending(engine);
        flushes::wait_for_flushes(engine)
    }

    /// Completes all queued writes, flushes, and stops accepting writes, for all clones and ledgers of the store.
    /// Reads remain possible, so the directory stays locked until the last handle is dropped. Later writes fail with
    /// [`WriteError::Stopped`]. Dropping the last handle does the same. Closing twice is allowed. Blocks the thread;
    /// [`close_async`](Self::close_async) does not.
    ///
    /// A callback of [`Store::submit`] or [`Store::watch_commits`] that closes the store cannot wait for the thread
    /// that runs it. Then another thread closes the store, and the directory stays locked until that is done.
    ///
    /// # Errors
    ///
    /// [`WriteError::Stopped`] if an earlier commit had failed. The next opening then recovers the store.
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
