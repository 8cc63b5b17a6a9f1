//! A clock that stands still until it is set.

use std::sync::atomic::{AtomicI64, Ordering};

use ledger_core::Timestamp;

use crate::options::TimeSource;

/// A clock that tells what it was set to, in microseconds since 1970; at first 0.
#[derive(Debug, Default)]
pub struct SetClock(AtomicI64);

impl SetClock {
    /// Sets it; it may go back.
    pub fn set(&self, time: Timestamp) {
        self.0.store(time.as_micros(), Ordering::Relaxed);
    }
}

impl TimeSource for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::Relaxed))
    }
}
