//! Counts refused requests by error code, and logs the counts once a minute.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::{Level, event};

/// Time between two lines.
const PERIOD: Duration = Duration::from_mins(1);

/// The error code of a response, as an extension for the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RefusalCode(pub(crate) &'static str);

/// Number of refused requests since the last line, by error code, or by status if a response has no code.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<BTreeMap<String, u64>>);

impl Refusals {
    /// Counts a response with this status if it is an error.
    pub(crate) fn count(&self, status: u16, code: Option<RefusalCode>) {
        if status < 400 && code.is_none() {
            return;
        }
        let key = code.map_or_else(|| status.to_string(), |code| code.0.to_owned());
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default() += 1;
    }

    /// Writes the line once a minute, unless no requests were refused. Never returns.
    pub(crate) async fn report(&self) {
        loop {
            tokio::time::sleep(PERIOD).await;
            self.log_counts();
        }
    }

    /// Writes the line, if requests were refused since the last one.
    pub(crate) fn log_counts(&self) {
        let counts = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        if counts.is_empty() {
            return;
        }
        let fields: Vec<(&str, &dyn Display)> =
            counts.iter().map(|(code, count)| (code.as_str(), count as &dyn Display)).collect();
        event(Level::Info, "refusals", &fields);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_counted_by_code_else_by_status() {
        let refusals = Refusals::default();
        for (status, code) in [
            (200, None),
            (400, Some("VALIDATION")),
            (401, None),
            (400, Some("VALIDATION")),
            (200, Some("NO_SCRIPT")),
        ] {
            refusals.count(status, code.map(RefusalCode));
        }
        let counts: Vec<(String, u64)> =
            refusals.0.lock().unwrap_or_else(PoisonError::into_inner).clone().into_iter().collect();
        assert_eq!(counts, [("401".into(), 1), ("NO_SCRIPT".into(), 1), ("VALIDATION".into(), 2)]);
        refusals.log_counts();
        assert!(refusals.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty());
    }
}
