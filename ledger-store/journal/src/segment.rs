//! A segment: one file of the journal.
//!
//! The file is named after the position of its first entry, with 20 digits. Its first sector holds a header:
//!
//! ```text
//! 16 digest   keyed by the store's secret, over the rest
//!  1 version  1
//! 16 store    id of the store
//!  8 first    position of its first entry
//! 32 chain    chain hash up to the entry before it
//! ```
//!
//! [Frames](super::frame) follow: chunks of entries, and lists of the chunks' offsets. New entries go to the last
//! segment, *the segment that is written*: the space after its last frame reads as zeros. All other segments are
//! sealed. The last frame of a sealed segment, which is also the end of its file, says where the entries end.
//!
//! A new segment gets its name only when its file is complete: the journal creates it under a temporary name, syncs
//! it and renames it. So a segment file that is empty, or whose bytes do not verify, is always damage. The journal
//! seals a segment only after its successor has its name. So a sealed segment without a successor means that a file is
//! missing.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::chunk::{DecodeError, FORMAT_VERSION as CHUNK_FORMAT_VERSION, decode, peek_positions};
use super::frame::{FRAMES_START, HEADER_BYTES, Header as FrameHeader, Kind, Parsed};
use super::frame_reader::{FrameReader, FrameResult};
use super::offsets::Offsets;
use super::record::{Header, Seal, path_of};
use super::tail::Tail;
use super::{Chunk, Head, Identity, JournalError, Position, SectionId};
use crate::disk::{Disk, DiskFile, OpenMode};

/// Number of bytes that a lookup of one chunk reads at once: a chunk of the usual size and its header.
const LOOKUP_BYTES: usize = 17 << 10;
/// Maximum number of bytes that a scan reads at once.
const SCAN_BYTES: usize = 1 << 20;

/// The disk, the directory and the identity of a journal, which all its segments share.
#[derive(Debug)]
pub(super) struct JournalLocation {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) dir: PathBuf,
    pub(super) identity: Identity,
}

/// One segment. Its file is opened when it is used, and may be closed when it is idle.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) header: Header,
    path: PathBuf,
    /// The file while it is open. Readers release the lock before they read from the disk.
    open: RwLock<Option<OpenSegment>>,
    /// True if `open` holds a file. Can be read without the lock.
    is_open: AtomicBool,
    /// The number of the last use, in the journal's count of uses.
    last_used: AtomicU64,
}

/// The file in which to look for a chunk, and where to begin.
struct LookupStart {
    file: Arc<dyn DiskFile>,
    /// The offset of a chunk that is the wanted one or comes before it; `None` if there is none.
    offset: Option<u64>,
    /// The offset after the last frame.
    end: u64,
}

/// The open file of a segment, and the offsets of its chunks.
#[derive(Debug)]
pub(super) struct OpenSegment {
    pub(super) file: Arc<dyn DiskFile>,
    pub(super) offsets: Offsets,
    /// The offset after the last frame that is durable.
    pub(super) end: u64,
}

impl Segment {
    /// Creates a segment that is not sealed, from a file that the caller has opened.
    pub(super) fn written(location: &JournalLocation, header: Header, open: OpenSegment) -> Self {
        Self::new(path_of(&location.dir, header.first), header, Some(open))
    }

    /// Reads the header and the seal of a segment that has a successor, and closes its file again. The seal is `None`
    /// if the file does not end with one, as after a crash right before the seal.
    pub(super) fn open_sealed(
        location: &JournalLocation,
        first: Position,
    ) -> Result<(Self, Option<Seal>), JournalError> {
        let path = path_of(&location.dir, first);
        let file = open_file(&path, first, |path| location.disk.open(path, OpenMode::Existing))?;
        let header = read_header(&*file, location, &path, first)?;
        let seal = read_seal(&*file, location, &path, first)?;
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

    /// Returns the path of its file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the segment's file is open.
    pub(super) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    /// Returns the number of its last use.
    pub(super) fn last_used(&self) -> u64 {
        self.last_used.load(Ordering::Relaxed)
    }

    /// Records a use with this number.
    pub(super) fn touch(&self, now: u64) {
        self.last_used.store(now, Ordering::Relaxed);
    }

    /// Closes the file unless it is in use.
    pub(super) fn close_if_idle(&self) {
        if let Some(mut slot) = self.open.try_write() {
            self.close(&mut slot);
        }
    }

    fn close(&self, slot: &mut Option<OpenSegment>) {
        self.is_open.store(false, Ordering::Relaxed);
        drop(slot.take());
    }

    /// Runs `change` on the open file of the last segment, to record an append.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut OpenSegment) -> T) -> T {
        change(self.open.write().as_mut().expect("the segment that is written is open"))
    }

