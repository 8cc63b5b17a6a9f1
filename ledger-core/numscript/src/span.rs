//! Positions in the text of a script, in bytes and in lines and columns.

use crate::limits::to_u32;

/// A range of bytes in a script's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

impl Span {
    /// Makes the span from `start` up to `end`.
    pub const fn new(start: u32, end: u32) -> Self {
        Self { start, end }
    }

    /// Returns the span from the start of this one to the end of `last`.
    #[must_use]
    pub const fn to(self, last: Self) -> Self {
        Self { start: self.start, end: last.end }
    }

    /// Returns the text of the span, or an empty text if `text` is not the span's script.
    pub fn of(self, text: &str) -> &str {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

/// A position as line and column, both counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Position {
    /// Number of lines before it.
    pub line: u32,
    /// Number of characters before it on its line. A character may have several bytes.
    pub column: u32,
}

/// A range of characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Range {
    /// Position of the first character.
    pub start: Position,
    /// Position after the last character.
    pub end: Position,
}

impl Position {
    /// Returns the position after these bytes, which begin at this position.
    fn after(mut self, bytes: &[u8]) -> Self {
        for byte in bytes {
            if *byte == b'\n' {
                self = Self { line: self.line + 1, column: 0 };
            } else {
                // Count the bytes that begin a character.
                self.column += u32::from(byte & 0xC0 != 0x80);
            }
        }
        self
    }
}

impl Range {
    /// Returns the range of a span in `text`. Takes time in proportion to the text before its end.
    pub fn of(span: Span, text: &str) -> Self {
        let position = |at: u32| {
            Position::default().after(text.as_bytes().get(..at as usize).unwrap_or(text.as_bytes()))
        };
        Self { start: position(span.start), end: position(span.end) }
    }
}

/// Index of one text for many lookups of positions.
pub(super) struct PositionIndex<'t> {
    bytes: &'t [u8],
    /// Position of every `STRIDE`-th byte from the first on.
    marks: Vec<Position>,
}

impl<'t> PositionIndex<'t> {
    const STRIDE: usize = 256;

    pub(super) fn of(text: &'t str) -> Self {
        let bytes = text.as_bytes();
        let mut marks = Vec::with_capacity(bytes.len() / Self::STRIDE + 1);
        let mut position = Position::default();
        for piece in bytes.chunks(Self::STRIDE) {
            marks.push(position);
            position = position.after(piece);
        }
        Self { bytes, marks }
    }

    /// Returns the range of a span.
    pub(super) fn range(&self, span: Span) -> Range {
        Range { start: self.position(span.start), end: self.position(span.end) }
    }

    fn position(&self, at: u32) -> Position {
        let at = (at as usize).min(self.bytes.len());
        // Counting starts at the last whole stride.
        let mark = (at / Self::STRIDE).min(self.marks.len().saturating_sub(1));
        let start = self.marks.get(mark).copied().unwrap_or_default();
        start.after(&self.bytes[mark * Self::STRIDE..at])
    }

    /// Returns the byte offset of the character at a position, or `None` if there is no such character.
    pub(super) fn offset(&self, position: Position) -> Option<u32> {
        // Counting starts at the last mark at or before the position.
        let mark = self.marks.partition_point(|mark| *mark <= position).checked_sub(1)?;
        let mut here = self.marks[mark];
        for (at, byte) in self.bytes.iter().enumerate().skip(mark * Self::STRIDE) {
            let begins = byte & 0xC0 != 0x80;
            if here == position && begins {
                return Some(to_u32(at));
            }
            if here > position {
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
    fn columns_count_characters() {
        let text = "a\r\n\"é\" $x\n";
        let at = text.find('$').expect("a variable") as u32;
        let range = Range::of(Span::new(at, at + 2), text);
        assert_eq!(
            range,
            Range { start: Position { line: 1, column: 4 }, end: Position { line: 1, column: 6 } }
        );
        assert_eq!(Span::new(at, at + 2).of(text), "$x");
        assert_eq!(Range::of(Span::new(900, 901), text).start, Position { line: 2, column: 0 });
    }

    #[test]
    fn indexed_lookups_equal_single_lookups() {
        let line = "[é €$]\r\n";
        for text in [String::new(), line.repeat(100), line.replace('\n', "é").repeat(150)] {
            let positions = PositionIndex::of(&text);
            for at in 0..=text.len() as u32 + 2 {
                let span = Span::new(at, at + 7);
                assert_eq!(positions.range(span), Range::of(span, &text), "{at}");
            }
            for (at, _) in text.char_indices() {
                let position = Range::of(Span::new(at as u32, at as u32), &text).start;
                assert_eq!(positions.offset(position), Some(at as u32), "{position:?}");
            }
            assert_eq!(positions.offset(Position { line: 0, column: 9_999 }), None);
            assert_eq!(positions.offset(Position { line: 9_999, column: 0 }), None);
        }
    }
}
