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

impl Range {
    /// Where a span of `text` stands. Takes time by the length of the text before its end.
    pub fn of(span: Span, text: &str) -> Self {
        let place = |at: u32| {
            let before = text.as_bytes().get(..at as usize).unwrap_or(text.as_bytes());
            let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            Place {
                line: before.split(|byte| *byte == b'\n').count() as u32 - 1,
                // Every character has exactly one byte that is not a continuation.
                column: before[line_start..].iter().map(|byte| u32::from(byte & 0xC0 != 0x80)).sum(),
            }
        };
        Self { start: place(span.start), end: place(span.end) }
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
}
