//! Delivers events from the store to a broker.
//!
//! A publisher reads the feed of all ledgers in parts. It delivers each event until the broker acknowledges it, and the
//! events of one ledger in order. A document keeps its position. A new publisher starts at the newest commit. A failed
//! delivery is retried without limit, with growing pauses. Waiting events are in the journal, and only one part is in
//! memory.

use std::sync::Arc;
use std::time::Instant;

use hyper::body::Bytes;
use ledger_core::LedgerName;
use ledger_store::{FeedPart, FeedPosition, Store};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::broker::{Broker, deliver_with_retry};
use super::commits::Commits;
use super::envelope::{EventType, event};
use super::error::StorageError;
use super::message::{Message, message_id};
use super::position::Position;
use super::retry::{Backoff, log_fault};
use super::topics::Topics;
use crate::background::stop_signal;
use crate::blocking;
use crate::limits::DELIVERY_LANES;
use crate::log;

/// Delivers the events of all ledgers to one broker.
pub(super) struct Publisher {
    pub(super) store: Store,
    /// Key of the hashes from which messages get their ids. A store always has the same key.
    pub(super) key: [u8; 32],
    pub(super) topics: Topics,
    pub(super) broker: Arc<Broker>,
    /// Turns true when the publishers stop.
    pub(super) stopped: watch::Receiver<bool>,
}

impl Publisher {
    /// Delivers until the publishers stop, and then stores the position.
    pub(super) async fn run(self, mut position: Position) {
        tokio::select! {
            () = stop_signal(self.stopped.clone()) => {}
            () = self.publish(&mut position) => {}
        }
        if position.is_ahead_of_document() {
            position.write(&self.store).await;
        }
    }

    /// Publishes until the task is dropped.
    async fn publish(&self, position: &mut Position) {
        let mut commits = Commits::of(&self.store);
        let mut backoff = Backoff::NEW;
        loop {
            commits.begin();
            let part = match self.read(position.at()).await {
                Ok(part) => part,
                Err(error) => {
                    log_fault(self.broker.name(), &error);
                    tokio::time::sleep(backoff.next()).await;
                    continue;
                }
            };
            backoff = Backoff::NEW;
            let next = part.next;
            if next == position.at() {
                match position.due() {
                    None => commits.next().await,
                    Some(due) => tokio::select! {
                        () = commits.next() => {}
                        () = tokio::time::sleep_until(due.into()) => {}
                    },
                }
            } else {
                let delivering = self.deliver(part);
                tokio::pin!(delivering);
                let delivered = loop {
                    // An event that the broker refuses must not delay storing the position of the events before it.
                    let due = position.due();
                    let is_due = tokio::time::sleep_until(due.unwrap_or_else(Instant::now).into());
                    tokio::select! {
                        delivered = &mut delivering => break delivered,
                        () = is_due, if due.is_some() => position.write(&self.store).await,
                    }
                };
                position.move_to(next, delivered);
            }
            if position.due().is_some_and(|due| due <= Instant::now()) {
                position.write(&self.store).await;
            }
        }
    }

    async fn read(&self, at: FeedPosition) -> Result<FeedPart, StorageError> {
        let store = self.store.clone();
        let read = blocking::run(move || store.snapshot().feed(at)).await;
        Ok(read??)
    }

    /// Delivers the events of a part and waits for all acknowledgements. Returns whether the part had any events.
    async fn deliver(&self, part: FeedPart) -> bool {
        let mut ledgers: Vec<(LedgerName, Vec<Message>)> = Vec::new();
        for fed in part.logs {
            let kind = EventType::of(&fed.log.entry.payload);
            let topic = self.topics.of(kind);
            if fed.imported || !self.broker.accepts_topic(topic) {
                continue;
            }
            let message = Message {
                topic: topic.to_owned(),
                id: message_id(&self.key, &fed.ledger, fed.number, fed.log.entry.id),
                body: Bytes::from(event(&fed, log::now())),
            };
            // Neighbouring logs usually belong to the same ledger, so search from the end.
            match ledgers.iter_mut().rev().find(|(ledger, _)| *ledger == fed.ledger) {
                Some((_, messages)) => messages.push(message),
                None => ledgers.push((fed.ledger, vec![message])),
            }
        }
        if ledgers.is_empty() {
            return false;
        }
        let lanes = Arc::new(Semaphore::new(DELIVERY_LANES));
        // The tasks stop when this future is dropped. Unacknowledged events are delivered again later.
        let mut tasks = JoinSet::new();
        for (_, messages) in ledgers {
            let (broker, lanes) = (self.broker.clone(), lanes.clone());
            tasks.spawn(async move {
                let _lane = lanes.acquire().await;
                for message in &messages {
                    deliver_with_retry(&broker, message).await;
                }
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.expect("a delivery retries after errors, does not panic, and is not aborted here");
        }
        true
    }
}
