//! Frames: the format of chunks in a segment file, which tells a torn write from damage.
//!
//! A frame is a header of 24 bytes and a body:
//!
//! ```text
//! offset size
//!      0    8  check      keyed digest of the rest of the header, the segment's first position and the frame's offset
//!      8    4  back       distance from the begin of the write that the frame belongs to
//!     12    4  length     of the body
//!     16    3  blank      number of pieces of the body that are all zeros, see below
//!     19    3  remaining  number of frames of the write after this one
//!     22    1  kind       1 chunk, 2 offsets, 3 seal
//!     23    1  zero
//! ```
//!
//! Numbers are big-endian. A disk writes a sector of 512 bytes entirely or not at all, and unwritten space reads as
//! zeros. A header never crosses a sector boundary: if it would, it begins at the next sector. So after a power cut
//! each header is either complete or blank. A body is divided into *pieces* at the sector boundaries of the file. Each
//! piece is also complete or blank, and the header records how many pieces are blank by content. So a write that a
//! power cut interrupted has a blank header or more blank pieces than recorded. Bytes that do not verify although no
//! piece is missing are damaged.

#![allow(clippy::cast_possible_truncation, reason = "a frame and a sector are far smaller than 4 GiB")]

use super::{Position, Secret};

/// The size of a sector in bytes, which a disk writes entirely or not at all.
pub(super) const SECTOR_BYTES: u64 = 512;

/// The offset of the first frame of a segment: the sector after the segment's header.
pub(super) const FRAMES_START: u64 = SECTOR_BYTES;

/// The size of a frame's header, in bytes.
pub(super) const HEADER_BYTES: usize = 24;

const CHECK_BYTES: usize = 8;

/// The content of a frame's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A chunk of entries.
    Chunk = 1,
    /// The offsets of earlier chunks: see [`super::offsets`].
    Offsets = 2,
    /// The end of a segment that accepts no more entries.
    Seal = 3,
}

impl Kind {
    fn parse(byte: u8) -> Option<Self> {
        [Self::Chunk, Self::Offsets, Self::Seal].into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The distance from the begin of the write to this frame.
    pub(super) back: u32,
    pub(super) length: u32,
    /// Number of blank pieces, below 2^24.
    pub(super) blank: u32,
    /// Number of later frames of the write, below 2^24.
    pub(super) remaining: u32,
    pub(super) kind: Kind,
}

/// The result of reading a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    /// All bytes are zero: nothing was written there.
    Blank,
    /// A header whose check is correct.
    Valid(Header),
    /// Bytes that are neither blank nor a valid header.
    Invalid,
}

/// Returns the offset of the header that follows the byte before `offset`.
pub(super) fn header_place(offset: u64) -> u64 {
    if offset % SECTOR_BYTES + HEADER_BYTES as u64 > SECTOR_BYTES {
        offset.next_multiple_of(SECTOR_BYTES)
    } else {
        offset
    }
}

impl Header {
    /// Encodes the header of a frame at `offset` in the segment that begins with position `first`.
    pub(super) fn encode(&self, secret: &Secret, first: Position, offset: u64) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[8..12].copy_from_slice(&self.back.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.length.to_be_bytes());
        bytes[16..19].copy_from_slice(&self.blank.to_be_bytes()[1..]);
        bytes[19..22].copy_from_slice(&self.remaining.to_be_bytes()[1..]);
        bytes[22] = self.kind as u8;
        let check = check(secret, &bytes, first, offset);
        bytes[..CHECK_BYTES].copy_from_slice(&check);
        bytes
    }

    /// Reads the bytes at `offset` of the segment that begins with position `first`.
    pub(super) fn parse(bytes: &[u8; HEADER_BYTES], secret: &Secret, first: Position, offset: u64) -> Parsed {
        if is_blank(bytes) {
            return Parsed::Blank;
        }
        let Some(header) = Self::read_unverified(bytes) else { return Parsed::Invalid };
        if check(secret, bytes, first, offset) == bytes[..CHECK_BYTES] {
            Parsed::Valid(header)
        } else {
            Parsed::Invalid
        }
    }

    /// Decodes a header without comparing its check. Returns `None` if it breaks a rule that needs no secret.
    pub(super) fn read_unverified(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let number = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        if bytes[23] != 0 {
            return None;
        }
        Some(Self {
            back: number(8),
            length: number(12),
            blank: number(16) >> 8,
            remaining: number(19) >> 8,
            kind: Kind::parse(bytes[22])?,
        })
    }
}

fn check(secret: &Secret, header: &[u8; HEADER_BYTES], first: Position, offset: u64) -> [u8; CHECK_BYTES] {
    let digest = secret.digest(&[&header[CHECK_BYTES..], &first.get().to_be_bytes(), &offset.to_be_bytes()]);
    let (check, _) = digest.split_first_chunk().expect("a digest has 16 bytes");
    *check
}

/// Returns whether all bytes are zero.
pub(super) fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// Returns the number of pieces that are all zeros in a body at `offset`.
pub(super) fn blank_pieces(offset: u64, body: &[u8]) -> u32 {
    let in_first = (SECTOR_BYTES - offset % SECTOR_BYTES) as usize;
    let (first, rest) = body.split_at(in_first.min(body.len()));
    let pieces = std::iter::once(first).filter(|first| !first.is_empty());
    pieces.chain(rest.chunks(SECTOR_BYTES as usize)).filter(|piece| is_blank(piece)).count() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Position = Position::FIRST;

    #[test]
    fn header_reads_back_at_its_place_only() {
        let secret = Secret([9; 32]);
        let header = Header { back: 512, length: 700, blank: 1, remaining: 70_000, kind: Kind::Chunk };
        let mut bytes = header.encode(&secret, FIRST, 1000);
        assert_eq!(Header::parse(&bytes, &secret, FIRST, 1000), Parsed::Valid(header));
        assert_eq!(Header::parse(&bytes, &secret, FIRST, 1001), Parsed::Invalid);
        assert_eq!(Header::parse(&bytes, &secret, FIRST.next(), 1000), Parsed::Invalid);
        assert_eq!(Header::parse(&bytes, &Secret([8; 32]), FIRST, 1000), Parsed::Invalid);
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::parse(&bytes, &secret, FIRST, 1000), Parsed::Invalid, "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        assert_eq!(Header::parse(&[0; HEADER_BYTES], &secret, FIRST, 1000), Parsed::Blank);
    }

    #[test]
    fn headers_never_cross_a_sector() {
        for offset in 0..2048 {
            let place = header_place(offset);
            assert!((offset..offset + HEADER_BYTES as u64).contains(&place));
            assert_eq!(place / SECTOR_BYTES, (place + HEADER_BYTES as u64 - 1) / SECTOR_BYTES);
        }
    }

    #[test]
    fn blank_pieces_follow_the_sectors_of_the_file() {
        let mut body = vec![0; 1300];
        // The sizes of the pieces are 12, 512, 512 and 264 bytes.
        assert_eq!(blank_pieces(500, &body), 4);
        body[11] = 1;
        body[12 + 512] = 1;
        assert_eq!(blank_pieces(500, &body), 2);
        body[1299] = 1;
        assert_eq!(blank_pieces(500, &body), 1);
        assert_eq!(blank_pieces(512, &[]), 0);
    }
}
