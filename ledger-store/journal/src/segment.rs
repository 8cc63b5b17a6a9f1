//! A segment: one file of the journal.
//!
//! The file is named after its first position, with 20 digits. It begins with a record of its own in the first sector:
//!
//! ```text
//! 16 digest   keyed by the store's secret, over the rest
//!  1 version  1
//! 16 store
//!  8 first    position of its first entry
//! 32 chain    hash before it
//! ```
//!
//! Then come [frames](super::frame): chunks of entries, and lists of where they lie. Behind the last frame of the
//! segment that is written there is space that reads as zeros. A sealed segment ends with a frame that says where it
//! ends, and its file with that frame.
//!
//! A segment has its name only when its file is complete: it is made under another one, synced and renamed. So a file
//! of that name without bytes, or with bytes that do not verify, is always damage. And a segment is sealed only when
//! its successor has its name: a sealed segment without a successor means that a file is missing.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::chunk::{DecodeError, FORMAT_VERSION as CHUNK_FORMAT_VERSION, decode, peek_positions};
use super::frame::{FRAMES_START, HEADER_BYTES, Header as FrameHeader, Kind, Parsed};
use super::offsets::Offsets;
use super::record::{Header, Seal, path_of};
use super::tail::Tail;
use super::walk::{Found, FrameReader};
use super::{Chunk, Head, Identity, JournalError, Position, SectionId};
use crate::disk::{Disk, DiskFile, OpenMode};

/// A lookup of one chunk reads so much at once: a chunk of the usual size and its header.
const LOOKUP_BYTES: usize = 17 << 10;
/// A scan reads so much at once.
const SCAN_BYTES: usize = 1 << 20;

/// The context of every segment of a journal.
#[derive(Debug)]
pub(super) struct Medium {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) dir: PathBuf,
    pub(super) identity: Identity,
}

/// One file of the journal, open or not.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) header: Header,
    path: PathBuf,
    /// The file while it is open. Readers hold the lock for a moment only, not while the disk reads.
    open: RwLock<Option<OpenSegment>>,
    /// Whether `open` is there, to be asked without the lock.
    is_open: AtomicBool,
    /// When it was last used, in a count of uses.
    last_used: AtomicU64,
}

/// Where a lookup begins.
struct Place {
    file: Arc<dyn DiskFile>,
    /// The offset of a chunk at or before the wanted one; `None` if there is none.
    offset: Option<u64>,
    /// The offset after the last frame.
    end: u64,
}

/// The file of a segment, and where its chunks lie.
#[derive(Debug)]
pub(super) struct OpenSegment {
    pub(super) file: Arc<dyn DiskFile>,
    pub(super) offsets: Offsets,
    /// The offset after the last frame that is durable.
    pub(super) end: u64,
}

impl Segment {
    /// A segment that is written, or was until now.
    pub(super) fn written(medium: &Medium, header: Header, open: OpenSegment) -> Self {
        Self::new(path_of(&medium.dir, header.first), header, Some(open))
    }

    /// Looks into a segment that has a successor: what it is, and how it ends if it is sealed.
    pub(super) fn open_sealed(
        medium: &Medium,
        first: Position,
    ) -> Result<(Self, Option<Seal>), JournalError> {
        let path = path_of(&medium.dir, first);
        let file = open_file(&path, first, |path| medium.disk.open(path, OpenMode::Existing))?;
        let header = read_header(&*file, medium, &path, first)?;
        let seal = read_seal(&*file, medium, &path, first)?;
        Ok((Self::new(path, header, None), seal.map(|(seal, _)| seal)))
    }

    fn new(path: PathBuf, header: Header, open: Option<OpenSegment>) -> Self {
        Self {
            header,
            path,
            is_open: AtomicBool::new(open.is_some()),
            open: RwLock::new(open),
            last_used: AtomicU64::new(0),
        }
    }

    /// Where its file is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether its file is open.
    pub(super) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    /// When it was last used.
    pub(super) fn last_used(&self) -> u64 {
        self.last_used.load(Ordering::Relaxed)
    }

    /// Notes that it is used at this count of uses.
    pub(super) fn touch(&self, now: u64) {
        self.last_used.store(now, Ordering::Relaxed);
    }

    /// Closes the file unless somebody uses it.
    pub(super) fn close_if_idle(&self) {
        if let Some(mut slot) = self.open.try_write() {
            self.close(&mut slot);
        }
    }

    fn close(&self, slot: &mut Option<OpenSegment>) {
        self.is_open.store(false, Ordering::Relaxed);
        drop(slot.take());
    }

