//! The file `HEAD`: records how far the journal was acknowledged, and whether it was closed.
//!
//! The file has two slots, 4096 bytes apart, that are written alternately. The valid slot with the higher
//! sequence number is the current one:
//!
//! ```text
//! 16  digest    keyed, over the rest
//!  1  version   1
//!  1  state     0 open, 1 closed
//! 16  boot      id of the machine's current boot, or zeros
//!  8  sequence
//!  8  segment   first position of the segment that receives entries
//!  8  end       end offset of the acknowledged frames in its file
//!  8  offsets   offset of its last frame of offsets, or 0
//!  8  next      position after the last acknowledged entry
//! 32  chain     chain hash up to there
//! ```
//!
//! Numbers are big-endian. A slot is written after each append, before any caller gets an answer, but not synced: the
//! page cache outlives the process. So while the machine runs, `HEAD` records exactly what was acknowledged, and bytes
//! after it that do not verify were never acknowledged. After a power cut `HEAD` may lack the writes that the system
//! had not written back yet; frames after the end that it records may be torn. Opening and closing the journal sync the
//! file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ledger_codec::Reader;

use super::record::HEAD_FILE;
use super::segment::JournalLocation;
use super::{ChainHash, Head, Identity, JournalError, Position};
use crate::disk::{BootId, DiskFile, OpenMode};

const FORMAT_VERSION: u8 = 1;
/// Distance between the slots, so large that a damaged sector or block affects only one of them.
const SLOT_SPACING: usize = 4096;
const SLOT_BYTES: usize = 106;
/// The second slot has a sector of its own.
const FILE_BYTES: usize = SLOT_SPACING + 512;

/// How far the journal was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeadRecord {
    /// True if the journal was closed: nothing was appended after it, and everything is durable.
    pub(super) is_closed: bool,
    /// The boot of the machine in which it was written, if known.
    pub(super) boot: Option<BootId>,
    /// The first position of the segment that receives entries.
    pub(super) segment: Position,
    /// The end offset of the acknowledged frames in that segment's file.
    pub(super) end: u64,
    /// The offset of the segment's last frame of offsets, or 0.
    pub(super) offsets: u64,
    /// The end of the journal.
    pub(super) head: Head,
}

/// The open file `HEAD`.
#[derive(Debug)]
pub(super) struct HeadFile {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    identity: Identity,
    sequence: u64,
}

impl HeadFile {
    /// Creates the file of a new journal, durably.
    pub(super) fn create(location: &JournalLocation, record: &HeadRecord) -> Result<(), JournalError> {
        let mut bytes = vec![0; FILE_BYTES];
        for slot in 0..2 {
            let at = slot * SLOT_SPACING;
            bytes[at..at + SLOT_BYTES].copy_from_slice(&encode(record, slot as u64, &location.identity));
        }
        let path = location.dir.join(HEAD_FILE);
        location.disk.replace(&path, &bytes).map_err(storage(&path, "write"))
    }

    /// Opens the file, which must exist, and reads the record.
    pub(super) fn open(location: &JournalLocation) -> Result<(Self, HeadRecord), JournalError> {
        let path = location.dir.join(HEAD_FILE);
        let file = location.disk.open(&path, OpenMode::Existing).map_err(|cause| match cause.kind() {
            std::io::ErrorKind::NotFound => {
                JournalError::Missing { path: path.clone(), first: Position::FIRST }
            }
            _ => storage(&path, "open")(cause),
        })?;
        let file: Arc<dyn DiskFile> = Arc::from(file);
        let damaged =
            |what: &str| JournalError::Damaged { path: path.clone(), position: None, what: what.to_owned() };
        if file.len().map_err(storage(&path, "measure"))? != FILE_BYTES as u64 {
            return Err(damaged("unexpected file length"));
        }
        let mut newest: Option<(u64, HeadRecord)> = None;
        let mut newer = None;
        for slot in 0..2 {
            let mut bytes = [0; SLOT_BYTES];
            file.read_at(slot * SLOT_SPACING as u64, &mut bytes).map_err(storage(&path, "read"))?;
            match decode(&bytes, &location.identity) {
                Decoded::Known(sequence, record) if newest.is_none_or(|(before, _)| before < sequence) => {
                    newest = Some((sequence, record));
                }
                Decoded::Newer(version) => newer = Some(version),
                Decoded::Known(..) | Decoded::Damaged => {}
            }
        }
        match (newest, newer) {
            (Some((sequence, record)), _) => {
                Ok((Self { file, path, identity: location.identity.clone(), sequence }, record))
            }
            (None, Some(found)) => Err(JournalError::NewerFormat { path, found, supported: FORMAT_VERSION }),
            (None, None) => Err(damaged("neither of its two records matches its digest")),
        }
    }

