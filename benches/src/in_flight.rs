//! Concurrent submissions: limits their number, and measures their latencies and results.

use std::sync::Arc;
use std::time::Instant;

use ledger_store::{Outcome, Store, Submission, WriteError};
use parking_lot::{Condvar, Mutex};

use crate::Failure;
use crate::histogram::Histogram;

/// Keeps up to a number of submissions in flight, and measures them.
#[derive(Clone)]
pub struct InFlight {
    inner: Arc<Inner>,
}

struct Inner {
    limit: usize,
    state: Mutex<State>,
    /// Signalled after an answer while somebody waits for a free slot.
    answered: Condvar,
}

#[derive(Default)]
struct State {
    in_flight: usize,
    waiting: bool,
    stats: SubmissionStats,
    failure: Option<String>,
}

/// The figures of completed submissions.
#[derive(Clone, Debug, Default)]
pub struct SubmissionStats {
    /// Time from the given start of each submission to its answer.
    pub latency: Histogram,
    /// Number of recorded commands.
    pub recorded: u64,
}

impl InFlight {
    /// Allows up to this many concurrent submissions, at least one.
    pub fn new(limit: usize) -> Self {
        let inner = Inner { limit: limit.max(1), state: Mutex::default(), answered: Condvar::new() };
        Self { inner: Arc::new(inner) }
    }

    /// Waits until at least one more submission may start, and returns how many may.
    ///
    /// # Errors
    ///
    /// If a submission failed or one of its commands was refused, because the figures would be meaningless.
    pub fn wait(&self) -> Result<usize, Failure> {
        self.wait_below(self.inner.limit)
    }

    fn wait_below(&self, limit: usize) -> Result<usize, Failure> {
        let mut state = self.inner.state.lock();
        loop {
            if let Some(failure) = &state.failure {
                return Err(failure.clone().into());
            }
            if state.in_flight < limit {
                return Ok(limit - state.in_flight);
            }
            state.waiting = true;
            self.inner.answered.wait(&mut state);
        }
    }

    /// Submits without blocking. The latency counts from the given start.
    pub fn submit(&self, store: &Store, submission: Submission, from: Instant) {
        self.inner.state.lock().in_flight += 1;
        let inner = self.inner.clone();
        store.submit(submission, move |answer| inner.record(answer, from));
    }

    /// Submits and blocks until the answer.
    pub fn apply(&self, store: &Store, submission: Submission) {
        self.inner.state.lock().in_flight += 1;
        let from = Instant::now();
        let answer = store.apply(submission);
        self.inner.record(answer, from);
    }

    /// Waits until no submission is in flight, and returns the figures. The next figures start at zero.
    ///
    /// # Errors
    ///
    /// The same errors as [`InFlight::wait`].
    pub fn finish(&self) -> Result<SubmissionStats, Failure> {
        self.wait_below(1)?;
        Ok(std::mem::take(&mut self.inner.state.lock().stats))
    }
}

impl Inner {
    fn record(&self, answer: Result<Vec<Outcome>, WriteError>, from: Instant) {
        let took = from.elapsed();
        let recorded = recorded_commands(answer);
        let mut state = self.state.lock();
        state.in_flight -= 1;
        state.stats.latency.record(took);
        match recorded {
            Ok(recorded) => state.stats.recorded += recorded,
            Err(failure) => {
                state.failure.get_or_insert_with(|| failure.to_string());
            }
        }
        if std::mem::take(&mut state.waiting) {
            drop(state);
            self.answered.notify_one();
        }
    }
}

/// Returns the number of recorded commands, or an error if any was refused.
fn recorded_commands(answer: Result<Vec<Outcome>, WriteError>) -> Result<u64, Failure> {
    let outcomes = answer.map_err(|error| format!("a submission failed: {error}"))?;
    match outcomes.iter().find(|outcome| !matches!(outcome, Outcome::Done(_))) {
        None => Ok(outcomes.len() as u64),
        Some(other) => Err(format!("a command was not recorded: {other:?}").into()),
    }
}

#[cfg(test)]
mod tests {
    use ledger_core::Timestamp;

    use super::*;
    use crate::workload::{Profile, Shape, Workload, ledger_name, submission};

    #[test]
    fn counts_recorded_commands_and_fails_on_refusal() {
        let store = Store::in_memory();
        let profile =
            Profile { accounts: 20, shape: Shape::Rich, backdated_percent: 10, ..Profile::default() };
        store.create_ledger(ledger_name(), profile.ledger_options()).expect("a new ledger");
        let mut workload = Workload::new(profile, 1);
        let submissions = InFlight::new(2);
        for batch in workload.funding(8) {
            submissions.wait().expect("no failure");
            submissions.submit(&store, submission(batch), Instant::now());
        }
        let stats = submissions.finish().expect("no failure");
        assert_eq!((stats.recorded, stats.latency.count()), (20, 3));

        let now = Timestamp::from_micros(1_700_000_000_000_000);
        let batch = workload.batch(5, now);
        submissions.apply(&store, submission(batch.clone()));
        let stats = submissions.finish().expect("no failure");
        assert_eq!((stats.recorded, stats.latency.count()), (5, 1));

        // The references of the batch are in use.
        submissions.apply(&store, submission(batch));
        assert!(submissions.finish().is_err());
    }
}
