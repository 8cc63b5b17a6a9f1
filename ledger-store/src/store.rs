//! The store: a directory with a journal, an index of it, and the threads that keep both.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::thread::{JoinHandle, ThreadId};

use ledger_core::{BucketName, CompactString, LedgerName, LedgerOptions, Metadata};
use ledger_index::{IndexFile, IndexOptions};
use ledger_journal::disk::{Disk, RealDisk};
use ledger_journal::{
    ChainHash, DroppedTail, Identity, Journal, JournalError, MemoryJournal, Position, SegmentOptions,
};
use parking_lot::{Condvar, Mutex};

use crate::atomic::AtomicWrite;
use crate::directory::{DataDirectory, DirectoryError};
use crate::documents::{DocumentChange, DocumentVersion};
use crate::engine::{Answer, Done, Engine, IndexEvent, IndexStatus, LedgerEdit, Mark, Work};
use crate::error::{OpenError, ReadError, WriteError};
use crate::opening::{self, IndexHome, Opened, Rebuilt};
use crate::options::Options;
use crate::query::LedgerInfo;
use crate::read::Snapshot;
use crate::readers::Readers;
use crate::recovery;
use crate::room::Room;
use crate::submission::{Outcome, Submission};
use crate::verify;
use crate::watch::CommitWatch;

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

/// The parts that end when a store closes, in this order.
struct Running {
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// The threads, also while they are being joined.
    ids: Vec<ThreadId>,
    engine: Arc<Engine>,
    /// Holds the lock of the directory, so it comes last.
    directory: Option<DataDirectory>,
}

/// A report of the opening of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Entries of the journal that the index did not hold yet.
    pub replayed: u64,
    /// Why the index was built from nothing, if it was.
    pub rebuilt: Option<String>,
    /// A write at the end of the journal that was cut off, and dropped.
    pub dropped_tail: Option<DroppedTail>,
    /// Whether it was built because the old one was damaged. That one is kept as `index.redb.damaged`, and
    /// [`Store::verify`] reports it.
    pub was_damaged: bool,
}

impl Opening {
    fn new(replayed: u64, rebuilt: Option<Rebuilt>, dropped_tail: Option<DroppedTail>) -> Self {
        let was_damaged = rebuilt.as_ref().is_some_and(|rebuilt| rebuilt.is_damage);
        Self { replayed, rebuilt: rebuilt.map(|rebuilt| rebuilt.reason), was_damaged, dropped_tail }
    }
}

