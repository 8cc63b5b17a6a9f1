//! A clock that a test sets.

use std::sync::atomic::{AtomicI64, Ordering};

use ledger_core::Timestamp;
use ledger_store::TimeSource;

/// A clock that returns the time to which it was set, in microseconds since 1970. It starts at 0.
#[derive(Debug, Default)]
pub struct SetClock(AtomicI64);

impl SetClock {
    /// Sets the time, which may be earlier than before.
    pub fn set(&self, time: Timestamp) {
        self.0.store(time.as_micros(), Ordering::Relaxed);
    }
}

impl TimeSource for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::Relaxed))
    }
}
