//! Submissions that are under way: how many, how long each took, and what became of them.

use std::sync::Arc;
use std::time::Instant;

use ledger_store::{Outcome, Store, Submission, WriteError};
use parking_lot::{Condvar, Mutex};

use crate::Failure;
use crate::histogram::Histogram;

/// Keeps up to a number of submissions under way, and measures them.
#[derive(Clone)]
pub struct Flight {
    inner: Arc<Inner>,
}

struct Inner {
    limit: usize,
    state: Mutex<State>,
    landed: Condvar,
}

#[derive(Default)]
struct State {
    under_way: usize,
    waiting: bool,
    landing: Landing,
    failure: Option<String>,
}

/// What became of submissions.
#[derive(Clone, Debug, Default)]
pub struct Landing {
    /// From the moment that was given with a submission to its answer.
    pub latency: Histogram,
    /// Commands that were recorded.
    pub recorded: u64,
}

impl Flight {
    /// Up to this many at once, at least one.
    pub fn new(limit: usize) -> Self {
        let inner = Inner { limit: limit.max(1), state: Mutex::default(), landed: Condvar::new() };
        Self { inner: Arc::new(inner) }
    }

    /// Waits until one more may start, and says how many may.
    ///
    /// # Errors
    ///
    /// If one failed, or a command of it was refused: the figures would not mean what they say.
    pub fn wait(&self) -> Result<usize, Failure> {
        self.wait_below(self.inner.limit)
    }

    fn wait_below(&self, limit: usize) -> Result<usize, Failure> {
        let mut state = self.inner.state.lock();
        loop {
            if let Some(failure) = &state.failure {
                return Err(failure.clone().into());
            }
            if state.under_way < limit {
                return Ok(limit - state.under_way);
            }
            state.waiting = true;
            self.inner.landed.wait(&mut state);
        }
    }

    /// Submits without blocking; its latency counts from the given moment.
    pub fn submit(&self, store: &Store, submission: Submission, from: Instant) {
        self.inner.state.lock().under_way += 1;
        let inner = self.inner.clone();
        store.submit(submission, move |answer| inner.land(answer, from));
    }

    /// Submits and blocks until the answer.
    pub fn apply(&self, store: &Store, submission: Submission) {
        self.inner.state.lock().under_way += 1;
        let from = Instant::now();
        let answer = store.apply(submission);
        self.inner.land(answer, from);
    }

    /// Waits until none is under way, and takes the figures; the next ones begin at zero.
    ///
    /// # Errors
    ///
    /// As [`Flight::wait`].
    pub fn finish(&self) -> Result<Landing, Failure> {
        self.wait_below(1)?;
        Ok(std::mem::take(&mut self.inner.state.lock().landing))
    }
}

impl Inner {
    fn land(&self, answer: Result<Vec<Outcome>, WriteError>, from: Instant) {
        let took = from.elapsed();
        let judged = judge(answer);
        let mut state = self.state.lock();
        state.under_way -= 1;
        state.landing.latency.record(took);
        match judged {
            Ok(recorded) => state.landing.recorded += recorded,
            Err(failure) => {
                state.failure.get_or_insert(failure);
            }
        }
        if std::mem::take(&mut state.waiting) {
            drop(state);
            self.landed.notify_one();
        }
    }
}

fn judge(answer: Result<Vec<Outcome>, WriteError>) -> Result<u64, String> {
    let outcomes = answer.map_err(|error| format!("a submission failed: {error}"))?;
    match outcomes.iter().find(|outcome| !matches!(outcome, Outcome::Done(_))) {
        None => Ok(outcomes.len() as u64),
        Some(other) => Err(format!("a command was not recorded: {other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use ledger_core::Timestamp;

    use super::*;
    use crate::workload::{Profile, Shape, Workload, ledger_name, submission};

    #[test]
    fn what_lands_is_counted_and_a_refusal_is_a_failure() {
        let store = Store::in_memory();
        let profile =
            Profile { accounts: 20, shape: Shape::Rich, backdated_percent: 10, ..Profile::default() };
        store.create_ledger(ledger_name(), profile.ledger_options()).expect("a new ledger");
        let mut workload = Workload::new(profile, 1);
        let flight = Flight::new(2);
        for batch in workload.funding(8) {
            flight.wait().expect("no failure");
            flight.submit(&store, submission(batch), Instant::now());
        }
        let landing = flight.finish().expect("no failure");
        assert_eq!((landing.recorded, landing.latency.count()), (20, 3));

        let now = Timestamp::from_micros(1_700_000_000_000_000);
        let batch = workload.batch(5, now);
        flight.apply(&store, submission(batch.clone()));
        let landing = flight.finish().expect("no failure");
        assert_eq!((landing.recorded, landing.latency.count()), (5, 1));

        // The references of the batch are taken.
        flight.apply(&store, submission(batch));
        assert!(flight.finish().is_err());
    }
}
