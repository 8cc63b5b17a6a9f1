//! The journal on disk: a sequence of segments, of which the last receives new entries.
//!
//! Starting a new segment takes three steps, each durable before the next: the new file gets its name, the old segment
//! is sealed, and the new one receives its first append. [`super::opening`] completes these steps after a power cut.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};

use super::error::is_out_of_space;
use super::frame::{FRAMES_START, Kind};
use super::head_file::{HeadFile, HeadRecord};
use super::journal::{check_append, check_copies};
use super::opening::Opened;
use super::options::SegmentOptions;
use super::prepared::{Prepared, prepare};
use super::recent::RecentChunks;
use super::record::path_of;
use super::recover::DroppedTail;
use super::segment::{JournalLocation, Segment, storage};
use super::tail::{ChunkFrame, Tail};
use super::{
    ChainHash, Chunk, ChunkDraft, Freed, Head, Identity, Journal, JournalError, JournalReader, Position,
    Secret, SectionId,
};
use crate::disk::{BLOCK_BYTES, BootId, Disk, Space, temporary_name};

/// Maximum size of appends for which the space is written as zeros beforehand. Larger appends, of 1 MiB, are twice as
/// fast without; `journal_rate` measures it.
const SMALL_APPEND_BYTES: u64 = 128 << 10;

/// A journal in segment files.
#[derive(Debug)]
pub struct SegmentedJournal {
    location: JournalLocation,
    options: SegmentOptions,
    boot: Option<BootId>,
    /// The segments by ascending first position, without gaps. The last one receives new entries.
    segments: RwLock<Vec<Arc<Segment>>>,
    appender: Mutex<Appender>,
    /// Held while space is prepared, so that no append writes into it. Acquired after `appender`.
    space: Mutex<()>,
    /// The length of the last segment's file. The bytes between its frames and this offset read as zeros.
    file_end: AtomicU64,
    /// The offset after the last frame.
    frames_end: AtomicU64,
    /// Number of appends since space was last prepared.
    appends: AtomicU64,
    /// True if the file `HEAD` was written but not synced yet.
    is_head_unsynced: AtomicBool,
    head: Mutex<Head>,
    recent: Mutex<RecentChunks>,
    dropped: Option<DroppedTail>,
    /// Counts the uses of segments, to find the least recently used ones.
    uses: AtomicU64,
    /// Held while segments are replaced by copies. Meanwhile the list of segments only grows.
    copying: Mutex<()>,
}

#[derive(Debug)]
struct Appender {
    tail: Tail,
    head_file: HeadFile,
    state: Appending,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Appending {
    /// The next append is possible.
    Ready,
    /// An append failed. Only reopening the journal shows what is on disk.
    Failed,
    /// The journal was closed.
    Closed,
}

impl SegmentedJournal {
    /// Creates the first segment of a new store in the empty directory `dir`, durably but without its name. The first
    /// [`SegmentedJournal::open`] gives it the name. So a segment that has a name is never a fresh start, and an
    /// interrupted creation leaves no segment with a name.
    ///
    /// # Errors
    ///
    /// [`JournalError::Storage`] if the disk fails.
    pub fn initialise(disk: Arc<dyn Disk>, dir: PathBuf, identity: Identity) -> Result<(), JournalError> {
        let head = Head { next: Position::FIRST, chain: ChainHash::genesis(identity.store) };
        let location = JournalLocation { disk, dir, identity };
        prepare(&location, head, BLOCK_BYTES as u64)?;
        let record = HeadRecord {
            is_closed: false,
            boot: None,
            segment: Position::FIRST,
            end: FRAMES_START,
            offsets: 0,
            head,
        };
        HeadFile::create(&location, &record)?;
        location.disk.sync_dir(&location.dir).map_err(|cause| storage(&location.dir, "sync", cause))
    }