    /// Seals the segment: writes its end as the last frame, cuts the file off there and closes it. Readers open it
    /// again.
    pub(super) fn seal(
        &self,
        location: &JournalLocation,
        tail: &mut Tail,
        end: Head,
    ) -> Result<(), JournalError> {
        let mut slot = self.open.write();
        let open = slot.as_mut().expect("the segment that is written is open");
        tail.seal(&*open.file, &mut open.offsets, end, &location.identity.secret)
            .map_err(|cause| storage(&self.path, "seal", cause))?;
        self.close(&mut slot);
        Ok(())
    }

    /// Returns the chunk that holds the entry at position `at`.
    pub(super) fn read(&self, location: &JournalLocation, at: Position) -> Result<Chunk, JournalError> {
        let nowhere = || self.damage(at, "no chunk holds this position");
        let LookupStart { file, offset, end } = self.lookup_start(location, at)?;
        let mut offset = offset.ok_or_else(nowhere)?;
        let mut frames = self.frames(&*file, location, end, LOOKUP_BYTES);
        loop {
            let Some((chunk, next)) = self.chunk_after(&mut frames, offset, at, location)? else {
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

    /// Reads the next frame at or after `offset`. Returns `None` after the last frame. Otherwise returns the offset
    /// after the frame and, if the frame is a chunk that holds `at` or a later position, the chunk. Only such a chunk
    /// is verified.
    fn chunk_after(
        &self,
        frames: &mut FrameReader<'_>,
        offset: u64,
        at: Position,
        location: &JournalLocation,
    ) -> Result<Option<(Option<Chunk>, u64)>, JournalError> {
        let frame = match frames.at(offset).map_err(|cause| self.unreadable(cause, at))? {
            FrameResult::Frame(frame) => frame,
            FrameResult::Nothing => return Ok(None),
            FrameResult::Invalid => return Err(self.damage(at, "a frame does not match its check")),
            FrameResult::Cut => return Err(self.damage(at, "a frame ends beyond the end")),
        };
        let is_before = |body| peek_positions(body).is_some_and(|(_, next)| next <= at);
        if !frame.is_chunk() || is_before(frame.body) {
            return Ok(Some((None, frame.end())));
        }
        let chunk = self.verified(location, at, frame.body)?;
        Ok(Some((Some(chunk), frame.end())))
    }

    /// Appends chunks to `out` in order, starting with the one that holds `from`. Subtracts the bytes of each chunk
    /// from `wanted`. Stops when `wanted` is zero, or at the first chunk that begins at `end` or later.
    pub(super) fn scan(
        &self,
        location: &JournalLocation,
        from: Position,
        end: Position,
        wanted: &mut usize,
        out: &mut Vec<Chunk>,
    ) -> Result<(), JournalError> {
        let nowhere = || self.damage(from, "no chunk holds this position");
        let LookupStart { file, offset, end: frames_end } = self.lookup_start(location, from)?;
        let mut offset = offset.ok_or_else(nowhere)?;
        let window = (*wanted).clamp(LOOKUP_BYTES, SCAN_BYTES);
        let mut frames = self.frames(&*file, location, frames_end, window);
        let mut at = from;
        let before = out.len();
        while let Some((chunk, next)) = self.chunk_after(&mut frames, offset, at, location)? {
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

    /// Verifies the last chunks of the segment, at least `tail_bytes` of them or all, and that they end with `head`.
    pub(super) fn verify_tail(
        &self,
        location: &JournalLocation,
        head: Head,
        tail_bytes: u64,
    ) -> Result<(), JournalError> {
        if head.next == self.header.first {
            return self.compare_end(self.header.head(), head);
        }
        let from = {
            let slot = self.opened(location)?;
            let open = slot.as_ref().expect("the file was opened above");
            open.offsets.at_or_before_or_first(open.end.saturating_sub(tail_bytes))
        };
        let (first, _) = from.ok_or_else(|| self.damage(self.header.first, "it does not list its chunks"))?;
        let mut at = Position::new(first).ok_or_else(|| self.damage(self.header.first, "position zero"))?;
        let is_whole = at == self.header.first;
        // The header has the hash before the first chunk. The hash before a tail that begins later is not known.
        let mut found: Option<Head> = is_whole.then(|| self.header.head());
        while at < head.next {
            let mut chunks = Vec::new();
            self.scan(location, at, head.next, &mut { SCAN_BYTES }, &mut chunks)?;
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

    /// Returns whether a chunk before `end` still has the bytes of one of these sections. If `should_stop` ends the
    /// search early, the answer means nothing.
    pub(super) fn holds(
        &self,
        location: &JournalLocation,
        end: Position,
        sections: &BTreeSet<SectionId>,
        should_stop: &dyn Fn() -> bool,
    ) -> Result<bool, JournalError> {
        let mut at = self.header.first;
        while at < end && !should_stop() {
            let mut chunks = Vec::new();
            self.scan(location, at, end, &mut { SCAN_BYTES }, &mut chunks)?;
            if chunks.iter().any(|chunk| chunk.has_any(sections)) {
                return Ok(true);
            }
            at = chunks.last().map_or(end, Chunk::next);
        }
        Ok(false)
    }

    /// Returns the open file. Opens it if it is closed.
    fn opened(
        &self,
        location: &JournalLocation,
    ) -> Result<RwLockReadGuard<'_, Option<OpenSegment>>, JournalError> {
        let slot = self.open.read();
        if slot.is_some() {
            return Ok(slot);
        }
        drop(slot);
        let mut empty = self.open.write();
        if empty.is_none() {
            *empty = Some(self.reopen(location)?);
            self.is_open.store(true, Ordering::Relaxed);
        }
        Ok(RwLockWriteGuard::downgrade(empty))
    }

    /// Opens the file of a sealed segment, and reads the offsets of its chunks.
    fn reopen(&self, location: &JournalLocation) -> Result<OpenSegment, JournalError> {
        let first = self.header.first;
        let file = open_file(&self.path, first, |path| location.disk.open(path, OpenMode::Existing))?;
        let (seal, end) = read_seal(&*file, location, &self.path, first)?
            .ok_or_else(|| self.damage(first, "it is not sealed any more"))?;
        let offsets = read_offsets(&*file, location, &self.path, first, seal.offsets, end)?;
        Ok(OpenSegment { file: Arc::from(file), offsets, end })
    }

    /// Finds where to begin a search for the chunk that holds `at`. Releases the lock before the caller reads, because
    /// an append would have to wait for it.
    fn lookup_start(&self, location: &JournalLocation, at: Position) -> Result<LookupStart, JournalError> {
        let slot = self.opened(location)?;
        let open = slot.as_ref().expect("the file was opened above");
        Ok(LookupStart {
            file: open.file.clone(),
            offset: open.offsets.search_start(at.get()),
            end: open.end,
        })
    }

    fn frames<'a>(
        &self,
        file: &'a dyn DiskFile,
        location: &'a JournalLocation,
        end: u64,
        window: usize,
    ) -> FrameReader<'a> {
        FrameReader::new(file, &location.identity.secret, self.header.first, end, window)
    }

    /// Verifies and decodes the bytes of a chunk. `at` is the position that an error names.
    pub(super) fn verified(
        &self,
        location: &JournalLocation,
        at: Position,
        bytes: &[u8],
    ) -> Result<Chunk, JournalError> {
        decode(bytes, &location.identity.secret).map_err(|error| match error {
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

/// Returns whether `later` comes directly after `earlier`.
fn follows(earlier: &Chunk, later: &Chunk) -> bool {
    (earlier.next(), earlier.chain()) == (later.first(), later.previous())
}

pub(super) fn storage(path: &Path, action: &'static str, cause: io::Error) -> JournalError {
    JournalError::Storage { path: path.to_owned(), action, cause }
}

fn damaged(path: &Path, position: Position, what: &str) -> JournalError {
    JournalError::Damaged { path: path.to_owned(), position: Some(position), what: what.to_owned() }
}

/// Maps a failed read to an error. A read beyond the end means that the file lost bytes, so it is damaged.
fn read_failure(path: &Path, cause: io::Error, at: Position) -> JournalError {
    match cause.kind() {
        io::ErrorKind::UnexpectedEof => damaged(path, at, "the file is shorter than it was"),
        _ => storage(path, "read", cause),
    }
}

/// Opens the file of a segment, which must exist and must not be empty.
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

/// Reads the header of a segment, which must agree with the name of the file.
pub(super) fn read_header(
    file: &dyn DiskFile,
    location: &JournalLocation,
    path: &Path,
    first: Position,
) -> Result<Header, JournalError> {
    let mut record = [0; Header::BYTES];
    file.read_at(0, &mut record).map_err(|cause| read_failure(path, cause, first))?;
    Header::decode(&record, &location.identity, path, first)
}

/// Reads the seal at the end of a segment, and returns it with its offset. `None` if the file does not end with one.
fn read_seal(
    file: &dyn DiskFile,
    location: &JournalLocation,
    path: &Path,
    first: Position,
) -> Result<Option<(Seal, u64)>, JournalError> {
    let len = file.len().map_err(|cause| storage(path, "measure", cause))?;
    let frame_bytes = (HEADER_BYTES + Seal::BYTES) as u64;
    let Some(offset) = len.checked_sub(frame_bytes).filter(|offset| *offset >= FRAMES_START) else {
        return Ok(None);
    };
    let mut bytes = [0; HEADER_BYTES + Seal::BYTES];
    file.read_at(offset, &mut bytes).map_err(|cause| read_failure(path, cause, first))?;
    let (header, body) =
        bytes.split_first_chunk::<HEADER_BYTES>().expect("the buffer is longer than a header");
    match FrameHeader::parse(header, &location.identity.secret, first, offset) {
        Parsed::Valid(header) if header.kind == Kind::Seal => {
            let seal = Seal::decode(body, &location.identity.secret, path, first)?;
            Ok(Some((seal, offset)))
        }
        Parsed::Valid(_) | Parsed::Invalid | Parsed::Blank => Ok(None),
    }
}

/// Reads the offsets of a segment's chunks. Each frame of offsets names the one before it; `last` is the offset of the
/// last such frame, and `end` the offset after the last frame.
pub(super) fn read_offsets(
    file: &dyn DiskFile,
    location: &JournalLocation,
    path: &Path,
    first: Position,
    last: u64,
    end: u64,
) -> Result<Offsets, JournalError> {
    let secret = &location.identity.secret;
    let mut frames = FrameReader::new(file, secret, first, end, LOOKUP_BYTES);
    let mut offsets = Offsets::default();
    let mut at = last;
    while at > 0 {
        let found = frames.at(at).map_err(|cause| read_failure(path, cause, first))?;
        let FrameResult::Frame(frame) = found else {
            return Err(damaged(path, first, "a list of its chunks is not where it should be"));
        };
        if frame.header.kind != Kind::Offsets {
            return Err(damaged(path, first, "a list of its chunks is not where it should be"));
        }
        at = offsets.prepend(frame.body, at, secret).map_err(|corrupt| damaged(path, first, corrupt.what))?;
    }
    Ok(offsets)
}
