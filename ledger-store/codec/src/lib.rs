//! Encoding and decoding of numbers and lengths, the basis of every stored layout.
//!
//! Numbers are unsigned LEB128 varints (seven bits per byte, least significant first) or big-endian integers of fixed
//! width, whose bytes sort like their values. Readers check every length before they access a byte: damaged input
//! causes [`Corrupt`], never a panic and never an allocation whose size only the input determines.
//!
//! This crate is internal to `ledger-store`, for its journal and its index: its API is not stable.

#![forbid(unsafe_code)]
#![allow(clippy::cast_possible_truncation, reason = "a varint is made of the low bits of its number")]

use std::fmt;

/// Maximum size of a varint in bytes: ten groups of seven bits hold 64.
pub const MAX_VARINT_BYTES: usize = 10;

/// Stored bytes that do not follow their layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt {
    /// The value that was being read, or the rule that the bytes break.
    pub what: &'static str,
}

impl fmt::Display for Corrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "corrupt bytes: {}", self.what)
    }
}

impl std::error::Error for Corrupt {}

/// Appends `value` as a varint of 1 to 10 bytes.
#[inline]
pub fn put_varint(out: &mut Vec<u8>, value: u64) {
    if value < 0x80 {
        return out.push(value as u8);
    }
    if value >= 1 << 56 {
        return put_longest_varint(out, value);
    }
    // Write eight bytes at once and truncate the excess: a store per byte would stall later reads.
    let (length, more) = VARINTS[(value | 1).leading_zeros() as usize];
    let end = out.len() + length;
    out.extend_from_slice(&(spread(value) | more).to_le_bytes());
    out.truncate(end);
}

#[cold]
fn put_longest_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The highest bit of each byte, which is set in a varint if another byte follows.
const MORE: u64 = 0x8080_8080_8080_8080;

/// Spreads 56 bits into eight bytes of seven bits, least significant first.
#[inline]
fn spread(bits: u64) -> u64 {
    let halves = (bits & 0x0fff_ffff) | (bits & 0x00ff_ffff_f000_0000) << 4;
    let quarters = (halves & 0x0000_3fff_0000_3fff) | (halves & 0x0fff_c000_0fff_c000) << 2;
    (quarters & 0x007f_007f_007f_007f) | (quarters & 0x3f80_3f80_3f80_3f80) << 1
}

/// Reverses [`spread`].
#[inline]
fn gather(groups: u64) -> u64 {
    let quarters = (groups & 0x007f_007f_007f_007f) | (groups & 0x7f00_7f00_7f00_7f00) >> 1;
    let halves = (quarters & 0x0000_3fff_0000_3fff) | (quarters & 0x3fff_0000_3fff_0000) >> 2;
    (halves & 0x0fff_ffff) | (halves & 0x0fff_ffff_0000_0000) >> 4
}

/// Returns the number of bytes that [`put_varint`] appends for `value`.
pub const fn varint_len(value: u64) -> usize {
    // Equals the number of bits divided by seven, rounded up, for 1 to 64 bits. Zero takes one byte as well.
    let bits = 64 - (value | 1).leading_zeros();
    (bits as usize * 9 + 64) / 64
}