    /// Lets `change` note what was appended to the segment that is written.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut OpenSegment) -> T) -> T {
        change(self.open.write().as_mut().expect("the segment that is written is open"))
    }

    /// Writes down where the segment ends, and cuts its file off there. It is read through another opening from now
    /// on.
    pub(super) fn seal(&self, medium: &Medium, tail: &mut Tail, end: Head) -> Result<(), JournalError> {
        let mut slot = self.open.write();
        let open = slot.as_mut().expect("the segment that is written is open");
        tail.seal(&*open.file, &mut open.offsets, end, &medium.identity.secret)
            .map_err(|cause| storage(&self.path, "seal", cause))?;
        self.close(&mut slot);
        Ok(())
    }

    /// The chunk that holds `at`.
    pub(super) fn read(&self, medium: &Medium, at: Position) -> Result<Chunk, JournalError> {
        let nowhere = || self.damage(at, "no chunk holds this position");
        let Place { file, offset, end } = self.place_of(medium, at)?;
        let mut offset = offset.ok_or_else(nowhere)?;
        let mut frames = self.frames(&*file, medium, end, LOOKUP_BYTES);
        loop {
            let Some((chunk, next)) = self.chunk_after(&mut frames, offset, at, medium)? else {
                return Err(nowhere());
            };
            offset = next;
            match chunk {
                Some(chunk) if chunk.first() <= at && at < chunk.next() => return Ok(chunk),
                Some(_) => return Err(nowhere()),
                None => {}
            }
        }
    }

    /// The next frame from `offset` on and where it ends: its chunk if that ends after `at`. `None` at the end.
    fn chunk_after(
        &self,
        frames: &mut FrameReader<'_>,
        offset: u64,
        at: Position,
        medium: &Medium,
    ) -> Result<Option<(Option<Chunk>, u64)>, JournalError> {
        let frame = match frames.at(offset).map_err(|cause| self.unreadable(cause, at))? {
            Found::Frame(frame) => frame,
            Found::Nothing => return Ok(None),
            Found::Invalid => return Err(self.damage(at, "a frame does not match its check")),
            Found::Cut => return Err(self.damage(at, "a frame ends beyond the end")),
        };
        let is_before = |body| peek_positions(body).is_some_and(|(_, next)| next <= at);
        if !frame.is_chunk() || is_before(frame.body) {
            return Ok(Some((None, frame.end())));
        }
        let chunk = self.verified(medium, at, frame.body)?;
        Ok(Some((Some(chunk), frame.end())))
    }

    /// Adds chunks to `out` in order, from the one that holds `from`, as long as they begin before `end` and `wanted`
    /// is not yet reached; takes their bytes off `wanted`.
    pub(super) fn scan(
        &self,
        medium: &Medium,
        from: Position,
        end: Position,
        wanted: &mut usize,
        out: &mut Vec<Chunk>,
    ) -> Result<(), JournalError> {
        let nowhere = || self.damage(from, "no chunk holds this position");
        let Place { file, offset, end: frames_end } = self.place_of(medium, from)?;
        let mut offset = offset.ok_or_else(nowhere)?;
        let window = (*wanted).clamp(LOOKUP_BYTES, SCAN_BYTES);
        let mut frames = self.frames(&*file, medium, frames_end, window);
        let mut at = from;
        let before = out.len();
        while let Some((chunk, next)) = self.chunk_after(&mut frames, offset, at, medium)? {
            offset = next;
            let Some(chunk) = chunk else { continue };
            if chunk.first() >= end {
                break;
            }
            match out.last() {
                Some(earlier) if !follows(earlier, &chunk) => {
                    return Err(self.damage(chunk.first(), NOT_CONTINUED));
                }
                None if chunk.first() > from => return Err(nowhere()),
                _ => {}
            }
            *wanted = wanted.saturating_sub(chunk.weight());
            at = chunk.next();
            out.push(chunk);
            if *wanted == 0 || at >= end {
                break;
            }
        }
        if out.len() == before { Err(nowhere()) } else { Ok(()) }
    }

    /// Verifies the last chunks before `end`, of at least `tail_bytes` if there are as many: they lead to `head`.
    pub(super) fn verify_tail(
        &self,
        medium: &Medium,
        head: Head,
        tail_bytes: u64,
    ) -> Result<(), JournalError> {
        if head.next == self.header.first {
            return self.compare_end(self.header.head(), head);
        }
        let from = {
            let slot = self.opened(medium)?;
            let open = slot.as_ref().expect("it was opened");
            open.offsets.at_or_before_offset(open.end.saturating_sub(tail_bytes))
        };
        let (first, _) = from.ok_or_else(|| self.damage(self.header.first, "it does not list its chunks"))?;
        let mut at = Position::new(first).ok_or_else(|| self.damage(self.header.first, "position zero"))?;
        let is_whole = at == self.header.first;
        let mut found: Option<Head> = is_whole.then(|| self.header.head());
        while at < head.next {
            let mut chunks = Vec::new();
            self.scan(medium, at, head.next, &mut { SCAN_BYTES }, &mut chunks)?;
            for chunk in &chunks {
                let continues =
                    found.is_none_or(|end| (end.next, end.chain) == (chunk.first(), chunk.previous()));
                if !continues {
                    return Err(self.damage(chunk.first(), NOT_CONTINUED));
                }
                found = Some(Head { next: chunk.next(), chain: chunk.chain() });
            }
            at = found.map_or(head.next, |end| end.next);
        }
        self.compare_end(found.unwrap_or(head), head)
    }

    fn compare_end(&self, found: Head, expected: Head) -> Result<(), JournalError> {
        if found == expected { Ok(()) } else { Err(self.damage(found.next, "it does not end where it says")) }
    }

    /// Whether a chunk before `end` has the bytes of one of these sections.
    pub(super) fn holds(
        &self,
        medium: &Medium,
        end: Position,
        sections: &BTreeSet<SectionId>,
        should_stop: &dyn Fn() -> bool,
    ) -> Result<bool, JournalError> {
        let mut at = self.header.first;
        while at < end && !should_stop() {
            let mut chunks = Vec::new();
            self.scan(medium, at, end, &mut { SCAN_BYTES }, &mut chunks)?;
            if chunks.iter().any(|chunk| chunk.has_any(sections)) {
                return Ok(true);
            }
            at = chunks.last().map_or(end, Chunk::next);
        }
        Ok(false)
    }

    /// The file, which is opened if it is not.
    fn opened(&self, medium: &Medium) -> Result<RwLockReadGuard<'_, Option<OpenSegment>>, JournalError> {
        let slot = self.open.read();
        if slot.is_some() {
            return Ok(slot);
        }
        drop(slot);
        let mut empty = self.open.write();
        if empty.is_none() {
            *empty = Some(self.reopen(medium)?);
            self.is_open.store(true, Ordering::Relaxed);
        }
        Ok(RwLockWriteGuard::downgrade(empty))
    }

    /// Opens the file of a sealed segment, and reads where its chunks lie.
    fn reopen(&self, medium: &Medium) -> Result<OpenSegment, JournalError> {
        let first = self.header.first;
        let file = open_file(&self.path, first, |path| medium.disk.open(path, OpenMode::Existing))?;
        let (seal, end) = read_seal(&*file, medium, &self.path, first)?
            .ok_or_else(|| self.damage(first, "it is not sealed any more"))?;
        let offsets = read_offsets(&*file, medium, &self.path, first, (seal.offsets, end))?;
        Ok(OpenSegment { file: Arc::from(file), offsets, end })
    }

    /// Where to read from to find the chunk that holds `at`. The lock is not held while the disk reads: an append would
    /// wait for it.
    fn place_of(&self, medium: &Medium, at: Position) -> Result<Place, JournalError> {
        let slot = self.opened(medium)?;
        let open = slot.as_ref().expect("it was opened");
        Ok(Place { file: open.file.clone(), offset: open.offsets.before(at.get()), end: open.end })
    }

    fn frames<'a>(
        &self,
        file: &'a dyn DiskFile,
        medium: &'a Medium,
        end: u64,
        window: usize,
    ) -> FrameReader<'a> {
        FrameReader::new(file, &medium.identity.secret, self.header.first, end, window)
    }

    /// The chunk with these bytes, which is where `at` was looked for.
    pub(super) fn verified(
        &self,
        medium: &Medium,
        at: Position,
        bytes: &[u8],
    ) -> Result<Chunk, JournalError> {
        decode(bytes, &medium.identity.secret).map_err(|error| match error {
            DecodeError::Corrupt(corrupt) => self.damage(at, corrupt.what),
            DecodeError::Newer(found) => {
                JournalError::NewerFormat { path: self.path.clone(), found, supported: CHUNK_FORMAT_VERSION }
            }
        })
    }

    pub(super) fn damage(&self, position: Position, what: &str) -> JournalError {
        damaged(&self.path, position, what)
    }

    fn unreadable(&self, cause: io::Error, at: Position) -> JournalError {
        read_failure(&self.path, cause, at)
    }
}