    /// Writes the record without a sync. It survives the process, but not a power cut.
    pub(super) fn write_unsynced(&mut self, record: &HeadRecord) -> Result<(), JournalError> {
        self.sequence += 1;
        let bytes = encode(record, self.sequence, &self.identity);
        let at = self.sequence % 2 * SLOT_SPACING as u64;
        self.file.write_at(at, &bytes).map_err(storage(&self.path, "write"))
    }

    /// Writes both slots, durably.
    pub(super) fn write_durably(&mut self, record: &HeadRecord) -> Result<(), JournalError> {
        self.write_unsynced(record)?;
        self.sync()?;
        self.write_unsynced(record)?;
        self.sync()
    }

    fn sync(&self) -> Result<(), JournalError> {
        self.file.sync().map_err(storage(&self.path, "sync"))
    }

    /// Returns the file, so that a background thread can sync it.
    pub(super) fn file(&self) -> Arc<dyn DiskFile> {
        self.file.clone()
    }

    /// Returns the path of the file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

fn storage<'a>(path: &'a Path, action: &'static str) -> impl Fn(std::io::Error) -> JournalError + use<'a> {
    move |cause| JournalError::Storage { path: path.to_owned(), action, cause }
}

fn encode(record: &HeadRecord, sequence: u64, identity: &Identity) -> [u8; SLOT_BYTES] {
    let mut body = vec![FORMAT_VERSION, u8::from(record.is_closed)];
    body.extend_from_slice(&record.boot.map_or([0; 16], |boot| boot.0));
    for number in [sequence, record.segment.get(), record.end, record.offsets, record.head.next.get()] {
        body.extend_from_slice(&number.to_be_bytes());
    }
    body.extend_from_slice(&record.head.chain.0);
    let mut bytes = [0; SLOT_BYTES];
    bytes[..16].copy_from_slice(&identity.secret.digest(&[b"head", &body]));
    bytes[16..].copy_from_slice(&body);
    bytes
}

enum Decoded {
    /// A record and its sequence number.
    Known(u64, HeadRecord),
    /// A record of a version that this software does not know.
    Newer(u8),
    Damaged,
}

fn decode(bytes: &[u8; SLOT_BYTES], identity: &Identity) -> Decoded {
    let (digest, body) = bytes.split_at(16);
    if identity.secret.digest(&[b"head", body]) != digest {
        return Decoded::Damaged;
    }
    if body[0] != FORMAT_VERSION {
        return Decoded::Newer(body[0]);
    }
    let mut reader = Reader::new(&body[2..]);
    let mut read = || {
        let boot: [u8; 16] = reader.array().ok()?;
        let sequence = reader.u64().ok()?;
        let segment = Position::new(reader.u64().ok()?)?;
        let (end, offsets) = (reader.u64().ok()?, reader.u64().ok()?);
        let next = Position::new(reader.u64().ok()?)?;
        let head = Head { next, chain: ChainHash(reader.array().ok()?) };
        let boot = (boot != [0; 16]).then_some(BootId(boot));
        Some((sequence, HeadRecord { is_closed: body[1] != 0, boot, segment, end, offsets, head }))
    };
    read().map_or(Decoded::Damaged, |(sequence, record)| Decoded::Known(sequence, record))
}
