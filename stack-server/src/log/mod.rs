//! The log of the process: one line on standard error per start, stop, recovery and fault, and one per request at the
//! level `debug`.
//!
//! Lines that are written while a request is handled contain the id of the request (`request_id.rs`).

mod line;
pub(crate) mod refusals;
pub(crate) mod request_id;
pub(crate) mod warning_limiter;

use std::fmt::Display;
use std::io::Write as _;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use ledger_core::Timestamp;

pub use self::line::Format;
use self::line::Line;
use self::request_id::RequestId;

/// The importance of a log line, least important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
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

impl Level {
    /// All levels with their words in log lines.
    pub const WORDS: [(&'static str, Self); 4] =
        [("debug", Self::Debug), ("info", Self::Info), ("warning", Self::Warning), ("error", Self::Error)];

    fn name(self) -> &'static str {
        Self::WORDS[self as usize].0
    }
}

/// The minimum level of written lines.
static LEAST: AtomicU8 = AtomicU8::new(Level::Info as u8);
static FORMAT: AtomicU8 = AtomicU8::new(Format::Text as u8);

/// Sets the format of all later lines, and their minimum level. The defaults are text and [`Level::Info`].
pub fn configure(format: Format, least: Level) {
    LEAST.store(least as u8, Ordering::Relaxed);
    FORMAT.store(format as u8, Ordering::Relaxed);
}

/// Returns whether lines of this level are written.
pub(crate) fn is_written(level: Level) -> bool {
    level as u8 >= LEAST.load(Ordering::Relaxed)
}

/// Writes one line to standard error: the time, the level and the name of the event, then the fields.
///
/// Values may come from clients. Characters that could break the parsing or the display of a line are escaped, and
/// long values are truncated.
pub fn event(level: Level, name: &str, fields: &[(&str, &dyn Display)]) {
    if !is_written(level) {
        return;
    }
    let is_json = FORMAT.load(Ordering::Relaxed) == Format::Json as u8;
    let mut line = Line::new(if is_json { Format::Json } else { Format::Text });
    line.plain_field("time", &now()).plain_field("level", &level.name()).plain_field("event", &name);
    for (key, value) in fields {
        line.value(key, value);
    }
    if let Some(id) = RequestId::current() {
        line.value("request_id", &id);
    }
    // If standard error is closed, there is no place to report it.
    let _ = std::io::stderr().lock().write_all(line.end().as_bytes());
}

/// Returns the current time of the system clock.
pub(crate) fn now() -> Timestamp {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(elapsed.as_micros()).unwrap_or(i64::MAX))
}