    /// Returns whether an interrupted [`SegmentedJournal::initialise`] may leave a file of this name.
    pub fn is_unfinished_name(name: &str) -> bool {
        let first = temporary_name(&path_of(Path::new(""), Position::FIRST));
        let head_file = Path::new(super::record::HEAD_FILE);
        let name = Path::new(name);
        name == first || name == head_file || name == temporary_name(head_file)
    }

    /// Opens the journal in the directory `dir`. Verifies that its segments join and how the journal ends, and
    /// completes what a power cut has interrupted.
    ///
    /// If the journal was not closed, this reads the whole last segment.
    ///
    /// # Errors
    ///
    /// Any variant of [`JournalError`] that concerns files. In that case no entry of the journal was changed.
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: PathBuf,
        identity: Identity,
        options: SegmentOptions,
    ) -> Result<Self, JournalError> {
        let location = JournalLocation { disk, dir, identity };
        let Opened { segments, tail, head_file, head, file_end, boot, dropped } =
            super::opening::open(&location, &options)?;
        Ok(Self {
            options,
            boot,
            file_end: AtomicU64::new(file_end),
            frames_end: AtomicU64::new(tail.end()),
            segments: RwLock::new(segments),
            appender: Mutex::new(Appender { tail, head_file, state: Appending::Ready }),
            space: Mutex::default(),
            appends: AtomicU64::new(0),
            is_head_unsynced: AtomicBool::new(false),
            head: Mutex::new(head),
            recent: Mutex::default(),
            dropped,
            uses: AtomicU64::new(0),
            copying: Mutex::default(),
            location,
        })
    }

    /// Returns a description of the bytes that the opening dropped from the end, if any.
    pub fn dropped(&self) -> Option<DroppedTail> {
        self.dropped
    }

    /// Ends the last segment and starts a new one.
    fn roll(&self, appender: &mut Appender) -> Result<(), JournalError> {
        if appender.state != Appending::Ready {
            return Err(JournalError::Poisoned);
        }
        let head = self.head();
        let file_end = self.options.new_file_bytes();
        // Until the new segment is published, only a temporary file has changed, and the next batch may try again: by
        // then a full disk may have space, and a process may have free file descriptors.
        let prepared = Prepared::new(&self.location, head, file_end)?;
        appender.state = Appending::Failed;
        let (header, tail, open) = prepared.publish(&self.location)?;
        let _space = self.space.lock();
        self.last_segment().seal(&self.location, &mut appender.tail, head)?;
        self.segments.write().push(Arc::new(Segment::written(&self.location, header, open)));
        appender.tail = tail;
        self.file_end.store(file_end, Ordering::Relaxed);
        self.frames_end.store(FRAMES_START, Ordering::Relaxed);
        appender.state = Appending::Ready;
        Ok(())
    }

    /// Ensures that the segment at this index has a successor. Then it is sealed, and nothing is appended to it any
    /// more.
    fn end_segment(&self, place: usize) -> Result<(), JournalError> {
        let mut appender = self.appender.lock();
        if self.segments.read().len() > place + 1 {
            return Ok(());
        }
        self.roll(&mut appender)
    }

    fn last_segment(&self) -> Arc<Segment> {
        let segments = self.segments.read();
        Arc::clone(segments.last().expect("a journal has at least one segment"))
    }

    /// Returns the segment that holds `at`.
    fn segment_of(&self, at: Position) -> Arc<Segment> {
        let segments = self.segments.read();
        let after = segments.partition_point(|segment| segment.header.first <= at);
        let segment = &segments[after.checked_sub(1).expect("the first segment begins with position 1")];
        segment.touch(self.uses.fetch_add(1, Ordering::Relaxed));
        Arc::clone(segment)
    }

