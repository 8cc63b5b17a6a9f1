//! The handle of a ledger, and its simple writes, which need no builder.

use std::fmt;

use ledger_core::{Command, LedgerName, LedgerOptions};

use super::answer::DryRun;
use super::commit_future::CommitFuture;
use super::error::LedgerError;
use crate::engine::WorkItem;
use crate::error::WriteError;
use crate::read::LedgerView;
use crate::readers::ReadFuture;
use crate::store::{LEDGER_WORK_BYTES, Store};
use crate::submission::{Atomicity, Detail, Mode, Outcome, Receipt, Request, Submission};

/// A handle to one ledger of a [`Store`]. The first write creates the ledger with [`LedgerOptions::default`], unless
/// it exists. Cheap to clone, and usable from any thread.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use ledger_store::prelude::*;
/// let store = Store::in_memory();
/// let ledger = store.ledger("main")?;
/// assert_eq!(ledger.name().as_str(), "main");
/// let usd = Asset::parse("USD/2")?;
/// let topup = ledger
///     .transaction()
///     .posting("world", "users:1", 100_00, &usd)
///     .metadata("kind", "topup")
///     .commit()?; // on disk when this returns
/// let script = "vars { monetary $amount } send $amount ( source = @users:1 destination = @shops:42 )";
/// let dry = ledger.script(script).var("amount", Monetary::new(&usd, 60_00)).dry_run()?;
/// assert_eq!(dry.postings[0].destination.as_str(), "shops:42");
/// let read = ledger.get_transaction(topup.id)?;
/// assert_eq!(read.metadata, topup.metadata);
/// ledger.revert(topup.id).at_effective_date().force().metadata("why", "fraud").commit()?;
/// assert_eq!(ledger.balance("users:1", &usd)?, 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Ledger {
    store: Store,
    name: LedgerName,
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Writes.
impl Ledger {
    pub(super) fn new(store: Store, name: LedgerName) -> Self {
        Self { store, name }
    }

    /// Returns the name of the ledger.
    pub fn name(&self) -> &LedgerName {
        &self.name
    }

    /// Returns the store of the ledger.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the current view of the ledger, for the lower-level reads. Returns `None` if nothing was written yet.
    pub fn view(&self) -> Option<LedgerView> {
        self.store.snapshot().ledger(&self.name)
    }

    /// Executes commands in order, in one durable commit. A refused command does not affect the others. Returns one
    /// outcome for each. Blocks the thread; [`apply_async`](Self::apply_async) does not.
    ///
    /// The commands are those of [`ledger_core`]. [`Ledger::batch`] takes the builders.
    ///
    /// ```
    /// use ledger_store::ledger_core::{Command, Target};
    /// use ledger_store::{Outcome, prelude::*};
    /// let ledger = Store::in_memory().ledger("main")?;
    /// let target = Target::Account(AccountAddress::parse("users:1")?);
    /// let outcomes = ledger.apply(vec![Command::DeleteMetadata { target, key: "tier".into() }])?;
    /// assert!(matches!(outcomes[..], [Outcome::Done(_)]));
    /// # Ok::<(), LedgerError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`LedgerError::Write`]; a refusal is an outcome.
    pub fn apply(&self, commands: Vec<Command>) -> Result<Vec<Outcome>, LedgerError> {
        self.submit(commands.into_iter().map(Request::from).collect(), Atomicity::Independent, Detail::Ids)
    }

    /// As [`Ledger::apply`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Ledger::apply`].
    pub fn apply_async(&self, commands: Vec<Command>) -> CommitFuture<Vec<Outcome>> {
        let requests = commands.into_iter().map(Request::from).collect();
        self.submit_async(self.submission(requests, Atomicity::Independent, Detail::Ids), Ok)
    }

    pub(super) fn execute(&self, request: Request, detail: Detail) -> Result<Receipt, LedgerError> {
        only(&self.name, self.submit(vec![request], Atomicity::Independent, detail)?)
    }

