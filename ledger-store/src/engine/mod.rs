//! The engine: queue, writer, flusher, merger and hasher around one journal and one index, and who mends the index.
//!
//! A write goes through two stages. Under the *decider* lock commands are taken from the queue and decided,
//! each on the state that the one before left. Under the *committer* lock their entries are made durable and
//! then published. Whoever decides takes the committer before it lets go of the decider, so batches reach
//! the journal in the order in which they were decided, and while one is flushed the next is decided. Where much
//! waits each stage has a thread of its own; where little does, who submits goes through both.

mod atomic;
mod background;
mod chains;
mod commit;
mod decide;
mod flushes;
mod hashing;
mod mending;
mod pace;
mod panics;
mod pending;
mod rebuild;
mod retry;
#[cfg(test)]
mod tests;
mod written;

use std::collections::{BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use compact_str::CompactString;
use ledger_core::{BucketName, LedgerName, LedgerOptions, Metadata};
use ledger_index::IndexFile;
use ledger_journal::{Identity, Journal};
use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};

use self::commit::{DecidedBatch, Handover, refuse};
use self::flushes::Flushes;
use self::mending::Mending;
pub use self::mending::{IndexEvent, IndexStatus};
use self::panics::{FAULT, StopOnPanic};
use crate::atomic::AtomicWrite;
use crate::documents::{DocumentChange, DocumentVersion};
use crate::error::{ReadError, WriteError};
use crate::fingerprint::Fingerprints;
use crate::hashes::Hashes;
use crate::imported::{Imported, ImportedLog};
use crate::opening::IndexHome;
use crate::options::{Options, Shares, TimeSource};
use crate::projection::PieceBuilder;
use crate::query::LedgerInfo;
use crate::read::{LedgerReader, Session};
use crate::recovery::Recovered;
use crate::room::Room;
use crate::scripts::{Programs, Scripts};
use crate::submission::{Mode, Outcome, Submission};
use crate::view::{Directory, LedgerHead, View};
use crate::watch::Watchers;
use crate::writer::{Batch, State};

/// Something to write.
pub(crate) enum Work {
    Apply(Submission, Programs),
    CreateLedger(LedgerName, LedgerOptions),
    EditLedger(LedgerName, LedgerEdit),
    /// Marks the ledgers of a bucket, from this number on, some at a time.
    MarkBucket {
        bucket: BucketName,
        first: u32,
        mark: Mark,
    },
    /// Removes for good what has been deleted for so long, some ledgers at a time.
    RemoveDeleted {
        retention: Duration,
    },
    ChangeDocuments(Vec<DocumentChange>),
    /// Changes of documents and commands on ledgers, recorded together.
    WriteAtomically(AtomicWrite, Programs),
    /// Logs for a ledger whose next log was this one when their hashes were looked at.
    Import(LedgerName, u64, Vec<ImportedLog>),
}

impl Work {
    /// How many commands it is.
    fn commands(&self) -> usize {
        match self {
            Self::Apply(submission, _) => submission.requests.len(),
            Self::CreateLedger(..)
            | Self::EditLedger(..)
            | Self::MarkBucket { .. }
            | Self::RemoveDeleted { .. } => 1,
            Self::ChangeDocuments(changes) => changes.len(),
            Self::WriteAtomically(write, _) => write.documents.len() + write.commands.len(),
            Self::Import(_, _, logs) => logs.len(),
        }
    }

    /// Whether nothing of it is kept.
    const fn writes_nothing(&self) -> bool {
        matches!(self, Self::Apply(Submission { mode: Mode::DryRun, .. }, _))
    }

    /// Whether it is done on a disk that is nearly full: it writes nothing, or is how room is made.
    const fn needs_no_room(&self) -> bool {
        match self {
            Self::Apply(..) => self.writes_nothing(),
            Self::MarkBucket { .. } | Self::RemoveDeleted { .. } => true,
            Self::CreateLedger(..)
            | Self::EditLedger(..)
            | Self::ChangeDocuments(_)
            | Self::WriteAtomically(..)
            | Self::Import(..) => false,
        }
    }
}

