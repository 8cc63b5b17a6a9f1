//! Lists as streams, for any executor.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::error::LedgerError;
use super::list::{List, ListIter, ListKind, PageFuture};

impl<K: ListKind> List<K> {
    /// Iterates over the list without blocking: threads of the store read the pages. The async form of `into_iter`.
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
    /// # let ledger = ledger_store::Store::in_memory().ledger("main")?;
    /// # ledger.transaction().posting("world", "users:1", 5, "USD").commit()?;
    /// # block_on(async {
    /// let mut transactions = ledger.transactions().newest_first().stream();
    /// while let Some(transaction) = transactions.next().await {
    ///     println!("{}", transaction?.id);
    /// }
    /// # Ok::<(), ledger_store::LedgerError>(())
    /// # })?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn stream(self) -> ListStream<K> {
        ListStream { iter: self.into_iter(), page: None }
    }
}

/// Iterates over a [`List`] without blocking, for any executor. [`List::stream`] makes it. Ends after the first error.
///
/// With the feature `stream` it is a `futures_core::Stream`.
#[must_use = "nothing is read before it is polled"]
pub struct ListStream<K: ListKind> {
    iter: ListIter<K>,
    /// The page that is being read.
    page: Option<PageFuture<K>>,
}

/// No field of the stream is pinned.
impl<K: ListKind> Unpin for ListStream<K> {}

impl<K: ListKind> ListStream<K> {
    /// Waits for the next item. Returns `None` at the end. Dropping the future loses no item.
    pub async fn next(&mut self) -> Option<Result<K::Item, LedgerError>> {
        poll_fn(|context| self.poll_item(context)).await
    }

    fn poll_item(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<K::Item, LedgerError>>> {
        loop {
            if let Some(item) = self.iter.items.next() {
                return Poll::Ready(Some(Ok(item)));
            }
            if self.page.is_none() {
                self.page = self.iter.read_page();
            }
            let Some(page) = &mut self.page else { return Poll::Ready(None) };
            let page = ready!(Pin::new(page).poll(context));
            self.page = None;
            match page {
                Ok(page) => self.iter.accept(page),
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }
}

#[cfg(feature = "stream")]
impl<K: ListKind> futures_core::Stream for ListStream<K> {
    type Item = Result<K::Item, LedgerError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_item(context)
    }
}

impl<K: ListKind> fmt::Debug for ListStream<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListStream").field("iter", &self.iter).finish_non_exhaustive()
    }
}
