//! How much work one read may take.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::error::ReadError;

/// Bounds of one read, so that no question can hold a thread for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "unit and qualifier stand last")]
pub(crate) struct ReadLimits {
    /// Most rows that are looked at.
    pub(crate) rows_max: u64,
    /// The longest time that it takes.
    pub(crate) time_max: Duration,
    /// Most items that are held in memory to be sorted or joined.
    pub(crate) held_max: usize,
}

impl ReadLimits {
    /// The bounds of every read.
    pub(crate) const DEFAULT: Self =
        Self { rows_max: 5_000_000, time_max: Duration::from_secs(10), held_max: 1_000_000 };

    /// None, for work that no caller chose and that must be done in the end.
    pub(crate) const NONE: Self = Self { rows_max: u64::MAX, time_max: Duration::MAX, held_max: usize::MAX };
}

/// So many rows are looked at between two looks at the clock.
const ROWS_PER_LOOK: u64 = 256;

/// Counts the work of one read.
#[derive(Debug)]
pub(crate) struct Meter {
    limits: ReadLimits,
    rows: Cell<u64>,
    began: Cell<Instant>,
}

impl Meter {
    /// A meter that begins now.
    pub(crate) fn start(limits: ReadLimits) -> Self {
        Self { limits, rows: Cell::new(0), began: Cell::new(Instant::now()) }
    }

    /// Begins again, for the next read. Who has looked at nothing goes on: to ask for the time would cost more.
    pub(crate) fn restart(&self) {
        if self.rows.replace(0) > 0 {
            self.began.set(Instant::now());
        }
    }

    /// Notes that one more row is looked at.
    ///
    /// # Errors
    ///
    /// [`ReadError::TooExpensive`] when a limit is passed.
    pub(crate) fn row(&self) -> Result<(), ReadError> {
        let rows = self.rows.get() + 1;
        self.rows.set(rows);
        if rows > self.limits.rows_max {
            let reason = format!("it looks at more than {} rows", self.limits.rows_max);
            return Err(ReadError::TooExpensive { reason });
        }
        if rows.is_multiple_of(ROWS_PER_LOOK) { self.in_time() } else { Ok(()) }
    }

    /// How many rows were looked at so far.
    pub(crate) fn rows(&self) -> u64 {
        self.rows.get()
    }

    /// Whether the time is over.
    pub(crate) fn is_late(&self) -> bool {
        self.began.get().elapsed() > self.limits.time_max
    }

    /// Looks at the clock.
    ///
    /// # Errors
    ///
    /// [`ReadError::TooExpensive`] when the time is over.
    pub(crate) fn in_time(&self) -> Result<(), ReadError> {
        if self.is_late() {
            let reason = format!("it takes longer than {} s", self.limits.time_max.as_secs());
            return Err(ReadError::TooExpensive { reason });
        }
        Ok(())
    }

    /// Checks how many items are held in memory.
    ///
    /// # Errors
    ///
    /// [`ReadError::TooExpensive`] when there are too many.
    pub(crate) fn held(&self, items: usize) -> Result<(), ReadError> {
        if items > self.limits.held_max {
            let reason = format!("it gathers more than {} items", self.limits.held_max);
            return Err(ReadError::TooExpensive { reason });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_ends_at_its_limits() {
        let limits = ReadLimits { rows_max: 3, time_max: Duration::from_hours(1), held_max: 2 };
        let meter = Meter::start(limits);
        assert_eq!((0..5).filter(|_| meter.row().is_ok()).count(), 3);
        meter.restart();
        assert!(meter.row().is_ok(), "the next read has limits of its own");
        assert!(meter.held(2).is_ok());
        assert!(matches!(meter.held(3), Err(ReadError::TooExpensive { .. })));
        let late = Meter::start(ReadLimits { time_max: Duration::ZERO, ..ReadLimits::DEFAULT });
        assert!((0..=ROWS_PER_LOOK).any(|_| late.row().is_err()));
    }
}
