//! Finds the end of the frames in a segment that was not closed, and decides whether the bytes after it are torn or
//! damaged.
//!
//! A frame that does not verify is damaged if a later write follows it, because a write begins only when the one
//! before it is durable. It is also damaged if it was acknowledged, which the [`HeadRecord`] shows. Otherwise it belongs to
//! the very last write:
//!
//! - If the machine has not rebooted since, everything that was written is visible, and `HEAD` is exact. Bytes after
//!   it that do not verify belong to a write that failed or was interrupted with its process, and that was never
//!   acknowledged.
//! - If the machine has rebooted, `HEAD` is older. Bytes only count as torn if a power cut can have left them: a
//!   header or a piece is blank that should not be. Otherwise no byte of the write is missing, and the bytes are
//!   damaged.
//!
//! One case remains ambiguous: a write after the newest `HEAD` on disk was acknowledged and then lost a whole sector to
//! zeros. It is dropped as torn, and reported.

use std::io;
use std::path::Path;

use super::chunk::{DecodeError, FORMAT_VERSION as CHUNK_FORMAT_VERSION, decode};
use super::frame::{
    FRAMES_START, HEADER_BYTES, Header as FrameHeader, Kind, Parsed, SECTOR_BYTES, blank_pieces, is_blank,
};
use super::frame_reader::{Frame, FrameReader, FrameResult};
use super::head_file::HeadRecord;
use super::offsets::{self, Offsets};
use super::record::{Header, Seal};
use super::{Head, JournalError, Position, Secret};
use crate::disk::DiskFile;

/// Number of bytes that a walk over a whole segment reads at a time.
const WINDOW_BYTES: usize = 1 << 20;

/// The end of the journal that an opening dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DroppedTail {
    /// The position that its first entry would have had.
    pub position: u64,
    /// Number of its bytes on disk, from its first to its last byte that is not zero.
    pub bytes: u64,
    /// True if the store may have acknowledged some of the dropped entries. False if the machine has not rebooted since
    /// they were written.
    pub may_have_been_acknowledged: bool,
}

/// The result of walking over a segment, up to the first frame that is missing or does not verify.
#[derive(Debug)]
pub(super) struct SegmentWalk {
    /// The offset after the last complete write.
    pub(super) end: u64,
    pub(super) head: Head,
    pub(super) offsets: Offsets,
    /// The seal, if the segment has one.
    pub(super) seal: Option<Seal>,
    /// The bytes after the end, if there are any.
    bad: Option<InvalidTail>,
}

/// Bytes after the end that are not a complete write.
#[derive(Debug)]
struct InvalidTail {
    /// The offset after the last of these bytes.
    until: u64,
    /// True if a power cut can have left these bytes.
    may_be_torn: bool,
    what: &'static str,
}

/// The reason why a frame does not continue the segment.
struct Mismatch {
    may_be_torn: bool,
    what: &'static str,
}

impl Mismatch {
    const fn damage(what: &'static str) -> Self {
        Self { may_be_torn: false, what }
    }

    const fn torn(what: &'static str) -> Self {
        Self { may_be_torn: true, what }
    }
}

/// Walks over the segment `path`, whose file has `len` bytes.
pub(super) fn walk(
    file: &dyn DiskFile,
    path: &Path,
    header: &Header,
    secret: &Secret,
    len: u64,
) -> Result<SegmentWalk, JournalError> {
    let failed = |cause: io::Error| JournalError::Storage { path: path.to_owned(), action: "read", cause };
    let mut walked = SegmentWalk {
        end: FRAMES_START,
        head: header.head(),
        offsets: Offsets::default(),
        seal: None,
        bad: None,
    };
    let mut frames = FrameReader::new(file, secret, header.first, len, WINDOW_BYTES);
    // The frames of the current write that were found so far.
    let mut write = Unfinished::after(&walked);
    let mismatch = loop {
        match next_frame(&mut frames, &mut write, path, header, secret).map_err(failed)? {
            Next::Frame { is_last: false } => {}
            Next::Frame { is_last: true } => {
                walked.end = write.end;
                walked.head = write.head;
                write.apply_to(&mut walked.offsets);
                walked.seal = write.seal;
                write = Unfinished::after(&walked);
                if walked.seal.is_some() {
                    break None;
                }
            }
            Next::Nothing => break None,
            Next::Mismatch(mismatch) => break Some(mismatch),
            Next::Failed(error) => return Err(error),
        }
    };
    let until = last_byte(&mut frames, walked.end, len).map_err(failed)?;
    if until == walked.end {
        return Ok(walked);
    }
    let mismatch = mismatch.unwrap_or(Mismatch::torn("the beginning of a write is missing"));
    if has_later_write(&mut frames, walked.end, until, secret, header.first).map_err(failed)? {
        return Err(JournalError::Damaged {
            path: path.to_owned(),
            position: Some(walked.head.next),
            what: format!("{}, and a later write stands behind it", mismatch.what),
        });
    }
    walked.bad = Some(InvalidTail { until, may_be_torn: mismatch.may_be_torn, what: mismatch.what });
    Ok(walked)
}