    /// Executes a single request without blocking.
    pub(super) fn execute_async<T: 'static>(
        &self,
        request: Result<Request, LedgerError>,
        detail: Detail,
        map: fn(Receipt) -> T,
    ) -> CommitFuture<T> {
        let request = match request {
            Ok(request) => request,
            Err(error) => return CommitFuture::failed(error),
        };
        let submission = self.submission(vec![request], Atomicity::Independent, detail);
        let name = self.name.clone();
        self.submit_async(submission, move |outcomes| only(&name, outcomes).map(map))
    }

    /// Submits a write, after creating the ledger if it does not exist.
    pub(super) fn submit_async<T: 'static>(
        &self,
        submission: Submission,
        finish: impl FnOnce(Vec<Outcome>) -> Result<T, LedgerError> + Send + 'static,
    ) -> CommitFuture<T> {
        let (future, done) = CommitFuture::new(finish);
        let store = self.store.clone();
        self.ensure_async(move |created| match created {
            Ok(()) => store.submit(submission, done),
            Err(error) => done(Err(error)),
        });
        future
    }

    /// Decides a request and returns its entry without recording anything. Does not create a missing ledger.
    pub(super) fn dry_run(&self, request: Request) -> Result<Receipt, LedgerError> {
        let submission = Submission {
            ledger: self.name.clone(),
            requests: vec![request],
            atomicity: Atomicity::Independent,
            mode: Mode::DryRun,
            detail: Detail::Entry,
        };
        let outcomes = match self.view() {
            Some(_) => self.store.apply(submission),
            None => self.store.try_on_new_ledger(LedgerOptions::default(), submission),
        };
        only(&self.name, outcomes?)
    }

    /// As [`Ledger::dry_run`], on a thread of the store.
    pub(super) fn dry_run_async(
        &self,
        request: Result<Request, LedgerError>,
    ) -> ReadFuture<Result<DryRun, LedgerError>> {
        let ledger = self.clone();
        self.store.readers().run(move || ledger.dry_run(request?).map(DryRun::of))
    }

    pub(super) fn submit(
        &self,
        requests: Vec<Request>,
        atomicity: Atomicity,
        detail: Detail,
    ) -> Result<Vec<Outcome>, LedgerError> {
        self.ensure()?;
        Ok(self.store.apply(self.submission(requests, atomicity, detail))?)
    }

    pub(super) fn submission(
        &self,
        requests: Vec<Request>,
        atomicity: Atomicity,
        detail: Detail,
    ) -> Submission {
        Submission { ledger: self.name.clone(), requests, atomicity, mode: Mode::Commit, detail }
    }

    /// Creates the ledger unless it exists.
    pub(super) fn ensure(&self) -> Result<(), LedgerError> {
        if self.view().is_none() {
            match self.store.create_ledger(self.name.clone(), LedgerOptions::default()) {
                Ok(_) | Err(WriteError::LedgerExists) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Creates the ledger unless it exists, without blocking. Calls `done` like [`Store::submit`].
    pub(super) fn ensure_async(&self, done: impl FnOnce(Result<(), WriteError>) + Send + 'static) {
        if self.view().is_some() {
            return done(Ok(()));
        }
        let create = |done| WorkItem::CreateLedger(self.name.clone(), LedgerOptions::default(), done);
        self.store.queue_work(LEDGER_WORK_BYTES, create, move |created| match created {
            // Perhaps another task created it.
            Ok(_) | Err(WriteError::LedgerExists) => done(Ok(())),
            Err(error) => done(Err(error)),
        });
    }
}

/// Returns the receipt of a single request.
fn only(ledger: &LedgerName, mut outcomes: Vec<Outcome>) -> Result<Receipt, LedgerError> {
    let outcome = outcomes.pop().expect("one request has one outcome");
    answer(ledger, outcome)
}

/// Returns the receipt of a request in an independent submission.
pub(super) fn answer(ledger: &LedgerName, outcome: Outcome) -> Result<Receipt, LedgerError> {
    match outcome {
        Outcome::Done(receipt) => Ok(receipt),
        Outcome::Refused(rejection) => Err(LedgerError::refused(ledger, rejection)),
        Outcome::Failed(error) => Err(LedgerError::Read(error)),
        Outcome::Cancelled => unreachable!("no other request can cancel an independent one"),
    }
}