/// A change of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Its ledgers are found by nobody.
    Deleted,
    /// They are found again.
    Restored,
}

/// A change of what a ledger is beside its log.
pub(crate) enum LedgerEdit {
    /// Its contracts, as JSON text.
    Mapping(String),
    Set(Metadata),
    Delete(CompactString),
}

/// The answer to [`Work`].
pub(crate) enum Answer {
    Outcomes(Vec<Outcome>),
    Ledger(LedgerInfo),
    Documents(Vec<DocumentVersion>),
    Imported(Imported),
    /// The number of the next ledger to look at, if there are more.
    Marked(Option<u32>),
    /// The ledgers that were removed; none if none were due.
    Removed(Vec<LedgerInfo>),
}

type Reply = Box<dyn FnOnce(Result<Answer, WriteError>) + Send>;

/// A caller that waits for an answer. It never waits for ever: dropped without one, as a panic does, it tells that the
/// outcome is unknown.
pub(crate) struct Done(Option<Reply>);

impl Done {
    pub(crate) fn new(reply: impl FnOnce(Result<Answer, WriteError>) + Send + 'static) -> Self {
        Self(Some(Box::new(reply)))
    }

    fn tell(mut self, answer: Result<Answer, WriteError>) {
        self.reply(|| answer);
    }

    /// A panic in the callback is caught: the write stands as it is, and other callers get their answers too.
    fn reply(&mut self, answer: impl FnOnce() -> Result<Answer, WriteError>) {
        if let Some(reply) = self.0.take() {
            let _ = catch_unwind(AssertUnwindSafe(|| reply(answer())));
        }
    }
}

impl Drop for Done {
    fn drop(&mut self) {
        self.reply(|| Err(WriteError::OutcomeUnknown { reason: FAULT.to_owned() }));
    }
}

struct Job {
    work: Work,
    bytes: usize,
    done: Done,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    bytes: usize,
    closed: bool,
    is_writer_idle: bool,
}

/// Work that is not done, and why.
type TurnedAway = (Job, WriteError);

/// A batch takes no more commands when it holds this many bytes of them.
const BATCH_BYTES: usize = 2 << 20;
/// Of what waits, about so much is taken at a time; with less waiting, nothing is decided ahead of the flush that is
/// under way. It is as much as stays in a processor's own cache until it is answered.
const PART_BYTES: usize = 512 << 10;
/// A flush that takes longer is shared by more than a part.
const FLUSH_PATIENCE: Duration = Duration::from_millis(2);

/// Everything behind a store.
pub(crate) struct Engine {
    pub(crate) journal: Arc<dyn Journal>,
    index: RwLock<IndexFile>,
    pub(crate) identity: Identity,
    pub(crate) fingerprints: Fingerprints,
    pub(crate) clock: Arc<dyn TimeSource>,
    /// The numbers of ledgers by name, which the writer fills.
    pub(crate) directory: Directory,
    pub(crate) shares: Shares,
    flush_interval: Duration,
    view: RwLock<Arc<View>>,
    decider: Mutex<State>,
    committer: Arc<Mutex<()>>,
    handover: Handover,
    queue: Mutex<Queue>,
    queued: Condvar,
    room: Condvar,
    /// Held while a snapshot of the index becomes part of the view, so that none replaces a newer one.
    install: Mutex<()>,
    flushes: Mutex<Flushes>,
    flush_wanted: Condvar,
    flush_done: Condvar,
    merge_wanted: Condvar,
    merge_lock: Mutex<bool>,
    space_wanted: Condvar,
    space_lock: Mutex<()>,
    stopping: Arc<AtomicBool>,
    stopped: Mutex<Option<String>>,
    /// Told when `stopped` is set, and when the threads are to end.
    stop_told: Condvar,
    pub(crate) scripts: Scripts,
    pub(crate) hashes: Arc<Hashes>,
    pub(crate) commits: AtomicU64,
    pub(crate) watchers: Arc<Watchers>,
    /// `None` without a disk.
    disk_room: Option<Room>,
    /// Where the index is, so that it can be opened anew and replaced; `None` without a disk.
    home: Option<IndexHome>,
    pub(crate) mending: Arc<Mending>,
    /// Held by those who need the journal to stay whole, as it does but for the removal of sections: the one
    /// verification at work, who removes sections, and who builds a new index.
    pub(crate) journal_lock: Mutex<()>,
}

