//! Lets consumers wait for the next commit without slowing the committing thread down.

use std::sync::Arc;
use std::time::Duration;

use ledger_store::{CommitWatch, Store};
use tokio::sync::watch;

/// How long a consumer that has caught up waits after a commit, so that more commits arrive before it reads. A read
/// after every commit would take processor time from the committing thread.
const GATHER: Duration = Duration::from_millis(10);

/// Notifies any number of consumers about commits. It is cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Commits {
    committed: watch::Receiver<()>,
    _watch: Arc<CommitWatch>,
}

impl Commits {
    /// Starts to watch the commits of a store.
    pub(crate) fn of(store: &Store) -> Self {
        let (commit, committed) = watch::channel(());
        let watch = store.watch_commits(move || {
            // There may be no consumer at the moment.
            let _ = commit.send(());
        });
        Self { committed, _watch: Arc::new(watch) }
    }

    /// Marks the current commit as seen. A later commit ends the next wait. Call this before taking a snapshot.
    pub(crate) fn begin(&mut self) {
        self.committed.mark_unchanged();
    }

    /// Waits for a commit after [`Commits::begin`], and then a moment longer for more commits.
    pub(crate) async fn next(&mut self) {
        if self.committed.changed().await.is_err() {
            // The store and its watchers are gone, so no commit will come.
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(GATHER).await;
    }
}
