//! Submits batches to a store in this process. Limits how many wait for their answer at a time, and measures
//! their latencies.

use std::sync::Arc;
use std::time::Instant;

use ledger_store::{Outcome, Store, Submission, WriteError};
use parking_lot::{Condvar, Mutex};

use crate::Failure;
use crate::histogram::Histogram;

/// Limits and measures the submissions in flight, that is, those that wait for their answer.
#[derive(Clone)]
pub struct InFlight {
    inner: Arc<Inner>,
}

struct Inner {
    limit: usize,
    state: Mutex<State>,
    /// Signalled after an answer if a thread waits. At most one thread waits at a time.
    answered: Condvar,
}

#[derive(Default)]
struct State {
    in_flight: usize,
    /// A thread waits for an answer, and the next answer wakes it.
    waiting: bool,
    stats: SubmissionStats,
    /// The first failure.
    failure: Option<String>,
}

/// Measurements of answered submissions.
#[derive(Clone, Debug, Default)]
pub struct SubmissionStats {
    /// Time from the start of each submission, as its caller counts it, to its answer.
    pub latency: Histogram,
    /// Number of commands that the store recorded.
    pub recorded: u64,
}

impl InFlight {
    /// Allows this many submissions in flight. A limit of 0 counts as 1.
    pub fn new(limit: usize) -> Self {
        let inner = Inner { limit: limit.max(1), state: Mutex::default(), answered: Condvar::new() };
        Self { inner: Arc::new(inner) }
    }

    /// Waits until at least one more submission may start, and returns how many may.
    ///
    /// # Errors
    ///
    /// Fails if a submission failed or the store refused one of its commands. Measurements of refusals mean nothing.
    pub fn wait(&self) -> Result<usize, Failure> {
        self.wait_below(self.inner.limit)
    }

    /// Waits until fewer submissions than the limit are in flight, and returns the difference.
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

    /// Submits and returns at once, regardless of the limit. The latency counts from `from`, which may be the time at
    /// which the submission was due.
    pub fn submit(&self, store: &Store, submission: Submission, from: Instant) {
        self.inner.state.lock().in_flight += 1;
        let inner = self.inner.clone();
        store.submit(submission, move |answer| inner.record(answer, from));
    }

    /// Submits, regardless of the limit, and blocks until the answer. The latency counts from the call.
    pub fn apply(&self, store: &Store, submission: Submission) {
        self.inner.state.lock().in_flight += 1;
        let from = Instant::now();
        let answer = store.apply(submission);
        self.inner.record(answer, from);
    }

    /// Waits until no submission is in flight, then returns the measurements and resets them to zero.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`InFlight::wait`].
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

/// Returns the number of recorded commands, or an error if any was not recorded.
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
    use crate::workload::{Content, Profile, Workload, ledger_name, submission};

    #[test]
    fn counts_recorded_commands_and_fails_on_refusal() {
        let store = Store::in_memory();
        let profile =
            Profile { accounts: 20, content: Content::Rich, backdated_percent: 10, ..Profile::default() };
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

        // The store refuses the batch the second time, because its references are in use.
        submissions.apply(&store, submission(batch));
        assert!(submissions.finish().is_err());
    }
}