impl Engine {
    pub(crate) fn new(
        journal: Arc<dyn Journal>,
        index: IndexFile,
        identity: Identity,
        options: &Options,
        recovered: Recovered,
    ) -> Self {
        let Recovered { mut state, view, hashed, .. } = recovered;
        state.enforcement = options.schema_enforcement;
        let hashes = Arc::new(Hashes::new(hashed, options.shares().hash_texts));
        Self {
            journal,
            index: RwLock::new(index),
            fingerprints: Fingerprints::new(&identity.secret),
            identity,
            clock: options.clock.clone(),
            directory: state.directory.clone(),
            shares: options.shares(),
            flush_interval: options.flush_interval,
            view: RwLock::new(Arc::new(view)),
            decider: Mutex::new(state),
            committer: Arc::default(),
            handover: Handover::default(),
            queue: Mutex::default(),
            queued: Condvar::new(),
            room: Condvar::new(),
            install: Mutex::new(()),
            flushes: Mutex::default(),
            flush_wanted: Condvar::new(),
            flush_done: Condvar::new(),
            merge_wanted: Condvar::new(),
            merge_lock: Mutex::new(false),
            space_wanted: Condvar::new(),
            space_lock: Mutex::new(()),
            stopping: Arc::default(),
            stopped: Mutex::new(None),
            stop_told: Condvar::new(),
            scripts: Scripts::new(options.shares().scripts),
            hashes,
            commits: AtomicU64::new(0),
            watchers: Arc::default(),
            disk_room: None,
            home: None,
            mending: Arc::default(),
            journal_lock: Mutex::new(()),
        }
    }

    /// The same on a disk: with an eye on the room there, and with an index that is mended there.
    pub(crate) fn on_disk(self, room: Room, home: IndexHome) -> Self {
        let mending = self.mending.clone();
        self.index().tell_faults(move || mending.want());
        Self { disk_room: Some(room), home: Some(home), ..self }
    }

    /// The view that is acknowledged now.
    pub(crate) fn view(&self) -> Arc<View> {
        self.view.read().clone()
    }

    /// Why no more is written, if so.
    pub(crate) fn stopped(&self) -> Option<String> {
        self.stopped.lock().clone()
    }

