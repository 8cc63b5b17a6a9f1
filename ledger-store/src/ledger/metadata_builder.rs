//! Changes of metadata.

use ledger_core::{AccountAddress, Command, Metadata, SmolStr, Target, TransactionId};

use super::commit_future::CommitFuture;
use super::error::LedgerError;
use super::handle::Ledger;
use super::request::{IntoRequest, RequestParts};
use crate::engine::LedgerEdit;
use crate::submission::{Detail, Receipt, Request};

/// Metadata of accounts, of transactions, and of the ledger itself.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use ledger_store::prelude::*;
/// let ledger = Store::in_memory().ledger("main")?;
/// ledger.set_account_metadata("users:1", Metadata::from([("tier", "gold")]))?;
/// ledger.delete_account_metadata("users:1", "tier")?;
/// let paid = ledger.transaction().posting("world", "users:1", 5, "USD").commit()?;
/// ledger.set_transaction_metadata(paid.id, Metadata::from([("note", "late")]))?;
/// ledger.delete_transaction_metadata(paid.id, "note")?;
/// ledger.set_metadata(Metadata::from([("owner", "treasury")]))?;
/// assert_eq!(ledger.info()?.metadata.get("owner").map(ToString::to_string), Some("treasury".into()));
/// ledger.delete_metadata("owner")?;
/// # Ok(())
/// # }
/// ```
impl Ledger {
    /// Sets metadata keys of an account; others stay. Blocks the thread;
    /// [`set_account_metadata_async`](Self::set_account_metadata_async) does not.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Name`] for a malformed address, and the errors of every write.
    pub fn set_account_metadata(
        &self,
        account: impl AsRef<str>,
        metadata: Metadata,
    ) -> Result<(), LedgerError> {
        self.execute(set(account_of(account.as_ref())?, metadata), Detail::Ids).map(drop)
    }

    /// As [`Ledger::set_account_metadata`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Ledger::set_account_metadata`].
    pub fn set_account_metadata_async(
        &self,
        account: impl AsRef<str>,
        metadata: Metadata,
    ) -> CommitFuture<()> {
        let request = account_of(account.as_ref()).map(|account| set(account, metadata));
        self.execute_async(request, Detail::Ids, drop)
    }

    /// Removes a metadata key of an account. Succeeds even if the account lacks the key. Blocks the thread;
    /// [`delete_account_metadata_async`](Self::delete_account_metadata_async) does not.
    ///
    /// # Errors
    ///
    /// As [`Ledger::set_account_metadata`].
    pub fn delete_account_metadata(&self, account: impl AsRef<str>, key: &str) -> Result<(), LedgerError> {
        self.execute(delete(account_of(account.as_ref())?, key), Detail::Ids).map(drop)
    }

    /// As [`Ledger::delete_account_metadata`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Ledger::set_account_metadata`].
    pub fn delete_account_metadata_async(&self, account: impl AsRef<str>, key: &str) -> CommitFuture<()> {
        let request = account_of(account.as_ref()).map(|account| delete(account, key));
        self.execute_async(request, Detail::Ids, drop)
    }

    /// Sets metadata keys of a transaction; others stay. Blocks the thread;
    /// [`set_transaction_metadata_async`](Self::set_transaction_metadata_async) does not.
    ///
    /// # Errors
    ///
    /// [`LedgerError::TransactionNotFound`], and the errors of every write.
    pub fn set_transaction_metadata(
        &self,
        id: impl Into<TransactionId>,
        metadata: Metadata,
    ) -> Result<(), LedgerError> {
        self.execute(set(Target::Transaction(id.into()), metadata), Detail::Ids).map(drop)
    }

    /// As [`Ledger::set_transaction_metadata`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Ledger::set_transaction_metadata`].
    pub fn set_transaction_metadata_async(
        &self,
        id: impl Into<TransactionId>,
        metadata: Metadata,
    ) -> CommitFuture<()> {
        self.execute_async(Ok(set(Target::Transaction(id.into()), metadata)), Detail::Ids, drop)
    }

    /// Removes a metadata key of a transaction. Blocks the thread;
    /// [`delete_transaction_metadata_async`](Self::delete_transaction_metadata_async) does not.
    ///
    /// # Errors
    ///
    /// As [`Ledger::set_transaction_metadata`]. [`LedgerError::Refused`] if the transaction lacks the key.
    pub fn delete_transaction_metadata(
        &self,
        id: impl Into<TransactionId>,
        key: &str,
    ) -> Result<(), LedgerError> {
        self.execute(delete(Target::Transaction(id.into()), key), Detail::Ids).map(drop)
    }

    /// As [`Ledger::delete_transaction_metadata`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Ledger::set_transaction_metadata`].
    pub fn delete_transaction_metadata_async(
        &self,
        id: impl Into<TransactionId>,
        key: &str,
    ) -> CommitFuture<()> {
        self.execute_async(Ok(delete(Target::Transaction(id.into()), key)), Detail::Ids, drop)
    }

    /// Sets metadata keys of the ledger itself; others stay. Blocks the thread;
    /// [`set_metadata_async`](Self::set_metadata_async) does not.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Write`].
    pub fn set_metadata(&self, metadata: Metadata) -> Result<(), LedgerError> {
        self.ensure()?;
        Ok(self.store().set_ledger_metadata(self.name(), metadata)?)
    }

    /// As [`Ledger::set_metadata`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Ledger::set_metadata`].
    pub fn set_metadata_async(&self, metadata: Metadata) -> CommitFuture<()> {
        let (future, done) = CommitFuture::new(Ok);
        let ledger = self.clone();
        self.ensure_async(move |created| match created {
            Ok(()) => ledger.store().queue_edit(ledger.name(), LedgerEdit::Set(metadata), done),
            Err(error) => done(Err(error)),
        });
        future
    }

