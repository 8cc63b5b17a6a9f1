//! Bytes in and out: variable-length integers and a reader that never panics.

/// Stored bytes do not decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Corrupt {
    /// What was read when the bytes stopped making sense.
    pub(crate) what: &'static str,
}

/// The continuation bit of each byte.
const CONTINUATION: u64 = 0x8080_8080_8080_8080;

/// Appends `value` in groups of seven bits, least significant first.
///
/// Costs one byte below 128, two below 16,384 and at most ten.
#[inline]
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    if value < 1 << 56 {
        // Lengths vary without a pattern that a processor could predict, so
        // the groups are spread over eight bytes at once, without a branch.
        let last = (value | 1).ilog2() / 7;
        let mut bytes = (value & 0x0fff_ffff) | (value & 0x00ff_ffff_f000_0000) << 4;
        bytes = (bytes & 0x0000_3fff_0000_3fff) | (bytes & 0x0fff_c000_0fff_c000) << 2;
        bytes = (bytes & 0x007f_007f_007f_007f) | (bytes & 0x3f80_3f80_3f80_3f80) << 1;
        bytes |= CONTINUATION & ((1 << (8 * last)) - 1);
        let end = out.len() + last as usize + 1;
        out.extend_from_slice(&bytes.to_le_bytes());
        out.truncate(end);
        return;
    }
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads stored bytes from front to back.
#[derive(Debug, Clone)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader at the start of `bytes`.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Whether everything was read.
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads one byte.
    #[inline]
    pub(crate) fn u8(&mut self) -> Result<u8, Corrupt> {
        let (first, rest) = self.rest.split_first().ok_or(Corrupt { what: "a byte is missing" })?;
        self.rest = rest;
        Ok(*first)
    }

    /// Reads an integer written by [`put_varint`].
    #[inline]
    pub(crate) fn varint(&mut self) -> Result<u64, Corrupt> {
        if let Some(bytes) = self.rest.first_chunk::<8>() {
            let bytes = u64::from_le_bytes(*bytes);
            let end = (!bytes & CONTINUATION).trailing_zeros();
            if end < 64 {
                // Without a branch on the length, as in `put_varint`.
                let groups = bytes & (u64::MAX >> (63 - end)) & !CONTINUATION;
                let pairs = (groups & 0x007f_007f_007f_007f) | (groups & 0x7f00_7f00_7f00_7f00) >> 1;
                let fours = (pairs & 0x0000_3fff_0000_3fff) | (pairs & 0x3fff_0000_3fff_0000) >> 2;
                self.rest = &self.rest[end as usize / 8 + 1..];
                return Ok((fours & 0x0fff_ffff) | (fours & 0x0fff_ffff_0000_0000) >> 4);
            }
        }
        let mut value = 0;
        let mut shift = 0;
        loop {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(Corrupt { what: "an integer exceeds 64 bits" });
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
            shift += 7;
            if shift > 63 {
                return Err(Corrupt { what: "an integer exceeds 64 bits" });
            }
        }
    }

    /// Reads the next `count` bytes.
    #[inline]
    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Corrupt> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Corrupt { what: "bytes are missing" })?;
        self.rest = rest;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_integer_is_read_as_written_in_as_few_bytes_as_it_needs() {
        for bit in 0..64 {
            for value in [1 << bit, (1 << bit) - 1, u64::MAX >> bit, 0x5555_5555_5555_5555 >> bit] {
                let mut bytes = vec![7];
                put_varint(&mut bytes, value);
                let groups = (64 - (value | 1).leading_zeros()).div_ceil(7) as usize;
                assert_eq!(bytes.len(), 1 + groups, "{value}");
                // At the end of the bytes, and with more behind it.
                for rest in [0, 20] {
                    bytes.resize(1 + groups + rest, 0xff);
                    let mut reader = Reader::new(&bytes[1..]);
                    assert_eq!(reader.varint(), Ok(value));
                    assert_eq!(reader.bytes(rest).map(<[u8]>::len), Ok(rest));
                    assert!(reader.is_empty());
                }
                for length in 1..=groups {
                    assert!(Reader::new(&bytes[1..length]).varint().is_err());
                }
            }
        }
    }

    #[test]
    fn an_integer_beyond_64_bits_is_an_error() {
        let mut bytes = [0xff; 11];
        bytes[9] = 1;
        assert_eq!(Reader::new(&bytes).varint(), Ok(u64::MAX));
        bytes[9] = 2;
        assert!(Reader::new(&bytes).varint().is_err());
        assert!(Reader::new(&[0xff; 30]).varint().is_err());
    }
}
