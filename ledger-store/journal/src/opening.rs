//! Opens the journal of a directory: identifies its files, checks that the segments join, and finds the end of the
//! journal.
//!
//! Every segment except the last is sealed, and each continues the one before it. There is one exception that is not
//! damage: an unsealed segment with an empty successor. A power cut happened before it was sealed; the opening seals
//! it.

#![allow(clippy::cast_possible_truncation, reason = "the bytes that one read or write takes are in memory")]

use std::path::Path;
use std::sync::Arc;

use super::frame::is_blank;
use super::head_file::{HeadFile, HeadRecord};
use super::options::SegmentOptions;
use super::prepared::publish;
use super::record::{FileName, HEAD_FILE, Header, path_of};
use super::recover::{DroppedTail, SegmentWalk, walk};
use super::segment::{JournalLocation, OpenSegment, Segment, open_file, read_header, read_offsets, storage};
use super::tail::Tail;
use super::{ChainHash, Head, JournalError, Position};
use crate::disk::{BLOCK_BYTES, BootId, DiskFile, Space, temporary_name};

/// The result of an opening.
pub(super) struct Opened {
    /// The segments by ascending first position. The last one receives new entries.
    pub(super) segments: Vec<Arc<Segment>>,
    pub(super) tail: Tail,
    pub(super) head_file: HeadFile,
    pub(super) head: Head,
    /// The length of the last segment's file.
    pub(super) file_end: u64,
    pub(super) boot: Option<BootId>,
    pub(super) dropped: Option<DroppedTail>,
}

/// Opens the segments of a journal.
pub(super) fn open(location: &JournalLocation, options: &SegmentOptions) -> Result<Opened, JournalError> {
    let firsts = segments_in(location)?;
    let (&last, sealed) = firsts.split_last().expect("an empty list was refused above");
    let (mut segments, end, unsealed) = open_sealed(location, sealed)?;
    let written = UnsealedSegment::open(location, last)?;
    let (mut head_file, record) = HeadFile::open(location)?;
    let boot = location.disk.boot_id();
    let acknowledged = Acknowledged { record, same_boot: boot.is_some() && boot == record.boot };
    if record.segment > last {
        let path = path_of(&location.dir, record.segment);
        return Err(JournalError::Missing { path, first: record.segment });
    }
    let (end, unsealed) = match unsealed {
        None => (end, None),
        Some(first) => {
            let before = UnsealedSegment::open(location, first)?;
            let found = before.find_end(location, &acknowledged)?;
            (found.walked.head, Some((before, found)))
        }
    };
    check_joins(location, end, &written.header)?;
    let found = if record.is_closed && record.segment == last && unsealed.is_none() {
        written.find_closed_end(location, &record, options.tail_bytes as u64)?
    } else {
        written.find_end(location, &acknowledged)?
    };
    if let Some(seal) = found.walked.seal {
        // It was sealed, so its successor had its name already and must have been lost since.
        let path = path_of(&location.dir, seal.end.next);
        return Err(JournalError::Missing { path, first: seal.end.next });
    }
    if found.walked.head.next < record.head.next {
        return Err(written.damage(location, &record, "entries up to there were acknowledged"));
    }
    let is_empty = found.walked.head == written.header.head() && found.dropped.is_none();
    if let (Some((before, _)), false) = (&unsealed, is_empty) {
        return Err(not_sealed(location, before.header.first));
    }
    // Nothing was changed so far, and from here on only the disk can fail.
    let mut dropped = None;
    if let Some((before, found)) = unsealed {
        dropped = found.dropped.map(|(_, dropped)| dropped);
        segments.push(before.finish_seal(location, found)?);
    }
    let (end, head) = (found.walked.end, found.walked.head);
    let dropped = found.dropped.map(|(_, dropped)| dropped).or(dropped);
    let (segment, tail, file_end) = written.ready(location, found)?;
    let offsets = segment.change(|open| open.offsets.newest_frame);
    head_file.write_durably(&HeadRecord { is_closed: false, boot, segment: last, end, offsets, head })?;
    segments.push(Arc::new(segment));
    Ok(Opened { segments, tail, head_file, head, file_end, boot, dropped })
}

/// All segments except the last, their end, and the first position of the last of them if that one is not sealed.
type SealedSegments = (Vec<Arc<Segment>>, Head, Option<Position>);

