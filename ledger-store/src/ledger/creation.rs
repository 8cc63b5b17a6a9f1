//! The creation of a ledger.

use ledger_core::LedgerOptions;

use super::commit_future::CommitFuture;
use super::error::LedgerError;
use super::handle::Ledger;
use crate::engine::WorkItem;
use crate::error::WriteError;
use crate::query::LedgerInfo;
use crate::store::LEDGER_WORK_BYTES;

/// The ledger itself.
impl Ledger {
    /// Creates the ledger with options. Without this call the first write creates it with the default options. Blocks
    /// the thread; [`create_async`](Self::create_async) does not.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use ledger_store::prelude::*;
    /// let ledger = Store::in_memory().ledger("main")?;
    /// let metadata = Metadata::from([("owner", "treasury")]);
    /// ledger.create(LedgerOptions { metadata, ..LedgerOptions::default() })?;
    /// assert_eq!(ledger.info()?.name.as_str(), "main");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LedgerError::Write`] with [`WriteError::LedgerExists`](crate::WriteError::LedgerExists), and the errors of every
    /// write.
    pub fn create(&self, options: LedgerOptions) -> Result<LedgerInfo, LedgerError> {
        Ok(self.store().create_ledger(self.name().clone(), options)?)
    }

    /// As [`Ledger::create`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Ledger::create`].
    pub fn create_async(&self, options: LedgerOptions) -> CommitFuture<LedgerInfo> {
        self.store().create_ledger_async(self.name().clone(), options)
    }

    /// Creates the ledger with options unless it exists. An existing ledger keeps the options that it has. For the
    /// start of a program. Blocks the thread; [`create_if_absent_async`](Self::create_if_absent_async) does not.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use ledger_store::prelude::*;
    /// let ledger = Store::in_memory().ledger("main")?;
    /// let metadata = Metadata::from([("owner", "treasury")]);
    /// ledger.create_if_absent(LedgerOptions { metadata, ..LedgerOptions::default() })?;
    /// let info = ledger.create_if_absent(LedgerOptions::default())?; // the next start
    /// assert_eq!(info.metadata.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of every write. [`LedgerError::LedgerNotFound`] if the ledger exists in a deleted bucket.
    pub fn create_if_absent(&self, options: LedgerOptions) -> Result<LedgerInfo, LedgerError> {
        match self.create(options) {
            Err(LedgerError::Write(WriteError::LedgerExists)) => self.info(),
            created => created,
        }
    }

    /// As [`Ledger::create_if_absent`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Ledger::create_if_absent`].
    pub fn create_if_absent_async(&self, options: LedgerOptions) -> CommitFuture<LedgerInfo> {
        let ledger = self.clone();
        let (future, done) = CommitFuture::new(move |created: Option<LedgerInfo>| match created {
            Some(created) => Ok(created),
            None => ledger.info(),
        });
        let create = |done| WorkItem::CreateLedger(self.name().clone(), options, done);
        self.store().queue_work(LEDGER_WORK_BYTES, create, move |created| match created {
            Err(WriteError::LedgerExists) => done(Ok(None)),
            created => done(created.map(Some)),
        });
        future
    }
}
