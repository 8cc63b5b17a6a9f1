//! Delivers events from the store to a broker.
//!
//! A publisher reads the feed of all ledgers in parts. It delivers each event until the broker acknowledges it, and
//! the events of one ledger in order. A document keeps its position. A new publisher starts at the newest commit. A
//! failed delivery is retried without limit, with growing pauses. The journal keeps the waiting events, and memory
//! holds one part.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hyper::body::Bytes;
use ledger_core::LedgerName;
use ledger_store::{DocumentAction, DocumentChange, Expected, FeedPart, FeedPosition, Store, WriteError};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::commits::Commits;
use super::envelope::{EventType, event};
use super::http::HttpPublisher;
use super::message::{Message, message_id};
use super::nats::NatsPublisher;
use super::outbox::Outbox;
use super::signature::Secrets;
use super::topics::Topics;
use crate::collections::PUBLISHERS;
use crate::limits::{
    DELIVERY_LANES, DELIVERY_PAUSE_MAX, DELIVERY_PAUSE_MIN, DELIVERY_STOP_TIMEOUT, POSITION_ENTRIES,
    POSITION_INTERVAL,
};
use crate::log::{self, Level};

/// The settings of event publishing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Publishing {
    /// The topic of each event type.
    pub topics: Topics,
    /// Whether to post events over HTTP. The topic is the address.
    pub http: bool,
    /// A file with the secrets that sign HTTP requests, one per line.
    pub http_secrets: Option<PathBuf>,
    /// Whether to publish events to a NATS server with `JetStream`. The topic is the subject.
    pub nats: bool,
    /// The settings of the NATS server.
    pub nats_settings: NatsSettings,
}

/// The settings of a connection to a NATS server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatsSettings {
    /// The addresses, separated by commas.
    pub url: String,
    /// The name of this client in the NATS server's own reports.
    pub client_id: Option<String>,
    /// The pause between attempts to connect.
    pub reconnect_wait: Duration,
    /// Whether to create a stream for a topic that has none.
    pub auto_provision: bool,
}

impl Publishing {
    /// The names of the publishers that are asked for.
    pub fn publishers(&self) -> Vec<&'static str> {
        let named = [(self.http, "http"), (self.nats, "nats")];
        named.into_iter().filter_map(|(is_on, name)| is_on.then_some(name)).collect()
    }
}

impl Default for NatsSettings {
    fn default() -> Self {
        Self {
            url: "nats://127.0.0.1:4222".to_owned(),
            client_id: None,
            reconnect_wait: Duration::from_secs(2),
            auto_provision: true,
        }
    }
}

/// The broker that takes the events.
pub(super) enum Broker {
    Http(HttpPublisher),
    Nats(Box<NatsPublisher>),
}

impl Broker {
    /// Returns the name of the document that keeps the position.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Http(_) => "http",
            Self::Nats(_) => "nats",
        }
    }

    /// Delivers an event and waits for its acknowledgement.
    async fn deliver(&self, message: &Message) -> Result<(), String> {
        match self {
            Self::Http(http) => http.deliver(message).await,
            Self::Nats(nats) => nats.deliver(message).await,
        }
    }

    /// Tells whether the broker takes events of this topic at all.
    pub(super) fn takes(&self, topic: &str) -> bool {
        match self {
            Self::Http(http) => http.takes(topic),
            Self::Nats(_) => true,
        }
    }
}

/// The running publishers of a server. [`Publishers::stop`] stops them.
#[derive(Debug)]
pub struct Publishers {
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
}