fn open_sealed(location: &JournalLocation, firsts: &[Position]) -> Result<SealedSegments, JournalError> {
    let mut end = Head { next: Position::FIRST, chain: ChainHash::genesis(location.identity.store) };
    let mut segments = Vec::with_capacity(firsts.len() + 1);
    for (i, &first) in firsts.iter().enumerate() {
        let (segment, seal) = Segment::open_sealed(location, first)?;
        check_joins(location, end, &segment.header)?;
        match seal {
            Some(seal) => {
                end = seal.end;
                segments.push(Arc::new(segment));
            }
            None if i + 1 == firsts.len() => return Ok((segments, end, Some(first))),
            None => return Err(not_sealed(location, first)),
        }
    }
    Ok((segments, end, None))
}

/// The part of the journal that was certainly acknowledged.
struct Acknowledged {
    record: HeadRecord,
    /// True if the machine has not rebooted since the record was written.
    same_boot: bool,
}

/// An unsealed segment while it is being opened.
struct UnsealedSegment {
    header: Header,
    file: Arc<dyn DiskFile>,
    len: u64,
}

/// The end of a segment, and the bytes after it that must be dropped: the offset up to which to drop, and the report.
struct SegmentEnd {
    walked: SegmentWalk,
    dropped: Option<(u64, DroppedTail)>,
}

impl UnsealedSegment {
    fn open(location: &JournalLocation, first: Position) -> Result<Self, JournalError> {
        let path = path_of(&location.dir, first);
        let file = open_file(&path, first, |path| location.disk.open_durable(path))?;
        let header = read_header(&*file, location, &path, first)?;
        let len = file.len().map_err(|cause| storage(&path, "measure", cause))?;
        Ok(Self { header, file: Arc::from(file), len })
    }

    /// Walks over a segment that was not closed.
    fn find_end(
        &self,
        location: &JournalLocation,
        acknowledged: &Acknowledged,
    ) -> Result<SegmentEnd, JournalError> {
        let path = path_of(&location.dir, self.header.first);
        // Only the content of the disk counts. After an earlier failed sync, the page cache may show bytes that are
        // not on disk.
        self.file.sync().map_err(|cause| storage(&path, "sync", cause))?;
        self.file.forget_cached().map_err(|cause| storage(&path, "read", cause))?;
        let walked = walk(&*self.file, &path, &self.header, &location.identity.secret, self.len)?;
        let record = Some(&acknowledged.record).filter(|record| record.segment == self.header.first);
        let dropped = walked.judge(&path, record, acknowledged.same_boot)?;
        Ok(SegmentEnd { walked, dropped })
    }

    /// Checks that a closed segment ends as it did when it was closed.
    fn find_closed_end(
        &self,
        location: &JournalLocation,
        record: &HeadRecord,
        tail_bytes: u64,
    ) -> Result<SegmentEnd, JournalError> {
        let first = self.header.first;
        let path = path_of(&location.dir, first);
        if self.len != record.end.next_multiple_of(BLOCK_BYTES as u64) {
            return Err(self.damage(
                location,
                record,
                "it does not have the length with which it was closed",
            ));
        }
        let mut padding = vec![0; (self.len - record.end) as usize];
        self.file.read_at(record.end, &mut padding).map_err(|cause| storage(&path, "read", cause))?;
        if !is_blank(&padding) {
            return Err(self.damage(location, record, "something stands behind where it was closed"));
        }
        let offsets = read_offsets(&*self.file, location, &path, first, record.offsets, record.end)?;
        let open = OpenSegment { file: self.file.clone(), offsets: offsets.clone(), end: record.end };
        Segment::written(location, self.header, open).verify_tail(location, record.head, tail_bytes)?;
        Ok(SegmentEnd { walked: SegmentWalk::closed(record, offsets), dropped: None })
    }

    /// Removes the bytes that must be dropped, durably.
    fn drop_tail(&self, path: &Path, found: &SegmentEnd) -> Result<(), JournalError> {
        let Some((until, _)) = found.dropped else { return Ok(()) };
        let zeros = vec![0; (until - found.walked.end) as usize];
        let dropped = self.file.write_at(found.walked.end, &zeros).and_then(|()| self.file.sync());
        dropped.map_err(|cause| storage(path, "write", cause))
    }

