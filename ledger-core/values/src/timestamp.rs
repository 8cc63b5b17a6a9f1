//! Points in time, to the microsecond, and their text form.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the parts of a date fit 32 bits, and a digit fits a byte"
)]

use std::fmt;

use crate::json_text::ByteSink;

/// A point in time: microseconds since 1970-01-01T00:00:00Z, negative before.
///
/// Timestamps are ordered by time. The text form is RFC 3339 in UTC with at most six fractional digits and no
/// trailing zeros. It exists for the years 0000 to 9999, from [`Timestamp::MIN`] to [`Timestamp::MAX`].
///
/// ```
/// use ledger_values::Timestamp;
/// let at = Timestamp::parse("2024-05-01T12:00:00.1200+02:00").unwrap();
/// assert_eq!(at.to_string(), "2024-05-01T10:00:00.12Z");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

const MICROS_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: i64 = 86_400;
/// Number of days in 400 years, after which the Gregorian calendar repeats.
const DAYS_PER_ERA: i64 = 146_097;
/// Days from 0000-03-01, where eras begin, to 1970-01-01.
const ERA_TO_EPOCH_DAYS: i64 = 719_468;

impl Timestamp {
    /// The earliest timestamp with a text form: 0000-01-01T00:00:00Z.
    pub const MIN: Self = Self(days_from_civil(0, 1, 1) * SECONDS_PER_DAY * MICROS_PER_SECOND);

    /// The latest timestamp with a text form: 9999-12-31T23:59:59.999999Z.
    pub const MAX: Self = Self(days_from_civil(10_000, 1, 1) * SECONDS_PER_DAY * MICROS_PER_SECOND - 1);

    /// Makes a timestamp from microseconds since the epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Returns the microseconds since the epoch.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Reads RFC 3339: a date, `T`, a time with any number of fractional digits, and `Z` or an offset.
    ///
    /// The fraction is rounded to microseconds, half up.
    ///
    /// # Errors
    ///
    /// [`TimestampError::Malformed`] if the text does not follow RFC 3339, names a day or hour that does not
    /// exist, or names a leap second. [`TimestampError::OutOfRange`] if the time is outside
    /// [`Timestamp::MIN`]..=[`Timestamp::MAX`] in UTC.
    pub fn parse(text: &str) -> Result<Self, TimestampError> {
        let (year, month, day, second_of_day, rest) =
            parse_local(text.as_bytes()).ok_or(TimestampError::Malformed)?;
        let (micros, rest) = parse_fraction(rest).ok_or(TimestampError::Malformed)?;
        let offset = parse_offset(rest).ok_or(TimestampError::Malformed)?;
        let seconds = days_from_civil(year, month, day) * SECONDS_PER_DAY + second_of_day - offset;
        let timestamp = Self(seconds * MICROS_PER_SECOND + micros);
        if (Self::MIN..=Self::MAX).contains(&timestamp) {
            Ok(timestamp)
        } else {
            Err(TimestampError::OutOfRange)
        }
    }

    /// Returns the year, the month from 1 and the day of the month in UTC.
    pub const fn date(self) -> (i64, u32, u32) {
        civil_from_days(self.0.div_euclid(MICROS_PER_SECOND * SECONDS_PER_DAY))
    }

    /// Appends the text form to `out`. Allocates only to grow `out`.
    ///
    /// Outside [`Timestamp::MIN`]..=[`Timestamp::MAX`] the year has a sign or more digits, and
    /// [`Timestamp::parse`] refuses the text.
    pub fn write_to(self, out: &mut Vec<u8>) {
        self.put(out);
    }

    /// Appends the text form to any sink. See [`Timestamp::write_to`].
    ///
    /// ```
    /// use ledger_values::Timestamp;
    /// use ledger_values::json_text::FixedBuffer;
    /// let mut bytes = [0; 20];
    /// Timestamp::from_micros(0).put(&mut FixedBuffer::new(&mut bytes));
    /// assert_eq!(&bytes, b"1970-01-01T00:00:00Z");
    /// ```
    pub fn put(self, out: &mut impl ByteSink) {
        let (text, start, end) = self.text();
        out.put(&text[start..end]);
    }

