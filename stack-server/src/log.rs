//! The log lines of the process: one per start, stop, recovery and error, and one per request only with `--debug`.

use std::fmt::{Display, Write as _};
use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use ledger_core::Timestamp;

/// The importance of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Details for finding a fault.
    Debug,
    /// Normal operation.
    Info,
    /// The operator may want to change something.
    Warning,
    /// Something failed, and a person should look at it.
    Error,
}

/// Maximum number of characters in a value. Enough for a path or a reason.
const VALUE_CHARS_MAX: usize = 500;

/// Writes one line to standard error: `time=… level=… event=…`, then the fields as `key="value"`.
///
/// Values may come from clients. Quotes and control characters are escaped, and long values are cut.
pub fn event(level: Level, name: &str, fields: &[(&str, &dyn Display)]) {
    let line = line(now(), level, name, fields);
    // There is nowhere to report that standard error is closed.
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

/// Returns the current time of the system clock.
pub(crate) fn now() -> Timestamp {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(elapsed.as_micros()).unwrap_or(i64::MAX))
}

fn line(at: Timestamp, level: Level, name: &str, fields: &[(&str, &dyn Display)]) -> String {
    let level = match level {
        Level::Debug => "debug",
        Level::Info => "info",
        Level::Warning => "warning",
        Level::Error => "error",
    };
    let mut line = format!("time={at} level={level} event={name}");
    for (key, value) in fields {
        let text = value.to_string();
        // Writing to a String cannot fail.
        let _ = write!(line, " {key}=\"");
        for c in text.chars().take(VALUE_CHARS_MAX) {
            match c {
                '"' | '\\' => line.extend(['\\', c]),
                c if c.is_control() => line.extend(c.escape_unicode()),
                c => line.push(c),
            }
        }
        line.push('"');
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_newlines_and_quotes_in_values() {
        let text = line(Timestamp::default(), Level::Error, "fault", &[("reason", &"a\nb\" \u{1b}[31m\\")]);
        assert_eq!(
            text,
            "time=1970-01-01T00:00:00Z level=error event=fault reason=\"a\\u{a}b\\\" \\u{1b}[31m\\\\\"\n"
        );
    }
}