pub(super) const NOT_CONTINUED: &str = "the chunk does not continue the one before it";

/// Whether `later` comes directly after `earlier`.
fn follows(earlier: &Chunk, later: &Chunk) -> bool {
    (earlier.next(), earlier.chain()) == (later.first(), later.previous())
}

pub(super) fn storage(path: &Path, action: &'static str, cause: io::Error) -> JournalError {
    JournalError::Storage { path: path.to_owned(), action, cause }
}

fn damaged(path: &Path, position: Position, what: &str) -> JournalError {
    JournalError::Damaged { path: path.to_owned(), position: Some(position), what: what.to_owned() }
}

/// A read beyond the end means that the file was cut: damage. Any other failure is the disk's.
fn read_failure(path: &Path, cause: io::Error, at: Position) -> JournalError {
    match cause.kind() {
        io::ErrorKind::UnexpectedEof => damaged(path, at, "the file is shorter than it was"),
        _ => storage(path, "read", cause),
    }
}

/// Opens the file of a segment, which must exist and have bytes.
pub(super) fn open_file(
    path: &Path,
    first: Position,
    open: impl FnOnce(&Path) -> io::Result<Box<dyn DiskFile>>,
) -> Result<Box<dyn DiskFile>, JournalError> {
    let file = open(path).map_err(|cause| match cause.kind() {
        io::ErrorKind::NotFound => JournalError::Missing { path: path.to_owned(), first },
        _ => storage(path, "open", cause),
    })?;
    if file.len().map_err(|cause| storage(path, "measure", cause))? == 0 {
        return Err(JournalError::ZeroLength { path: path.to_owned() });
    }
    Ok(file)
}

