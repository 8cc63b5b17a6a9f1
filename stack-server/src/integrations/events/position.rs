//! The position of a publisher: every event before it was acknowledged.

use std::time::Instant;

use ledger_store::{DocumentAction, DocumentChange, Expected, FeedPosition, Store, WriteError};

use super::error::StartFailure;
use super::retry::log_fault;
use crate::blocking;
use crate::collections::PUBLISHERS;
use crate::limits::{POSITION_ENTRIES, POSITION_INTERVAL};

/// The position of a publisher, in memory and in its document.
pub(super) struct Position {
    /// The name of the broker, which is the key of the document.
    name: &'static str,
    /// Every event before this position was acknowledged.
    at: FeedPosition,
    /// The position in the document.
    written: FeedPosition,
    written_at: Instant,
    /// True if an event was delivered since the document was written.
    delivered: bool,
}

impl Position {
    /// Reads the document of a broker. A new broker starts at the newest commit, and gets its document here.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot read or write, or if the document is damaged.
    pub(super) fn of(store: &Store, name: &'static str) -> Result<Self, StartFailure> {
        let snapshot = store.snapshot();
        let found = snapshot.document(PUBLISHERS, name.as_bytes())?;
        let at = if let Some(document) = found {
            decode(&document.value).ok_or(StartFailure::Position(name))?
        } else {
            let end = snapshot.feed_end();
            write(store, name, end)?;
            end
        };
        Ok(Self { name, at, written: at, written_at: Instant::now(), delivered: false })
    }

    /// Returns the position from which to read next.
    pub(super) fn at(&self) -> FeedPosition {
        self.at
    }

    /// Moves to the end of a part of the feed. `delivered` is whether the part contained events for the broker.
    pub(super) fn move_to(&mut self, next: FeedPosition, delivered: bool) {
        self.at = next;
        self.delivered |= delivered;
    }

    /// Returns whether the document has an earlier position.
    pub(super) fn is_ahead_of_document(&self) -> bool {
        self.at > self.written
    }

    /// Returns when to write the document, if there is something to write.
    pub(super) fn due(&self) -> Option<Instant> {
        let passed = self.at.get() - self.written.get();
        (self.delivered || passed >= POSITION_ENTRIES).then(|| self.written_at + POSITION_INTERVAL)
    }

    /// Writes the document. If the write fails, a later one includes the position.
    pub(super) async fn write(&mut self, store: &Store) {
        let (store, name, at) = (store.clone(), self.name, self.at);
        let written = blocking::run(move || write(&store, name, at)).await;
        self.written_at = Instant::now();
        match written {
            Ok(Ok(())) => (self.written, self.delivered) = (at, false),
            Ok(Err(
                WriteError::Busy
                | WriteError::DiskNearlyFull
                | WriteError::Storage { .. }
                | WriteError::Stopped { .. },
            )) => {}
            Ok(Err(error)) => log_fault(name, &error),
            Err(error) => log_fault(name, &error),
        }
    }
}

/// Stores a position as a number, least significant byte first.
fn write(store: &Store, name: &str, at: FeedPosition) -> Result<(), WriteError> {
    let change = DocumentChange {
        collection: PUBLISHERS,
        key: name.as_bytes().to_vec(),
        // Only one process opens the store, and only one of its publishers has this name.
        expected: Expected::Anything,
        action: DocumentAction::Put { value: at.get().to_le_bytes().to_vec(), keys: Vec::new() },
    };
    store.change_documents(vec![change]).map(drop)
}

fn decode(value: &[u8]) -> Option<FeedPosition> {
    FeedPosition::new(u64::from_le_bytes(value.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_at_newest_commit_and_keeps_position() {
        let store = Store::in_memory();
        let pay = || {
            let ledger = store.ledger("main").expect("a name");
            ledger.transaction().posting("world", "a", 1, "USD").commit().expect("recorded")
        };
        pay();
        let before = store.snapshot().feed_end();
        let position = Position::of(&store, "http").expect("a position");
        assert_eq!(position.at, before);
        pay();
        assert_eq!(Position::of(&store, "http").expect("a position").at, before);
        assert_ne!(Position::of(&store, "nats").expect("a position").at, before);
    }

    #[test]
    fn stores_position_only_after_deliveries() {
        let store = Store::in_memory();
        let mut position = Position::of(&store, "http").expect("a position");
        assert_eq!(position.due(), None);
        position.at = store.snapshot().feed_end();
        assert!(position.at > position.written, "its own document is an entry");
        assert_eq!(position.due(), None);
        position.delivered = true;
        assert!(position.due().is_some());
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(position.write(&store));
        assert_eq!((position.due(), position.written), (None, position.at));
        assert_eq!(Position::of(&store, "http").expect("a position").at, position.at);
    }
}
