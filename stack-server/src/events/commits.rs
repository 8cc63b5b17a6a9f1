//! Waiting for the next commit without holding up whoever commits.

use std::sync::Arc;
use std::time::Duration;

use ledger_store::{CommitWatch, Store};
use tokio::sync::watch;

/// How long what is committed gathers before a consumer that had caught up reads it. To read after every commit would
/// take the processor from those who commit.
const GATHER: Duration = Duration::from_millis(10);

/// Tells any number of consumers of commits; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Commits {
    committed: watch::Receiver<()>,
    _watch: Arc<CommitWatch>,
}

impl Commits {
    /// Begins to watch a store.
    pub(crate) fn of(store: &Store) -> Self {
        let (commit, committed) = watch::channel(());
        let watch = store.watch_commits(move || {
            // Nobody may be listening just now.
            let _ = commit.send(());
        });
        Self { committed, _watch: Arc::new(watch) }
    }

    /// From here on a commit ends the next wait: to be called before a snapshot is taken.
    pub(crate) fn begin(&mut self) {
        self.committed.mark_unchanged();
    }

    /// Waits for a commit since [`Commits::begin`], and a moment for those that come with it.
    pub(crate) async fn next(&mut self) {
        if self.committed.changed().await.is_err() {
            // The store's watchers are gone, and with them the store.
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(GATHER).await;
    }
}
