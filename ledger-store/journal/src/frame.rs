//! Frames: how chunks lie in the file of a segment, so that a torn write can be told from damage.
//!
//! A frame is a header of 24 bytes and a body:
//!
//! ```text
//! offset size
//!      0    8  check      keyed digest of the rest of the header, the segment's first position and the frame's offset
//!      8    4  back       how far before this frame the write began that it is part of
//!     12    4  length     of the body
//!     16    3  blank      how many pieces of the body are all zeros, see below
//!     19    3  remaining  how many frames of the write come after this one
//!     22    1  kind       1 chunk, 2 offsets, 3 seal
//!     23    1  zero
//! ```
//!
//! Numbers are big-endian. A disk writes a sector of 512 bytes whole or not at all, and space that was never written
//! reads as zeros. A header never crosses a sector: where it does not fit, it begins with the next one. So after a
//! power cut each header is whole or blank, and nothing else. A body is cut into *pieces* at the sectors of the file:
//! each is whole or blank too, and the header says how many are blank by their nature. So a write that the power cut
//! off has more blank pieces than that or a blank header. Bytes that do not verify and lack no piece were damaged.

use super::{Position, Secret};

/// The part of a write that a disk does as a whole, in bytes.
pub(super) const SECTOR_BYTES: u64 = 512;

/// The offset of the first frame of a segment: the sector after the segment's own record.
pub(super) const FRAMES_START: u64 = SECTOR_BYTES;

/// The size of a frame's header, in bytes.
pub(super) const HEADER_BYTES: usize = 24;

const CHECK_BYTES: usize = 8;

/// The content of a frame's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A chunk of entries.
    Chunk = 1,
    /// Where chunks before it lie: see [`super::offsets`].
    Offsets = 2,
    /// The end of a segment that takes no more entries.
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
    /// How far before this frame the write began.
    pub(super) back: u32,
    pub(super) length: u32,
    /// Below 2^24.
    pub(super) blank: u32,
    /// Below 2^24.
    pub(super) remaining: u32,
    pub(super) kind: Kind,
}

/// The result of reading a place where a header may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    /// Nothing was written there.
    Blank,
    /// A header, verified.
    Valid(Header),
    /// Neither.
    Invalid,
}

/// Where a header that follows the byte before `offset` begins.
pub(super) fn header_place(offset: u64) -> u64 {
    if offset % SECTOR_BYTES + HEADER_BYTES as u64 > SECTOR_BYTES {
        offset.next_multiple_of(SECTOR_BYTES)
    } else {
        offset
    }
}

impl Header {
    /// The bytes of the header of a frame at `offset` in the segment that begins with `first`.
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

    /// Reads what stands at `offset` of the segment that begins with `first`.
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

    /// The fields of a header whose check is not compared; `None` if they break a rule that needs no secret.
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

/// Whether all bytes are zero.
pub(super) fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// How many pieces of a body at `offset` are all zeros.
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
        // Pieces: 12 bytes, 512, 512, 264.
        assert_eq!(blank_pieces(500, &body), 4);
        body[11] = 1;
        body[12 + 512] = 1;
        assert_eq!(blank_pieces(500, &body), 2);
        body[1299] = 1;
        assert_eq!(blank_pieces(500, &body), 1);
        assert_eq!(blank_pieces(512, &[]), 0);
    }
}
