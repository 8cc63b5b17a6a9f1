//! Writes text as JSON strings with the escapes that the wire format uses.

/// Sink for bytes: a growing vector, or a buffer of fixed size.
///
/// ```
/// use ledger_values::json_text::ByteSink;
/// let mut line = Vec::new();
/// line.put(b"tier=");
/// line.put_quoted(b"gold");
/// assert_eq!(line, br#"tier="gold""#);
/// ```
pub trait ByteSink {
    /// Appends bytes.
    fn put(&mut self, piece: &[u8]);

    /// Appends bytes between double quotes. The bytes are not escaped.
    #[inline]
    fn put_quoted(&mut self, piece: &[u8]) {
        self.put(b"\"");
        self.put(piece);
        self.put(b"\"");
    }
}

impl ByteSink for Vec<u8> {
    #[inline]
    fn put(&mut self, piece: &[u8]) {
        self.extend_from_slice(piece);
    }
}

/// Buffer of fixed size. It drops the first piece that does not fit and everything after it, and remembers that it did.
///
/// ```
/// use ledger_values::json_text::{ByteSink, FixedBuffer};
/// let mut bytes = [0; 8];
/// let mut buffer = FixedBuffer::new(&mut bytes);
/// buffer.put(b"gold");
/// assert_eq!(buffer.left(), Some(4));
/// buffer.put(b"platinum");
/// assert_eq!(buffer.left(), None);
/// assert_eq!(&bytes, b"gold\0\0\0\0");
/// ```
#[derive(Debug)]
pub struct FixedBuffer<'a> {
    rest: &'a mut [u8],
    sufficed: bool,
}

impl<'a> FixedBuffer<'a> {
    /// Starts to write at the beginning of `buffer`.
    pub fn new(buffer: &'a mut [u8]) -> Self {
        Self { rest: buffer, sufficed: true }
    }

    /// Reserves the next `len` bytes, or returns `None` if fewer are left.
    #[inline]
    fn take(&mut self, len: usize) -> Option<&'a mut [u8]> {
        let taken = std::mem::take(&mut self.rest).split_at_mut_checked(len);
        self.sufficed &= taken.is_some();
        let (place, rest) = taken?;
        self.rest = rest;
        Some(place)
    }

    /// Returns the number of unused bytes, or `None` if something did not fit.
    pub fn left(&self) -> Option<usize> {
        self.sufficed.then_some(self.rest.len())
    }
}

impl ByteSink for FixedBuffer<'_> {
    #[inline]
    fn put(&mut self, piece: &[u8]) {
        if let Some(place) = self.take(piece.len()) {
            place.copy_from_slice(piece);
        }
    }

    #[inline]
    fn put_quoted(&mut self, piece: &[u8]) {
        if let Some([before, place @ .., after]) = self.take(piece.len() + 2) {
            place.copy_from_slice(piece);
            (*before, *after) = (b'"', b'"');
        }
    }
}

/// Lower-case hexadecimal digits.
///
/// ```
/// use ledger_values::json_text::HEX;
/// let byte = 0xc4_u8;
/// assert_eq!([HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]], *b"c4");
/// ```
pub const HEX: &[u8; 16] = b"0123456789abcdef";

/// Class of a byte that is copied as it is.
const PLAIN: u8 = 0;
/// Class of a byte that is written as `\u00xx`.
const CODED: u8 = 1;
/// Class of the first byte of U+2028 and U+2029, which many other characters share.
const SEPARATOR: u8 = 2;

/// Maps each byte to its class, or to the letter that follows the backslash in its escape.
const ESCAPES: [u8; 256] = {
    let mut table = [PLAIN; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = CODED;
        byte += 1;
    }
    table[b'<' as usize] = CODED;
    table[b'>' as usize] = CODED;
    table[b'&' as usize] = CODED;
    table[b'"' as usize] = b'"';
    table[b'\\' as usize] = b'\\';
    table[b'\n' as usize] = b'n';
    table[b'\r' as usize] = b'r';
    table[b'\t' as usize] = b't';
    table[0x08] = b'b';
    table[0x0c] = b'f';
    table[0xe2] = SEPARATOR;
    table
};

/// Appends a text as a JSON string. `<`, `>`, `&`, U+2028, U+2029 and control characters without a short
/// escape become `\u` with lower-case hex digits. Everything else is raw UTF-8.
///
/// The wire format uses these escapes in answers as well as in hashed text.
///
/// ```
/// use ledger_values::json_text::write_json_text;
/// let mut out = Vec::new();
/// write_json_text("\"fees\" <\t5%", &mut out);
/// assert_eq!(out, br#""\"fees\" \u003c\t5%""#);
/// ```
pub fn write_json_text(text: &str, out: &mut Vec<u8>) {
    out.reserve(text.len() + 2);
    put_json_text(text, out);
}

/// Appends a text as a JSON string to any sink. See [`write_json_text`] for the escapes.
///
/// ```
/// use ledger_values::json_text::{FixedBuffer, put_json_text};
/// let mut bytes = [0; 16];
/// let mut buffer = FixedBuffer::new(&mut bytes);
/// put_json_text("A&B", &mut buffer);
/// assert_eq!(buffer.left(), Some(6));
/// assert_eq!(&bytes[..10], br#""A\u0026B""#);
/// ```
pub fn put_json_text(text: &str, out: &mut impl ByteSink) {
    if is_plain(text.as_bytes()) {
        put_plain(text, out);
    } else {
        put_escaped(text, out);
    }
}

