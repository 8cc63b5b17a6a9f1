//! Conversions between timestamps and the times of the standard library.
#![expect(clippy::disallowed_types, reason = "converts times that the caller read; reads no clock")]

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

#[cfg(test)]
mod tests {
    use super::*;

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
