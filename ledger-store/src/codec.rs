//! Bytes in and out: variable-length integers and a reader that never panics.

/// Stored bytes do not decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Corrupt {
    /// What was read when the bytes stopped making sense.
    pub(crate) what: &'static str,
}

/// Appends `value` in groups of seven bits, least significant first.
///
/// Costs one byte below 128, two below 16,384 and at most ten.
#[inline]
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
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
        let first = self.u8()?;
        if first < 0x80 {
            return Ok(u64::from(first));
        }
        let mut value = u64::from(first & 0x7f);
        let mut shift = 7;
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
