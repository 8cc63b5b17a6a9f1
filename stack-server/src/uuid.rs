//! UUIDs and their text form.

use std::fmt;

/// A UUID, ordered by its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Uuid([u8; 16]);

impl Uuid {
    /// Returns a random UUID (version 4).
    ///
    /// # Errors
    ///
    /// Fails if the operating system returns no random bytes.
    pub(crate) fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Ok(Self(bytes))
    }

    /// Returns the UUID with these bytes.
    pub(crate) const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes.
    pub(crate) const fn bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Parses the usual form in any case. Returns `None` for any other text.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = parse(text)?;
        let mut bytes = [0; 16];
        let mut digits = text.bytes().filter_map(|digit| char::from(digit).to_digit(16));
        for byte in &mut bytes {
            *byte = u8::try_from(digits.next()? << 4 | digits.next()?).ok()?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            let dash = if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(f, "{dash}{byte:02x}")?;
        }
        Ok(())
    }
}

/// Returns the text of a UUID from 16 bytes. The version is 8 for computed bytes and 4 for random ones.
pub(crate) fn text(mut bytes: [u8; 16], version: u8) -> String {
    bytes[6] = bytes[6] & 0x0f | version << 4;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut text = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        text.push_str(if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" });
        text.extend(
            [byte >> 4, byte & 0x0f].map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)])),
        );
    }
    text
}

/// Returns the text of a UUID in its usual form and lower case, or `None` for any other text.
pub(crate) fn parse(text: &str) -> Option<String> {
    let is_uuid = text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
    is_uuid.then(|| text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_uuids_differ_and_keep_their_text() {
        let (one, other) = (Uuid::random().expect("random"), Uuid::random().expect("random"));
        assert_ne!(one, other);
        assert_eq!(Uuid::parse(&one.to_string().to_uppercase()), Some(one));
        assert_eq!((one.to_string().as_bytes()[14], one.to_string().len()), (b'4', 36));
        assert_eq!(Uuid::parse("abc"), None);
    }

    #[test]
    fn reads_the_uuid_that_it_writes() {
        let uuid = text([0xff; 16], 4);
        assert_eq!(uuid, "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(parse(&uuid.to_uppercase()), Some(uuid));
        for text in ["", "x", "ffffffff-ffff-4fff-bfff-fffffffffff", "ffffffff_ffff-4fff-bfff-ffffffffffff"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