/// How a store stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// How many entries are in the journal and acknowledged.
    pub entries: u64,
    /// The hash of everything up to there; whoever keeps it can tell if history was rewritten.
    pub chain: String,
    /// How many commits this store has made since it was opened.
    pub commits: u64,
    /// Why it takes no more writes, if so.
    pub stopped: Option<String>,
    /// How its index stands, which is mended while the store runs.
    pub index: IndexStatus,
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
        verify::clear_workspace(&directory).map_err(|reason| OpenError::Io { reason })?;
        let home = IndexHome::new(&directory, shares);
        let Opened { index, recovered, rebuilt } = opening::open(&directory, &home, &journal, shares)?;
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
        Self::start(Self::engine_in_memory(options), None, Opening::new(0, None, None))
    }

    /// The engine of a store in memory, before its threads are started.
    pub(crate) fn engine_in_memory(options: &Options) -> Engine {
        let identity = Identity::random().expect("the system has random numbers");
        let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::new(identity.clone()));
        Self::engine_over(journal, identity, options)
    }

    /// The engine of a store with an empty journal and an index in memory, before its threads are started.
    pub(crate) fn engine_over(journal: Arc<dyn Journal>, identity: Identity, options: &Options) -> Engine {
        let shares = options.shares();
        let index_options = IndexOptions { cache_bytes: shares.index_cache, filter_bytes: shares.filters };
        let index = IndexFile::create(redb::backends::InMemoryBackend::new(), index_options)
            .expect("memory takes what is written");
        let recovered = recovery::recover(&journal, &index, &identity, shares, Position::FIRST)
            .expect("there is nothing to recover");
        Engine::new(journal, index, identity, options, recovered)
    }

    fn start(engine: Engine, directory: Option<DataDirectory>, opening: Opening) -> Self {
        let engine = Arc::new(engine);
        let mut threads = Vec::new();
        let mut spawn = |name: &'static str, run: fn(&Engine)| {
            let engine = engine.clone();
            let run = move || engine.run_thread(name, run);
            let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run);
            threads.push(thread.expect("the system has a thread to give"));
        };
        spawn("ledger-writer", Engine::write_loop);
        spawn("ledger-committer", Engine::commit_loop);
        spawn("ledger-flusher", Engine::flush_loop);
        spawn("ledger-space", Engine::space_loop);
        spawn("ledger-merger", Engine::merge_loop);
        spawn("ledger-hasher", Engine::hash_loop);
        spawn("ledger-mender", Engine::mend_loop);
        let ids = threads.iter().map(|thread| thread.thread().id()).collect();
        let running = Running { threads: Mutex::new(threads), ids, engine: engine.clone(), directory };
        let inner = Inner { engine, running: Arc::new(running), readers: Arc::default(), opening };
        Self { inner: Arc::new(inner) }
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

    /// Creates a ledger. It is on disk when this returns.
    ///
    /// # Errors
    ///
    /// [`WriteError::LedgerExists`], and what any write may meet.
    pub fn create_ledger(&self, name: LedgerName, options: LedgerOptions) -> Result<LedgerInfo, WriteError> {
        self.ledger_work(Work::CreateLedger(name, options))
    }

    /// Sets metadata keys of a ledger; others stay.
    ///
    /// # Errors
    ///
    /// [`WriteError::LedgerNotFound`], and what any write may meet.
    pub fn set_ledger_metadata(&self, name: &LedgerName, metadata: Metadata) -> Result<(), WriteError> {
        self.ledger_work(Work::EditLedger(name.clone(), LedgerEdit::Set(metadata))).map(drop)
    }

    /// Removes a metadata key of a ledger, if it has it.
    ///
    /// # Errors
    ///
    /// [`WriteError::LedgerNotFound`], and what any write may meet.
    pub fn delete_ledger_metadata(&self, name: &LedgerName, key: &str) -> Result<(), WriteError> {
        let edit = LedgerEdit::Delete(CompactString::new(key));
        self.ledger_work(Work::EditLedger(name.clone(), edit)).map(drop)
    }

    /// Changes documents: all or none, in one commit. They are on disk when this returns, with their versions in
    /// the order of the changes.
    ///
    /// # Errors
    ///
    /// [`WriteError::Document`] if one does not stand as expected, a unique key is taken, or a limit is exceeded;
    /// and what any write may meet.
    pub fn change_documents(&self, changes: Vec<DocumentChange>) -> Result<Vec<DocumentVersion>, WriteError> {
        let bytes = changes.iter().map(DocumentChange::bytes).sum();
        match self.run(Work::ChangeDocuments(changes), bytes)? {
            Answer::Documents(versions) => Ok(versions),
            Answer::Outcomes(_)
            | Answer::Ledger(_)
            | Answer::Imported(_)
            | Answer::Marked(_)
            | Answer::Removed(_) => {
                unreachable!("versions are the answer to changes of documents")
            }
        }
    }

    /// Replaces the mapping of a ledger: its contracts, as JSON text, which is kept as it is. Whoever wants
    /// them to be asked puts them into the rules of a command.
    ///
    /// # Errors
    ///
    /// [`WriteError::LedgerNotFound`], and what any write may meet.
    pub fn set_mapping(&self, name: &LedgerName, text: String) -> Result<(), WriteError> {
        self.ledger_work(Work::EditLedger(name.clone(), LedgerEdit::Mapping(text))).map(drop)
    }

    /// Deletes a bucket: its ledgers are found by nobody from now on, and keep their names. It can be
    /// [restored](Store::restore_bucket). A bucket without ledgers is deleted by this already.
    ///
    /// Many ledgers are marked some thousand at a time. Whoever is interrupted deletes again.
    ///
    /// # Errors
    ///
    /// Those of any write.
    pub fn delete_bucket(&self, bucket: &BucketName) -> Result<(), WriteError> {
        self.mark_bucket(bucket, Mark::Deleted)
    }

    /// Takes the deletion of a bucket back.
    ///
    /// # Errors
    ///
    /// [`WriteError::BucketRemoved`], and what any write may meet.
    pub fn restore_bucket(&self, bucket: &BucketName) -> Result<(), WriteError> {
        self.mark_bucket(bucket, Mark::Restored)
    }

    fn mark_bucket(&self, bucket: &BucketName, mark: Mark) -> Result<(), WriteError> {
        let mut next = Some(1);
        while let Some(first) = next {
            next = match self.run(Work::MarkBucket { bucket: bucket.clone(), first, mark }, 256)? {
                Answer::Marked(next) => next,
                Answer::Outcomes(_)
                | Answer::Ledger(_)
                | Answer::Documents(_)
                | Answer::Imported(_)
                | Answer::Removed(_) => {
                    unreachable!("how far it got is the answer to the marking of a bucket")
                }
            };
        }
        Ok(())
    }

    fn ledger_work(&self, work: Work) -> Result<LedgerInfo, WriteError> {
        match self.run(work, 256)? {
            Answer::Ledger(info) => Ok(info),
            Answer::Outcomes(_)
            | Answer::Documents(_)
            | Answer::Imported(_)
            | Answer::Marked(_)
            | Answer::Removed(_) => {
                unreachable!("a ledger is the answer to work on one")
            }
        }
    }

    /// Executes commands; it is all on disk when this returns. One outcome for each request, in order.
    ///
    /// # Errors
    ///
    /// See [`WriteError`]: but for an unknown outcome, nothing happened.
    pub fn apply(&self, mut submission: Submission) -> Result<Vec<Outcome>, WriteError> {
        submission.hash_requests();
        let bytes = submission.bytes();
        let programs = self.inner.engine.scripts.of(&submission);
        match self.run(Work::Apply(submission, programs), bytes)? {
            Answer::Outcomes(outcomes) => Ok(outcomes),
            Answer::Ledger(_)
            | Answer::Documents(_)
            | Answer::Imported(_)
            | Answer::Marked(_)
            | Answer::Removed(_) => {
                unreachable!("outcomes are the answer to a submission")
            }
        }
    }

    /// Changes documents and executes commands: everything is recorded in one commit, or nothing is. A crash never
    /// leaves the documents without the transactions, or the other way round. Everything is on disk when this returns.
    ///
    /// The answer holds one outcome for each command, in order. If the rules refuse a command, nothing is recorded. The
    /// store decides the other commands all the same, so the answer names every refusal; commands without one are
    /// [`Outcome::Cancelled`].
    ///
    /// ```
    /// use ledger_core::{Amount, AccountAddress, Asset, Command, CreateTransaction, LedgerName, Posting};
    /// use ledger_store::{
    ///     AtomicWrite, Collection, DocumentAction, DocumentChange, Expected, LedgerCommand, Outcome, Store,
    /// };
    ///
    /// const PAYMENTS: Collection = Collection::new(100).unwrap();
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = Store::in_memory();
    /// let ledger = LedgerName::parse("main")?;
    /// store.create_ledger(ledger.clone(), Default::default())?;
    /// let received = Posting {
    ///     source: AccountAddress::world(),
    ///     destination: AccountAddress::parse("users:001")?,
    ///     amount: Amount::from(100_u64),
    ///     asset: Asset::parse("USD/2")?,
    /// };
    /// let command = Command::CreateTransaction(CreateTransaction::of(vec![received].into()));
    /// let outcomes = store.write_atomically(AtomicWrite {
    ///     documents: vec![DocumentChange {
    ///         collection: PAYMENTS,
    ///         key: b"payment-1".to_vec(),
    ///         expected: Expected::Absent, // a repetition is refused, and makes no second transaction
    ///         action: DocumentAction::Put { value: b"received".to_vec(), keys: vec![] },
    ///     }],
    ///     commands: vec![LedgerCommand { ledger, request: command.into() }],
    /// })?;
    /// assert!(matches!(outcomes[..], [Outcome::Done(_)]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`WriteError::Document`] if one document does not stand as expected, a unique key is taken, or a limit is
    /// exceeded; [`WriteError::LedgerNotFound`]; and what any write may meet.
    pub fn write_atomically(&self, mut write: AtomicWrite) -> Result<Vec<Outcome>, WriteError> {
        write.commands.iter_mut().for_each(|command| command.request.fill_in_hash());
        let bytes = write.bytes();
        let requests = write.commands.iter().map(|command| &command.request);
        let programs = self.inner.engine.scripts.of_requests(requests);
        match self.run(Work::WriteAtomically(write, programs), bytes)? {
            Answer::Outcomes(outcomes) => Ok(outcomes),
            Answer::Ledger(_)
            | Answer::Documents(_)
            | Answer::Imported(_)
            | Answer::Marked(_)
            | Answer::Removed(_) => {
                unreachable!("outcomes are the answer to an atomic write")
            }
        }
    }

    /// Executes commands without blocking; `done` is called once with the answer, on another thread or on this
    /// one, after everything is on disk. It must not block.
    pub fn submit(
        &self,
        mut submission: Submission,
        done: impl FnOnce(Result<Vec<Outcome>, WriteError>) + Send + 'static,
    ) {
        submission.hash_requests();
        let bytes = submission.bytes();
        let programs = self.inner.engine.scripts.of(&submission);
        let done = move |answer: Result<Answer, WriteError>| {
            done(answer.map(|answer| match answer {
                Answer::Outcomes(outcomes) => outcomes,
                Answer::Ledger(_)
                | Answer::Documents(_)
                | Answer::Imported(_)
                | Answer::Marked(_)
                | Answer::Removed(_) => {
                    unreachable!("outcomes are the answer to a submission")
                }
            }));
        };
        self.inner.engine.submit(Work::Apply(submission, programs), bytes, Done::new(done));
    }

    /// Creates a ledger without blocking, as [`Store::submit`].
    pub(crate) fn submit_ledger(
        &self,
        name: LedgerName,
        options: LedgerOptions,
        done: impl FnOnce(Result<(), WriteError>) + Send + 'static,
    ) {
        let done = move |answer: Result<Answer, WriteError>| done(answer.map(drop));
        self.inner.engine.submit(Work::CreateLedger(name, options), 256, Done::new(done));
    }

    pub(crate) fn run(&self, work: Work, bytes: usize) -> Result<Answer, WriteError> {
        let slot = Arc::new(Slot::default());
        let filled = slot.clone();
        let done = move |answer| {
            *filled.answer.lock() = Some(answer);
            filled.ready.notify_one();
        };
        self.inner.engine.submit_here(work, bytes, Done::new(done));
        let mut answer = slot.answer.lock();
        loop {
            if let Some(answer) = answer.take() {
                return answer;
            }
            slot.ready.wait(&mut answer);
        }
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
        self.inner.running.directory.as_ref()
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
        self.inner.close();
        match self.inner.engine.stopped() {
            None => Ok(()),
            Some(reason) => Err(WriteError::Stopped { reason }),
        }
    }
}

