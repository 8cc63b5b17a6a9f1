//! Limits the work of one read.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::error::ReadError;
use crate::readers::give_way;

/// Limits of one read. They keep a single question from occupying a thread without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "unit and qualifier stand last")]
pub(crate) struct ReadLimits {
    /// Maximum number of rows to examine.
    pub(crate) rows_max: u64,
    /// Maximum duration.
    pub(crate) time_max: Duration,
    /// Maximum number of items to hold in memory for sorting or joining.
    pub(crate) held_max: usize,
}

impl ReadLimits {
    /// Limits of every read that a caller asks for.
    pub(crate) const DEFAULT: Self =
        Self { rows_max: 5_000_000, time_max: Duration::from_secs(10), held_max: 1_000_000 };

    /// No limits, for work that no caller chose and that must finish in any case.
    pub(crate) const NONE: Self = Self { rows_max: u64::MAX, time_max: Duration::MAX, held_max: usize::MAX };
}

/// Number of rows after which a read checks its time limit, and lets other threads run if it works for an async caller.
/// That many accounts with volumes take up to 0.2 ms. `cargo bench -p benches --bench async_commits` measures how late a
/// timer of the caller is beside such reads.
const ROWS_PER_PIECE: u64 = 32;

/// Counts the work of one read and compares it with the limits.
#[derive(Debug)]
pub(crate) struct Meter {
    limits: ReadLimits,
    rows: Cell<u64>,
    began: Cell<Instant>,
}

impl Meter {
    /// Creates a meter that starts now.
    pub(crate) fn start(limits: ReadLimits) -> Self {
        Self { limits, rows: Cell::new(0), began: Cell::new(Instant::now()) }
    }

    /// Restarts the meter for the next read. Keeps the start time if no row was counted since, because reading the
    /// clock costs more than such a read.
    pub(crate) fn restart(&self) {
        if self.rows.replace(0) > 0 {
            self.began.set(Instant::now());
        }
    }

    /// Counts one more row.
    ///
    /// # Errors
    ///
    /// [`ReadError::TooExpensive`] if a limit is exceeded.
    pub(crate) fn row(&self) -> Result<(), ReadError> {
        let rows = self.rows.get() + 1;
        self.rows.set(rows);
        if rows > self.limits.rows_max {
            let reason = format!("it looks at more than {} rows", self.limits.rows_max);
            return Err(ReadError::TooExpensive { reason });
        }
        if rows.is_multiple_of(ROWS_PER_PIECE) {
            give_way();
            return self.in_time();
        }
        Ok(())
    }

    /// Returns the number of rows counted so far.
    pub(crate) fn rows(&self) -> u64 {
        self.rows.get()
    }

    /// Returns whether the time limit has passed.
    pub(crate) fn is_late(&self) -> bool {
        self.began.get().elapsed() > self.limits.time_max
    }

    /// Checks the time limit.
    ///
    /// # Errors
    ///
    /// [`ReadError::TooExpensive`] if the time limit has passed.
    pub(crate) fn in_time(&self) -> Result<(), ReadError> {
        if self.is_late() {
            let reason = format!("it takes longer than {} s", self.limits.time_max.as_secs());
            return Err(ReadError::TooExpensive { reason });
        }
        Ok(())
    }

    /// Checks the number of items held in memory.
    ///
    /// # Errors
    ///
    /// [`ReadError::TooExpensive`] if the number exceeds the limit.
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
    fn read_ends_at_its_limits() {
        let limits = ReadLimits { rows_max: 3, time_max: Duration::from_hours(1), held_max: 2 };
        let meter = Meter::start(limits);
        assert_eq!((0..5).filter(|_| meter.row().is_ok()).count(), 3);
        meter.restart();
        assert!(meter.row().is_ok(), "the next read has limits of its own");
        assert!(meter.held(2).is_ok());
        assert!(matches!(meter.held(3), Err(ReadError::TooExpensive { .. })));
        let late = Meter::start(ReadLimits { time_max: Duration::ZERO, ..ReadLimits::DEFAULT });
        assert!((0..=ROWS_PER_PIECE).any(|_| late.row().is_err()));
    }
}