    /// Removes a metadata key of the ledger itself. Blocks the thread;
    /// [`delete_metadata_async`](Self::delete_metadata_async) does not.
    ///
    /// # Errors
    ///
    /// [`LedgerError::LedgerNotFound`], [`LedgerError::Write`].
    pub fn delete_metadata(&self, key: &str) -> Result<(), LedgerError> {
        Ok(self.store().delete_ledger_metadata(self.name(), key)?)
    }

    /// As [`Ledger::delete_metadata`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Ledger::delete_metadata`].
    pub fn delete_metadata_async(&self, key: &str) -> CommitFuture<()> {
        self.store().delete_ledger_metadata_async(self.name(), key)
    }
}

/// Metadata with an idempotency key, or in a batch.
impl Ledger {
    /// Starts a change of an account's metadata: [`Ledger::set_account_metadata`] with an idempotency key, in a
    /// [batch](Ledger::batch), or only if the account is new. Without
    /// [`require_new_account`](MetadataBuilder::require_new_account) it creates the account or changes it. With it, this
    /// creates a wallet once, and a retry with the same key gets the first answer:
    ///
    /// ```
    /// use ledger_store::prelude::*;
    /// let ledger = Store::in_memory().ledger("main")?;
    /// let create = |id: u64, name: &str, key: &str| {
    ///     let address = format!("wallets:{id}");
    ///     let wallet = ledger.update_account(&address).metadata("name", name).require_new_account(&address);
    ///     wallet.idempotency_key(key).commit()
    /// };
    /// assert!(!create(1, "Ann", "request-1")?.replayed);
    /// assert!(create(1, "Ann", "request-1")?.replayed);
    /// assert!(matches!(create(1, "Bob", "request-2"), Err(LedgerError::AccountExists { .. })));
    /// # Ok::<(), LedgerError>(())
    /// ```
    pub fn update_account(&self, account: impl AsRef<str>) -> MetadataBuilder<'_> {
        MetadataBuilder::new(self, account_of(account.as_ref()))
    }

    /// Starts a change of a transaction's metadata, like [`Ledger::update_account`].
    pub fn update_transaction(&self, id: impl Into<TransactionId>) -> MetadataBuilder<'_> {
        MetadataBuilder::new(self, Ok(Target::Transaction(id.into())))
    }
}

/// A builder for metadata of an account or of a transaction. Nothing is recorded before [`MetadataBuilder::commit`].
#[derive(Debug)]
#[must_use = "nothing happens before it is committed"]
pub struct MetadataBuilder<'a> {
    ledger: &'a Ledger,
    target: Result<Target, LedgerError>,
    metadata: Metadata,
    parts: RequestParts,
}

impl<'a> MetadataBuilder<'a> {
    fn new(ledger: &'a Ledger, target: Result<Target, LedgerError>) -> Self {
        Self { ledger, target, metadata: Metadata::EMPTY, parts: RequestParts::default() }
    }

    /// Sets a metadata key. Keys that are not set stay as they are.
    pub fn metadata(mut self, key: impl AsRef<str>, value: impl AsRef<str>) -> Self {
        self.metadata.insert_text(key.as_ref(), value.as_ref());
        self
    }

    /// Protects the change from being recorded twice. See
    /// [`TransactionBuilder::idempotency_key`](crate::TransactionBuilder::idempotency_key).
    pub fn idempotency_key(mut self, key: impl AsRef<str>) -> Self {
        self.parts.set_key(key.as_ref());
        self
    }

    /// Refuses the change with [`LedgerError::AccountNotFound`] unless this account exists, which means that an earlier
    /// transaction or metadata named it.
    pub fn require_account(mut self, account: impl AsRef<str>) -> Self {
        self.parts.require_account(account.as_ref());
        self
    }

    /// Refuses the change with [`LedgerError::AccountExists`] if this account exists.
    pub fn require_new_account(mut self, account: impl AsRef<str>) -> Self {
        self.parts.require_new_account(account.as_ref());
        self
    }

    /// Records the change. It is on disk when this returns. Blocks the thread; [`commit_async`](Self::commit_async)
    /// does not.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Name`], [`LedgerError::TransactionNotFound`], [`LedgerError::IdempotencyConflict`], and the errors
    /// of every write.
    pub fn commit(self) -> Result<Receipt, LedgerError> {
        let ledger = self.ledger;
        ledger.execute(self.into_request()?, Detail::Ids)
    }

    /// Submits it, and returns a future of the answer, for any executor. Dropping the future does not cancel the write.
    /// See [`CommitFuture`].
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`MetadataBuilder::commit`].
    pub fn commit_async(self) -> CommitFuture<Receipt> {
        let ledger = self.ledger;
        ledger.execute_async(self.into_request(), Detail::Ids, |receipt| receipt)
    }
}

impl IntoRequest for MetadataBuilder<'_> {
    fn into_request(self) -> Result<Request, LedgerError> {
        self.parts.request(Command::SetMetadata { target: self.target?, metadata: self.metadata })
    }
}

fn account_of(address: &str) -> Result<Target, LedgerError> {
    Ok(Target::Account(AccountAddress::parse(address)?))
}

fn set(target: Target, metadata: Metadata) -> Request {
    Command::SetMetadata { target, metadata }.into()
}

fn delete(target: Target, key: &str) -> Request {
    Command::DeleteMetadata { target, key: SmolStr::new(key) }.into()
}
