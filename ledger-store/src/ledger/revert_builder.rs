//! The builder of reverts.

use ledger_core::{Command, Metadata, Overdraft, RevertDate, RevertTransaction, Rules, TransactionId};

use super::answer::{Committed, DryRun};
use super::commit_future::CommitFuture;
use super::error::LedgerError;
use super::handle::Ledger;
use super::request::{IntoRequest, RequestParts};
use crate::readers::ReadFuture;
use crate::submission::{Detail, Request};

/// Reverts.
impl Ledger {
    /// Starts the revert of a transaction.
    pub fn revert(&self, id: impl Into<TransactionId>) -> RevertBuilder<'_> {
        RevertBuilder::new(self, id.into())
    }
}

/// A builder for a revert. Nothing is recorded before [`RevertBuilder::commit`].
#[derive(Debug)]
#[must_use = "nothing happens before it is committed"]
pub struct RevertBuilder<'a> {
    ledger: &'a Ledger,
    revert: RevertTransaction,
    parts: RequestParts,
}

impl<'a> RevertBuilder<'a> {
    pub(super) fn new(ledger: &'a Ledger, id: TransactionId) -> Self {
        let revert = RevertTransaction {
            id,
            overdraft: Overdraft::Refuse,
            dated: RevertDate::Now,
            metadata: Metadata::EMPTY,
            rules: Rules::Current,
        };
        Self { ledger, revert, parts: RequestParts::default() }
    }
}

impl RevertBuilder<'_> {
    /// Gives the revert the effective date of the original, instead of now.
    pub fn at_effective_date(mut self) -> Self {
        self.revert.dated = RevertDate::OfOriginal;
        self
    }

    /// Lets accounts go below zero by the revert.
    ///
    /// ```
    /// let ledger = ledger_store::Store::in_memory().ledger("main")?;
    /// ledger.transaction().posting("world", "users:1", 5, "USD").commit()?;
    /// ledger.transaction().posting("users:1", "shops:1", 5, "USD").commit()?;
    /// assert!(ledger.revert(1).dry_run().is_err_and(|error| error.is_insufficient_funds()));
    /// let reverting = ledger.revert(1).force().commit()?;
    /// let original = reverting.metadata.get(ledger_store::ledger_core::REVERTS_KEY);
    /// assert_eq!(original.map(ToString::to_string), Some("1".into()));
    /// assert_eq!(ledger.balance("users:1", "USD")?, -5);
    /// # Ok::<(), ledger_store::LedgerError>(())
    /// ```
    pub fn force(mut self) -> Self {
        self.revert.overdraft = Overdraft::Allow;
        self
    }

    /// Sets a metadata key of the new transaction.
    pub fn metadata(mut self, key: impl AsRef<str>, value: impl AsRef<str>) -> Self {
        self.revert.metadata.insert_text(key.as_ref(), value.as_ref());
        self
    }

    /// Protects the revert from being recorded twice. See
    /// [`TransactionBuilder::idempotency_key`](crate::TransactionBuilder::idempotency_key).
    pub fn idempotency_key(mut self, key: impl AsRef<str>) -> Self {
        self.parts.set_key(key.as_ref());
        self
    }

    /// Records the inverse of the transaction and marks the original as reverted. It is on disk when this returns.
    /// Blocks the thread; [`commit_async`](Self::commit_async) does not.
    ///
    /// # Errors
    ///
    /// [`LedgerError::TransactionNotFound`]; [`LedgerError::Refused`] if it is reverted already, or an account lacks the
    /// funds; and the errors of [`TransactionBuilder::commit`](crate::TransactionBuilder::commit).
    pub fn commit(self) -> Result<Committed, LedgerError> {
        let ledger = self.ledger;
        ledger.execute(self.into_request()?, Detail::Entry).map(Committed::of)
    }

    /// Submits it, and returns a future of the answer, for any executor. Dropping the future does not cancel the write.
    /// See [`CommitFuture`].
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`RevertBuilder::commit`].
    pub fn commit_async(self) -> CommitFuture<Committed> {
        let ledger = self.ledger;
        ledger.execute_async(self.into_request(), Detail::Entry, Committed::of)
    }

    /// Checks and computes everything as [`RevertBuilder::commit`], and records nothing. Blocks the thread;
    /// [`dry_run_async`](Self::dry_run_async) does not.
    ///
    /// # Errors
    ///
    /// As [`RevertBuilder::commit`].
    pub fn dry_run(self) -> Result<DryRun, LedgerError> {
        let ledger = self.ledger;
        ledger.dry_run(self.into_request()?).map(DryRun::of)
    }

    /// As [`RevertBuilder::dry_run`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`RevertBuilder::commit`].
    pub fn dry_run_async(self) -> ReadFuture<Result<DryRun, LedgerError>> {
        let ledger = self.ledger;
        ledger.dry_run_async(self.into_request())
    }
}

impl IntoRequest for RevertBuilder<'_> {
    fn into_request(self) -> Result<Request, LedgerError> {
        self.parts.request(Command::RevertTransaction(self.revert))
    }
}