/// Appends the length of `bytes` as a varint and then the bytes.
pub fn put_prefixed(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A position in a slice of stored bytes. Checked reads move it forward.
///
/// A failed read does not move it.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Creates a reader at the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Returns whether every byte was read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns the number of unread bytes.
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Returns the unread bytes without reading them.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Reads the next `n` bytes.
    ///
    /// # Errors
    ///
    /// [`Corrupt`] if there are fewer.
    pub fn bytes(&mut self, n: usize) -> Result<&'a [u8], Corrupt> {
        let (taken, rest) = self.rest.split_at_checked(n).ok_or(Corrupt { what: "ends too early" })?;
        self.rest = rest;
        Ok(taken)
    }

    /// Reads the next `N` bytes into an array.
    ///
    /// # Errors
    ///
    /// [`Corrupt`] if there are fewer.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Corrupt> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(Corrupt { what: "ends too early" })?;
        self.rest = rest;
        Ok(*taken)
    }

    /// Reads one byte.
    ///
    /// # Errors
    ///
    /// [`Corrupt`] if there is none.
    pub fn u8(&mut self) -> Result<u8, Corrupt> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Reads four bytes, big-endian.
    ///
    /// # Errors
    ///
    /// [`Corrupt`] if there are fewer.
    pub fn u32(&mut self) -> Result<u32, Corrupt> {
        self.array().map(u32::from_be_bytes)
    }

    /// Reads eight bytes, big-endian.
    ///
    /// # Errors
    ///
    /// [`Corrupt`] if there are fewer.
    pub fn u64(&mut self) -> Result<u64, Corrupt> {
        self.array().map(u64::from_be_bytes)
    }

    /// Reads a varint.
    ///
    /// Refuses encodings that [`put_varint`] never writes: more than 64 bits, or a last group of zeros. So each number
    /// has exactly one encoding, and equal values have equal bytes.
    ///
    /// # Errors
    ///
    /// [`Corrupt`] if the bytes end early, or for such an encoding.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, Corrupt> {
        // Most stored numbers are small.
        match *self.rest {
            [first, ref rest @ ..] if first < 0x80 => {
                self.rest = rest;
                Ok(u64::from(first))
            }
            [first, second @ 1..0x80, ref rest @ ..] => {
                self.rest = rest;
                Ok(u64::from(first & 0x7f) | u64::from(second) << 7)
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64, Corrupt> {
        // Decode up to eight bytes at once, without a loop whose end is unpredictable.
        if let Some(word) = self.rest.first_chunk::<8>() {
            let word = u64::from_le_bytes(*word);
            let ends = !word & MORE;
            // All bits up to the first byte after which none follows, or zero if another byte follows all eight.
            let taken = word & (ends ^ ends.wrapping_sub(1));
            let length = ends.trailing_zeros() as usize / 8 + 1;
            // The last of several groups must not be zero.
            if ends != 0 && taken >> (8 * (length - 1)) != 0 {
                self.rest = &self.rest[length..];
                return Ok(gather(taken & !MORE));
            }
        }
        let mut value = 0_u64;
        for (i, &byte) in self.rest.iter().take(MAX_VARINT_BYTES).enumerate() {
            let group = u64::from(byte & 0x7f);
            if i == MAX_VARINT_BYTES - 1 && byte > 1 {
                return Err(Corrupt { what: "varint above 64 bits" });
            }
            value |= group << (7 * i);
            if byte < 0x80 {
                if byte == 0 {
                    return Err(Corrupt { what: "varint longer than needed" });
                }
                self.rest = &self.rest[i + 1..];
                return Ok(value);
            }
        }
        Err(Corrupt { what: "varint ends too early" })
    }

    /// Reads a varint that must fit 32 bits.
    ///
    /// # Errors
    ///
    /// [`Corrupt`] if there is no valid varint, or it is larger.
    pub fn varint_u32(&mut self) -> Result<u32, Corrupt> {
        let mut ahead = self.clone();
        let value = u32::try_from(ahead.varint()?).map_err(|_| Corrupt { what: "number above 32 bits" })?;
        *self = ahead;
        Ok(value)
    }

    /// Reads a length and that many bytes, as [`put_prefixed`] writes them.
    ///
    /// # Errors
    ///
    /// [`Corrupt`] if the length is invalid, or there are fewer bytes than it states.
    pub fn prefixed(&mut self) -> Result<&'a [u8], Corrupt> {
        let mut ahead = self.clone();
        let len = usize::try_from(ahead.varint()?).map_err(|_| Corrupt { what: "length above memory" })?;
        let bytes = ahead.bytes(len)?;
        *self = ahead;
        Ok(bytes)
    }

    /// Checks that no bytes are left after the last field.
    ///
    /// # Errors
    ///
    /// [`Corrupt`] if there are any.
    pub fn finish(self) -> Result<(), Corrupt> {
        if self.is_empty() { Ok(()) } else { Err(Corrupt { what: "bytes after the end" }) }
    }
}

/// Number of bytes that can be appended to an [`Output`] after reserving space, apart from the methods that reserve
/// space themselves.
const ROOM: usize = 128;
/// Size in bytes above which a buffer grows by less than its own size, to save memory.
const LARGE: usize = 1 << 20;

/// A buffer for many short values. Space is reserved for several values at once, so that appending one needs no check.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// The buffer. The bytes after `length` have no meaning.
    bytes: Vec<u8>,
    length: usize,
}

#[allow(clippy::len_without_is_empty, reason = "callers compare lengths, and none needs `is_empty`")]
impl Output {
    /// Returns the number of appended bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Returns the appended bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Reserves space for the values of one row.
    #[inline]
    pub fn make_room(&mut self) {
        if self.bytes.len() - self.length < ROOM {
            self.grow(ROOM);
        }
    }

    #[cold]
    fn grow(&mut self, more: usize) {
        let have = self.bytes.len();
        let length = (self.length + more).max(have + have.min(LARGE).max(have / 4));
        self.bytes.reserve_exact(length - have);
        self.bytes.resize(length, 0);
    }

    /// Removes all bytes after the first `length`.
    #[inline]
    pub fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// Removes the first `length` bytes.
    pub fn remove_first(&mut self, length: usize) {
        self.bytes.copy_within(length..self.length, 0);
        self.length -= length;
    }

