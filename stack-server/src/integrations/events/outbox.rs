//! Delivery of payment events: a transactional outbox.
//!
//! A change of payments stores its events in the same commit, as one document for each publisher. The outbox delivers
//! the documents of its broker in order and deletes them. A crash in between delivers events again, with the same id.

use std::sync::Arc;

use hyper::body::Bytes;
use ledger_store::{Direction, Document, DocumentAction, DocumentChange, DocumentRange, Expected, Store};
use tokio::sync::watch;

use super::broker::{Broker, deliver_with_retry};
use super::commits::Commits;
use super::error::StorageError;
use super::message::Message;
use super::retry::log_fault;
use super::topics::Topics;
use crate::background::stop_signal;
use crate::blocking;
use crate::collections::PAYMENT_EVENTS;
use crate::limits::DELIVERY_PAUSE_MAX;
use crate::payments::event;
use crate::payments::record::prefixed;

/// Maximum number of events in a batch, which is read and deleted at once. Bounds memory, and how many events a crash
/// delivers again.
const BATCH_MAX: usize = 100;

/// Delivers the stored payment events of one broker.
pub(super) struct Outbox {
    pub(super) store: Store,
    /// Key of the hashes from which messages get their ids. A store always has the same key.
    pub(super) key: [u8; 32],
    pub(super) topics: Topics,
    pub(super) broker: Arc<Broker>,
    /// Turns true when the publishers stop.
    pub(super) stopped: watch::Receiver<bool>,
}

impl Outbox {
    /// Delivers until the publishers stop. The next start delivers the events that the broker did not acknowledge.
    pub(super) async fn run(self) {
        tokio::select! {
            () = stop_signal(self.stopped.clone()) => {}
            () = self.publish() => {}
        }
    }

    /// Delivers batch after batch, and waits for the next commit when no event is left. Never returns.
    async fn publish(&self) {
        let mut commits = Commits::of(&self.store);
        loop {
            commits.begin();
            match self.oldest_batch().await {
                Ok(batch) if batch.is_empty() => commits.next().await,
                Ok(batch) => {
                    for document in &batch {
                        self.deliver(document).await;
                    }
                    if let Err(error) = self.delete(batch).await {
                        log_fault(self.broker.name(), &error);
                        tokio::time::sleep(DELIVERY_PAUSE_MAX).await;
                    }
                }
                Err(error) => {
                    log_fault(self.broker.name(), &error);
                    tokio::time::sleep(DELIVERY_PAUSE_MAX).await;
                }
            }
        }
    }

    /// Reads the oldest stored events of the broker.
    async fn oldest_batch(&self) -> Result<Vec<Document>, StorageError> {
        let (store, prefix) = (self.store.clone(), event::prefix(self.broker.name()));
        let read = blocking::run(move || {
            let range = DocumentRange { limit: BATCH_MAX, ..prefixed(&prefix, Direction::Ascending) };
            store.snapshot().documents(PAYMENT_EVENTS, &range)
        });
        Ok(read.await??)
    }

    /// Delivers one event. Skips it if it cannot be decoded, or if the broker does not accept its topic.
    async fn deliver(&self, document: &Document) {
        let Some((topic, message)) = message(&self.key, document, &self.topics) else {
            return log_fault(self.broker.name(), &"the document of a payment event is damaged");
        };
        if self.broker.accepts_topic(&topic) {
            deliver_with_retry(&self.broker, &message).await;
        }
    }

    /// Deletes events that were delivered or skipped.
    async fn delete(&self, batch: Vec<Document>) -> Result<(), StorageError> {
        let store = self.store.clone();
        let changes = batch.into_iter().map(|document| DocumentChange {
            collection: PAYMENT_EVENTS,
            key: document.key,
            expected: Expected::Anything,
            action: DocumentAction::Delete,
        });
        let changes: Vec<_> = changes.collect();
        let deleted = blocking::run(move || store.change_documents(changes)).await;
        deleted??;
        Ok(())
    }
}

/// Decodes a stored event, which is its type, a zero byte and its JSON text, and returns the topic and the message.
/// The id of the message is a UUID made from a hash of the document's key, so a repeated delivery has the same id.
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
