//! Methods of a store that answer with handles of ledgers, or fail with their errors: the handle, the list of ledgers, and
//! writes as futures.

use ledger_core::{FilterOf, LedgerName, LedgerOptions, Metadata, SmolStr};

use super::commit_future::CommitFuture;
use super::error::LedgerError;
use super::handle::Ledger;
use crate::atomic::AtomicWrite;
use crate::documents::{DocumentChange, DocumentVersion};
use crate::engine::{LedgerEdit, WorkItem};
use crate::query::{Deleted, Direction, LedgerInfo, PageRequest, Start};
use crate::readers::ReadFuture;
use crate::store::{LEDGER_WORK_BYTES, Store};
use crate::submission::{Outcome, Submission};

/// Number of ledgers that the list reads at once.
const LEDGERS_PER_PAGE: usize = 1_000;

/// Ledgers.
impl Store {
    /// Returns a handle to the ledger with this name.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Name`] if the name does not follow its grammar.
    pub fn ledger(&self, name: impl AsRef<str>) -> Result<Ledger, LedgerError> {
        Ok(Ledger::new(self.clone(), LedgerName::parse(name.as_ref())?))
    }

    /// Lists the ledgers in the order of their creation, without those whose bucket is deleted. Blocks the thread;
    /// [`ledgers_async`](Self::ledgers_async) does not.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use ledger_store::prelude::*;
    /// let store = Store::in_memory();
    /// store.ledger("main")?.create(LedgerOptions::default())?;
    /// store.ledger("audit")?.create(LedgerOptions::default())?;
    /// let names: Vec<String> = store.ledgers()?.iter().map(|ledger| ledger.name.to_string()).collect();
    /// assert_eq!(names, ["main", "audit"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LedgerError::Read`].
    pub fn ledgers(&self) -> Result<Vec<LedgerInfo>, LedgerError> {
        let snapshot = self.snapshot();
        let (mut found, mut start) = (Vec::new(), Start::First);
        loop {
            let page = PageRequest { size: LEDGERS_PER_PAGE, direction: Direction::Ascending, start };
            let page = snapshot.ledgers(&page, &FilterOf::all(), Deleted::Hidden)?;
            found.extend(page.items);
            match found.last().filter(|_| page.has_next) {
                Some(last) => start = Start::After(last.id),
                None => return Ok(found),
            }
        }
    }

    /// As [`Store::ledgers`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Store::ledgers`].
    pub fn ledgers_async(&self) -> ReadFuture<Result<Vec<LedgerInfo>, LedgerError>> {
        let store = self.clone();
        self.readers().run(move || store.ledgers())
    }
}

/// Writes without blocking. Dropping a future does not cancel its write: see [`CommitFuture`].
impl Store {
    /// As [`Store::create_ledger`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Store::create_ledger`], as [`LedgerError::Write`].
    pub fn create_ledger_async(&self, name: LedgerName, options: LedgerOptions) -> CommitFuture<LedgerInfo> {
        let (future, done) = CommitFuture::new(Ok);
        self.queue_work(LEDGER_WORK_BYTES, |done| WorkItem::CreateLedger(name, options, done), done);
        future
    }

    /// As [`Store::set_ledger_metadata`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to [`LedgerError::LedgerNotFound`], and to the errors that any write can have.
    pub fn set_ledger_metadata_async(&self, name: &LedgerName, metadata: Metadata) -> CommitFuture<()> {
        self.edit_async(name, LedgerEdit::Set(metadata))
    }

    /// As [`Store::delete_ledger_metadata`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Store::set_ledger_metadata_async`].
    pub fn delete_ledger_metadata_async(&self, name: &LedgerName, key: &str) -> CommitFuture<()> {
        self.edit_async(name, LedgerEdit::Delete(SmolStr::new(key)))
    }

    /// As [`Store::set_mapping`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Store::set_ledger_metadata_async`].
    pub fn set_mapping_async(&self, name: &LedgerName, text: String) -> CommitFuture<()> {
        self.edit_async(name, LedgerEdit::Mapping(text))
    }

    fn edit_async(&self, name: &LedgerName, edit: LedgerEdit) -> CommitFuture<()> {
        let (future, done) = CommitFuture::new(Ok);
        self.queue_edit(name, edit, done);
        future
    }

    /// As [`Store::change_documents`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Store::change_documents`], as [`LedgerError::Write`].
    pub fn change_documents_async(&self, changes: Vec<DocumentChange>) -> CommitFuture<Vec<DocumentVersion>> {
        let (future, done) = CommitFuture::new(Ok);
        let bytes = changes.iter().map(DocumentChange::bytes).sum();
        self.queue_work(bytes, |done| WorkItem::ChangeDocuments(changes, done), done);
        future
    }

    /// As [`Store::apply`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to [`LedgerError::LedgerNotFound`], and to the errors that any write can have.
    pub fn apply_async(&self, submission: Submission) -> CommitFuture<Vec<Outcome>> {
        let (future, done) = CommitFuture::new(Ok);
        self.submit(submission, done);
        future
    }

    /// As [`Store::write_atomically`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Store::write_atomically`]: [`LedgerError::LedgerNotFound`] for a ledger that
    /// does not exist, else [`LedgerError::Write`].
    pub fn write_atomically_async(&self, write: AtomicWrite) -> CommitFuture<Vec<Outcome>> {
        let (future, done) = CommitFuture::new(Ok);
        self.submit_atomically(write, done);
        future
    }
}
