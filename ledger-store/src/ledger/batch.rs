//! Several commands in one durable commit.

use ledger_core::{LedgerName, Rejection};

use super::commit_future::CommitFuture;
use super::error::LedgerError;
use super::handle::{Ledger, answer};
use super::request::IntoRequest;
use crate::submission::{Atomicity, Detail, Outcome, Receipt, Request};

/// Batches.
impl Ledger {
    /// Begins a batch of commands, in one durable commit.
    pub fn batch(&self) -> Batch<'_> {
        Batch::new(self)
    }
}

/// Commands that are executed in order, in one durable commit. A refused command does not affect the others.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let ledger = ledger_store::Store::in_memory().ledger("main")?;
/// let pay = |from: &'static str, to: &'static str| ledger.transaction().posting(from, to, 5, "USD");
/// let answers = ledger.batch().push(pay("world", "a")).push(pay("b", "a")).commit()?;
/// assert!(answers[0].is_ok() && answers[1].is_err()); // b has no funds
/// let error = ledger.batch().push(pay("world", "a")).push(pay("b", "a")).atomic().commit().unwrap_err();
/// assert_eq!(error.to_string(), "account b lacks funds: 5 USD needed, 0 available");
/// assert_eq!(ledger.balance("a", "USD")?, 5); // nothing of the atomic one happened
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "nothing happens before it is committed"]
pub struct Batch<'a> {
    ledger: &'a Ledger,
    requests: Vec<Request>,
    fault: Option<LedgerError>,
}

/// A [`Batch`] that records all of its commands or none.
#[derive(Debug)]
#[must_use = "nothing happens before it is committed"]
pub struct AtomicBatch<'a>(Batch<'a>);

impl<'a> Batch<'a> {
    pub(super) fn new(ledger: &'a Ledger) -> Self {
        Self { ledger, requests: Vec::new(), fault: None }
    }

    /// Adds a command.
    pub fn push(mut self, command: impl IntoRequest) -> Self {
        match command.into_request() {
            Ok(request) => self.requests.push(request),
            Err(error) => {
                self.fault.get_or_insert(error);
            }
        }
        self
    }

    /// Undoes all commands if one is refused.
    pub fn atomic(self) -> AtomicBatch<'a> {
        AtomicBatch(self)
    }

    /// Executes the commands. They are on disk when this returns. Returns one answer for each, in order. Blocks the
    /// thread; [`commit_async`](Self::commit_async) does not.
    ///
    /// # Errors
    ///
    /// The first malformed value of a command, or [`LedgerError::Write`]; in both cases nothing was recorded. A
    /// refusal is an answer.
    pub fn commit(self) -> Result<Vec<Result<Receipt, LedgerError>>, LedgerError> {
        let ledger = self.ledger;
        let outcomes = self.submit(Atomicity::Independent)?;
        Ok(answers(ledger.name(), outcomes))
    }

    /// Submits the commands, and returns a future of the answers. See [`CommitFuture`].
    pub fn commit_async(self) -> CommitFuture<Vec<Result<Receipt, LedgerError>>> {
        let name = self.ledger.name().clone();
        self.submit_async(Atomicity::Independent, move |outcomes| Ok(answers(&name, outcomes)))
    }

    fn submit_async<T: 'static>(
        self,
        atomicity: Atomicity,
        finish: impl FnOnce(Vec<Outcome>) -> Result<T, LedgerError> + Send + 'static,
    ) -> CommitFuture<T> {
        if let Some(fault) = self.fault {
            return CommitFuture::failed(fault);
        }
        let submission = self.ledger.submission(self.requests, atomicity, Detail::Ids);
        self.ledger.submit_async(submission, finish)
    }

    fn submit(self, atomicity: Atomicity) -> Result<Vec<Outcome>, LedgerError> {
        match self.fault {
            Some(fault) => Err(fault),
            None => self.ledger.submit(self.requests, atomicity, Detail::Ids),
        }
    }
}

impl AtomicBatch<'_> {
    /// Adds a command.
    pub fn push(self, command: impl IntoRequest) -> Self {
        Self(self.0.push(command))
    }

    /// Executes all commands or none. They are on disk when this returns. Returns one receipt for each, in order.
    /// Blocks the thread; [`commit_async`](Self::commit_async) does not.
    ///
    /// # Errors
    ///
    /// The first malformed value of a command, the refusal of the first refused command, or [`LedgerError::Write`].
    pub fn commit(self) -> Result<Vec<Receipt>, LedgerError> {
        let ledger = self.0.ledger;
        receipts(ledger.name(), self.0.submit(Atomicity::AllOrNothing)?)
    }

    /// Submits the commands, and returns a future of the receipts. See [`CommitFuture`].
    pub fn commit_async(self) -> CommitFuture<Vec<Receipt>> {
        let name = self.0.ledger.name().clone();
        self.0.submit_async(Atomicity::AllOrNothing, move |outcomes| receipts(&name, outcomes))
    }
}

/// Returns the answers of independent requests.
fn answers(ledger: &LedgerName, outcomes: Vec<Outcome>) -> Vec<Result<Receipt, LedgerError>> {
    outcomes.into_iter().map(|outcome| answer(ledger, outcome)).collect()
}

/// Returns the receipts of an atomic batch, or the refusal that undid it.
fn receipts(ledger: &LedgerName, outcomes: Vec<Outcome>) -> Result<Vec<Receipt>, LedgerError> {
    let mut receipts = Vec::with_capacity(outcomes.len());
    let mut refusal: Option<Rejection> = None;
    for outcome in outcomes {
        match outcome {
            Outcome::Done(receipt) => receipts.push(receipt),
            Outcome::Refused(rejection) => refusal = refusal.or(Some(rejection)),
            Outcome::Failed(error) => return Err(error.into()),
            Outcome::Cancelled => {}
        }
    }
    match refusal {
        Some(rejection) => Err(LedgerError::refused(ledger, rejection)),
        None => Ok(receipts),
    }
}