/// Reads what a segment says about itself, which must agree with its name.
pub(super) fn read_header(
    file: &dyn DiskFile,
    medium: &Medium,
    path: &Path,
    first: Position,
) -> Result<Header, JournalError> {
    let mut record = [0; Header::BYTES];
    file.read_at(0, &mut record).map_err(|cause| read_failure(path, cause, first))?;
    Header::decode(&record, &medium.identity, path, first)
}

/// Reads how a segment ends, and the offset after its last chunk; `None` if its file does not end with a seal.
fn read_seal(
    file: &dyn DiskFile,
    medium: &Medium,
    path: &Path,
    first: Position,
) -> Result<Option<(Seal, u64)>, JournalError> {
    let len = file.len().map_err(|cause| storage(path, "measure", cause))?;
    let frame_bytes = (HEADER_BYTES + Seal::BYTES) as u64;
    let Some(place) = len.checked_sub(frame_bytes).filter(|place| *place >= FRAMES_START) else {
        return Ok(None);
    };
    let mut bytes = [0; HEADER_BYTES + Seal::BYTES];
    file.read_at(place, &mut bytes).map_err(|cause| read_failure(path, cause, first))?;
    let (header, body) = bytes.split_first_chunk::<HEADER_BYTES>().expect("it is longer than a header");
    match FrameHeader::parse(header, &medium.identity.secret, first, place) {
        Parsed::Valid(header) if header.kind == Kind::Seal => {
            let seal = Seal::decode(body, &medium.identity.secret, path, first)?;
            Ok(Some((seal, place)))
        }
        Parsed::Valid(_) | Parsed::Invalid | Parsed::Blank => Ok(None),
    }
}

/// Reads where the chunks of a segment lie, from its last frame of offsets back to the first.
pub(super) fn read_offsets(
    file: &dyn DiskFile,
    medium: &Medium,
    path: &Path,
    first: Position,
    (last, end): (u64, u64),
) -> Result<Offsets, JournalError> {
    let secret = &medium.identity.secret;
    let mut frames = FrameReader::new(file, secret, first, end, LOOKUP_BYTES);
    let mut offsets = Offsets::default();
    let mut at = last;
    while at > 0 {
        let found = frames.at(at).map_err(|cause| read_failure(path, cause, first))?;
        let Found::Frame(frame) = found else {
            return Err(damaged(path, first, "a list of its chunks is not where it should be"));
        };
        if frame.header.kind != Kind::Offsets {
            return Err(damaged(path, first, "a list of its chunks is not where it should be"));
        }
        at = offsets.prepend(frame.body, at, secret).map_err(|corrupt| damaged(path, first, corrupt.what))?;
    }
    Ok(offsets)
}