    /// Formats the text form into a buffer, and returns the buffer with the start and the end of the text.
    fn text(self) -> ([u8; TEXT_BYTES_MAX], usize, usize) {
        let seconds = self.0.div_euclid(MICROS_PER_SECOND);
        let micros = self.0.rem_euclid(MICROS_PER_SECOND) as u32;
        let (year, month, day) = self.date();
        let second_of_day = seconds.rem_euclid(SECONDS_PER_DAY) as u32;

        let mut text = *b"0000000-00-00T00:00:00.000000Z";
        let mut start = YEAR_END;
        let mut left = year.unsigned_abs() as u32;
        // The buffer holds a sign and six digits of a year: microseconds in 64 bits end in the year 294,247.
        while left > 0 || start > YEAR_END - 4 {
            start -= 1;
            text[start] = b'0' + (left % 10) as u8;
            left /= 10;
        }
        if year < 0 {
            start -= 1;
            text[start] = b'-';
        }
        two_digits(&mut text, YEAR_END + 1, month);
        two_digits(&mut text, YEAR_END + 4, day);
        two_digits(&mut text, YEAR_END + 7, second_of_day / 3_600);
        two_digits(&mut text, YEAR_END + 10, second_of_day / 60 % 60);
        two_digits(&mut text, YEAR_END + 13, second_of_day % 60);
        let fraction = YEAR_END + 16;
        let mut end = fraction - 1;
        if micros > 0 {
            two_digits(&mut text, fraction, micros / 10_000);
            two_digits(&mut text, fraction + 2, micros / 100 % 100);
            two_digits(&mut text, fraction + 4, micros % 100);
            end = fraction + 6;
            while text[end - 1] == b'0' {
                end -= 1;
            }
        }
        text[end] = b'Z';
        (text, start, end + 1)
    }
}

/// End of the year in the buffer of [`Timestamp::text`].
const YEAR_END: usize = 7;
const TEXT_BYTES_MAX: usize = 30;

/// The two digits of each number below 100.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut value = 0;
    while value < 100 {
        pairs[value] = [b'0' + (value / 10) as u8, b'0' + (value % 10) as u8];
        value += 1;
    }
    pairs
};

fn two_digits(text: &mut [u8; TEXT_BYTES_MAX], at: usize, value: u32) {
    text[at..at + 2].copy_from_slice(&PAIRS[value as usize]);
}

/// Formats timestamps and keeps the last text, because consecutive timestamps are often equal.
///
/// ```
/// use ledger_values::{Timestamp, TimestampText};
/// let noon = Timestamp::parse("2024-05-01T12:00:00Z")?;
/// let mut dates = TimestampText::default();
/// assert_eq!(dates.of(noon), b"2024-05-01T12:00:00Z");
/// let mut line = Vec::new();
/// noon.write_to(&mut line);
/// assert_eq!(line, dates.of(noon));
/// # Ok::<(), ledger_values::TimestampError>(())
/// ```
#[derive(Clone, Debug)]
pub struct TimestampText {
    of: Timestamp,
    text: [u8; TEXT_BYTES_MAX],
    start: usize,
    end: usize,
}

impl TimestampText {
    /// Returns the text form of `timestamp`. See [`Timestamp::write_to`].
    pub fn of(&mut self, timestamp: Timestamp) -> &[u8] {
        if self.of != timestamp {
            *self = Self::from(timestamp);
        }
        &self.text[self.start..self.end]
    }
}

impl From<Timestamp> for TimestampText {
    fn from(of: Timestamp) -> Self {
        let (text, start, end) = of.text();
        Self { of, text, start, end }
    }
}

impl Default for TimestampText {
    fn default() -> Self {
        Self::from(Timestamp::default())
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (text, start, end) = self.text();
        f.pad(std::str::from_utf8(&text[start..end]).expect("the text is ASCII"))
    }
}

