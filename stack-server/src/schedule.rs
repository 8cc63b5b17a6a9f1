//! Schedules as cron expressions with seconds, such as the one by which the server removes deleted buckets.
//!
//! Deployment files of the original servers contain such expressions, which those servers parse with Go's
//! `robfig/cron`. This server accepts the same expressions. No crate does
//! (`docs/decisions/cron.md` lists those that were tried). The tests contain the results of the original parser.

use std::ops::RangeInclusive;
use std::time::Duration;

use ledger_core::Timestamp;
use thiserror::Error;

use crate::duration::{self, DurationError};

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;
/// Number of days to search for a match. A 29th of February comes within eight years, even around a century.
const DAYS_MAX: i64 = 9 * 366;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// The text is not a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is no schedule: {reason}")]
pub struct ScheduleError {
    text: String,
    reason: ScheduleFault,
}

/// The invalid part of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
enum ScheduleFault {
    #[error("its time zone can be UTC only")]
    Zone,
    #[error("it has six fields, the first of which is the second, or the last five of them")]
    FieldCount,
    #[error("{0}")]
    Field(&'static str),
    #[error("that day never comes")]
    NeverDue,
    #[error(transparent)]
    Period(DurationError),
}

/// A schedule: a cron expression with seconds, in UTC, or a period. See [`Schedule::parse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// At certain times of certain days.
    Calendar(Calendar),
    /// Repeatedly, with this period.
    Every(Duration),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Calendar {
    seconds: Set,
    minutes: Set,
    hours: Set,
    days: Set,
    months: Set,
    weekdays: Set,
}

/// The values that a field allows, one bit per value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Set {
    bits: u64,
    /// True if the field contains `*` or `?`, without a step or with step 1. If this is a field of days, the other
    /// field of days decides the day alone.
    is_any: bool,
}

impl Set {
    fn has(self, value: i64) -> bool {
        self.bits >> value & 1 == 1
    }

    fn values(self) -> impl Iterator<Item = i64> {
        (0..60).filter(move |value| self.has(*value))
    }
}

impl Schedule {
    /// Parses the fields second, minute, hour, day of the month, month and day of the week (0 is Sunday). Each is
    /// `*`, `?`, a number, a name of three letters, a range `a-b`, a step `*/n`, or a list of these. Without the
    /// field for the second there are five fields, and the second is 0. If both the day of the month and the day of
    /// the week are restricted, a day needs to match only one of them. Also accepts `@hourly`, `@daily`, `@weekly`,
    /// `@monthly`, `@yearly`, and `@every` with a duration, which is rounded down to whole seconds, but not below one.
    /// `TZ=UTC` or `CRON_TZ=UTC` may precede the expression.
    ///
    /// # Errors
    ///
    /// Fails if the text has another form, names another time zone, or never matches a day.
    pub fn parse(text: &str) -> Result<Self, ScheduleError> {
        let refused = |reason| ScheduleError { text: text.to_owned(), reason };
        let expression = match text.split_once(char::is_whitespace) {
            Some((zone, expression)) if zone.starts_with("TZ=") || zone.starts_with("CRON_TZ=") => {
                if !zone.ends_with("=UTC") {
                    return Err(refused(ScheduleFault::Zone));
                }
                expression
            }
            _ => text,
        };
        let fields = match expression.trim() {
            "@yearly" | "@annually" => "0 0 0 1 1 *",
            "@monthly" => "0 0 0 1 * *",
            "@weekly" => "0 0 0 * * 0",
            "@daily" | "@midnight" => "0 0 0 * * *",
            "@hourly" => "0 0 * * * *",
            other => match other.strip_prefix("@every ") {
                Some(period) => {
                    let period = duration::parse(period.trim());
                    let period = period.map_err(|error| refused(ScheduleFault::Period(error)))?;
                    return Ok(Self(Kind::Every(Duration::from_secs(period.as_secs().max(1)))));
                }
                None => other,
            },
        };
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let [seconds, minutes, hours, days, months, weekdays] = match fields[..] {
            [minutes, hours, days, months, weekdays] => ["0", minutes, hours, days, months, weekdays],
            [seconds, minutes, hours, days, months, weekdays] => {
                [seconds, minutes, hours, days, months, weekdays]
            }
            _ => {
                return Err(refused(ScheduleFault::FieldCount));
            }
        };
        let field = |name, text, range, names| {
            field(text, range, names).ok_or_else(|| refused(ScheduleFault::Field(name)))
        };
        let calendar = Calendar {
            seconds: field("the second", seconds, 0..=59, &[])?,
            minutes: field("the minute", minutes, 0..=59, &[])?,
            hours: field("the hour", hours, 0..=23, &[])?,
            days: field("the day of the month", days, 1..=31, &[])?,
            months: field("the month", months, 1..=12, &MONTHS)?,
            weekdays: field("the day of the week", weekdays, 0..=6, &WEEKDAYS)?,
        };
        if calendar.next(Timestamp::from_micros(0)).is_none() {
            return Err(refused(ScheduleFault::NeverDue));
        }
        Ok(Self(Kind::Calendar(calendar)))
    }

