//! Reads the frames of a segment file: chunks of entries, lists of offsets, and the seal.

#![allow(clippy::cast_possible_truncation, reason = "the bytes that one read or write takes are in memory")]

use std::io;
use std::ops::Range;

use super::frame::{HEADER_BYTES, Header, Kind, Parsed, header_place};
use super::{Position, Secret};
use crate::disk::{DiskFile, read_with_retry};

/// Reads frames through a moving window of the file.
#[derive(Debug)]
pub(super) struct FrameReader<'a> {
    file: &'a dyn DiskFile,
    secret: &'a Secret,
    /// The position of the segment's first entry. The headers are verified with it.
    first: Position,
    /// The offset after the last byte to read.
    end: u64,
    /// Minimum number of bytes to read at a time. A read that reaches `end` may be shorter.
    window_bytes: usize,
    window: Vec<u8>,
    window_start: u64,
}

/// A frame with a verified header. The body is not verified: the caller does that.
#[derive(Debug)]
pub(super) struct Frame<'a> {
    pub(super) header: Header,
    /// The offset of its body.
    pub(super) body_start: u64,
    pub(super) body: &'a [u8],
}

impl Frame<'_> {
    /// Returns the offset after its body.
    pub(super) fn end(&self) -> u64 {
        self.body_start + self.body.len() as u64
    }

    /// Returns whether it holds a chunk of entries, and not a list of offsets or a seal.
    pub(super) fn is_chunk(&self) -> bool {
        self.header.kind == Kind::Chunk
    }
}

/// The result of reading a frame.
#[derive(Debug)]
pub(super) enum FrameResult<'a> {
    Frame(Frame<'a>),
    /// No frame: the header is blank or after the end.
    Nothing,
    /// A header that does not verify.
    Invalid,
    /// A header whose body exceeds the end.
    Cut,
}

impl<'a> FrameReader<'a> {
    /// Creates a reader of the frames before `end` in the segment that begins with position `first`.
    pub(super) fn new(
        file: &'a dyn DiskFile,
        secret: &'a Secret,
        first: Position,
        end: u64,
        window_bytes: usize,
    ) -> Self {
        Self { file, secret, first, end, window_bytes, window: Vec::new(), window_start: 0 }
    }

    /// Reads the frame at `offset`. Its header begins there, or at the next sector if it would cross a sector boundary.
    pub(super) fn at(&mut self, offset: u64) -> io::Result<FrameResult<'_>> {
        let place = header_place(offset);
        let body_start = place + HEADER_BYTES as u64;
        if body_start > self.end {
            return Ok(FrameResult::Nothing);
        }
        let (secret, first, end) = (self.secret, self.first, self.end);
        let bytes = self.bytes(place..body_start)?;
        let bytes = bytes.try_into().expect("the range has the length of a header");
        let header = match Header::parse(bytes, secret, first, place) {
            Parsed::Blank => return Ok(FrameResult::Nothing),
            Parsed::Invalid => return Ok(FrameResult::Invalid),
            Parsed::Valid(header) => header,
        };
        let body_end = body_start + u64::from(header.length);
        if body_end > end {
            return Ok(FrameResult::Cut);
        }
        let body = self.bytes(body_start..body_end)?;
        Ok(FrameResult::Frame(Frame { header, body_start, body }))
    }

    /// Returns a range of bytes of the file, which must not exceed the end of the reader.
    pub(super) fn bytes(&mut self, range: Range<u64>) -> io::Result<&[u8]> {
        let window_end = self.window_start + self.window.len() as u64;
        if range.start < self.window_start || range.end > window_end {
            let wanted = (range.end - range.start).max(self.window_bytes as u64);
            let len = wanted.min(self.end.saturating_sub(range.start)) as usize;
            self.window.resize(len, 0);
            self.window_start = range.start;
            if let Err(error) = read_with_retry(self.file, range.start, &mut self.window) {
                self.window.clear();
                return Err(error);
            }
        }
        let start = (range.start - self.window_start) as usize;
        Ok(&self.window[start..start + (range.end - range.start) as usize])
    }
}
