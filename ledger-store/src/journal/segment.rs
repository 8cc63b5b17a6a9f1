//! A segment: one file of the journal.
//!
//! The file is a redb database named after its first position, with 20
//! digits. Two tables:
//!
//! ```text
//! chunks: first position u64 -> the bytes of a chunk (see `chunk`)
//! meta:   0 u8 -> digest 16 ‖ format version 1 ‖ store id 16 ‖ first position 8 ‖ chain before it 32
//!         1 u8 -> digest 16 ‖ next position 8 ‖ chain head 32          once it is sealed
//! ```
//!
//! Numbers are big-endian. A digest is keyed by the store's secret, over the
//! key in `meta` and the bytes after the digest.
//!
//! A segment has its name only when its file is complete: it is made under
//! another one, synced and renamed. So a file of that name without bytes, or
//! with bytes that do not verify, is always damage. And a segment is sealed
//! only when its successor has its name: a sealed segment without a successor
//! means that a file is missing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{RwLock, RwLockWriteGuard};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

use super::chunk::{DecodeError, FORMAT_VERSION as CHUNK_FORMAT_VERSION, decode, encode, encode_without};
use super::record::{HEADER, Header, SEAL, decode_seal, encode_seal, path_of};
use super::{Chunk, ChunkDraft, Head, Identity, JournalError, Position, SectionId};
use crate::disk::engine::{EngineError, EngineFile, guarded};
use crate::disk::{Disk, parent, temporary_name};

const CHUNKS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("chunks");
const META: TableDefinition<'_, u8, &[u8]> = TableDefinition::new("meta");

/// So much of a segment is copied at once.
const COPY_BYTES: usize = 4 << 20;

/// What every segment of a journal needs.
#[derive(Debug)]
pub(super) struct Medium {
    pub(super) disk: std::sync::Arc<dyn Disk>,
    pub(super) dir: PathBuf,
    pub(super) identity: Identity,
    pub(super) cache_bytes: usize,
}

/// What a segment says about itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meta {
    header: Header,
    /// Where it ends, once it is sealed.
    pub(super) seal: Option<Head>,
}

/// Makes a complete and empty segment under its temporary name, durably but
/// for the name. What bore it before was never finished and is removed.
pub(super) fn prepare(medium: &Medium, at: Head) -> Result<(), JournalError> {
    let path = temporary_name(&path_of(&medium.dir, at.next));
    let header = Header { store: medium.identity.store, first: at.next, previous: at.chain };
    let work = || {
        if medium.disk.exists(&path)? {
            medium.disk.remove(&path)?;
        }
        let file = EngineFile::create(&*medium.disk, &path, medium.cache_bytes)?;
        guarded(|| {
            let write_txn = file.begin_write()?;
            write_txn.open_table(CHUNKS)?;
            let record = header.encode(&medium.identity.secret);
            write_txn.open_table(META)?.insert(HEADER, &record[..])?;
            Ok(write_txn.commit()?)
        })?;
        file.close()
    };
    work().map_err(|error| failure(error, &path, None, "create"))
}

/// Gives a [prepared](prepare) segment its name, durably.
pub(super) fn publish(medium: &Medium, first: Position) -> Result<(), JournalError> {
    let path = path_of(&medium.dir, first);
    let named = medium.disk.rename(&temporary_name(&path), &path);
    named.and_then(|()| medium.disk.sync_dir(parent(&path))).map_err(|cause| JournalError::Storage {
        path,
        action: "name",
        cause,
    })
}

/// One file of the journal, open or not.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) header: Header,
    path: PathBuf,
    /// The file while it is open. Readers share the lock; closing waits for
    /// them.
    file: RwLock<Option<EngineFile>>,
    /// Whether `file` is there, to be asked without the lock.
    is_open: AtomicBool,
    /// When it was last used, in a count of uses.
    last_used: AtomicU64,
}

impl Segment {
    /// Opens the segment that is written.
    pub(super) fn open_writable(medium: &Medium, first: Position) -> Result<(Self, Meta), JournalError> {
        let path = path_of(&medium.dir, first);
        let opened = EngineFile::open(&*medium.disk, &path, medium.cache_bytes);
        let file = opened.map_err(|error| opening_failure(error, &path, first))?;
        let meta = read_meta(&file, medium, &path, first)?;
        Ok((Self::new(path, meta, Some(file)), meta))
    }

    /// Looks into a segment that has a successor, and closes it again.
    ///
    /// The one that was sealed last may have lost power before it was closed;
    /// then the engine repairs its own housekeeping here, once.
    pub(super) fn open_sealed(medium: &Medium, first: Position) -> Result<(Self, Meta), JournalError> {
        let path = path_of(&medium.dir, first);
        let file = match EngineFile::open_frozen(&*medium.disk, &path, medium.cache_bytes) {
            Err(EngineError::NeedsRepair) => EngineFile::open(&*medium.disk, &path, medium.cache_bytes),
            opened => opened,
        };
        let file = file.map_err(|error| opening_failure(error, &path, first))?;
        let meta = read_meta(&file, medium, &path, first)?;
        file.close().map_err(|error| failure(error, &path, None, "close"))?;
        Ok((Self::new(path, meta, None), meta))
    }

