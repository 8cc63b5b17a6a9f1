//! Events of payments: they wait as documents, one for each publisher, until they are delivered.

use std::sync::Arc;

use hyper::body::Bytes;
use ledger_store::{Direction, Document, DocumentAction, DocumentChange, DocumentRange, Expected, Store};
use tokio::sync::watch;

use super::commits::Commits;
use super::message::Message;
use super::publisher::{Broker, deliver_until_taken, log_fault};
use super::topics::Topics;
use crate::collections::PAYMENT_EVENTS;
use crate::limits::DELIVERY_PAUSE_MAX;
use crate::payments::record::prefixed;

/// Most events that are read, delivered and forgotten together.
const PART: usize = 100;

/// Delivers the events of payments that wait for a broker.
pub(super) struct Outbox {
    pub(super) store: Store,
    pub(super) key: [u8; 32],
    pub(super) topics: Topics,
    pub(super) broker: Arc<Broker>,
    pub(super) stopped: watch::Receiver<bool>,
}

impl Outbox {
    /// Delivers until the publishers stop. What was not acknowledged is delivered at the next start.
    pub(super) async fn run(self) {
        let mut stopped = self.stopped.clone();
        let stop = async move {
            // An error means that the publishers were dropped: they go on until the process ends.
            if stopped.wait_for(|stop| *stop).await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = stop => {}
            () = self.publish() => {}
        }
    }

    async fn publish(&self) {
        let mut commits = Commits::of(&self.store);
        loop {
            commits.begin();
            match self.part().await {
                Ok(part) if part.is_empty() => commits.next().await,
                Ok(part) => {
                    for document in &part {
                        self.deliver(document).await;
                    }
                    if let Err(reason) = self.forget(part).await {
                        log_fault(self.broker.name(), &reason);
                        tokio::time::sleep(DELIVERY_PAUSE_MAX).await;
                    }
                }
                Err(reason) => {
                    log_fault(self.broker.name(), &reason);
                    tokio::time::sleep(DELIVERY_PAUSE_MAX).await;
                }
            }
        }
    }

    /// The oldest events that wait.
    async fn part(&self) -> Result<Vec<Document>, String> {
        let (store, prefix) = (self.store.clone(), [self.broker.name().as_bytes(), &[0]].concat());
        let read = tokio::task::spawn_blocking(move || {
            let range = DocumentRange { limit: PART, ..prefixed(&prefix, Direction::Ascending) };
            store.snapshot().documents(PAYMENT_EVENTS, &range)
        });
        read.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
    }

    async fn deliver(&self, document: &Document) {
        let Some((topic, message)) = message(&self.key, document, &self.topics) else {
            return log_fault(self.broker.name(), "an event of payments is not what was written");
        };
        if self.broker.takes(&topic) {
            deliver_until_taken(&self.broker, &message).await;
        }
    }

    async fn forget(&self, part: Vec<Document>) -> Result<(), String> {
        let store = self.store.clone();
        let changes = part.into_iter().map(|document| DocumentChange {
            collection: PAYMENT_EVENTS,
            key: document.key,
            expected: Expected::Anything,
            action: DocumentAction::Delete,
        });
        let changes: Vec<_> = changes.collect();
        let forgotten = tokio::task::spawn_blocking(move || store.change_documents(changes)).await;
        forgotten.map_err(|error| error.to_string())?.map(drop).map_err(|error| error.to_string())
    }
}

/// The message of an event: its type, a zero byte, and its text. It is known by a UUID that its key decides.
fn message(key: &[u8; 32], document: &Document, topics: &Topics) -> Option<(String, Message)> {
    let end = document.value.iter().position(|byte| *byte == 0)?;
    let kind = std::str::from_utf8(&document.value[..end]).ok()?;
    let topic = topics.of_payment(kind).to_owned();
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(b"payment event\0").update(&document.key);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    let id = crate::uuid::text(bytes, 8);
    let body = Bytes::copy_from_slice(&document.value[end + 1..]);
    Some((topic.clone(), Message { topic, id, body }))
}