#[derive(Default)]
struct Slot {
    answer: Mutex<Option<Result<Answer, WriteError>>>,
    ready: Condvar,
}

impl Running {
    /// Ends all threads, unless somebody has. No thread of the store may call it: it would wait for itself.
    fn close(&self) {
        let mut threads = self.threads.lock();
        if threads.is_empty() {
            return;
        }
        self.engine.close_queue();
        let mut threads = threads.drain(..);
        // In the order in which they were started: the writer, then who commits what it decides.
        let _ = threads.next().map(JoinHandle::join);
        self.engine.close_handover();
        let _ = threads.next().map(JoinHandle::join);
        if self.engine.stopped().is_none() {
            self.engine.outlive(Engine::flush_what_gathered);
        }
        self.engine.stop_background();
        for thread in threads {
            let _ = thread.join();
        }
        // A store that stopped by itself leaves the journal as one that was not closed: the next opening then trusts
        // nothing that it does not find on the disk.
        if self.engine.stopped().is_none()
            && let Err(error) = self.engine.journal.close()
        {
            self.engine.stop_writing(&error.to_string());
        }
    }
}

impl Inner {
    /// Closes the store and waits for it. A thread of the store, as in a callback, leaves that to a thread of its own:
    /// the store closes, and gives back its directory, soon after.
    fn close(&self) {
        if !self.running.ids.contains(&std::thread::current().id()) {
            return self.running.close();
        }
        self.engine.close_queue();
        let running = self.running.clone();
        let closer = std::thread::Builder::new().name("ledger-closer".to_owned());
        if closer.spawn(move || running.close()).is_err() {
            // The threads are left running, so the directory must stay locked until the process ends.
            std::mem::forget(self.running.clone());
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.close();
    }
}

impl From<DirectoryError> for OpenError {
    fn from(error: DirectoryError) -> Self {
        match error {
            DirectoryError::InUse { path, holder } => Self::Locked { path, holder },
            DirectoryError::NotAStore { path, found } => {
                Self::NotAStore { path, reason: format!("it has {found}") }
            }
            DirectoryError::NewerFormat { found, supported, .. } => Self::NewerFormat { found, supported },
            error @ (DirectoryError::Missing { .. } | DirectoryError::Damaged { .. }) => {
                Self::Damaged { reason: error.to_string() }
            }
            DirectoryError::Journal(error) => error.into(),
            error @ DirectoryError::Storage { .. } => Self::Io { reason: error.to_string() },
        }
    }
}

impl From<JournalError> for OpenError {
    fn from(error: JournalError) -> Self {
        match error {
            error @ JournalError::Storage { .. } => Self::Io { reason: error.to_string() },
            error => Self::Damaged { reason: error.to_string() },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::submission::{Atomicity, Detail, Mode};

    fn main_ledger() -> LedgerName {
        LedgerName::parse("main").expect("a name")
    }

    fn nothing() -> Submission {
        Submission {
            ledger: main_ledger(),
            requests: Vec::new(),
            atomicity: Atomicity::Independent,
            mode: Mode::Commit,
            detail: Detail::Ids,
        }
    }

    /// Opens the store as soon as its directory is free.
    fn open_when_free(path: &Path) -> Store {
        let until = Instant::now() + Duration::from_mins(1);
        loop {
            match Store::open(path) {
                Ok(store) => return store,
                Err(OpenError::Locked { .. }) if Instant::now() < until => std::thread::yield_now(),
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn a_callback_may_drop_the_last_store() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("data");
        for _ in 0..8 {
            let store = open_when_free(&path);
            let engine = Arc::downgrade(store.engine());
            let last = store.clone();
            let (drop_it, dropping) = mpsc::channel::<()>();
            let (told, dropped) = mpsc::channel();
            store.submit(nothing(), move |_| {
                dropping.recv().expect("the test tells when");
                drop(last);
                told.send(()).expect("the test waits");
            });
            drop(store);
            drop_it.send(()).expect("the callback waits");
            dropped.recv().expect("the callback returns");
            let again = open_when_free(&path);
            assert!(engine.upgrade().is_none(), "the lock is free, and a thread of the store is left");
            again.close().expect("nothing has failed");
        }
    }

    #[test]
    fn a_callback_may_close_the_store() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("data");
        let store = Store::open(&path).expect("it opens");
        let engine = Arc::downgrade(store.engine());
        let closing = store.clone();
        let (told, closed) = mpsc::channel();
        store.submit(nothing(), move |_| told.send(closing.close()).expect("the test waits"));
        closed.recv().expect("the callback returns").expect("nothing has failed");
        // This waits for the other one.
        store.close().expect("nothing has failed");
        let refused = store.create_ledger(main_ledger(), LedgerOptions::default());
        assert!(matches!(refused, Err(WriteError::Stopped { .. })), "{refused:?}");
        drop(store);
        let again = open_when_free(&path);
        assert!(engine.upgrade().is_none(), "the lock is free, and a thread of the store is left");
        drop(again);
    }
}
