//! UUIDs as text.

/// Sixteen bytes as a UUID of a version: 8 for what was computed, 4 for random ones.
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

/// The text of a UUID in its usual form, in small letters; `None` for any other text.
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
    fn what_is_written_is_read() {
        let uuid = text([0xff; 16], 4);
        assert_eq!(uuid, "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(parse(&uuid.to_uppercase()), Some(uuid));
        for text in ["", "x", "ffffffff-ffff-4fff-bfff-fffffffffff", "ffffffff_ffff-4fff-bfff-ffffffffffff"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