impl std::str::FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, TimestampError> {
        Self::parse(text)
    }
}

/// Reason why a text is not a point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimestampError {
    /// The text does not follow RFC 3339, or names a day or hour that does not exist.
    Malformed,
    /// The time is before the year 0000 or after 9999 in UTC.
    OutOfRange,
}

impl fmt::Display for TimestampError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "a date is written as in RFC 3339: 2006-01-02T15:04:05.999999Z",
            Self::OutOfRange => "a date lies in the years 0000 to 9999",
        })
    }
}

impl std::error::Error for TimestampError {}

/// Reads `2006-01-02T15:04:05` and returns year, month, day, second of the day, and the rest of the text.
fn parse_local(text: &[u8]) -> Option<(i64, u32, u32, i64, &[u8])> {
    let (local, rest) = text.split_at_checked(19)?;
    let has_separators = local[4] == b'-'
        && local[7] == b'-'
        && matches!(local[10], b'T' | b't')
        && local[13] == b':'
        && local[16] == b':';
    if !has_separators {
        return None;
    }
    let year = i64::from(digits(&local[0..2])?) * 100 + i64::from(digits(&local[2..4])?);
    let (month, day) = (digits(&local[5..7])?, digits(&local[8..10])?);
    let (hour, minute, second) = (digits(&local[11..13])?, digits(&local[14..16])?, digits(&local[17..19])?);
    let exists = matches!(month, 1..=12)
        && day >= 1
        && day <= days_in_month(year, month)
        && hour < 24
        && minute < 60
        && second < 60;
    let second_of_day = i64::from(hour * 3_600 + minute * 60 + second);
    exists.then_some((year, month, day, second_of_day, rest))
}

/// Reads an optional fraction and returns it rounded to microseconds, with the rest of the text.
fn parse_fraction(text: &[u8]) -> Option<(i64, &[u8])> {
    let Some((b'.', text)) = text.split_first() else { return Some((0, text)) };
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if count == 0 {
        return None;
    }
    let (fraction, rest) = text.split_at(count);
    let digit = |at: usize| fraction.get(at).map_or(0, |byte| i64::from(byte - b'0'));
    let micros = (0..6).fold(0, |sum, at| sum * 10 + digit(at));
    Some((micros + i64::from(digit(6) >= 5), rest))
}

