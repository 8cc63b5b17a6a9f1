//! Bytes in and out: the primitives below every stored layout.
//!
//! Numbers are unsigned LEB128 varints, seven bits a byte and the lowest
//! first, or big-endian where their width is fixed, so that equal-width keys
//! sort as their values do. Reading checks every length before it touches a
//! byte: damaged input gives [`Corrupt`], never a panic and never an
//! allocation that the input alone decides.

use std::fmt;

/// The longest varint: ten groups of seven bits hold 64.
pub(crate) const MAX_VARINT_BYTES: usize = 10;

/// Stored bytes that do not follow their layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Corrupt {
    /// What was being read, or which rule the bytes break.
    pub(crate) what: &'static str,
}

impl fmt::Display for Corrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "corrupt bytes: {}", self.what)
    }
}

impl std::error::Error for Corrupt {}

/// Appends `value` as a varint of 1 to 10 bytes.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The number of bytes that [`put_varint`] appends for `value`.
pub(crate) fn varint_len(value: u64) -> usize {
    // 64 - leading zeros bits in groups of seven; zero still takes one byte.
    ((64 - (value | 1).leading_zeros()) as usize).div_ceil(7)
}

/// Appends the length of `bytes` as a varint and then the bytes.
pub(crate) fn put_prefixed(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A position in a slice of stored bytes, moved forward by checked reads.
///
/// A failed read leaves the position where it was.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the first of `bytes`.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Whether every byte has been read.
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The number of bytes not yet read.
    pub(crate) fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The bytes not yet read, without moving on.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Reads the next `n` bytes as they are.
    pub(crate) fn bytes(&mut self, n: usize) -> Result<&'a [u8], Corrupt> {
        let (taken, rest) = self.rest.split_at_checked(n).ok_or(Corrupt { what: "ends too early" })?;
        self.rest = rest;
        Ok(taken)
    }

    /// Reads the next `N` bytes into an array.
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Corrupt> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(Corrupt { what: "ends too early" })?;
        self.rest = rest;
        Ok(*taken)
    }

    /// Reads one byte.
    pub(crate) fn u8(&mut self) -> Result<u8, Corrupt> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Reads four bytes, big-endian.
    pub(crate) fn u32(&mut self) -> Result<u32, Corrupt> {
        self.array().map(u32::from_be_bytes)
    }

    /// Reads eight bytes, big-endian.
    pub(crate) fn u64(&mut self) -> Result<u64, Corrupt> {
        self.array().map(u64::from_be_bytes)
    }

    /// Reads a varint.
    ///
    /// Refuses what [`put_varint`] never writes: more than 64 bits, and a
    /// last group of zeros. So each number has one encoding, and equal
    /// values have equal bytes.
    pub(crate) fn varint(&mut self) -> Result<u64, Corrupt> {
        // Most stored numbers are small.
        if let Some((&first, rest)) = self.rest.split_first()
            && first < 0x80
        {
            self.rest = rest;
            return Ok(u64::from(first));
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
    pub(crate) fn varint_u32(&mut self) -> Result<u32, Corrupt> {
        let mut ahead = self.clone();
        let value = u32::try_from(ahead.varint()?).map_err(|_| Corrupt { what: "number above 32 bits" })?;
        *self = ahead;
        Ok(value)
    }

    /// Reads what [`put_prefixed`] wrote: a length and that many bytes.
    pub(crate) fn prefixed(&mut self) -> Result<&'a [u8], Corrupt> {
        let mut ahead = self.clone();
        let len = usize::try_from(ahead.varint()?).map_err(|_| Corrupt { what: "length above memory" })?;
        let bytes = ahead.bytes(len)?;
        *self = ahead;
        Ok(bytes)
    }

    /// Refuses bytes after the last field.
    pub(crate) fn finish(self) -> Result<(), Corrupt> {
        if self.is_empty() { Ok(()) } else { Err(Corrupt { what: "bytes after the end" }) }
    }
}

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
