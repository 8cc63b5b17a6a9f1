//! Durations in the form of this API's deployment files: `100ms`, `5s`, `1h30m`.

use std::time::Duration;

use thiserror::Error;

/// The text is not a duration, or the duration exceeds 584 years.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} is no duration such as 100ms, 5s or 1h30m")]
pub(crate) struct DurationError(String);

/// Parses a duration: whole or decimal numbers, each with one of the units `ns`, `us`, `µs`, `ms`, `s`, `m`, `h`.
///
/// # Errors
///
/// Fails if the text is not a duration, or if the duration exceeds 584 years.
pub(crate) fn parse(text: &str) -> Result<Duration, DurationError> {
    let none = || DurationError(text.to_owned());
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut rest = text;
    let mut nanoseconds: u64 = 0;
    if rest.is_empty() {
        return Err(none());
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(none)?;
        let (number, unit) = rest.split_at(end);
        let (unit, length) = match unit {
            unit if unit.starts_with("ns") => (1, 2),
            unit if unit.starts_with("us") => (1_000, 2),
            unit if unit.starts_with("µs") => (1_000, "µs".len()),
            unit if unit.starts_with("ms") => (1_000_000, 2),
            unit if unit.starts_with('s') => (1_000_000_000, 1),
            unit if unit.starts_with('m') => (60_000_000_000, 1),
            unit if unit.starts_with('h') => (3_600_000_000_000, 1),
            _ => return Err(none()),
        };
        rest = &rest[end + length..];
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.len() + fraction.len() == 0 || fraction.contains('.') {
            return Err(none());
        }
        let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| none())? };
        let mut part = whole.checked_mul(unit).ok_or_else(none)?;
        let mut place = unit;
        for digit in fraction.bytes() {
            place /= 10;
            part = part.checked_add(place * u64::from(digit - b'0')).ok_or_else(none)?;
        }
        nanoseconds = nanoseconds.checked_add(part).ok_or_else(none)?;
    }
    Ok(Duration::from_nanos(nanoseconds))
}

/// Returns a duration in Go's form: `2m0s`, `1.5s`, `100ms`.
pub(crate) fn text(duration: Duration) -> String {
    let nanoseconds = duration.subsec_nanos();
    let seconds = duration.as_secs();
    let decimal = |whole: u64, fraction: u32, digits: usize| {
        let fraction = format!("{fraction:0digits$}");
        let fraction = fraction.trim_end_matches('0');
        if fraction.is_empty() { whole.to_string() } else { format!("{whole}.{fraction}") }
    };
    if seconds == 0 {
        return match nanoseconds {
            0 => "0s".to_owned(),
            1..1_000 => format!("{nanoseconds}ns"),
            1_000..1_000_000 => {
                format!("{}µs", decimal(u64::from(nanoseconds / 1_000), nanoseconds % 1_000, 3))
            }
            _ => format!("{}ms", decimal(u64::from(nanoseconds / 1_000_000), nanoseconds % 1_000_000, 6)),
        };
    }
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    let rest = decimal(seconds % 60, nanoseconds, 9);
    match (hours, minutes) {
        (0, 0) => format!("{rest}s"),
        (0, minutes) => format!("{minutes}m{rest}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{rest}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_written_as_go_writes_it() {
        for (nanoseconds, written) in [
            (0, "0s"),
            (1, "1ns"),
            (1_500, "1.5µs"),
            (100_000_000, "100ms"),
            (1_000_000_000, "1s"),
            (1_500_000_000, "1.5s"),
            (90_000_000_000, "1m30s"),
            (120_000_000_000, "2m0s"),
            (3_600_000_000_000, "1h0m0s"),
            (3_661_000_000_001, "1h1m1.000000001s"),
        ] {
            assert_eq!(text(Duration::from_nanos(nanoseconds)), written);
            assert_eq!(parse(written), Ok(Duration::from_nanos(nanoseconds)));
        }
    }

    #[test]
    fn durations_have_numbers_and_units() {
        for (text, milliseconds) in [
            ("100ms", 100),
            ("5s", 5_000),
            ("1h", 3_600_000),
            ("1m", 60_000),
            ("1h30m", 5_400_000),
            ("1.5s", 1_500),
            (".5s", 500),
            ("2000us", 2),
            ("2000µs", 2),
            ("3000000ns", 3),
            ("0", 0),
            ("0s", 0),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in
            ["", "5", "s", "-5s", "5 s", "5x", "1.2.3s", ".s", "99999999999999999999h", "9999999999h", "1d"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