    fn new(path: PathBuf, meta: Meta, file: Option<EngineFile>) -> Self {
        Self {
            header: meta.header,
            path,
            is_open: AtomicBool::new(file.is_some()),
            file: RwLock::new(file),
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
        if let Some(mut slot) = self.file.try_write() {
            self.is_open.store(false, Ordering::Relaxed);
            drop(slot.take());
        }
    }

    /// Writes down where the segment ends, and closes it cleanly. It is read
    /// through another opening from now on, which changes nothing.
    pub(super) fn seal(&self, medium: &Medium, end: Head) -> Result<(), JournalError> {
        let mut slot = self.file.write();
        let sealed = guarded(|| {
            let write_txn = slot.as_ref().expect(WRITTEN_IS_OPEN).begin_write()?;
            let record = encode_seal(end, &medium.identity.secret);
            write_txn.open_table(META)?.insert(SEAL, &record[..])?;
            Ok(write_txn.commit()?)
        });
        let closed = sealed.and_then(|()| {
            self.is_open.store(false, Ordering::Relaxed);
            slot.take().map_or(Ok(()), EngineFile::close)
        });
        closed.map_err(|error| failure(error, &self.path, None, "seal"))
    }

    /// Appends chunks after `head` in one durable commit, and says the new
    /// head and how many bytes they took.
    pub(super) fn append(
        &self,
        medium: &Medium,
        mut head: Head,
        drafts: &[ChunkDraft],
        buffer: &mut Vec<u8>,
    ) -> Result<(Head, u64), JournalError> {
        let slot = self.file.read();
        let file = slot.as_ref().expect(WRITTEN_IS_OPEN);
        let position = head.next;
        let mut stored = 0;
        let write_txn = guarded(|| {
            // Durable, and with one flush: the defaults. Quick repair stays
            // off, since it halves small commits.
            let write_txn = file.begin_write()?;
            let mut table = write_txn.open_table(CHUNKS)?;
            for draft in drafts {
                let chain = encode(draft, head.chain, &medium.identity.secret, buffer);
                table.insert(draft.first.get(), &buffer[..])?;
                stored += buffer.len() as u64;
                let next = draft.first.after(draft.entries).expect("the append was checked");
                head = Head { next, chain };
            }
            drop(table);
            Ok(write_txn)
        });
        let write_txn = write_txn.map_err(|error| failure(error, &self.path, Some(position), "append to"))?;
        guarded(|| Ok(write_txn.commit()?)).map_err(|error| JournalError::OutcomeUnknown {
            path: self.path.clone(),
            position,
            cause: match error {
                EngineError::Io(cause) => cause,
                other => std::io::Error::other(other.to_string()),
            },
        })?;
        Ok((head, stored))
    }

    /// The chunk that holds `at`.
    pub(super) fn read(&self, medium: &Medium, at: Position) -> Result<Chunk, JournalError> {
        self.with_database(medium, at, |database| {
            let table = database.begin_read()?.open_table(CHUNKS)?;
            let found = table.range(..=at.get())?.next_back().transpose()?;
            Ok(found.map(|(key, value)| self.verified(medium, key.value(), value.value())))
        })?
        .unwrap_or_else(|| Err(self.damage(at, "no chunk holds this position")))
        .and_then(|chunk| {
            if chunk.next() > at { Ok(chunk) } else { Err(self.damage(at, "no chunk holds this position")) }
        })
    }

    /// Adds chunks to `out` in order, from the one that holds `from`, as long
    /// as they begin before `end` and `wanted` is not yet reached; takes their
    /// bytes off `wanted`.
    pub(super) fn scan(
        &self,
        medium: &Medium,
        from: Position,
        end: Position,
        wanted: &mut usize,
        out: &mut Vec<Chunk>,
    ) -> Result<(), JournalError> {
        self.with_database(medium, from, |database| {
            let table = database.begin_read()?.open_table(CHUNKS)?;
            let Some(first) = table.range(..=from.get())?.next_back().transpose()? else {
                return Ok(Err(self.damage(from, "no chunk holds this position")));
            };
            for row in table.range(first.0.value()..end.get())? {
                let (key, value) = row?;
                let chunk = match self.verified(medium, key.value(), value.value()) {
                    Ok(chunk) => chunk,
                    Err(error) => return Ok(Err(error)),
                };
                match out.last() {
                    Some(before) if !follows(before, &chunk) => {
                        return Ok(Err(self.damage(chunk.first(), NOT_CONTINUED)));
                    }
                    None if chunk.next() <= from => {
                        return Ok(Err(self.damage(from, "no chunk holds this position")));
                    }
                    _ => {}
                }
                *wanted = wanted.saturating_sub(chunk.weight());
                out.push(chunk);
                if *wanted == 0 {
                    break;
                }
            }
            Ok(Ok(()))
        })?
    }

    /// Verifies the last chunks, of at least `tail_bytes` if there are as
    /// many, and says where the segment ends.
    pub(super) fn verify_tail(&self, medium: &Medium, tail_bytes: usize) -> Result<Head, JournalError> {
        self.with_database(medium, self.header.first, |database| {
            let table = database.begin_read()?.open_table(CHUNKS)?;
            let mut later: Option<Chunk> = None;
            let mut head = self.header.head();
            let mut verified = 0;
            for row in table.iter()?.rev() {
                let (key, value) = row?;
                verified += value.value().len();
                let chunk = match self.verified(medium, key.value(), value.value()) {
                    Ok(chunk) => chunk,
                    Err(error) => return Ok(Err(error)),
                };
                match &later {
                    None => head = Head { next: chunk.next(), chain: chunk.chain() },
                    Some(later) if !follows(&chunk, later) => {
                        return Ok(Err(self.damage(later.first(), NOT_CONTINUED)));
                    }
                    Some(_) => {}
                }
                later = Some(chunk);
                if verified >= tail_bytes {
                    return Ok(Ok(head));
                }
            }
            // All of the segment was read: so it must begin where it says.
            if let Some(chunk) = later
                && (chunk.first(), chunk.previous()) != (self.header.first, self.header.previous)
            {
                return Ok(Err(self.damage(self.header.first, NOT_CONTINUED)));
            }
            Ok(Ok(head))
        })?
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
            self.scan(medium, at, end, &mut { COPY_BYTES }, &mut chunks)?;
            if chunks.iter().any(|chunk| chunk.has_any(sections)) {
                return Ok(true);
            }
            at = chunks.last().map_or(end, Chunk::next);
        }
        Ok(false)
    }

