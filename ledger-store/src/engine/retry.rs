//! The delays between attempts of a background thread that keeps failing.

use std::time::{Duration, Instant};

use super::Engine;

/// The first delay. Short, because most disk failures are brief.
const WAIT_MIN: Duration = Duration::from_millis(20);
/// The longest delay, for a disk that is full or gone.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Delays that double with each failure.
pub(super) struct Backoff {
    next: Duration,
}

impl Backoff {
    pub(super) fn new() -> Self {
        Self { next: WAIT_MIN }
    }

    /// Returns the delay after one more failure.
    pub(super) fn after_failure(&mut self) -> Duration {
        let wait = self.next;
        self.next = (wait * 2).min(WAIT_MAX);
        wait
    }

    /// Resets the delay after a success.
    pub(super) fn reset(&mut self) {
        *self = Self::new();
    }
}

/// Waits for a time. Returns `false` if the store is closing or has stopped writing.
pub(super) fn pause(engine: &Engine, time: Duration) -> bool {
    let until = Instant::now() + time;
    let mut stopped = engine.stopped.lock();
    while stopped.is_none() && !engine.is_stopping() {
        if engine.stop_told.wait_until(&mut stopped, until).timed_out() {
            return stopped.is_none() && !engine.is_stopping();
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_a_bound() {
        let mut backoff = Backoff::new();
        let waits: Vec<_> = (0..12).map(|_| backoff.after_failure()).collect();
        assert_eq!(waits[..3], [WAIT_MIN, WAIT_MIN * 2, WAIT_MIN * 4]);
        assert_eq!(waits[11], WAIT_MAX);
        backoff.reset();
        assert_eq!(backoff.after_failure(), WAIT_MIN);
    }
}