    /// Returns the first time after this one. Returns `None` only at the end of the range of dates.
    pub(crate) fn next(&self, after: Timestamp) -> Option<Timestamp> {
        match &self.0 {
            Kind::Every(period) => {
                let period = i64::try_from(period.as_micros()).ok()?;
                after.as_micros().checked_add(period).map(Timestamp::from_micros)
            }
            Kind::Calendar(calendar) => calendar.next(after),
        }
    }
}

impl Default for Schedule {
    /// Returns the schedule of every full hour.
    fn default() -> Self {
        Self::parse("@hourly").expect("`@hourly` is a schedule")
    }
}

impl Calendar {
    fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let today = after.as_micros().div_euclid(DAY);
        for day in today..today.checked_add(DAYS_MAX)? {
            let begin = day.checked_mul(DAY)?;
            if !self.is_on(day, Timestamp::from_micros(begin)) {
                continue;
            }
            for hour in self.hours.values() {
                for minute in self.minutes.values() {
                    for second in self.seconds.values() {
                        let at = begin.checked_add(((hour * 60 + minute) * 60 + second) * SECOND)?;
                        if at > after.as_micros() {
                            return Some(Timestamp::from_micros(at));
                        }
                    }
                }
            }
        }
        None
    }

    /// Returns whether the schedule includes a day, given by its number since 1970 and its start.
    fn is_on(&self, day: i64, begin: Timestamp) -> bool {
        let (_, month, day_of_month) = begin.date();
        // The first of January 1970 was a Thursday.
        let weekday = (day + 4).rem_euclid(7);
        let has_date = self.days.has(day_of_month.into());
        let has_weekday = self.weekdays.has(weekday);
        let has_day = if self.days.is_any || self.weekdays.is_any {
            has_date && has_weekday
        } else {
            has_date || has_weekday
        };
        self.months.has(month.into()) && has_day
    }
}