/// Tells whether no byte needs an escape. Tests 16 bytes at a time, because nearly all texts are plain. May
/// return `false` for a plain text.
fn is_plain(bytes: &[u8]) -> bool {
    // Test the rest together with the bytes before it, so that the stride keeps its length.
    if let Some(last) = bytes.last_chunk() {
        let (strides, rest) = bytes.as_chunks();
        strides.iter().all(is_plain_stride) && (rest.is_empty() || is_plain_stride(last))
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        bytes_to_escape(u64::from_le_bytes(*first)) | bytes_to_escape(u64::from_le_bytes(*last)) == 0
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let [first, last] = [first, last].map(|word| u64::from(u32::from_le_bytes(*word)));
        bytes_to_escape(first | last << 32) == 0
    } else {
        bytes.iter().all(|byte| ESCAPES[usize::from(*byte)] == PLAIN)
    }
}

/// The loop over a constant length compiles to vector instructions.
#[inline]
fn is_plain_stride(bytes: &[u8; 16]) -> bool {
    let mut odd = 0;
    for byte in bytes {
        odd |= u8::from(*byte < 0x20) | u8::from(*byte == b'\\') | u8::from(*byte == 0xe2);
        // `"` and `&`, `<` and `>` differ in one bit.
        odd |= u8::from(byte | 0x04 == b'&') | u8::from(byte | 0x02 == b'>');
    }
    odd == 0
}

/// Tests eight bytes within one word: returns zero if none of them needs an escape.
#[inline]
fn bytes_to_escape(word: u64) -> u64 {
    const EACH: u64 = u64::MAX / 0xff;
    // Sets the highest bit of each byte that is less than `byte`. A borrow may set more bits above the first
    // one, so the result tells only whether there is any.
    let below = |word: u64, byte: u8| word.wrapping_sub(EACH * u64::from(byte)) & !word;
    let equal = |word: u64, byte: u8| below(word ^ (EACH * u64::from(byte)), 1);
    let odd = below(word, 0x20)
        | equal(word, b'\\')
        | equal(word, 0xe2)
        | equal(word | (EACH * 0x04), b'&')
        | equal(word | (EACH * 0x02), b'>');
    odd & (EACH << 7)
}

fn put_escaped(text: &str, out: &mut impl ByteSink) {
    let bytes = text.as_bytes();
    out.put(b"\"");
    // Copy the bytes between `copied` and `at` at once: they need no escape.
    let mut copied = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        let escape = ESCAPES[usize::from(byte)];
        if escape == PLAIN {
            continue;
        }
        if escape == SEPARATOR {
            if let [_, 0x80, last @ (0xa8 | 0xa9), ..] = bytes[at..] {
                out.put(&bytes[copied..at]);
                out.put(if last == 0xa8 { b"\\u2028" } else { b"\\u2029" });
                copied = at + 3;
            }
            continue;
        }
        out.put(&bytes[copied..at]);
        copied = at + 1;
        if escape == CODED {
            let hex = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
            out.put(b"\\u00");
            out.put(&hex);
        } else {
            out.put(&[b'\\', escape]);
        }
    }
    out.put(&bytes[copied..]);
    out.put(b"\"");
}

/// Appends a text between double quotes. The caller knows that the grammar of the text excludes characters to
/// escape.
///
/// ```
/// use ledger_values::AccountAddress;
/// use ledger_values::json_text::put_plain;
/// let account = AccountAddress::parse("users:001")?;
/// let mut out = Vec::new();
/// put_plain(account.as_str(), &mut out);
/// assert_eq!(out, br#""users:001""#);
/// # Ok::<(), ledger_values::NameError>(())
/// ```
pub fn put_plain(text: &str, out: &mut impl ByteSink) {
    out.put_quoted(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_text_like_the_wire_format() {
        for (text, written) in [
            ("", r#""""#),
            ("plain ä 🧾", "\"plain ä 🧾\""),
            ("<>&", r#""\u003c\u003e\u0026""#),
            ("\"\\/", r#""\"\\/""#),
            ("\n\r\t", r#""\n\r\t""#),
            ("\u{8}\u{c}", r#""\b\f""#),
            ("\u{0}\u{b}\u{1f}\u{7f}", "\"\\u0000\\u000b\\u001f\u{7f}\""),
            ("\u{2028}\u{2029}", r#""\u2028\u2029""#),
            // These characters begin with the same bytes as the separators.
            ("\u{2027}\u{202a}€", "\"\u{2027}\u{202a}€\""),
            ("a\u{2028}", r#""a\u2028""#),
        ] {
            let mut out = Vec::new();
            write_json_text(text, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), written, "{text:?}");
        }
    }

    #[test]
    fn finds_one_odd_byte_at_any_position() {
        for len in 0..50 {
            for at in 0..=len {
                for byte in 0..=0x7f_u8 {
                    let mut text = "x".repeat(len);
                    text.insert(at, char::from(byte));
                    let (mut slow, mut fast) = (Vec::new(), Vec::new());
                    put_escaped(&text, &mut slow);
                    write_json_text(&text, &mut fast);
                    assert_eq!(fast, slow, "{text:?}");
                    assert_eq!(is_plain(text.as_bytes()), ESCAPES[usize::from(byte)] == PLAIN, "{text:?}");
                }
            }
        }
        assert!(!is_plain("a separator\u{2029}".as_bytes()));
        assert!(is_plain("Zürich, 東京".as_bytes()));
    }
}
