//! The journal on disk: a row of segments of which the last one is written.
//!
//! Beginning a new segment takes three steps, each durable before the next:
//! the new file gets its name, the old one is sealed, the new one takes its
//! first append. A power cut between the first two leaves an unsealed segment
//! with an empty successor, which [`SegmentedJournal::open`] finishes. Any
//! other departure from "all sealed but the last, and each joins the one
//! before" is damage.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};

use super::record::{FileName, path_of};
use super::segment::{Medium, Segment, prepare, publish};
use super::{
    ChainHash, Chunk, ChunkDraft, Freed, Head, Identity, Journal, JournalError, Position, SectionId,
    check_append,
};
use crate::disk::{Disk, temporary_name};

/// How a journal on disk uses memory and files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentOptions {
    /// A segment that has taken this many bytes is sealed before the next
    /// append. It bounds what is read again after a crash. After a reopening
    /// the size of the file counts, so that a segment may be sealed earlier.
    pub(crate) segment_bytes: u64,
    /// Page cache of each open segment, in bytes. Appending wants none.
    pub(crate) cache_bytes: usize,
    /// How much of the end is verified when the journal is opened, in bytes.
    pub(crate) tail_bytes: usize,
    /// How many sealed segments are kept open for reading.
    pub(crate) open_sealed: usize,
}

impl Default for SegmentOptions {
    fn default() -> Self {
        Self { segment_bytes: 1 << 30, cache_bytes: 4 << 20, tail_bytes: 4 << 20, open_sealed: 8 }
    }
}

/// A journal in files.
#[derive(Debug)]
pub(crate) struct SegmentedJournal {
    medium: Medium,
    options: SegmentOptions,
    /// By ascending first position, without gaps; the last one is written.
    segments: RwLock<Vec<Arc<Segment>>>,
    appender: Mutex<Appender>,
    head: Mutex<Head>,
    /// Counts uses of segments, to know the least recently used.
    uses: AtomicU64,
    /// Held by who replaces segments by copies. The list of them only grows
    /// meanwhile.
    copying: Mutex<()>,
}

#[derive(Debug)]
struct Appender {
    /// What the last segment has taken, in bytes.
    segment_bytes: u64,
    /// An append has failed. What is on disk is not known before the journal
    /// is opened again.
    poisoned: bool,
    buffer: Vec<u8>,
}

impl SegmentedJournal {
    /// Makes the first segment of a new store in the empty directory `dir`,
    /// durably, but without its name: the first [`SegmentedJournal::open`]
    /// gives it that. So a segment that has a name is never a fresh start,
    /// and an interrupted initialisation leaves nothing that has one.
    ///
    /// # Errors
    ///
    /// [`JournalError::Storage`] if the disk fails.
    pub(crate) fn initialise(
        disk: Arc<dyn Disk>,
        dir: PathBuf,
        identity: Identity,
    ) -> Result<(), JournalError> {
        let chain = ChainHash::genesis(identity.store);
        let cache_bytes = SegmentOptions::default().cache_bytes;
        let medium = Medium { disk, dir, identity, cache_bytes };
        prepare(&medium, Head { next: Position::FIRST, chain })?;
        medium.disk.sync_dir(&medium.dir).map_err(|cause| JournalError::Storage {
            path: medium.dir.clone(),
            action: "sync",
            cause,
        })
    }

    /// The only file name that [`SegmentedJournal::initialise`] leaves.
    pub(crate) fn unfinished_name() -> String {
        let name = temporary_name(&path_of(Path::new(""), Position::FIRST));
        name.to_string_lossy().into_owned()
    }