    /// Closes the least recently used sealed segments beyond the number that may be open.
    fn close_idle(&self) {
        let segments = self.segments.read();
        let Some((_, sealed)) = segments.split_last() else { return };
        let mut open: Vec<_> = sealed.iter().filter(|segment| segment.is_open()).collect();
        while open.len() > self.options.open_sealed {
            let uses = open.iter().map(|segment| segment.last_used()).enumerate();
            let Some((oldest, _)) = uses.min_by_key(|(_, last_used)| *last_used) else { return };
            open.swap_remove(oldest).close_if_idle();
        }
    }

    /// Returns the number of bytes that are prepared after the last frame.
    fn space(&self) -> u64 {
        self.file_end.load(Ordering::Relaxed).saturating_sub(self.frames_end.load(Ordering::Relaxed))
    }

    /// Prepares more space at the end of the last segment. Prepares less on a nearly full disk.
    fn extend(&self, segment: &Segment) -> Result<(), JournalError> {
        let _space = self.space.lock();
        // While this thread waited, another may have done this or started another segment.
        if self.space() >= self.options.space_bytes
            || self.last_segment().header.first != segment.header.first
        {
            return Ok(());
        }
        let file = segment.change(|open| open.file.clone());
        let mut step = self.options.space_bytes;
        let appends = self.appends.swap(0, Ordering::Relaxed);
        let are_large = appends > 0 && step / appends > SMALL_APPEND_BYTES;
        let space = if are_large { Space::Promised } else { Space::Zeroed };
        loop {
            let from = self.file_end.load(Ordering::Relaxed);
            let to = (from + step).next_multiple_of(BLOCK_BYTES as u64);
            match file.set_aside(from, to, space) {
                Ok(()) => {
                    self.file_end.store(to, Ordering::Relaxed);
                    return Ok(());
                }
                Err(cause) if is_out_of_space(&cause) && step > self.least_space() => step /= 2,
                Err(cause) if is_out_of_space(&cause) && self.space() >= self.least_space() => return Ok(()),
                Err(cause) => return Err(storage(segment.path(), "extend", cause)),
            }
        }
    }

    /// Returns the minimum space after the last frame. With less, no batch is accepted.
    fn least_space(&self) -> u64 {
        self.options.space_bytes / 8
    }

    /// Writes the frames in the tail to disk.
    fn write_tail(&self, segment: &Segment, tail: &mut Tail) -> std::io::Result<()> {
        let file = segment.change(|open| open.file.clone());
        if tail.blocks_end() <= self.file_end.load(Ordering::Relaxed) {
            return tail.write(&*file);
        }
        // The write is larger than the prepared space, so exclude a concurrent preparation of the same space.
        let _space = self.space.lock();
        let end = tail.blocks_end();
        tail.write(&*file)?;
        self.file_end.fetch_max(end, Ordering::Relaxed);
        Ok(())
    }

    /// Appends chunks of another journal of the same store unchanged. Appends all or none. They are durable when this
    /// returns.
    ///
    /// # Errors
    ///
    /// The errors of [`Journal::append`]; [`JournalError::BadDraft`] if the first chunk does not continue the head, or
    /// a later chunk the one before it.
    pub fn append_copies(&self, chunks: &[Chunk]) -> Result<Head, JournalError> {
        self.append_frames(
            |head| check_copies(head, chunks).map(|()| chunks.is_empty()),
            |tail, head, secret| tail.put_copies(chunks, head, secret),
        )
    }