impl Publishers {
    /// Starts the configured publishers. The store holds the position of a new publisher when this returns, so the
    /// publisher misses no later write.
    ///
    /// # Errors
    ///
    /// Fails if the settings are invalid, or if the store does not accept writes.
    pub fn start(store: &Store, publishing: &Publishing) -> Result<Self, String> {
        let mut brokers = Vec::new();
        if publishing.http {
            let secrets = match &publishing.http_secrets {
                None => Secrets::default(),
                Some(path) => {
                    let text = std::fs::read_to_string(path)
                        .map_err(|error| format!("{}: {error}", path.display()))?;
                    let secrets = Secrets::of_lines(&text);
                    if secrets.is_empty() {
                        return Err(format!("{}: there is no secret in it", path.display()));
                    }
                    secrets
                }
            };
            brokers.push(Broker::Http(HttpPublisher::new(&publishing.topics, secrets)?));
        }
        if publishing.nats {
            let settings = publishing.nats_settings.clone();
            brokers.push(Broker::Nats(Box::new(NatsPublisher::new(settings, &publishing.topics)?)));
        }
        let (stop, stopped) = watch::channel(false);
        let mut threads = Vec::new();
        for broker in brokers {
            let place = Place::of(store, broker.name())?;
            let broker = Arc::new(broker);
            let outbox = Outbox {
                store: store.clone(),
                key: store.cursor_key(),
                topics: publishing.topics.clone(),
                broker: broker.clone(),
                stopped: stopped.clone(),
            };
            let publisher = Publisher {
                store: store.clone(),
                key: store.cursor_key(),
                topics: publishing.topics.clone(),
                broker,
                stopped: stopped.clone(),
            };
            let name = format!("events-{}", publisher.broker.name());
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| error.to_string())?;
            let thread = std::thread::Builder::new().name(name).spawn(move || {
                runtime.block_on(async { tokio::join!(publisher.run(place), outbox.run()) });
                // A task that reads or writes the store finishes soon.
                runtime.shutdown_timeout(DELIVERY_STOP_TIMEOUT);
            });
            threads.push(thread.map_err(|error| error.to_string())?);
        }
        Ok(Self { stop, threads })
    }

    /// Stops deliveries and stores how far they came.
    pub fn stop(self) {
        // Sending fails only if every thread has ended already.
        let _ = self.stop.send(true);
        for thread in self.threads {
            // A panic of the thread has been reported already.
            let _ = thread.join();
        }
    }
}

/// The position of a publisher, in memory and in its document.
struct Place {
    name: &'static str,
    /// Every event before this position was acknowledged.
    at: FeedPosition,
    /// The position in the document.
    written: FeedPosition,
    written_at: Instant,
    /// Whether an event was delivered since the document was written.
    delivered: bool,
}

impl Place {
    fn of(store: &Store, name: &'static str) -> Result<Self, String> {
        let snapshot = store.snapshot();
        let found = snapshot.document(PUBLISHERS, name.as_bytes()).map_err(|error| error.to_string())?;
        let at = if let Some(document) = found {
            decode(&document.value)
                .ok_or_else(|| format!("the place of the publisher {name} is not what was written"))?
        } else {
            let end = snapshot.feed_end();
            write(store, name, end).map_err(|error| error.to_string())?;
            end
        };
        Ok(Self { name, at, written: at, written_at: Instant::now(), delivered: false })
    }

    /// Returns when to write the document, if there is something to write.
    fn due(&self) -> Option<Instant> {
        let passed = self.at.get() - self.written.get();
        (self.delivered || passed >= POSITION_ENTRIES).then(|| self.written_at + POSITION_INTERVAL)
    }

