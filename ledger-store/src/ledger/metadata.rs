//! Changes of metadata.

use ledger_core::{AccountAddress, Command, Metadata, SmolStr, Target, TransactionId};

use super::error::LedgerError;
use super::future::CommitFuture;
use super::handle::Ledger;
use crate::submission::{Detail, Request};

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
    /// Sets metadata keys of an account; others stay.
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

    /// Removes a metadata key of an account.
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

    /// Sets metadata keys of a transaction; others stay.
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

    /// Removes a metadata key of a transaction.
    ///
    /// # Errors
    ///
    /// As [`Ledger::set_transaction_metadata`].
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

    /// Sets metadata keys of the ledger itself; others stay.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Write`].
    pub fn set_metadata(&self, metadata: Metadata) -> Result<(), LedgerError> {
        self.ensure()?;
        Ok(self.store().set_ledger_metadata(self.name(), metadata)?)
    }

    /// Removes a metadata key of the ledger itself.
    ///
    /// # Errors
    ///
    /// [`LedgerError::LedgerNotFound`], [`LedgerError::Write`].
    pub fn delete_metadata(&self, key: &str) -> Result<(), LedgerError> {
        Ok(self.store().delete_ledger_metadata(self.name(), key)?)
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