    /// Prepares the segment for appends. Returns it with its tail and the length of its file.
    fn ready(
        self,
        location: &JournalLocation,
        found: SegmentEnd,
    ) -> Result<(Segment, Tail, u64), JournalError> {
        let path = path_of(&location.dir, self.header.first);
        self.drop_tail(&path, &found)?;
        let SegmentWalk { end, offsets, .. } = found.walked;
        let failed = |cause| storage(&path, "read", cause);
        let tail = Tail::open(&*self.file, self.header.first, end).map_err(failed)?;
        let file_end = self.len.next_multiple_of(BLOCK_BYTES as u64);
        if file_end > self.len {
            // A power cut or a crash has left the file with another length.
            self.file
                .set_aside(self.len, file_end, Space::Zeroed)
                .map_err(|cause| storage(&path, "extend", cause))?;
        }
        let open = OpenSegment { file: self.file, offsets, end };
        Ok((Segment::written(location, self.header, open), tail, file_end))
    }

    /// Seals a segment whose successor has its name already.
    fn finish_seal(
        self,
        location: &JournalLocation,
        found: SegmentEnd,
    ) -> Result<Arc<Segment>, JournalError> {
        let path = path_of(&location.dir, self.header.first);
        let (first, end) = (self.header.first, found.walked.head);
        if found.walked.seal.is_some() {
            // Only the file's length is wrong.
            let cut = self.file.set_len(found.walked.end).and_then(|()| self.file.sync());
            cut.map_err(|cause| storage(&path, "seal", cause))?;
        } else {
            let (segment, mut tail, _) = self.ready(location, found)?;
            segment.seal(location, &mut tail, end)?;
        }
        let (segment, _) = Segment::open_sealed(location, first)?;
        Ok(Arc::new(segment))
    }

    fn damage(&self, location: &JournalLocation, record: &HeadRecord, what: &str) -> JournalError {
        JournalError::Damaged {
            path: path_of(&location.dir, self.header.first),
            position: Some(record.head.next),
            what: what.to_owned(),
        }
    }
}

/// Checks that a segment continues the one before it.
fn check_joins(location: &JournalLocation, end: Head, header: &Header) -> Result<(), JournalError> {
    if header.first > end.next {
        return Err(JournalError::Missing { path: path_of(&location.dir, end.next), first: end.next });
    }
    if header.first < end.next || header.previous != end.chain {
        return Err(JournalError::Gap {
            path: path_of(&location.dir, header.first),
            expected: end.next,
            found: header.first,
        });
    }
    Ok(())
}

fn not_sealed(location: &JournalLocation, first: Position) -> JournalError {
    JournalError::Damaged {
        path: path_of(&location.dir, first),
        position: Some(first),
        what: "it is not sealed although a later segment has entries".to_owned(),
    }
}

/// Returns the first positions of the segments in the directory, in order. Removes unfinished files, and gives the
/// very first segment its name.
fn segments_in(location: &JournalLocation) -> Result<Vec<Position>, JournalError> {
    let storage = |path: &Path, action, cause| JournalError::Storage { path: path.to_owned(), action, cause };
    let first_path = path_of(&location.dir, Position::FIRST);
    let missing = || JournalError::Missing { path: first_path.clone(), first: Position::FIRST };
    let names = location.disk.list(&location.dir).map_err(|cause| match cause.kind() {
        std::io::ErrorKind::NotFound => missing(),
        _ => storage(&location.dir, "list", cause),
    })?;
    let (mut segments, mut unfinished) = (Vec::new(), Vec::new());
    for name in names {
        match name.to_str().and_then(FileName::parse) {
            Some(FileName::Segment(first)) => segments.push(first),
            Some(FileName::Unfinished(first)) => unfinished.push(path_of(&location.dir, first)),
            Some(FileName::UnfinishedHead) => unfinished.push(location.dir.join(HEAD_FILE)),
            Some(FileName::Mark) => {}
            None => return Err(JournalError::UnknownFile { path: location.dir.join(name) }),
        }
    }
    segments.sort_unstable();
    if segments.is_empty() {
        // In a new store, the first segment was complete before the manifest was written.
        if !unfinished.contains(&first_path) {
            return Err(missing());
        }
        publish(location, Position::FIRST)?;
        return Ok(vec![Position::FIRST]);
    }
    if segments[0] != Position::FIRST {
        return Err(missing());
    }
    for path in unfinished {
        let path = temporary_name(&path);
        location.disk.remove(&path).map_err(|cause| storage(&path, "remove", cause))?;
    }
    Ok(segments)
}