    /// Appends a byte. Space must be reserved.
    #[inline]
    pub fn put_byte(&mut self, byte: u8) {
        self.bytes[self.length] = byte;
        self.length += 1;
    }

    /// Replaces a byte.
    #[inline]
    pub fn set_byte(&mut self, at: usize, byte: u8) {
        self.bytes[at] = byte;
    }

    /// Appends bytes, and reserves more space.
    pub fn put_bytes(&mut self, bytes: &[u8]) {
        if self.bytes.len() - self.length < bytes.len() + ROOM {
            self.grow(bytes.len() + ROOM);
        }
        self.bytes[self.length..self.length + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }

    /// Appends a length, for which space must be reserved, and that many bytes. Reserves more space.
    pub fn put_prefixed(&mut self, bytes: &[u8]) {
        self.put_varint(bytes.len() as u64);
        self.put_bytes(bytes);
    }

    /// Appends a varint like [`put_varint`]. Space must be reserved.
    #[inline]
    pub fn put_varint(&mut self, value: u64) {
        if value < 1 << 7 {
            self.put_byte(value as u8);
        } else if value < 1 << 14 {
            self.put_word((value & 0x7f) | 0x80 | (value >> 7) << 8, 2);
        } else {
            self.put_long_varint(value);
        }
    }

    /// Appends a varint without a loop whose end is unpredictable.
    #[inline(never)]
    fn put_long_varint(&mut self, value: u64) {
        if value >= 1 << 56 {
            return self.put_longest_varint(value);
        }
        let (length, more) = VARINTS[(value | 1).leading_zeros() as usize];
        self.put_word(spread(value) | more, length);
    }

    #[cold]
    fn put_longest_varint(&mut self, value: u64) {
        self.put_word(spread(value & ((1 << 56) - 1)) | MORE, 8);
        self.put_word(value >> 56 | value >> 63 << 8, varint_len(value) - 8);
    }

    /// Appends the first bytes of a word, least significant first.
    #[inline]
    fn put_word(&mut self, word: u64, length: usize) {
        let room = self.bytes.get_mut(self.length..).and_then(<[u8]>::first_chunk_mut::<8>);
        *room.expect("the caller has reserved space for a whole word") = word.to_le_bytes();
        self.length += length;
    }
}

/// For each number of leading zeros of a value below 2^56: the size of its varint, and the continuation bits of its
/// bytes.
const VARINTS: [(usize, u64); 64] = {
    let mut varints = [(0, 0); 64];
    let mut zeros = 8;
    while zeros < 64 {
        let length = varint_len(u64::MAX >> zeros);
        varints[zeros] = (length, MORE & ((1 << (8 * (length - 1))) - 1));
        zeros += 1;
    }
    varints
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_of_varint_reads_back() {
        let edges = (0..64).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, (1 << bit) + 1]).chain([u64::MAX]);
        for value in edges {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            assert_eq!(out.len(), varint_len(value), "{value}");
            let mut output = Output::default();
            output.make_room();
            output.put_varint(value);
            assert_eq!(output.as_slice(), out, "{value}");
            let mut reader = Reader::new(&out);
            assert_eq!(reader.varint(), Ok(value));
            assert!(reader.is_empty());
            for cut in 0..out.len() {
                let mut short = Reader::new(&out[..cut]);
                assert!(short.varint().is_err(), "{value} cut at {cut}");
                assert_eq!(short.remaining(), cut, "a failed read does not move");
            }
        }
    }

    #[test]
    fn a_number_has_one_encoding() {
        assert!(Reader::new(&[0x80, 0x00]).varint().is_err());
        assert!(Reader::new(&[0xff, 0x80, 0x00]).varint().is_err());
        let ten = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(Reader::new(&[&ten[..], &[0x01]].concat()).varint(), Ok(u64::MAX));
        assert!(Reader::new(&[&ten[..], &[0x02]].concat()).varint().is_err());
        assert!(Reader::new(&[&ten[..], &[0x81, 0x01]].concat()).varint().is_err());
    }

    #[test]
    fn lengths_are_checked_before_bytes_are_touched() {
        let mut out = Vec::new();
        put_prefixed(&mut out, b"abc");
        put_varint(&mut out, u64::MAX);
        let mut reader = Reader::new(&out);
        assert_eq!(reader.prefixed(), Ok(&b"abc"[..]));
        let before = reader.remaining();
        assert!(reader.prefixed().is_err());
        assert!(reader.varint_u32().is_err());
        assert_eq!(reader.remaining(), before);
        assert!(reader.finish().is_err());
        assert_eq!(Reader::new(&[0, 0, 0, 7]).u32(), Ok(7));
        assert!(Reader::new(&[0; 7]).u64().is_err());
    }
}