    /// Opens the journal in the directory `dir`, verifies how its segments
    /// join and how it ends, and finishes what a power cut has interrupted.
    ///
    /// After a crash this reads the whole last segment.
    ///
    /// # Errors
    ///
    /// Every variant of [`JournalError`] that speaks of files. Then nothing
    /// of what the journal holds was changed.
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        dir: PathBuf,
        identity: Identity,
        options: SegmentOptions,
    ) -> Result<Self, JournalError> {
        let medium = Medium { disk, dir, identity, cache_bytes: options.cache_bytes };
        let firsts = segments_in(&medium)?;
        let genesis = Head { next: Position::FIRST, chain: ChainHash::genesis(medium.identity.store) };
        let mut end = genesis;
        let mut segments: Vec<Arc<Segment>> = Vec::with_capacity(firsts.len());
        let (&last, sealed) = firsts.split_last().expect("there is one, or it was an error");
        // Of the last but one, if a power cut came before it was sealed.
        let mut unsealed: Option<Arc<Segment>> = None;
        for (i, &first) in sealed.iter().enumerate() {
            let (segment, meta) = Segment::open_sealed(&medium, first)?;
            check_joins(&medium, end, &segment)?;
            let segment = match meta.seal {
                Some(seal) => {
                    end = seal;
                    segment
                }
                None if i + 1 == sealed.len() => {
                    let (segment, _) = Segment::open_writable(&medium, first)?;
                    end = segment.verify_tail(&medium, options.tail_bytes)?;
                    segment
                }
                None => return Err(not_sealed(&segment)),
            };
            segments.push(Arc::new(segment));
            unsealed = meta.seal.is_none().then(|| Arc::clone(&segments[i]));
        }

        let (segment, meta) = Segment::open_writable(&medium, last)?;
        check_joins(&medium, end, &segment)?;
        if let Some(seal) = meta.seal {
            // It was sealed after its successor had got its name.
            return Err(JournalError::Missing { path: path_of(&medium.dir, seal.next), first: seal.next });
        }
        let head = segment.verify_tail(&medium, options.tail_bytes)?;
        if let Some(unsealed) = unsealed {
            if head != end {
                return Err(not_sealed(&unsealed));
            }
            unsealed.seal(&medium, end)?;
        }
        let segment_bytes = size_of(&medium, &segment)?;
        // A new file has a size before it has chunks.
        let segment_bytes = if head == end { 0 } else { segment_bytes };
        segments.push(Arc::new(segment));
        Ok(Self {
            medium,
            options,
            segments: RwLock::new(segments),
            appender: Mutex::new(Appender { segment_bytes, poisoned: false, buffer: Vec::new() }),
            head: Mutex::new(head),
            uses: AtomicU64::new(0),
            copying: Mutex::default(),
        })
    }

    /// Ends the last segment and begins a new one.
    fn roll(&self, appender: &mut Appender) -> Result<(), JournalError> {
        let head = self.head();
        // Until here nothing but a temporary file has changed, and the next
        // append may try again: a full disk may have room by then.
        prepare(&self.medium, head)?;
        appender.poisoned = true;
        publish(&self.medium, head.next)?;
        let (segment, _) = Segment::open_writable(&self.medium, head.next)?;
        self.last_segment().seal(&self.medium, head)?;
        self.segments.write().push(Arc::new(segment));
        appender.segment_bytes = 0;
        appender.poisoned = false;
        Ok(())
    }

    /// Sees to it that the segment at this place has a successor: then it is
    /// sealed, and nothing is appended to it any more.
    fn end_segment(&self, place: usize) -> Result<(), JournalError> {
        let mut appender = self.appender.lock();
        if self.segments.read().len() > place + 1 {
            return Ok(());
        }
        if appender.poisoned {
            return Err(JournalError::Poisoned);
        }
        self.roll(&mut appender)
    }

    fn last_segment(&self) -> Arc<Segment> {
        let segments = self.segments.read();
        Arc::clone(segments.last().expect("a journal has at least one segment"))
    }

    /// The segment that holds `at`.
    fn segment_of(&self, at: Position) -> Arc<Segment> {
        let segments = self.segments.read();
        let after = segments.partition_point(|segment| segment.header.first <= at);
        let segment = &segments[after.checked_sub(1).expect("the first segment begins with position 1")];
        segment.touch(self.uses.fetch_add(1, Ordering::Relaxed));
        Arc::clone(segment)
    }

    /// Closes sealed segments that were not used for longest, beyond the
    /// number that may be open.
    fn close_idle(&self) {
        let segments = self.segments.read();
        let Some((_, sealed)) = segments.split_last() else { return };
        let mut open: Vec<_> = sealed.iter().filter(|segment| segment.is_open()).collect();
        if open.len() > self.options.open_sealed {
            open.sort_by_key(|segment| segment.last_used());
            for segment in &open[..open.len() - self.options.open_sealed] {
                segment.close_if_idle();
            }
        }
    }
}

impl Journal for SegmentedJournal {
    fn head(&self) -> Head {
        *self.head.lock()
    }

    fn append(&self, expected: Position, chunks: &[ChunkDraft]) -> Result<Head, JournalError> {
        let mut appender = self.appender.lock();
        if appender.poisoned {
            return Err(JournalError::Poisoned);
        }
        let head = self.head();
        check_append(head, expected, chunks)?;
        if chunks.is_empty() {
            return Ok(head);
        }
        if appender.segment_bytes >= self.options.segment_bytes {
            self.roll(&mut appender)?;
        }
        let appender = &mut *appender;
        // Whatever fails below, the engine refuses to go on after it.
        appender.poisoned = true;
        let segment = self.last_segment();
        let (head, stored) = segment.append(&self.medium, head, chunks, &mut appender.buffer)?;
        appender.poisoned = false;
        appender.segment_bytes += stored;
        *self.head.lock() = head;
        Ok(head)
    }