/// A write of which not all frames were found yet.
struct Unfinished {
    /// The offset of its first frame, once that was found.
    start: Option<u64>,
    remaining: u32,
    end: u64,
    head: Head,
    chunks: Vec<(u64, u64)>,
    offsets_frame: Option<u64>,
    seal: Option<Seal>,
}

impl Unfinished {
    fn after(walked: &SegmentWalk) -> Self {
        Self {
            start: None,
            remaining: 0,
            end: walked.end,
            head: walked.head,
            chunks: Vec::new(),
            offsets_frame: None,
            seal: None,
        }
    }

    fn apply_to(&self, offsets: &mut Offsets) {
        for (position, offset) in &self.chunks {
            offsets.note(*position, *offset);
        }
        if let Some(offset) = self.offsets_frame {
            offsets.set_stored(offset);
        }
    }
}

enum Next {
    Frame { is_last: bool },
    Nothing,
    Mismatch(Mismatch),
    Failed(JournalError),
}

/// Reads the next frame, and accepts it if it continues the segment.
fn next_frame(
    frames: &mut FrameReader<'_>,
    write: &mut Unfinished,
    path: &Path,
    header: &Header,
    secret: &Secret,
) -> io::Result<Next> {
    let frame = match frames.at(write.end)? {
        FrameResult::Frame(frame) => frame,
        FrameResult::Nothing if write.start.is_none() => return Ok(Next::Nothing),
        FrameResult::Nothing => return Ok(Next::Mismatch(Mismatch::torn("the end of a write is missing"))),
        FrameResult::Invalid => {
            return Ok(Next::Mismatch(Mismatch::damage("a frame does not match its check")));
        }
        FrameResult::Cut => return Ok(Next::Mismatch(Mismatch::torn("the file ends within a write"))),
    };
    let offset = frame.body_start - HEADER_BYTES as u64;
    let expected = (write.start.unwrap_or(offset), write.start.map(|_| write.remaining.wrapping_sub(1)));
    if offset.checked_sub(u64::from(frame.header.back)) != Some(expected.0)
        || expected.1.is_some_and(|left| left != frame.header.remaining)
    {
        return Ok(Next::Mismatch(Mismatch::damage("a frame does not continue the one before it")));
    }
    if let Err(problem) = take_body(&frame, write, path, header, secret) {
        return Ok(match problem {
            Problem::Newer(error) => Next::Failed(error),
            Problem::Corrupt(what) => Next::Mismatch(Mismatch { may_be_torn: lacks_piece(&frame), what }),
        });
    }
    write.start = Some(expected.0);
    write.remaining = frame.header.remaining;
    write.end = frame.end();
    Ok(Next::Frame { is_last: write.remaining == 0 })
}

/// Returns whether a power cut kept a piece of a frame's body from the disk.
fn lacks_piece(frame: &Frame<'_>) -> bool {
    blank_pieces(frame.body_start, frame.body) > frame.header.blank
}

