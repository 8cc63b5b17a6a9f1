//! The publishers of a server: one per broker, each on its own thread.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use ledger_store::Store;
use tokio::sync::watch;

use super::broker::Broker;
use super::error::{PublishersError, StartFailure};
use super::http::HttpPublisher;
use super::nats::{NatsPublisher, NatsSettings};
use super::outbox::Outbox;
use super::position::Position;
use super::publisher::Publisher;
use super::signature::Secrets;
use super::topics::Topics;
use crate::limits::DELIVERY_STOP_TIMEOUT;

/// The settings of event publishing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublishSettings {
    /// The topic of each event type.
    pub topics: Topics,
    /// True if the server posts events over HTTP. The topic is the address.
    pub http: bool,
    /// A file with the secrets that sign HTTP requests, one per line.
    pub http_secrets: Option<PathBuf>,
    /// True if the server publishes events to a NATS server with `JetStream`. The topic is the subject.
    pub nats: bool,
    /// The settings of the NATS server.
    pub nats_settings: NatsSettings,
}

impl PublishSettings {
    fn brokers(&self) -> Result<Vec<Broker>, StartFailure> {
        let mut brokers = Vec::new();
        if self.http {
            brokers.push(Broker::Http(HttpPublisher::new(&self.topics, self.secrets()?)?));
        }
        if self.nats {
            let nats = NatsPublisher::new(self.nats_settings.clone(), &self.topics)?;
            brokers.push(Broker::Nats(Box::new(nats)));
        }
        Ok(brokers)
    }

    fn secrets(&self) -> Result<Secrets, StartFailure> {
        let Some(path) = &self.http_secrets else { return Ok(Secrets::default()) };
        let text = std::fs::read_to_string(path)
            .map_err(|error| StartFailure::ReadSecrets { path: path.clone(), error })?;
        let secrets = Secrets::of_lines(&text);
        if secrets.is_empty() { Err(StartFailure::NoSecrets(path.clone())) } else { Ok(secrets) }
    }

    /// Returns the names of the enabled publishers.
    pub fn publishers(&self) -> Vec<&'static str> {
        let named = [(self.http, "http"), (self.nats, "nats")];
        named.into_iter().filter_map(|(is_on, name)| is_on.then_some(name)).collect()
    }
}

/// The running publishers of a server. [`Publishers::stop`] stops them.
#[derive(Debug)]
pub struct Publishers {
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
}

impl Publishers {
    /// Starts the configured publishers. When this returns, the store contains the position of every new publisher, so
    /// the publisher misses no later write.
    ///
    /// # Errors
    ///
    /// Fails if the settings are invalid, or if the store does not accept writes.
    pub fn start(store: &Store, publishing: &PublishSettings) -> Result<Self, PublishersError> {
        let (stop, stopped) = watch::channel(false);
        let brokers = publishing.brokers()?;
        let threads = brokers.into_iter().map(|broker| start(store, &publishing.topics, broker, &stopped));
        let threads = threads.collect::<Result<_, _>>()?;
        Ok(Self { stop, threads })
    }

    /// Stops deliveries and stores their positions.
    pub fn stop(self) {
        // Sending fails only if every thread has ended already.
        let _ = self.stop.send(true);
        for thread in self.threads {
            // Ignore a panic of the thread: the panic hook has already printed it.
            let _ = thread.join();
        }
    }
}

/// Starts the thread that delivers to one broker.
fn start(
    store: &Store,
    topics: &Topics,
    broker: Broker,
    stopped: &watch::Receiver<bool>,
) -> Result<JoinHandle<()>, StartFailure> {
    let position = Position::of(store, broker.name())?;
    let broker = Arc::new(broker);
    let outbox = Outbox {
        store: store.clone(),
        key: store.cursor_key(),
        topics: topics.clone(),
        broker: broker.clone(),
        stopped: stopped.clone(),
    };
    let publisher = Publisher {
        store: store.clone(),
        key: store.cursor_key(),
        topics: topics.clone(),
        broker: broker.clone(),
        stopped: stopped.clone(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let thread = std::thread::Builder::new().name(format!("events-{}", broker.name()));
    Ok(thread.spawn(move || {
        runtime.spawn(async move { broker.stay_connected().await });
        runtime.block_on(async { tokio::join!(publisher.run(position), outbox.run()) });
        // Tasks that access the store finish quickly.
        runtime.shutdown_timeout(DELIVERY_STOP_TIMEOUT);
    })?)
}