    fn read(&self, at: Position) -> Result<Option<Chunk>, JournalError> {
        if at >= self.head().next {
            return Ok(None);
        }
        let chunk = self.segment_of(at).read(&self.medium, at);
        self.close_idle();
        chunk.map(Some)
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
                let Some(segment) = segments.get(place) else { return Ok(freed) };
                (Arc::clone(segment), segments.get(place + 1).map(|next| next.header.first))
            };
            // What is appended from now on is not of these sections.
            let end = next.unwrap_or_else(|| self.head().next);
            let holds = segment.holds(&self.medium, end, removed, should_stop)?;
            if should_stop() {
                return Ok(Freed { is_done: false, ..freed });
            }
            if holds {
                self.end_segment(place)?;
                let end = self.segments.read()[place + 1].header.head();
                let before = size_of(&self.medium, &segment)?;
                let Some(copy) = segment.without(&self.medium, end, removed, should_stop)? else {
                    return Ok(Freed { is_done: false, ..freed });
                };
                freed.bytes += before.saturating_sub(size_of(&self.medium, &copy)?);
                self.segments.write()[place] = Arc::new(copy);
            }
            place += 1;
        }
    }

    fn scan(&self, from: Position, max_bytes: usize) -> Result<Vec<Chunk>, JournalError> {
        let end = self.head().next;
        let mut chunks = Vec::new();
        // One byte is wanted at least: so there is one chunk at least.
        let mut wanted = max_bytes.max(1);
        let mut at = from;
        while at < end && wanted > 0 {
            self.segment_of(at).scan(&self.medium, at, end, &mut wanted, &mut chunks)?;
            // Each scan adds chunks or fails, so this comes to an end.
            at = chunks.last().map_or(end, Chunk::next);
        }
        self.close_idle();
        Ok(chunks)
    }
}

/// The first positions of the segments in the directory, in order. Removes
/// what was never finished, and gives the very first segment its name.
fn segments_in(medium: &Medium) -> Result<Vec<Position>, JournalError> {
    let storage = |path: &Path, action, cause| JournalError::Storage { path: path.to_owned(), action, cause };
    let first_path = path_of(&medium.dir, Position::FIRST);
    let missing = || JournalError::Missing { path: first_path.clone(), first: Position::FIRST };
    let names = medium.disk.list(&medium.dir).map_err(|cause| match cause.kind() {
        std::io::ErrorKind::NotFound => missing(),
        _ => storage(&medium.dir, "list", cause),
    })?;
    let names = names.iter().filter_map(|name| FileName::parse(name.to_str()?));
    let (mut segments, mut unfinished) = (Vec::new(), Vec::new());
    for name in names {
        match name {
            FileName::Segment(first) => segments.push(first),
            FileName::Unfinished(first) => unfinished.push(first),
        }
    }
    segments.sort_unstable();
    if segments.is_empty() {
        // A new store: its first segment was complete before the manifest.
        if !unfinished.contains(&Position::FIRST) {
            return Err(missing());
        }
        publish(medium, Position::FIRST)?;
        return Ok(vec![Position::FIRST]);
    }
    if segments[0] != Position::FIRST {
        return Err(missing());
    }
    for first in unfinished {
        let path = temporary_name(&path_of(&medium.dir, first));
        medium.disk.remove(&path).map_err(|cause| storage(&path, "remove", cause))?;
    }
    Ok(segments)
}

/// Checks that `segment` begins where the one before it ends.
fn check_joins(medium: &Medium, end: Head, segment: &Segment) -> Result<(), JournalError> {
    let header = &segment.header;
    if header.first > end.next {
        return Err(JournalError::Missing { path: path_of(&medium.dir, end.next), first: end.next });
    }
    if header.first < end.next || header.previous != end.chain {
        return Err(JournalError::Gap {
            path: segment.path().to_owned(),
            expected: end.next,
            found: header.first,
        });
    }
    Ok(())
}

/// How many bytes the file of a segment has.
fn size_of(medium: &Medium, segment: &Segment) -> Result<u64, JournalError> {
    let file = medium.disk.open(segment.path(), crate::disk::OpenMode::Existing);
    file.and_then(|file| file.len()).map_err(|cause| JournalError::Storage {
        path: segment.path().to_owned(),
        action: "measure",
        cause,
    })
}

fn not_sealed(segment: &Segment) -> JournalError {
    JournalError::Damaged {
        path: segment.path().to_owned(),
        position: Some(segment.header.first),
        what: "it is not sealed although a later segment has entries".to_owned(),
    }
}