    /// Whether the threads behind the writer are to end, or have ended.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    pub(crate) fn stop_writing(&self, reason: &str) {
        self.stopped.lock().get_or_insert_with(|| reason.to_owned());
        self.stop_told.notify_all();
    }

    /// Waits until no more is written: why, or `None` if that is since the store is closing.
    pub(crate) fn wait_until_stopped(&self) -> Option<String> {
        let mut stopped = self.stopped.lock();
        while stopped.is_none() && !self.is_stopping() {
            self.stop_told.wait(&mut stopped);
        }
        stopped.clone()
    }

    // The queue.

    /// Queues work and leaves it to the writers. `done` is called once, by the thread that committed it; with
    /// [`WriteError::Busy`] at once if there is no room.
    pub(crate) fn submit(&self, work: Work, bytes: usize, done: Done) {
        self.push(Job { work, bytes, done }, false);
        self.wake_writer();
    }

    /// Queues work, waiting for room, and commits it on the calling thread if nobody else writes just now:
    /// that saves handing it over. Else the writers do.
    pub(crate) fn submit_here(&self, work: Work, bytes: usize, done: Done) {
        self.push(Job { work, bytes, done }, true);
        match self.decider.try_lock() {
            Some(state) => self.lead(state, false),
            None => self.wake_writer(),
        }
    }

    fn wake_writer(&self) {
        if self.queue.lock().is_writer_idle {
            self.queued.notify_one();
        }
    }

    fn push(&self, job: Job, wait: bool) {
        let mut queue = self.queue.lock();
        loop {
            if queue.closed {
                drop(queue);
                let reason = self.stopped().unwrap_or_else(|| "it is closing".to_owned());
                return job.done.tell(Err(WriteError::Stopped { reason }));
            }
            if queue.bytes == 0 || queue.bytes + job.bytes <= self.shares.queue {
                break;
            }
            if !wait {
                drop(queue);
                return job.done.tell(Err(WriteError::Busy));
            }
            self.room.wait(&mut queue);
        }
        queue.bytes += job.bytes;
        queue.jobs.push_back(job);
    }

    /// Runs the writer thread until the queue is closed and empty.
    pub(crate) fn write_loop(&self) {
        loop {
            {
                let mut queue = self.queue.lock();
                while queue.jobs.is_empty() {
                    if queue.closed {
                        return;
                    }
                    queue.is_writer_idle = true;
                    self.queued.wait(&mut queue);
                    queue.is_writer_idle = false;
                }
            }
            self.outlive(|engine| engine.lead(engine.decider.lock(), true));
        }
    }

    /// The next part of what waits.
    fn take_jobs(&self) -> Vec<Job> {
        let mut queue = self.queue.lock();
        let mut taken = 0;
        let mut count = 0;
        for job in &queue.jobs {
            if taken >= PART_BYTES {
                break;
            }
            taken += job.bytes;
            count += 1;
        }
        let jobs: Vec<Job> = queue.jobs.drain(..count).collect();
        queue.bytes -= taken;
        drop(queue);
        self.room.notify_all();
        jobs
    }

    // The writer.

    /// Takes what waits, decides it, makes it durable, publishes it, answers. The writer leaves what comes after the
    /// deciding to the committer, where much waits.
    fn lead(&self, mut state: MutexGuard<'_, State>, is_writer: bool) {
        // Before the state is let go of: nobody decides upon what a panic left half done.
        let _stopping = StopOnPanic::new(self);
        // A short queue gains nothing from being decided while another batch is flushed: what comes until then
        // would need a flush of its own. So the turn is awaited first, and then all that came is taken.
        let is_short = self.queue.lock().bytes < PART_BYTES;
        let mut turn = is_short.then(|| self.committer.lock_arc());
        let jobs = self.take_jobs();
        if jobs.is_empty() {
            return;
        }
        if let Some(reason) = self.stopped() {
            drop((turn, state));
            for job in jobs {
                job.done.tell(Err(WriteError::Stopped { reason: reason.clone() }));
            }
            return;
        }
        let (mut jobs, mut turned_away) = self.turn_away(jobs, &state);
        if jobs.is_empty() {
            drop((turn, state));
            return refuse(turned_away);
        }
        self.make_room(&mut state);
        let now = self.clock.now();
        let mut commands = jobs.iter().map(|job| job.work.commands()).sum();
        let rows = PieceBuilder::with_room(commands, state.last_rows, state.last_commands);
        let mut batch = Batch::new(state.next, state.flush, rows, self.hashes.feed.room());
        let mut answers = Vec::with_capacity(jobs.len());
        let mut bytes = 0;
        loop {
            for job in jobs {
                bytes += job.bytes;
                let answer = self.decide(&mut state, job.work, now, &mut batch, turn.is_some());
                if let Err(WriteError::Read(error)) = &answer
                    && state.is_half_changed()
                {
                    // Nothing of this batch may reach the journal: the store must be opened again. A read that failed
                    // before anything was changed concerns nobody else.
                    self.stop_writing(&error.to_string());
                }
                answers.push((job.done, answer));
            }
            // While a slow disk flushes the batch before, this one may as well take what came meanwhile.
            turn = turn.or_else(|| self.committer.try_lock_arc_for(FLUSH_PATIENCE));
            if turn.is_some() || bytes >= BATCH_BYTES {
                break;
            }
            let away;
            (jobs, away) = self.turn_away(self.take_jobs(), &state);
            turned_away.extend(away);
            if jobs.is_empty() {
                break;
            }
            commands += jobs.iter().map(|job| job.work.commands()).sum::<usize>();
        }
        #[cfg(debug_assertions)]
        if self.stopped().is_none() {
            let decided = state.next.get() - batch.first.get();
            assert_eq!(batch.chunks.entries(), decided, "the batch holds the entries that the state has");
        }
        batch.submitted = bytes;
        (state.last_rows, state.last_commands) = (batch.rows.mark(), commands);
        let heads: Vec<(u32, LedgerHead)> =
            batch.ledgers.iter().map(|ledger| (*ledger, state.ledger(*ledger).head.clone())).collect();
        let turn = turn.unwrap_or_else(|| self.committer.lock_arc());
        drop(state);
        let decided = DecidedBatch { turn, batch, heads, answers, turned_away };
        // Who decides one long batch after the other stays at it: what the state is made of lies in the cache of the
        // processor that decides.
        if is_writer && !is_short {
            self.hand_over(decided);
        } else {
            self.finish(decided);
        }
    }

    /// Splits jobs into those that can be done, and those that the disk or the memory has no room for.
    fn turn_away(&self, jobs: Vec<Job>, state: &State) -> (Vec<Job>, Vec<TurnedAway>) {
        let (why, may_stay): (_, fn(&Work) -> bool) = match self.lack_of_memory(state) {
            Some(why) => (why, Work::writes_nothing),
            None => match self.lack_of_room() {
                Some(why) => (why, Work::needs_no_room),
                None => return (jobs, Vec::new()),
            },
        };
        let (kept, away): (Vec<Job>, Vec<Job>) = jobs.into_iter().partition(|job| may_stay(&job.work));
        (kept, away.into_iter().map(|job| (job, why.clone())).collect())
    }

    /// Why the disk takes no more, if so: asked before anything is decided, so that nothing has happened.
    fn lack_of_room(&self) -> Option<WriteError> {
        if self.disk_room.as_ref().is_some_and(Room::is_low) {
            return Some(WriteError::NoRoom);
        }
        let error = self.journal.make_room().err()?;
        Some(if error.is_want_of_room() {
            WriteError::NoRoom
        } else {
            WriteError::Storage { reason: error.to_string() }
        })
    }

    /// The sections of the journal all of whose ledgers are removed.
    pub(crate) fn removed_sections(&self) -> BTreeSet<u32> {
        self.decider.lock().removed_sections()
    }

    /// Fails one of the next reads on which the writer decides, counted from 1; none for 0. Says whether the one that
    /// was to fail before is still to come.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn fail_decision_read(&self, nth: u64) -> bool {
        self.decider.lock().fail_read.replace(nth) > 0
    }

    /// Compares the writer's counts of bytes with what it holds.
    ///
    /// # Errors
    ///
    /// The difference.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn check_bytes(&self) -> Result<(), String> {
        self.decider.lock().check_bytes()
    }

    // Closing.

    /// Takes no more work.
    pub(crate) fn close_queue(&self) {
        self.queue.lock().closed = true;
        self.queued.notify_all();
        self.room.notify_all();
    }

    /// Ends the flusher, after what it was asked for, and the merger.
    pub(crate) fn stop_background(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        drop(self.stopped.lock());
        self.stop_told.notify_all();
        self.flushes.lock().stop = true;
        self.flush_wanted.notify_all();
        drop(self.merge_lock.lock());
        self.merge_wanted.notify_all();
        drop(self.space_lock.lock());
        self.space_wanted.notify_all();
        self.hashes.feed.wake();
        self.mending.want();
    }

    /// The reader for questions about a ledger at a moment.
    fn session(&self, ledger: u32, view: &Arc<View>) -> Result<Session, ReadError> {
        let reader = LedgerReader::new(self.journal.clone(), view.clone(), ledger);
        let head = reader.head()?.clone();
        Ok(Session::new(reader, head, self.fingerprints.clone(), self.hashes.clone()))
    }
}