enum Problem {
    Corrupt(&'static str),
    Newer(JournalError),
}

fn take_body(
    frame: &Frame<'_>,
    write: &mut Unfinished,
    path: &Path,
    header: &Header,
    secret: &Secret,
) -> Result<(), Problem> {
    let offset = frame.body_start - HEADER_BYTES as u64;
    match frame.header.kind {
        Kind::Chunk => {
            let chunk = decode(frame.body, secret).map_err(|error| match error {
                DecodeError::Corrupt(corrupt) => Problem::Corrupt(corrupt.what),
                DecodeError::Newer(found) if found < CHUNK_FORMAT_VERSION || lacks_piece(frame) => {
                    Problem::Corrupt("a chunk has no version")
                }
                DecodeError::Newer(found) => Problem::Newer(JournalError::NewerFormat {
                    path: path.to_owned(),
                    found,
                    supported: CHUNK_FORMAT_VERSION,
                }),
            })?;
            if (chunk.first(), chunk.previous()) != (write.head.next, write.head.chain) {
                return Err(Problem::Corrupt("a chunk does not continue the one before it"));
            }
            write.head = Head { next: chunk.next(), chain: chunk.chain() };
            write.chunks.push((chunk.first().get(), offset));
        }
        Kind::Offsets => {
            offsets::decode(frame.body, secret).map_err(|corrupt| Problem::Corrupt(corrupt.what))?;
            write.offsets_frame = Some(offset);
        }
        Kind::Seal => {
            let seal = Seal::decode(frame.body, secret, path, header.first)
                .map_err(|_| Problem::Corrupt("a seal does not match its digest"))?;
            if seal.end != write.head {
                return Err(Problem::Corrupt("a seal names another end"));
            }
            write.seal = Some(seal);
        }
    }
    Ok(())
}

/// Returns the offset after the last byte that is not zero, or `from` if there is none after it.
fn last_byte(frames: &mut FrameReader<'_>, from: u64, len: u64) -> io::Result<u64> {
    let mut found = from;
    let mut at = from;
    while at < len {
        let end = len.min(at + WINDOW_BYTES as u64);
        let bytes = frames.bytes(at..end)?;
        if let Some(last) = bytes.iter().rposition(|byte| *byte != 0) {
            found = at + last as u64 + 1;
        }
        at = end;
    }
    Ok(found)
}

/// Returns whether there is a header of a write that began between `end` and `until`, apart from the write that begins
/// exactly at `end`.
fn has_later_write(
    frames: &mut FrameReader<'_>,
    end: u64,
    until: u64,
    secret: &Secret,
    first: Position,
) -> io::Result<bool> {
    let own = super::frame::header_place(end);
    let mut sector = end / SECTOR_BYTES * SECTOR_BYTES;
    while sector < until {
        let from = sector.max(end);
        let to = (sector + SECTOR_BYTES).min(until.max(from));
        let bytes = frames.bytes(from..to)?;
        if !is_blank(bytes) {
            for (i, header) in bytes.windows(HEADER_BYTES).enumerate() {
                let offset = from + i as u64;
                let header: &[u8; HEADER_BYTES] =
                    header.try_into().expect("a window has the length of a header");
                let may_be = FrameHeader::read_unverified(header)
                    .and_then(|header| offset.checked_sub(u64::from(header.back)))
                    .is_some_and(|start| start > own);
                if may_be && matches!(FrameHeader::parse(header, secret, first, offset), Parsed::Valid(_)) {
                    return Ok(true);
                }
            }
        }
        sector += SECTOR_BYTES;
    }
    Ok(false)
}

impl SegmentWalk {
    /// Creates the result for a segment that was closed where `record` says.
    pub(super) fn closed(record: &HeadRecord, offsets: Offsets) -> Self {
        Self { end: record.end, head: record.head, offsets, seal: None, bad: None }
    }

    /// Compares the result with what was acknowledged, as far as `record` concerns this segment, and decides about the
    /// bytes after the end. Returns the offset up to which to drop them, and what to report.
    ///
    /// # Errors
    ///
    /// [`JournalError::Damaged`] if something acknowledged is missing, or if the bytes cannot be a torn write.
    pub(super) fn judge(
        &self,
        path: &Path,
        record: Option<&HeadRecord>,
        same_boot: bool,
    ) -> Result<Option<(u64, DroppedTail)>, JournalError> {
        let damaged = |what: String| {
            Err(JournalError::Damaged { path: path.to_owned(), position: Some(self.head.next), what })
        };
        if let Some(record) = record
            && (self.end < record.end || self.head.next < record.head.next)
        {
            let what = self.bad.as_ref().map_or("nothing stands there", |bad| bad.what);
            return damaged(format!(
                "entries up to {} were acknowledged: {what}",
                record.head.next.get().saturating_sub(1)
            ));
        }
        let Some(bad) = &self.bad else { return Ok(None) };
        if !same_boot && !bad.may_be_torn {
            return damaged(format!("{}, and no part of it is missing", bad.what));
        }
        let dropped = DroppedTail {
            position: self.head.next.get(),
            bytes: bad.until - self.end,
            may_have_been_acknowledged: !same_boot,
        };
        Ok(Some((bad.until, dropped)))
    }
}