/// Reads `Z` or `+hh:mm` up to the end of the text and returns the seconds east of UTC.
fn parse_offset(text: &[u8]) -> Option<i64> {
    match text {
        b"Z" | b"z" => Some(0),
        [sign @ (b'+' | b'-'), h1, h0, b':', m1, m0] => {
            let (hours, minutes) = (digits(&[*h1, *h0])?, digits(&[*m1, *m0])?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let seconds = i64::from(hours * 3_600 + minutes * 60);
            Some(if *sign == b'-' { -seconds } else { seconds })
        }
        _ => None,
    }
}

/// Returns the value of two decimal digits.
fn digits(text: &[u8]) -> Option<u32> {
    match text {
        [tens @ b'0'..=b'9', ones @ b'0'..=b'9'] => {
            Some(u32::from(tens - b'0') * 10 + u32::from(ones - b'0'))
        }
        _ => None,
    }
}

fn days_in_month(year: i64, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the days from 1970-01-01 to a date of the proleptic Gregorian calendar.
///
/// Years start in March, so that the leap day is the last day of its year.
const fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = ((month + 9) % 12) as i64;
    let day_of_year = (153 * month_from_march + 2) / 5 + day as i64 - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * DAYS_PER_ERA + day_of_era - ERA_TO_EPOCH_DAYS
}

/// Returns the year, month and day that are `days` after 1970-01-01, for every day that microseconds can
/// express.
///
/// Works in unsigned 32-bit numbers, with an offset far below the year 0, because every log prints dates.
const fn civil_from_days(days: i64) -> (i64, u32, u32) {
    const ERAS_BEFORE: i64 = 800;
    let days = (days + ERA_TO_EPOCH_DAYS + ERAS_BEFORE * DAYS_PER_ERA) as u32;
    let era = days / DAYS_PER_ERA as u32;
    let day_of_era = days % DAYS_PER_ERA as u32;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year as i64 - ERAS_BEFORE * 400, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, printed: &str) {
        let timestamp = Timestamp::parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        assert_eq!(timestamp.to_string(), printed, "{text}");
        let mut bytes = b"x".to_vec();
        timestamp.write_to(&mut bytes);
        assert_eq!(bytes, format!("x{printed}").into_bytes());
        assert_eq!(Timestamp::parse(printed), Ok(timestamp));
    }

    #[test]
    fn reads_any_offset_and_prints_utc() {
        check("2024-05-01T12:00:00+02:00", "2024-05-01T10:00:00Z");
        check("2024-05-01T10:00:00.1200Z", "2024-05-01T10:00:00.12Z");
        check("2024-05-01T10:00:00.0000007Z", "2024-05-01T10:00:00.000001Z");
        check("2024-03-01T00:30:00+01:00", "2024-02-29T23:30:00Z");
        check("2023-12-31T23:30:00-00:45", "2024-01-01T00:15:00Z");
        check("1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59.5Z");
        check("2024-05-01t10:00:00z", "2024-05-01T10:00:00Z");
        check("0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z");
        check("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z");
    }

    #[test]
    fn rounds_fractions_half_up() {
        check("2024-05-01T10:00:00.0000005Z", "2024-05-01T10:00:00.000001Z");
        check("2024-05-01T10:00:00.00000049999999999999999999Z", "2024-05-01T10:00:00Z");
        check("2024-12-31T23:59:59.9999995Z", "2025-01-01T00:00:00Z");
        check("1969-12-31T23:59:59.9999995Z", "1970-01-01T00:00:00Z");
    }

    #[test]
    fn refuses_texts_that_are_no_date() {
        for text in [
            "",
            "abc",
            "2024-05-01",
            "2024-05-01T10:00:00",
            "2024-05-01 10:00:00Z",
            "2024-05-01T10:00:00.Z",
            "2024-05-01T10:00:00,5Z",
            "2024-05-01T10:00:00Zx",
            "2024-05-01T10:00:00+0200",
            "2024-05-01T10:00:00+24:00",
            "2024-05-01T10:00:00+02:60",
            "2024-13-01T10:00:00Z",
            "2024-00-01T10:00:00Z",
            "2023-02-29T10:00:00Z",
            "1900-02-29T10:00:00Z",
            "2024-05-00T10:00:00Z",
            "2024-05-01T24:00:00Z",
            "2024-05-01T10:60:00Z",
            "2024-05-01T23:59:60Z",
            "+024-05-01T10:00:00Z",
            "2024-05-01T10:00:0\u{e9}Z",
        ] {
            assert_eq!(Timestamp::parse(text), Err(TimestampError::Malformed), "{text}");
        }
        for text in ["0000-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", "9999-12-31T23:59:59.9999995Z"]
        {
            assert_eq!(Timestamp::parse(text), Err(TimestampError::OutOfRange), "{text}");
        }
    }

    #[test]
    fn converts_every_day_of_a_calendar_cycle() {
        let (mut year, mut month, mut day) = (1_800, 1, 1);
        let first = days_from_civil(year, month, day);
        for days in first..first + DAYS_PER_ERA {
            assert_eq!(days_from_civil(year, month, day), days);
            assert_eq!(civil_from_days(days), (year, month, day));
            day += 1;
            if day > days_in_month(year, month) {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
    }

    #[test]
    fn prints_any_number_of_microseconds() {
        assert_eq!(Timestamp::from_micros(0).to_string(), "1970-01-01T00:00:00Z");
        assert_eq!(Timestamp::from_micros(i64::MIN).to_string(), "-290308-12-21T19:59:05.224192Z");
        assert_eq!(Timestamp::from_micros(i64::MAX).to_string(), "294247-01-10T04:00:54.775807Z");
    }
}
