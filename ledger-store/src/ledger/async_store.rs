//! The blocking methods of a store as futures, for any executor.
//!
//! A write waits in the queue of the writer, and its future in the executor. Everything else that takes long runs on a
//! thread of its own, so that it does not delay the short reads on the threads of the store.

use std::path::Path;
use std::time::Duration;

use ledger_core::{BucketName, LedgerName, LedgerOptions, Metadata, SmolStr};

use super::commit_future::CommitFuture;
use super::error::LedgerError;
use crate::atomic::AtomicWrite;
use crate::documents::{DocumentChange, DocumentVersion};
use crate::engine::{LedgerEdit, WorkItem};
use crate::error::{OpenError, ReadError, WriteError};
use crate::options::Options;
use crate::query::LedgerInfo;
use crate::readers::{ReadFuture, Readers};
use crate::store::{LEDGER_WORK_BYTES, Store};
use crate::submission::{Outcome, Submission};

/// Opening without blocking.
impl Store {
    /// As [`Store::open`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Store::open`].
    pub fn open_async(path: impl AsRef<Path>) -> ReadFuture<Result<Self, OpenError>> {
        Self::open_with_async(path, Options::default())
    }

    /// As [`Store::open_with`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Store::open`].
    pub fn open_with_async(path: impl AsRef<Path>, options: Options) -> ReadFuture<Result<Self, OpenError>> {
        let path = path.as_ref().to_owned();
        Readers::run_alone(move || Self::open_with(path, &options))
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

/// Long work without blocking. It begins at the call. Dropping a future does not cancel work that runs.
impl Store {
    /// Runs any blocking call on a thread of its own, and returns a future of its answer. For calls without an async form
    /// of their own, such as those of a [`LogImporter`](crate::LogImporter). Use [`Store::read_async`] for short reads.
    ///
    /// ```
    /// # use std::task::{Context, Poll, Waker};
    /// # fn block_on<T>(future: impl Future<Output = T>) -> T {
    /// #     let mut future = std::pin::pin!(future);
    /// #     loop {
    /// #         match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
    /// #             Poll::Ready(value) => return value,
    /// #             Poll::Pending => std::thread::yield_now(),
    /// #         }
    /// #     }
    /// # }
    /// # let store = ledger_store::Store::in_memory();
    /// # block_on(async {
    /// let report = store.run_async(|store| store.verify()).await?; // as store.verify_async()
    /// assert!(report.violations.is_empty());
    /// # Ok::<(), ledger_store::VerifyError>(())
    /// # })?;
    /// # Ok::<(), ledger_store::VerifyError>(())
    /// ```
    pub fn run_async<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> ReadFuture<T> {
        let store = self.clone();
        Readers::run_alone(move || call(&store))
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

    /// As [`Store::chain_at`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Store::chain_at`].
    pub fn chain_at_async(&self, entries: u64) -> ReadFuture<Result<Option<String>, ReadError>> {
        let store = self.clone();
        self.readers().run(move || store.chain_at(entries))
    }

    /// As [`Store::delete_bucket`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Store::delete_bucket`].
    pub fn delete_bucket_async(&self, bucket: BucketName) -> ReadFuture<Result<(), WriteError>> {
        self.run_async(move |store| store.delete_bucket(&bucket))
    }

    /// As [`Store::restore_bucket`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Store::restore_bucket`].
    pub fn restore_bucket_async(&self, bucket: BucketName) -> ReadFuture<Result<(), WriteError>> {
        self.run_async(move |store| store.restore_bucket(&bucket))
    }

    /// As [`Store::try_on_new_ledger`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Store::try_on_new_ledger`].
    pub fn try_on_new_ledger_async(
        &self,
        options: LedgerOptions,
        submission: Submission,
    ) -> ReadFuture<Result<Vec<Outcome>, WriteError>> {
        self.run_async(move |store| store.try_on_new_ledger(options, submission))
    }

    /// As [`Store::remove_deleted`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Store::remove_deleted`].
    pub fn remove_deleted_async(
        &self,
        retention: Duration,
    ) -> ReadFuture<Result<Vec<LedgerInfo>, WriteError>> {
        self.run_async(move |store| store.remove_deleted(retention))
    }

    /// As [`Store::flush`], without blocking.
    pub fn flush_async(&self) -> ReadFuture<()> {
        self.run_async(Self::flush)
    }

    /// As [`Store::close`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Store::close`].
    pub fn close_async(&self) -> ReadFuture<Result<(), WriteError>> {
        self.run_async(Self::close)
    }

    /// As [`Store::wait_until_stopped`], without blocking.
    pub fn wait_until_stopped_async(&self) -> ReadFuture<Option<String>> {
        let engine = self.engine().clone();
        // The thread must not keep the store open.
        Readers::run_alone(move || engine.wait_until_stopped())
    }
}