    /// Replaces the file of this sealed segment, which ends at `end`, by a
    /// copy in which sections are reduced to their digests, and says what is
    /// read from now on. `None` if it was to stop.
    ///
    /// The copy takes the name in one step, when it is complete and durable: a
    /// power cut leaves the one or the other. Who reads the old file goes on.
    pub(super) fn without(
        &self,
        medium: &Medium,
        end: Head,
        sections: &BTreeSet<SectionId>,
        should_stop: &dyn Fn() -> bool,
    ) -> Result<Option<Self>, JournalError> {
        let path = temporary_name(&self.path);
        let failed = |error| failure(error, &path, None, "copy to");
        let copied = self.copy_without(medium, &path, end, sections, should_stop);
        if !matches!(copied, Ok(true)) {
            // It would be removed by the next opening at the latest.
            let _ = medium.disk.remove(&path);
            return copied.map(|_| None);
        }
        publish(medium, self.header.first)?;
        let (segment, meta) = Self::open_sealed(medium, self.header.first)?;
        if meta.seal != Some(end) || segment.header != self.header {
            let error = EngineError::Damaged("a copy of it is not what was written".to_owned());
            return Err(failed(error));
        }
        Ok(Some(segment))
    }

    fn copy_without(
        &self,
        medium: &Medium,
        path: &Path,
        end: Head,
        sections: &BTreeSet<SectionId>,
        should_stop: &dyn Fn() -> bool,
    ) -> Result<bool, JournalError> {
        let failed = |error| failure(error, path, None, "copy to");
        let secret = &medium.identity.secret;
        let begin = || {
            if medium.disk.exists(path)? {
                medium.disk.remove(path)?;
            }
            EngineFile::create(&*medium.disk, path, medium.cache_bytes)
        };
        let mut file = begin().map_err(failed)?;
        let mut head = self.header.head();
        while head.next < end.next {
            if should_stop() {
                return Ok(false);
            }
            let mut chunks = Vec::new();
            self.scan(medium, head.next, end.next, &mut { COPY_BYTES }, &mut chunks)?;
            for chunk in &chunks {
                if (chunk.first(), chunk.previous()) != (head.next, head.chain) {
                    return Err(self.damage(chunk.first(), NOT_CONTINUED));
                }
                head = Head { next: chunk.next(), chain: chunk.chain() };
            }
            let copy = || {
                let write_txn = file.begin_write()?;
                let mut table = write_txn.open_table(CHUNKS)?;
                for chunk in &chunks {
                    let bytes = encode_without(chunk, sections, secret);
                    table.insert(chunk.first().get(), &bytes[..])?;
                }
                drop(table);
                Ok(write_txn.commit()?)
            };
            guarded(copy).map_err(failed)?;
        }
        if head != end {
            return Err(self.damage(head.next, "it does not end where it says"));
        }
        let finish = || {
            let write_txn = file.begin_write()?;
            let mut table = write_txn.open_table(META)?;
            table.insert(HEADER, &self.header.encode(secret)[..])?;
            table.insert(SEAL, &encode_seal(end, secret)[..])?;
            drop(table);
            // A segment without chunks has the table all the same.
            write_txn.open_table(CHUNKS)?;
            Ok(write_txn.commit()?)
        };
        guarded(finish).map_err(failed)?;
        file.compact().map_err(failed)?;
        file.close().map_err(failed)?;
        Ok(true)
    }

