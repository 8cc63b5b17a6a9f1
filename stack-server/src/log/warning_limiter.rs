//! Limits warnings about a subject to one per period, so that a lasting problem does not fill the log.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Minimum time between two warnings about a subject.
const PERIOD: Duration = Duration::from_mins(1);

/// Maximum number of subjects. If there are more, the subjects whose period is over are dropped, or else all.
const SUBJECTS_MAX: usize = 1_000;

/// The time of the last warning about each subject.
#[derive(Debug, Default)]
pub(crate) struct WarningLimiter(Mutex<HashMap<String, Last>>);

#[derive(Debug)]
struct Last {
    at: Instant,
    left_out: u64,
}

impl WarningLimiter {
    /// Returns the number of warnings left out since the last one, if a warning about the subject is due.
    pub(crate) fn due(&self, subject: &str, now: Instant) -> Option<u64> {
        let mut subjects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = subjects.get_mut(subject) {
            if now.saturating_duration_since(last.at) < PERIOD {
                last.left_out += 1;
                return None;
            }
            let left_out = std::mem::take(&mut last.left_out);
            last.at = now;
            return Some(left_out);
        }
        if subjects.len() == SUBJECTS_MAX {
            subjects.retain(|_, last| now.saturating_duration_since(last.at) < PERIOD);
        }
        if subjects.len() == SUBJECTS_MAX {
            subjects.clear();
        }
        subjects.insert(subject.to_owned(), Last { at: now, left_out: 0 });
        Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_a_period_and_the_rest_are_counted() {
        let (limiter, start) = (WarningLimiter::default(), Instant::now());
        assert_eq!(limiter.due("a", start), Some(0));
        assert_eq!(limiter.due("a", start + PERIOD / 2), None);
        assert_eq!(limiter.due("a", start + PERIOD.mul_f64(0.99)), None);
        assert_eq!(limiter.due("b", start + PERIOD / 2), Some(0), "another subject");
        assert_eq!(limiter.due("a", start + PERIOD), Some(2));
        assert_eq!(limiter.due("a", start + PERIOD), None);
    }

    #[test]
    fn subjects_are_bounded() {
        let (limiter, start) = (WarningLimiter::default(), Instant::now());
        for number in 0..=2 * SUBJECTS_MAX {
            limiter.due(&number.to_string(), start);
            assert!(limiter.0.lock().unwrap_or_else(PoisonError::into_inner).len() <= SUBJECTS_MAX);
        }
    }
}
