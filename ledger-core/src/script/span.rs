//! Where things stand in a script's text.

/// A stretch of a script's text, in bytes; the end is exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

impl Span {
    /// From `start` up to `end`.
    pub const fn new(start: u32, end: u32) -> Self {
        Self { start, end }
    }

    /// From the start of this to the end of `last`.
    #[must_use]
    pub const fn to(self, last: Self) -> Self {
        Self { start: self.start, end: last.end }
    }

    /// The text that stands here; empty where `text` is not the script that this is a span of.
    pub fn of(self, text: &str) -> &str {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

/// A place in a text, as people count: but both numbers from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Place {
    /// The line.
    pub line: u32,
    /// Characters, not bytes, before it on its line.
    pub column: u32,
}

/// A stretch of a text by its places; the end is exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Range {
    /// The first character.
    pub start: Place,
    /// The place after the last.
    pub end: Place,
}

impl Place {
    /// The place after these bytes, if they begin here.
    fn after(mut self, bytes: &[u8]) -> Self {
        for byte in bytes {
            if *byte == b'\n' {
                self = Self { line: self.line + 1, column: 0 };
            } else {
                // Every character has exactly one byte that is not a continuation.
                self.column += u32::from(byte & 0xC0 != 0x80);
            }
        }
        self
    }
}

impl Range {
    /// Where a span of `text` stands. Takes time by the length of the text before its end.
    pub fn of(span: Span, text: &str) -> Self {
        let place =
            |at: u32| Place::default().after(text.as_bytes().get(..at as usize).unwrap_or(text.as_bytes()));
        Self { start: place(span.start), end: place(span.end) }
    }
}

/// The places in one text, for whoever looks up many.
pub(super) struct Places<'t> {
    bytes: &'t [u8],
    /// The place of every so many bytes, the first one's first.
    marks: Vec<Place>,
}

impl<'t> Places<'t> {
    const STRIDE: usize = 256;

    pub(super) fn of(text: &'t str) -> Self {
        let bytes = text.as_bytes();
        let mut marks = Vec::with_capacity(bytes.len() / Self::STRIDE + 1);
        let mut place = Place::default();
        for piece in bytes.chunks(Self::STRIDE) {
            marks.push(place);
            place = place.after(piece);
        }
        Self { bytes, marks }
    }

    /// Where a span stands.
    pub(super) fn range(&self, span: Span) -> Range {
        Range { start: self.place(span.start), end: self.place(span.end) }
    }

    fn place(&self, at: u32) -> Place {
        let at = (at as usize).min(self.bytes.len());
        // What stands behind the last whole stride is counted from it.
        let mark = (at / Self::STRIDE).min(self.marks.len().saturating_sub(1));
        let start = self.marks.get(mark).copied().unwrap_or_default();
        start.after(&self.bytes[mark * Self::STRIDE..at])
    }

    /// The byte at which the character at a place begins; `None` if there is none.
    pub(super) fn offset(&self, place: Place) -> Option<u32> {
        // The last mark that is not behind it.
        let mark = self.marks.partition_point(|mark| *mark <= place).checked_sub(1)?;
        let mut here = self.marks[mark];
        for (at, byte) in self.bytes.iter().enumerate().skip(mark * Self::STRIDE) {
            let begins = byte & 0xC0 != 0x80;
            if here == place && begins {
                return Some(at as u32);
            }
            if here > place {
                return None;
            }
            here = here.after(&[*byte]);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_lines_end_at_a_line_feed() {
        let text = "a\r\n\"é\" $x\n";
        let at = text.find('$').expect("a variable") as u32;
        let range = Range::of(Span::new(at, at + 2), text);
        assert_eq!(range, Range { start: Place { line: 1, column: 4 }, end: Place { line: 1, column: 6 } });
        assert_eq!(Span::new(at, at + 2).of(text), "$x");
        assert_eq!(Range::of(Span::new(900, 901), text).start, Place { line: 2, column: 0 });
    }

    #[test]
    fn many_places_are_found_as_one_is() {
        let line = "[é €$]\r\n";
        for text in [String::new(), line.repeat(100), line.replace('\n', "é").repeat(150)] {
            let places = Places::of(&text);
            for at in 0..=text.len() as u32 + 2 {
                let span = Span::new(at, at + 7);
                assert_eq!(places.range(span), Range::of(span, &text), "{at}");
            }
            for (at, _) in text.char_indices() {
                let place = Range::of(Span::new(at as u32, at as u32), &text).start;
                assert_eq!(places.offset(place), Some(at as u32), "{place:?}");
            }
            assert_eq!(places.offset(Place { line: 0, column: 9_999 }), None);
            assert_eq!(places.offset(Place { line: 9_999, column: 0 }), None);
        }
    }
}