    /// Lets `work` read the file, which is opened if it is not.
    fn with_database<T>(
        &self,
        medium: &Medium,
        at: Position,
        work: impl FnOnce(&Database) -> Result<T, EngineError>,
    ) -> Result<T, JournalError> {
        let mut slot = self.file.read();
        if slot.is_none() {
            drop(slot);
            let mut empty = self.file.write();
            if empty.is_none() {
                let file = EngineFile::open_frozen(&*medium.disk, &self.path, medium.cache_bytes)
                    .map_err(|error| opening_failure(error, &self.path, self.header.first))?;
                *empty = Some(file);
                self.is_open.store(true, Ordering::Relaxed);
            }
            slot = RwLockWriteGuard::downgrade(empty);
        }
        let file = slot.as_ref().expect("it was opened just above");
        guarded(|| work(file)).map_err(|error| failure(error, &self.path, Some(at), "read"))
    }

    fn verified(&self, medium: &Medium, key: u64, value: &[u8]) -> Result<Chunk, JournalError> {
        let position = Position::new(key);
        let damage =
            |what: &str| JournalError::Damaged { path: self.path.clone(), position, what: what.to_owned() };
        let chunk = decode(value, &medium.identity.secret).map_err(|error| match error {
            DecodeError::Corrupt(corrupt) => damage(corrupt.what),
            DecodeError::Newer(found) => {
                JournalError::NewerFormat { path: self.path.clone(), found, supported: CHUNK_FORMAT_VERSION }
            }
        })?;
        if Some(chunk.first()) == position { Ok(chunk) } else { Err(damage("the chunk belongs elsewhere")) }
    }

    fn damage(&self, position: Position, what: &str) -> JournalError {
        JournalError::Damaged { path: self.path.clone(), position: Some(position), what: what.to_owned() }
    }
}

const WRITTEN_IS_OPEN: &str = "the segment that is written is open";
const NOT_CONTINUED: &str = "the chunk does not continue the one before it";

/// Whether `later` comes directly after `earlier`.
fn follows(earlier: &Chunk, later: &Chunk) -> bool {
    (earlier.next(), earlier.chain()) == (later.first(), later.previous())
}

fn failure(
    error: EngineError,
    path: &Path,
    position: Option<Position>,
    action: &'static str,
) -> JournalError {
    let path = path.to_owned();
    match error {
        EngineError::Io(cause) => JournalError::Storage { path, action, cause },
        EngineError::Damaged(what) => JournalError::Damaged { path, position, what },
        EngineError::ZeroLength => JournalError::ZeroLength { path },
        // A sealed segment that the disk did not let us close.
        EngineError::NeedsRepair => {
            let cause =
                std::io::Error::other("it was not closed cleanly; opening the journal again repairs that");
            JournalError::Storage { path, action, cause }
        }
    }
}

fn opening_failure(error: EngineError, path: &Path, first: Position) -> JournalError {
    match error {
        EngineError::Io(error) if error.kind() == std::io::ErrorKind::NotFound => {
            JournalError::Missing { path: path.to_owned(), first }
        }
        other => failure(other, path, Some(first), "open"),
    }
}

/// Reads what a segment says about itself, which must agree with its name.
fn read_meta(
    database: &Database,
    medium: &Medium,
    path: &Path,
    first: Position,
) -> Result<Meta, JournalError> {
    let read = || {
        let table = database.begin_read()?.open_table(META)?;
        let record = |key| {
            let value = table.get(key)?;
            Ok::<_, EngineError>(value.map(|value| value.value().to_vec()))
        };
        Ok((record(HEADER)?, record(SEAL)?))
    };
    let (header, seal) = guarded(read).map_err(|error| failure(error, path, Some(first), "read"))?;
    let header = header.ok_or_else(|| JournalError::Damaged {
        path: path.to_owned(),
        position: Some(first),
        what: "it does not say what it is".to_owned(),
    })?;
    let header = Header::decode(&header, &medium.identity, path, first)?;
    let seal = seal.map(|seal| decode_seal(&seal, &medium.identity.secret, path, first)).transpose()?;
    Ok(Meta { header, seal })
}
