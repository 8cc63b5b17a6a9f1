//! Delivers events to a NATS server with `JetStream`. The topic is the subject.
//!
//! An event is delivered once the stream has acknowledged it. The header `Nats-Msg-Id` carries the message id, so
//! that the NATS server drops repetitions within its deduplication window.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::context::{GetStreamByNameErrorKind, PublishError, PublishErrorKind};
use async_nats::jetstream::{self, stream};
use async_nats::{ConnectOptions, HeaderMap, ServerAddr};
use tokio::sync::Mutex;

use super::envelope::EventType;
use super::error::{BrokerSettingsError, DeliveryError};
use super::message::Message;
use super::topics::Topics;
use crate::payments::event;

/// Maximum time to wait for an acknowledgement, or for an answer about a stream.
const ACK_TIMEOUT: Duration = Duration::from_secs(5);

/// The settings of a connection to a NATS server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatsSettings {
    /// The addresses, separated by commas.
    pub url: String,
    /// The name of this client in the NATS server's own reports.
    pub client_id: Option<String>,
    /// The pause between attempts to connect.
    pub reconnect_wait: Duration,
    /// True if the server creates a stream for a topic that has none.
    pub auto_provision: bool,
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

/// A publisher to `JetStream`.
pub(super) struct NatsPublisher {
    settings: NatsSettings,
    servers: Vec<ServerAddr>,
    /// The topics of all events.
    subjects: BTreeSet<String>,
    /// The connection. It reconnects by itself.
    jetstream: Mutex<Option<jetstream::Context>>,
}

impl fmt::Debug for NatsPublisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsPublisher").finish_non_exhaustive()
    }
}

impl NatsPublisher {
    /// Creates a publisher, which is not connected yet.
    ///
    /// # Errors
    ///
    /// Fails if an address or a topic is invalid.
    pub(super) fn new(settings: NatsSettings, topics: &Topics) -> Result<Self, BrokerSettingsError> {
        let addresses = settings.url.split(',').map(str::trim).filter(|address| !address.is_empty());
        let servers = addresses.map(|address| {
            let server = address.parse().ok().filter(|server: &ServerAddr| !server.host().is_empty());
            server.ok_or(BrokerSettingsError::NatsAddress)
        });
        let servers: Vec<ServerAddr> = servers.collect::<Result<_, _>>()?;
        if servers.is_empty() {
            return Err(BrokerSettingsError::NoNatsAddress);
        }
        for kind in EventType::ALL {
            let topic = topics.of(kind);
            let is_subject = topic.split('.').all(|token| !matches!(token, "" | "*" | ">"));
            if !is_subject || topic.chars().any(|c| c.is_whitespace() || c.is_control()) {
                return Err(BrokerSettingsError::Subject { topic: topic.to_owned(), event: kind.name() });
            }
        }
        let of_ledgers = EventType::ALL.map(|kind| topics.of(kind).to_owned());
        let of_payments = event::KINDS.map(|kind| topics.of_payment(kind).to_owned());
        let subjects = of_ledgers.into_iter().chain(of_payments).collect();
        Ok(Self { settings, servers, subjects, jetstream: Mutex::new(None) })
    }

    /// Publishes an event and waits until a stream has stored it.
    pub(super) async fn deliver(&self, message: &Message) -> Result<(), DeliveryError> {
        let jetstream = self.connected().await?;
        match publish(&jetstream, message).await {
            Err(error)
                if error.kind() == PublishErrorKind::StreamNotFound && self.settings.auto_provision =>
            {
                provision(&jetstream, &message.topic).await?;
                Ok(publish(&jetstream, message).await?)
            }
            published => Ok(published?),
        }
    }

    /// Connects and creates missing streams in advance of the first event.
    pub(super) async fn prepare(&self) -> Result<(), DeliveryError> {
        let jetstream = self.connected().await?;
        self.provision_all(&jetstream).await
    }

    async fn provision_all(&self, jetstream: &jetstream::Context) -> Result<(), DeliveryError> {
        if self.settings.auto_provision {
            for topic in &self.subjects {
                provision(jetstream, topic).await?;
            }
        }
        Ok(())
    }

    async fn connected(&self) -> Result<jetstream::Context, DeliveryError> {
        let mut jetstream = self.jetstream.lock().await;
        if let Some(jetstream) = &*jetstream {
            // The client would queue the event once for each attempt.
            return match jetstream.client().connection_state() {
                State::Connected => Ok(jetstream.clone()),
                State::Pending | State::Disconnected => Err(DeliveryError::NatsAway),
            };
        }
        let (servers, wait) = (self.servers.len(), self.settings.reconnect_wait);
        // The client also calls this before the first attempt. The first attempt at every server has no pause.
        let pause = move |attempts| if attempts <= servers { Duration::ZERO } else { wait };
        let mut options =
            ConnectOptions::new().reconnect_delay_callback(pause).connection_timeout(ACK_TIMEOUT);
        if let Some(name) = &self.settings.client_id {
            options = options.name(name);
        }
        let client = options.connect(self.servers.clone()).await?;
        let context =
            jetstream::ContextBuilder::new().timeout(ACK_TIMEOUT).ack_timeout(ACK_TIMEOUT).build(client);
        // An event that is published before its stream exists waits in vain for an acknowledgement if others subscribe
        // to its topic. `prepare` tries again and reports what fails here; streams of others may still take events.
        let _ = self.provision_all(&context).await;
        *jetstream = Some(context.clone());
        Ok(context)
    }
}

async fn publish(jetstream: &jetstream::Context, message: &Message) -> Result<(), PublishError> {
    let mut headers = HeaderMap::new();
    headers.insert(async_nats::header::NATS_MESSAGE_ID, message.id.as_str());
    // Consumers of other servers of this API expect these headers.
    headers.insert("_watermill_message_uuid", message.id.as_str());
    headers.insert("otel-context", "{\"b3\":\"0\"}");
    let sent = jetstream.publish_with_headers(message.topic.clone(), headers, message.body.clone());
    sent.await?.await?;
    Ok(())
}

/// Creates a stream for a topic, unless one exists.
async fn provision(jetstream: &jetstream::Context, topic: &str) -> Result<(), DeliveryError> {
    match jetstream.stream_by_subject(topic).await {
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == GetStreamByNameErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    let config = stream::Config {
        name: stream_name(topic),
        subjects: vec![topic.to_owned()],
        ..stream::Config::default()
    };
    jetstream.create_stream(config).await?;
    Ok(())
}

/// Returns the name of the stream for a topic, without the characters that a stream name must not have.
fn stream_name(topic: &str) -> String {
    let allowed = |c: char| if matches!(c, '.' | '*' | '>' | '/' | '\\') { '_' } else { c };
    topic.chars().map(allowed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_invalid_addresses_and_subjects() {
        let made = |url: &str, topics: &str| {
            let settings = NatsSettings { url: url.to_owned(), ..NatsSettings::default() };
            NatsPublisher::new(settings, &Topics::parse(topics).expect("topics"))
        };
        assert_eq!(made("nats://a:1,b", "*:x.y").expect("valid settings").servers.len(), 2);
        for (url, topics) in
            [("", ""), ("nats://", ""), ("nats://a", "*:a..b"), ("nats://a", "*:a.*"), ("a", "*:>")]
        {
            assert!(made(url, topics).is_err(), "{url} {topics}");
        }
        assert_eq!(stream_name("my.topic/x"), "my_topic_x");
    }
}
