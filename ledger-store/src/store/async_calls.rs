//! Blocking methods of a store as futures, for any executor.
//!
//! Short reads run on the threads of the store. Everything else that takes long runs on a thread of its own, so that it
//! does not delay them.

use std::path::Path;
use std::time::Duration;

use ledger_core::{BucketName, LedgerOptions};

use super::Store;
use crate::error::{OpenError, ReadError, WriteError};
use crate::options::Options;
use crate::query::LedgerInfo;
use crate::read::Snapshot;
use crate::readers::{ReadFuture, Readers};
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

/// Reads without blocking.
impl Store {
    /// Runs a read of the current snapshot on a thread of the store, and returns a future of its answer. For async
    /// code: a read may wait for the disk, and a long list keeps its thread busy.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
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
    /// # store.ledger("main")?.transaction().posting("world", "users:1", 5, "USD").commit()?;
    /// # block_on(async {
    /// let end = store.read_async(|snapshot| snapshot.feed_end()).await;
    /// let ledger = store.ledger("main")?;
    /// let rich = ledger.read_async(|ledger| ledger.balances().under("users:").now()).await?;
    /// let page = ledger.transactions().newest_first().page_async(50).await?;
    /// assert_eq!((rich.len(), page.items.len()), (1, 1));
    /// # Ok::<(), ledger_store::LedgerError>(())
    /// # })?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn read_async<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Snapshot) -> T + Send + 'static,
    ) -> ReadFuture<T> {
        let snapshot = self.snapshot();
        self.readers().run(move || read(&snapshot))
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