    /// Makes frames durable. `check` returns whether there is nothing to append, and `put` adds the frames to the
    /// tail.
    fn append_frames(
        &self,
        check: impl FnOnce(Head) -> Result<bool, JournalError>,
        put: impl FnOnce(&mut Tail, Head, &Secret) -> (Head, Vec<ChunkFrame>),
    ) -> Result<Head, JournalError> {
        let mut appender = self.appender.lock();
        let appender = &mut *appender;
        if appender.state != Appending::Ready {
            return Err(JournalError::Poisoned);
        }
        let head = self.head();
        if check(head)? {
            return Ok(head);
        }
        let expected = head.next;
        let segment = self.last_segment();
        let (head, placed) = put(&mut appender.tail, head, &self.location.identity.secret);
        {
            let mut recent = self.recent.lock();
            // Readers only ask for entries before the head, so they do not see these until they are durable.
            for placed in &placed {
                let bytes = appender.tail.chunk(placed);
                recent.push(placed.position, bytes, self.options.cache_bytes);
            }
        }
        // Nothing may be appended after a failure: the content of the disk is then unknown.
        appender.state = Appending::Failed;
        let unknown = |cause| JournalError::OutcomeUnknown {
            path: segment.path().to_owned(),
            position: expected,
            cause,
        };
        self.write_tail(&segment, &mut appender.tail).map_err(unknown)?;
        self.appends.fetch_add(1, Ordering::Relaxed);
        self.note(&segment, &appender.tail, &placed);
        appender.head_file.write_unsynced(&self.head_record(&segment, head, false)).map_err(|error| {
            match error {
                JournalError::Storage { cause, .. } => unknown(cause),
                other => other,
            }
        })?;
        self.is_head_unsynced.store(true, Ordering::Relaxed);
        appender.state = Appending::Ready;
        *self.head.lock() = head;
        Ok(head)
    }

    fn head_record(&self, segment: &Segment, head: Head, is_closed: bool) -> HeadRecord {
        let (end, offsets) = segment.change(|open| (open.end, open.offsets.newest_frame));
        HeadRecord { is_closed, boot: self.boot, segment: segment.header.first, end, offsets, head }
    }

    /// Records a durable append in memory.
    fn note(&self, segment: &Segment, tail: &Tail, placed: &[ChunkFrame]) {
        let end = tail.end();
        segment.change(|open| {
            for ChunkFrame { position, offset, .. } in placed {
                open.offsets.note(position.get(), *offset);
            }
            open.end = end;
        });
        self.frames_end.store(end, Ordering::Relaxed);
    }

    /// Returns the chunk that holds `at`, if it is among the newest chunks.
    fn read_recent(&self, at: Position) -> Result<Option<Chunk>, JournalError> {
        let Some(bytes) = self.recent.lock().get(at) else { return Ok(None) };
        self.last_segment().verified(&self.location, at, &bytes).map(Some)
    }
}

impl JournalReader for SegmentedJournal {
    fn head(&self) -> Head {
        *self.head.lock()
    }

    fn read(&self, at: Position) -> Result<Option<Chunk>, JournalError> {
        if at >= self.head().next {
            return Ok(None);
        }
        if let Some(chunk) = self.read_recent(at)? {
            return Ok(Some(chunk));
        }
        let chunk = self.segment_of(at).read(&self.location, at);
        self.close_idle();
        chunk.map(Some)
    }

    fn scan(&self, from: Position, max_bytes: usize) -> Result<Vec<Chunk>, JournalError> {
        let end = self.head().next;
        let mut chunks: Vec<Chunk> = Vec::new();
        // Ask for at least one byte, and so at least one chunk.
        let mut wanted = max_bytes.max(1);
        let mut at = from;
        while at < end && wanted > 0 {
            if let Some(chunk) = self.read_recent(at)? {
                wanted = wanted.saturating_sub(chunk.weight());
                chunks.push(chunk);
            } else {
                self.segment_of(at).scan(&self.location, at, end, &mut wanted, &mut chunks)?;
            }
            // Each scan adds a chunk or fails, so the loop ends.
            at = chunks.last().map_or(end, Chunk::next);
        }
        self.close_idle();
        Ok(chunks)
    }
}

impl Journal for SegmentedJournal {
    fn append(&self, expected: Position, chunks: &[ChunkDraft]) -> Result<Head, JournalError> {
        self.append_frames(
            |head| check_append(head, expected, chunks).map(|()| chunks.is_empty()),
            |tail, head, secret| tail.put_chunks(chunks, head, secret),
        )
    }