    /// Writes the document. If the write fails, a later one includes the position.
    async fn write(&mut self, store: &Store) {
        let (store, name, at) = (store.clone(), self.name, self.at);
        let written = tokio::task::spawn_blocking(move || write(&store, name, at)).await;
        self.written_at = Instant::now();
        match written {
            Ok(Ok(())) => (self.written, self.delivered) = (at, false),
            Ok(Err(
                WriteError::Busy
                | WriteError::NoRoom
                | WriteError::Storage { .. }
                | WriteError::Stopped { .. },
            )) => {}
            Ok(Err(error)) => log_fault(name, &error.to_string()),
            Err(error) => log_fault(name, &error.to_string()),
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

pub(super) fn log_fault(publisher: &str, reason: &str) {
    log::event(Level::Error, "publisher", &[("publisher", &publisher), ("reason", &reason)]);
}

/// The growing pause before the next attempt.
struct Pause(Duration);

impl Pause {
    const NEW: Self = Self(DELIVERY_PAUSE_MIN);

    fn next(&mut self) -> Duration {
        let now = self.0;
        self.0 = (2 * now).min(DELIVERY_PAUSE_MAX);
        now
    }
}

struct Publisher {
    store: Store,
    key: [u8; 32],
    topics: Topics,
    broker: Arc<Broker>,
    stopped: watch::Receiver<bool>,
}

impl Publisher {
    async fn run(self, mut place: Place) {
        let mut stopped = self.stopped.clone();
        let stop = async move {
            // An error means that the publishers were dropped. The tasks then run until the process ends.
            if stopped.wait_for(|stop| *stop).await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = stop => {}
            () = self.publish(&mut place) => {}
        }
        if place.at > place.written {
            place.write(&self.store).await;
        }
    }

    /// Publishes until the task is dropped.
    async fn publish(&self, place: &mut Place) {
        let mut commits = Commits::of(&self.store);
        let mut pause = Pause::NEW;
        loop {
            commits.begin();
            let part = match self.read(place.at).await {
                Ok(part) => part,
                Err(reason) => {
                    log_fault(place.name, &reason);
                    tokio::time::sleep(pause.next()).await;
                    continue;
                }
            };
            pause = Pause::NEW;
            let next = part.next;
            if next == place.at {
                match place.due() {
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
                    let due = place.due();
                    let is_due = tokio::time::sleep_until(due.unwrap_or_else(Instant::now).into());
                    tokio::select! {
                        delivered = &mut delivering => break delivered,
                        () = is_due, if due.is_some() => place.write(&self.store).await,
                    }
                };
                place.delivered |= delivered;
                place.at = next;
            }
            if place.due().is_some_and(|due| due <= Instant::now()) {
                place.write(&self.store).await;
            }
        }
    }

    async fn read(&self, at: FeedPosition) -> Result<FeedPart, String> {
        let store = self.store.clone();
        let read = tokio::task::spawn_blocking(move || store.snapshot().feed(at)).await;
        read.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
    }

    /// Delivers the events of a part and waits for all acknowledgements. Tells whether the part had any events.
    async fn deliver(&self, part: FeedPart) -> bool {
        let mut ledgers: Vec<(LedgerName, Vec<Message>)> = Vec::new();
        for fed in part.logs {
            let kind = EventType::of(&fed.log.entry.payload);
            let topic = self.topics.of(kind);
            if fed.imported || !self.broker.takes(topic) {
                continue;
            }
            let message = Message {
                topic: topic.to_owned(),
                id: message_id(&self.key, (&fed.ledger, fed.number), fed.log.entry.id),
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
                    deliver_until_taken(&broker, message).await;
                }
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.expect("a delivery does not panic");
        }
        true
    }
}

pub(super) async fn deliver_until_taken(broker: &Broker, message: &Message) {
    let mut pause = Pause::NEW;
    let mut failures: u64 = 0;
    while let Err(reason) = broker.deliver(message).await {
        failures += 1;
        // Report the first failure, and later ones more and more rarely.
        if failures.is_power_of_two() {
            let fields: [(&str, &dyn std::fmt::Display); 4] = [
                ("publisher", &broker.name()),
                ("message", &message.id),
                ("failures", &failures),
                ("reason", &reason),
            ];
            log::event(Level::Error, "delivery", &fields);
        }
        tokio::time::sleep(pause.next()).await;
    }
    if failures > 0 {
        let name = broker.name();
        log::event(
            Level::Info,
            "delivery",
            &[("publisher", &name), ("message", &message.id), ("failures", &failures)],
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_their_longest() {
        let mut pause = Pause::NEW;
        let pauses: Vec<_> = (0..12).map(|_| pause.next()).collect();
        assert_eq!(pauses[..3], [1, 2, 4].map(|times| times * DELIVERY_PAUSE_MIN));
        assert_eq!(pauses[11], DELIVERY_PAUSE_MAX);
    }

    #[test]
    fn starts_at_newest_commit_and_keeps_position() {
        let store = Store::in_memory();
        let pay = || {
            let ledger = store.ledger("main").expect("a name");
            ledger.transaction().posting("world", "a", 1, "USD").commit().expect("recorded")
        };
        pay();
        let before = store.snapshot().feed_end();
        let place = Place::of(&store, "http").expect("a place");
        assert_eq!(place.at, before);
        pay();
        assert_eq!(Place::of(&store, "http").expect("a place").at, before);
        assert_ne!(Place::of(&store, "nats").expect("a place").at, before);
    }

    #[test]
    fn stores_position_only_after_deliveries() {
        let store = Store::in_memory();
        let mut place = Place::of(&store, "http").expect("a place");
        assert_eq!(place.due(), None);
        place.at = store.snapshot().feed_end();
        assert!(place.at > place.written, "its own document is an entry");
        assert_eq!(place.due(), None);
        place.delivered = true;
        assert!(place.due().is_some());
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(place.write(&store));
        assert_eq!((place.due(), place.written), (None, place.at));
        assert_eq!(Place::of(&store, "http").expect("a place").at, place.at);
    }
}
