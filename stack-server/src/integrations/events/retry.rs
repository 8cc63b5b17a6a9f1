//! Attempts that are repeated with growing pauses.

use std::fmt::Display;
use std::time::Duration;

use crate::limits::{DELIVERY_PAUSE_MAX, DELIVERY_PAUSE_MIN};
use crate::log::{self, Level};

/// The growing pause before the next attempt.
pub(super) struct Backoff(Duration);

impl Backoff {
    pub(super) const NEW: Self = Self(DELIVERY_PAUSE_MIN);

    pub(super) fn next(&mut self) -> Duration {
        let now = self.0;
        self.0 = (2 * now).min(DELIVERY_PAUSE_MAX);
        now
    }
}

/// Repeats an attempt until it succeeds, with growing pauses. Logs the first failure.
pub(super) async fn with_retry<E: Display, F>(publisher: &str, attempt: impl Fn() -> F)
where
    F: Future<Output = Result<(), E>>,
{
    let mut backoff = Backoff::NEW;
    let mut is_logged = false;
    while let Err(error) = attempt().await {
        if !std::mem::replace(&mut is_logged, true) {
            log_fault(publisher, &error);
        }
        tokio::time::sleep(backoff.next()).await;
    }
}

/// Logs that a publisher cannot do its work.
pub(super) fn log_fault(publisher: &str, reason: &dyn Display) {
    log::event(Level::Error, "publisher", &[("publisher", &publisher), ("reason", reason)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_their_longest() {
        let mut backoff = Backoff::NEW;
        let pauses: Vec<_> = (0..12).map(|_| backoff.next()).collect();
        assert_eq!(pauses[..3], [1, 2, 4].map(|times| times * DELIVERY_PAUSE_MIN));
        assert_eq!(pauses[11], DELIVERY_PAUSE_MAX);
    }
}
