//! One log line under construction, as text or as JSON.

use std::fmt::{Display, Write as _};

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Format {
    /// `time=… level=… event=…`, then the fields as `key="value"`.
    #[default]
    Text,
    /// One JSON object per line, with the same keys. Every value is a string.
    Json,
}

/// Maximum number of characters in a value. Enough for a path or a reason.
const VALUE_CHARS_MAX: usize = 500;

/// A log line.
#[derive(Debug)]
pub(super) struct Line {
    format: Format,
    text: String,
}

impl Line {
    /// Creates an empty line.
    pub(super) fn new(format: Format) -> Self {
        Self { format, text: String::new() }
    }

    /// Adds a field whose value is a word of this program, which needs no escapes.
    pub(super) fn plain_field(&mut self, key: &str, value: &dyn Display) -> &mut Self {
        self.key(key);
        let quote = if self.format == Format::Json { "\"" } else { "" };
        // Writing to a String cannot fail.
        let _ = write!(self.text, "{quote}{value}{quote}");
        self
    }

    /// Adds a field with any value. Truncates a long value.
    pub(super) fn value(&mut self, key: &str, value: &dyn Display) -> &mut Self {
        self.key(key);
        self.text.push('"');
        for c in value.to_string().chars().take(VALUE_CHARS_MAX) {
            match c {
                '"' | '\\' => self.text.extend(['\\', c]),
                c if !is_shown_as_it_is(c) => self.escape(c),
                c => self.text.push(c),
            }
        }
        self.text.push('"');
        self
    }

    /// Returns the whole line with its end.
    pub(super) fn end(mut self) -> String {
        self.text.push_str(if self.format == Format::Json { "}\n" } else { "\n" });
        self.text
    }

    fn key(&mut self, key: &str) {
        let is_first = self.text.is_empty();
        // Writing to a String cannot fail.
        let _ = match self.format {
            Format::Text => write!(self.text, "{}{key}=", if is_first { "" } else { " " }),
            Format::Json => write!(self.text, "{}\"{key}\":", if is_first { "{" } else { "," }),
        };
    }

    fn escape(&mut self, c: char) {
        match self.format {
            Format::Text => self.text.extend(c.escape_unicode()),
            // All escaped characters have at most four hexadecimal digits.
            Format::Json => {
                let _ = write!(self.text, "\\u{:04x}", u32::from(c));
            }
        }
    }
}

/// Returns whether a terminal shows a character unchanged. Control characters have other effects. Characters that
/// change the direction of writing, or have no width, make a line look like a different one.
fn is_shown_as_it_is(c: char) -> bool {
    let sets_direction =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let has_no_width = matches!(c, '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}');
    let ends_line = matches!(c, '\u{2028}' | '\u{2029}');
    !(c.is_control() || sets_direction || has_no_width || ends_line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(format: Format, reason: &str) -> String {
        let mut line = Line::new(format);
        line.plain_field("level", &"error").value("reason", &reason);
        line.end()
    }

    #[test]
    fn text_escapes_what_could_mislead() {
        let text = line(Format::Text, "a\nb\" \u{1b}[31m\\ \u{202e}c\u{2028}");
        assert_eq!(text, "level=error reason=\"a\\u{a}b\\\" \\u{1b}[31m\\\\ \\u{202e}c\\u{2028}\"\n");
    }

    #[test]
    fn json_escapes_the_same_and_can_be_read() {
        let reason = "a\nb\" \u{1b}[31m\\ \u{202e}c\u{2028} é";
        let text = line(Format::Json, reason);
        assert!(!text.trim_end().contains(|c| !is_shown_as_it_is(c)), "{text}");
        let read: serde_json::Value = serde_json::from_str(&text).expect("one JSON object");
        assert_eq!(read, serde_json::json!({"level": "error", "reason": reason}));
    }

    #[test]
    fn long_values_are_cut() {
        let text = line(Format::Text, &"é".repeat(VALUE_CHARS_MAX + 1));
        assert_eq!(text.matches('é').count(), VALUE_CHARS_MAX);
    }
}
