//! Conversions between timestamps and the times of the standard library.
#![expect(clippy::disallowed_types, reason = "converts times that the caller read; reads no clock")]

use std::ops::{Add, Sub};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::timestamp::{Timestamp, TimestampError};

/// Drops fractions of a microsecond, rounding towards the past.
impl TryFrom<SystemTime> for Timestamp {
    type Error = TimestampError;

    fn try_from(time: SystemTime) -> Result<Self, TimestampError> {
        let micros = match time.duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_micros()),
            Err(before) => i64::try_from(before.duration().as_nanos().div_ceil(1_000)).map(|micros| -micros),
        };
        micros.map(Self::from_micros).map_err(|_| TimestampError::OutOfRange)
    }
}

/// Fails for a time that the system cannot represent.
impl TryFrom<Timestamp> for SystemTime {
    type Error = TimestampError;

    fn try_from(at: Timestamp) -> Result<Self, TimestampError> {
        let distance = Duration::from_micros(at.as_micros().unsigned_abs());
        let time = if at.as_micros() < 0 {
            UNIX_EPOCH.checked_sub(distance)
        } else {
            UNIX_EPOCH.checked_add(distance)
        };
        time.ok_or(TimestampError::OutOfRange)
    }
}

impl Timestamp {
    /// Returns the time this much later, or `None` outside the range of timestamps. Drops what is less than a
    /// microsecond.
    ///
    /// ```
    /// use ledger_values::Timestamp;
    /// use std::time::Duration;
    /// let second = Duration::from_secs(1);
    /// assert_eq!(Timestamp::MAX.checked_add(second), None);
    /// assert_eq!(Timestamp::MIN.checked_sub(second), None);
    /// assert_eq!(Timestamp::from_micros(5).checked_add(second), Some(Timestamp::from_micros(1_000_005)));
    /// ```
    pub fn checked_add(self, duration: Duration) -> Option<Self> {
        let micros = i64::try_from(duration.as_micros()).ok()?;
        self.as_micros().checked_add(micros).and_then(Self::in_range)
    }

    /// Returns the time this much earlier, or `None` outside the range of timestamps. Drops what is less than a
    /// microsecond.
    pub fn checked_sub(self, duration: Duration) -> Option<Self> {
        let micros = i64::try_from(duration.as_micros()).ok()?;
        self.as_micros().checked_sub(micros).and_then(Self::in_range)
    }

    fn in_range(micros: i64) -> Option<Self> {
        let time = Self::from_micros(micros);
        (Self::MIN..=Self::MAX).contains(&time).then_some(time)
    }
}

/// Panics outside the range of timestamps. See [`Timestamp::checked_add`].
///
/// ```
/// use ledger_values::Timestamp;
/// use std::time::Duration;
/// let start: Timestamp = "2024-05-01T00:00:00Z".parse()?;
/// let end = start + Duration::from_hours(7 * 24);
/// assert_eq!(end.to_string(), "2024-05-08T00:00:00Z");
/// assert_eq!(end - Duration::from_hours(7 * 24), start);
/// # Ok::<(), ledger_values::TimestampError>(())
/// ```
impl Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        self.checked_add(duration).expect("the time is in the range of timestamps")
    }
}

/// Panics outside the range of timestamps. See [`Timestamp::checked_sub`].
impl Sub<Duration> for Timestamp {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        self.checked_sub(duration).expect("the time is in the range of timestamps")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_move_timestamps_within_their_range() {
        let at = Timestamp::from_micros(5);
        assert_eq!(at.checked_sub(Duration::from_micros(7)), Some(Timestamp::from_micros(-2)));
        assert_eq!(at + Duration::from_nanos(1_999), Timestamp::from_micros(6));
        let micro = Duration::from_micros(1);
        assert_eq!((Timestamp::MAX - micro).checked_add(micro), Some(Timestamp::MAX));
        assert_eq!(Timestamp::MAX.checked_add(micro), None);
        assert_eq!(Timestamp::MIN.checked_sub(micro), None);
        assert_eq!(Timestamp::from_micros(i64::MAX).checked_add(micro), None);
        assert_eq!(Timestamp::from_micros(i64::MIN).checked_sub(micro), None);
        assert_eq!(at.checked_add(Duration::MAX), None);
    }

    #[test]
    fn system_times_convert_both_ways() {
        for micros in [0, 1, -1, 1_700_000_000_123_456, -62_000_000_000_000_000] {
            let at = Timestamp::from_micros(micros);
            assert_eq!(SystemTime::try_from(at).and_then(Timestamp::try_from), Ok(at));
        }
        let before = UNIX_EPOCH - Duration::from_nanos(1);
        assert_eq!(Timestamp::try_from(before), Ok(Timestamp::from_micros(-1)));
    }
}