/// Parses a field with values in a range. Returns `None` if the text is not valid. `names` are the names of the values,
/// from the least value on.
fn field(text: &str, values: RangeInclusive<i64>, names: &[&str]) -> Option<Set> {
    let (least, greatest) = values.into_inner();
    let number = |text: &str| -> Option<i64> {
        let named = names.iter().position(|name| name.eq_ignore_ascii_case(text));
        let number = match named {
            Some(place) => least + i64::try_from(place).ok()?,
            None if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
                text.parse().ok()?
            }
            None => return None,
        };
        (least..=greatest).contains(&number).then_some(number)
    };
    let mut set = Set { bits: 0, is_any: false };
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => {
                let step: i64 =
                    step.bytes().all(|byte| byte.is_ascii_digit()).then(|| step.parse().ok())??;
                (range, Some(step).filter(|step| *step > 0)?)
            }
            None => (part, 1),
        };
        let (from, to) = match range {
            "*" | "?" => {
                set.is_any |= step == 1;
                (least, greatest)
            }
            range => match range.split_once('-') {
                Some((from, to)) => (number(from)?, number(to)?),
                // With a step, a single number is the start of a range.
                None if part.contains('/') => (number(range)?, greatest),
                None => (number(range)?, number(range)?),
            },
        };
        if from > to {
            return None;
        }
        let mut value = from;
        while value <= to {
            set.bits |= 1 << value;
            value = value.checked_add(step)?;
        }
    }
    (set.bits > 0).then_some(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).expect("a date")
    }

    #[track_caller]
    fn check(schedule: &str, after: &str, expected: &[&str]) {
        let schedule = Schedule::parse(schedule).expect("a schedule");
        let mut now = at(after);
        for expected in expected {
            now = schedule.next(now).expect("a next time");
            assert_eq!(now, at(expected));
        }
    }

    #[test]
    fn next_times_follow_the_fields() {
        let after = "2024-02-27T22:59:59.5Z"; // A Tuesday.
        check("0 0 * * * *", after, &["2024-02-27T23:00:00Z", "2024-02-28T00:00:00Z"]);
        check("* * * * * *", after, &["2024-02-27T23:00:00Z", "2024-02-27T23:00:01Z"]);
        check(
            "*/20 0 12 * * ?",
            after,
            &["2024-02-28T12:00:00Z", "2024-02-28T12:00:20Z", "2024-02-28T12:00:40Z", "2024-02-29T12:00:00Z"],
        );
        check(
            "0 30/15 1-2 * * *",
            after,
            &["2024-02-28T01:30:00Z", "2024-02-28T01:45:00Z", "2024-02-28T02:30:00Z"],
        );
        check("0 0 0 29 2 *", after, &["2024-02-29T00:00:00Z", "2028-02-29T00:00:00Z"]);
        check("0 0 0 29 FEB ?", "2096-03-01T00:00:00Z", &["2104-02-29T00:00:00Z"]);
        check(
            "0 0 6 * * Mon-Wed,5",
            after,
            &["2024-02-28T06:00:00Z", "2024-03-01T06:00:00Z", "2024-03-04T06:00:00Z"],
        );
        check("0 0 0 * * 0", after, &["2024-03-03T00:00:00Z"]);
        // If both fields of days are restricted, one is enough.
        check("0 0 0 1 * sun", after, &["2024-03-01T00:00:00Z", "2024-03-03T00:00:00Z"]);
        // A step restricts the field of the week. If it did not, only a third or tenth that is a Sunday would
        // match.
        check("0 0 0 3-9/1 * */7", after, &["2024-03-03T00:00:00Z", "2024-03-04T00:00:00Z"]);
        check("@daily", after, &["2024-02-28T00:00:00Z"]);
        check("@monthly", after, &["2024-03-01T00:00:00Z"]);
        check("@yearly", after, &["2025-01-01T00:00:00Z"]);
        check("@weekly", after, &["2024-03-03T00:00:00Z"]);
        check("@every 1h30m", after, &["2024-02-28T00:29:59.5Z", "2024-02-28T01:59:59.5Z"]);
        // Results that were observed with the original parser.
        check("* * * * *", after, &["2024-02-27T23:00:00Z", "2024-02-27T23:01:00Z"]);
        check("0 6 * * 1-5", after, &["2024-02-28T06:00:00Z", "2024-02-29T06:00:00Z"]);
        check(
            "1,,2 * * * * *",
            after,
            &["2024-02-27T23:00:01Z", "2024-02-27T23:00:02Z", "2024-02-27T23:01:01Z"],
        );
        check("? * * * * *", after, &["2024-02-27T23:00:00Z", "2024-02-27T23:00:01Z"]);
        check("0 0 0 1 * */1", after, &["2024-03-01T00:00:00Z", "2024-04-01T00:00:00Z"]);
        check("0 0 0 */1 * sun", after, &["2024-03-03T00:00:00Z", "2024-03-10T00:00:00Z"]);
        check("0 0 0 1 * *,sun", after, &["2024-03-01T00:00:00Z", "2024-04-01T00:00:00Z"]);
        check("0 0 0 */2,* * sun", after, &["2024-03-03T00:00:00Z", "2024-03-10T00:00:00Z"]);
        check(
            "0 0 0 ?/2 * sun",
            after,
            &["2024-02-29T00:00:00Z", "2024-03-01T00:00:00Z", "2024-03-03T00:00:00Z"],
        );
        check("0 0 1 */70 * sun", after, &["2024-03-01T01:00:00Z", "2024-03-03T01:00:00Z"]);
        check("0 0 0 1-31 * sun", after, &["2024-02-28T00:00:00Z", "2024-02-29T00:00:00Z"]);
        check("0 0 0 * */2,3 *", after, &["2024-03-01T00:00:00Z", "2024-03-02T00:00:00Z"]);
        check(
            "0 0 0 * * sun-mon",
            after,
            &["2024-03-03T00:00:00Z", "2024-03-04T00:00:00Z", "2024-03-10T00:00:00Z"],
        );
        check("0-59/100 * * * * *", after, &["2024-02-27T23:00:00Z", "2024-02-27T23:01:00Z"]);
        check("01 * * * * *", after, &["2024-02-27T23:00:01Z", "2024-02-27T23:01:01Z"]);
        check("@midnight", after, &["2024-02-28T00:00:00Z", "2024-02-29T00:00:00Z"]);
        check("TZ=UTC 0 0 0 * * *", after, &["2024-02-28T00:00:00Z"]);
        check("CRON_TZ=UTC @daily", after, &["2024-02-28T00:00:00Z"]);
        check("@every 10ms", "2024-02-27T22:59:59Z", &["2024-02-27T23:00:00Z", "2024-02-27T23:00:01Z"]);
        check("@every 1m0.5s", "2024-02-27T22:59:59Z", &["2024-02-27T23:00:59Z", "2024-02-27T23:01:59Z"]);
        check("@hourly", "1969-12-31T23:59:59Z", &["1970-01-01T00:00:00Z"]);
    }

    #[test]
    fn refuses_malformed_schedules() {
        for text in [
            "",
            "* * * *",
            "* * * * * * *",
            ", * * * * *",
            "JAN * * * * *",
            "0 0 0 L * *",
            "0 0 0 * * 1#2",
            "0 0 0 1 * +mon",
            "0 0 0 * * monday",
            "/5 * * * * *",
            "1/2/3 * * * * *",
            "1-2-3 * * * * *",
            "@HOURLY",
            "@every -1h",
            "CRON_TZ=Asia/Tokyo 0 0 0 * * *",
            "TZ=UTC",
            "60 * * * *",
            "60 * * * * *",
            "* 60 * * * *",
            "* * 24 * * *",
            "* * * 0 * *",
            "* * * 32 * *",
            "* * * * 13 *",
            "* * * * 0 *",
            "* * * * * 7",
            "* * * * * -1",
            "a * * * * *",
            "*/0 * * * * *",
            "*/ * * * * *",
            "5-1 * * * * *",
            "+1 * * * * *",
            "0 0 0 31 2 *",
            "@every",
            "@never",
            "* * * * Foo *",
            "1- * * * * *",
        ] {
            assert!(Schedule::parse(text).is_err(), "{text}");
        }
    }
}
