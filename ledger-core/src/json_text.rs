//! Text as JSON strings, the way the wire writes them.

/// What text is appended to, piece by piece.
pub(crate) trait Out {
    /// Appends a piece.
    fn put(&mut self, piece: &[u8]);

    /// Appends a piece between quotes.
    #[inline]
    fn put_quoted(&mut self, piece: &[u8]) {
        self.put(b"\"");
        self.put(piece);
        self.put(b"\"");
    }
}

impl Out for Vec<u8> {
    #[inline]
    fn put(&mut self, piece: &[u8]) {
        self.extend_from_slice(piece);
    }
}

/// Room that was made before: a piece costs its copy, and no more than a look at whether there is room for it.
pub(crate) struct Room<'a> {
    rest: &'a mut [u8],
    sufficed: bool,
}

impl<'a> Room<'a> {
    pub(crate) fn new(room: &'a mut [u8]) -> Self {
        Self { rest: room, sufficed: true }
    }

    /// The next so many bytes, if there is room for them.
    #[inline]
    fn take(&mut self, len: usize) -> Option<&'a mut [u8]> {
        let taken = std::mem::take(&mut self.rest).split_at_mut_checked(len);
        self.sufficed &= taken.is_some();
        let (place, rest) = taken?;
        self.rest = rest;
        Some(place)
    }

    /// How much is left; `None` if there was not enough.
    pub(crate) fn left(&self) -> Option<usize> {
        self.sufficed.then_some(self.rest.len())
    }
}

impl Out for Room<'_> {
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

pub(crate) const HEX: &[u8; 16] = b"0123456789abcdef";

/// A byte that stands for itself.
const PLAIN: u8 = 0;
/// A byte that is written as `\u00xx`.
const CODED: u8 = 1;
/// The first byte of U+2028 and U+2029, and of many others.
const SEPARATOR: u8 = 2;

/// For each byte how it is written; what is none of the three above follows a backslash.
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

/// Appends a text as a JSON string: `<`, `>`, `&`, U+2028, U+2029 and control characters as `\u` with
/// lower-case hex where JSON has no shorter form, all else as raw UTF-8.
///
/// This is how the wire writes text, not only what is hashed.
pub fn write_json_text(text: &str, out: &mut Vec<u8>) {
    out.reserve(text.len() + 2);
    put_json_text(text, out);
}

/// Does what [`write_json_text`] does.
pub(crate) fn put_json_text(text: &str, out: &mut impl Out) {
    if is_plain(text.as_bytes()) {
        put_plain(text, out);
    } else {
        put_escaped(text, out);
    }
}

/// Whether every byte stands for itself, told for many bytes at once: nearly every text is plain. Says no where that is
/// not sure.
fn is_plain(bytes: &[u8]) -> bool {
    // What is left over is looked at together with bytes before it.
    if let Some(last) = bytes.last_chunk() {
        let (strides, rest) = bytes.as_chunks();
        strides.iter().all(is_plain_stride) && (rest.is_empty() || is_plain_stride(last))
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        odd_bytes(u64::from_le_bytes(*first)) | odd_bytes(u64::from_le_bytes(*last)) == 0
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let [first, last] = [first, last].map(|word| u64::from(u32::from_le_bytes(*word)));
        odd_bytes(first | last << 32) == 0
    } else {
        bytes.iter().all(|byte| ESCAPES[usize::from(*byte)] == PLAIN)
    }
}

/// A compiler makes a few instructions of this.
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

/// The same for eight bytes, within a word: zero if all of them stand for themselves.
#[inline]
fn odd_bytes(word: u64) -> u64 {
    const EACH: u64 = u64::MAX / 0xff;
    // The highest bit of each byte below this one. Behind the first of them a borrow may set others too, so what is sure
    // is whether there is one.
    let below = |word: u64, byte: u8| word.wrapping_sub(EACH * u64::from(byte)) & !word;
    let equal = |word: u64, byte: u8| below(word ^ (EACH * u64::from(byte)), 1);
    let odd = below(word, 0x20)
        | equal(word, b'\\')
        | equal(word, 0xe2)
        | equal(word | (EACH * 0x04), b'&')
        | equal(word | (EACH * 0x02), b'>');
    odd & (EACH << 7)
}

fn put_escaped(text: &str, out: &mut impl Out) {
    let bytes = text.as_bytes();
    out.put(b"\"");
    // What lies between `copied` and `at` stands for itself and is copied in one go.
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

/// Appends a text whose grammar leaves nothing to escape, between quotes.
pub(crate) fn put_plain(text: &str, out: &mut impl Out) {
    out.put_quoted(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_as_on_the_wire() {
        for (text, written) in [
            ("", r#""""#),
            ("plain ä 🧾", "\"plain ä 🧾\""),
            ("<>&", r#""\u003c\u003e\u0026""#),
            ("\"\\/", r#""\"\\/""#),
            ("\n\r\t", r#""\n\r\t""#),
            ("\u{8}\u{c}", r#""\b\f""#),
            ("\u{0}\u{b}\u{1f}\u{7f}", "\"\\u0000\\u000b\\u001f\u{7f}\""),
            ("\u{2028}\u{2029}", r#""\u2028\u2029""#),
            // They begin with the same bytes as the separators.
            ("\u{2027}\u{202a}€", "\"\u{2027}\u{202a}€\""),
            ("a\u{2028}", r#""a\u2028""#),
        ] {
            let mut out = Vec::new();
            write_json_text(text, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), written, "{text:?}");
        }
    }

    #[test]
    fn one_byte_is_found_wherever_it_stands() {
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