    fn make_room(&self) -> Result<(), JournalError> {
        let is_full = self.frames_end.load(Ordering::Relaxed) >= self.options.segment_bytes;
        if !is_full && self.space() >= self.options.space_bytes / 2 {
            return Ok(());
        }
        if is_full {
            let mut appender = self.appender.lock();
            // Another thread may have started the next segment.
            if self.frames_end.load(Ordering::Relaxed) >= self.options.segment_bytes {
                return self.roll(&mut appender);
            }
        }
        self.extend(&self.last_segment())
    }

    fn prepare_space(&self) -> Result<(), JournalError> {
        if self.space() < self.options.space_bytes {
            self.extend(&self.last_segment())?;
        }
        if self.is_head_unsynced.swap(false, Ordering::Relaxed) {
            let (file, path) = {
                let appender = self.appender.lock();
                (appender.head_file.file(), appender.head_file.path().to_owned())
            };
            file.sync().map_err(|cause| storage(&path, "sync", cause))?;
        }
        Ok(())
    }

    fn needs_space(&self) -> bool {
        self.space() < self.options.space_bytes
    }

    fn close(&self) -> Result<(), JournalError> {
        let mut appender = self.appender.lock();
        let appender = &mut *appender;
        if appender.state != Appending::Ready {
            return Ok(());
        }
        appender.state = Appending::Closed;
        let _space = self.space.lock();
        let segment = self.last_segment();
        let failed = |cause| storage(segment.path(), "close", cause);
        let secret = &self.location.identity.secret;
        let list = segment.change(|open| open.offsets.has_news().then(|| open.offsets.encode(secret)));
        if let Some(list) = list {
            let mut write = appender.tail.begin(1, list.len() + 1024);
            let offset =
                appender.tail.put(&mut write, Kind::Offsets, secret, |out| out.extend_from_slice(&list));
            let file = segment.change(|open| open.file.clone());
            appender.tail.write(&*file).map_err(failed)?;
            segment.change(|open| open.offsets.set_stored(offset));
            self.note(&segment, &appender.tail, &[]);
        }
        let file = segment.change(|open| open.file.clone());
        let end = appender.tail.blocks_end();
        file.set_len(end).and_then(|()| file.sync()).map_err(failed)?;
        self.file_end.store(end, Ordering::Relaxed);
        appender.head_file.write_durably(&self.head_record(&segment, self.head(), true))
    }

    fn remove_sections(
        &self,
        removed: &BTreeSet<SectionId>,
        should_stop: &dyn Fn() -> bool,
    ) -> Result<Freed, JournalError> {
        let mut freed = Freed { bytes: 0, is_done: true };
        if removed.is_empty() {
            return Ok(freed);
        }
        let _copying = self.copying.lock();
        let mut place = 0;
        loop {
            let (segment, next) = {
                let segments = self.segments.read();
                let Some(segment) = segments.get(place) else { break };
                (Arc::clone(segment), segments.get(place + 1).map(|next| next.header.first))
            };
            // Later appends do not concern these sections.
            let end = next.unwrap_or_else(|| self.head().next);
            let holds = segment.holds(&self.location, end, removed, should_stop)?;
            if should_stop() {
                return Ok(Freed { is_done: false, ..freed });
            }
            if holds {
                self.end_segment(place)?;
                let end = self.segments.read()[place + 1].header.head();
                let before = segment.file_bytes(&self.location)?;
                let Some(copy) = segment.without(&self.location, end, removed, should_stop)? else {
                    return Ok(Freed { is_done: false, ..freed });
                };
                freed.bytes += before.saturating_sub(copy.file_bytes(&self.location)?);
                self.segments.write()[place] = Arc::new(copy);
                // The cache may hold the removed bytes.
                *self.recent.lock() = RecentChunks::default();
            }
            place += 1;
        }
        Ok(freed)
    }
}
