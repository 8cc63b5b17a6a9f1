//! Durations as deployment files of this API write them: `100ms`, `5s`, `1h30m`.

use std::time::Duration;

/// Reads a duration: numbers, whole or decimal, each with one of the units `ns`, `us`, `µs`, `ms`, `s`, `m`, `h`.
///
/// # Errors
///
/// If it is none, or longer than 584 years.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let none = || format!("{text:?} is no duration such as 100ms, 5s or 1h30m");
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

#[cfg(test)]
mod tests {
    use super::*;

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
