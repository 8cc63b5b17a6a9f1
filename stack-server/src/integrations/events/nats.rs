//! Delivers events to a NATS server with `JetStream`. The topic is the subject.
//!
//! An event is delivered once the stream has acknowledged it. The header `Nats-Msg-Id` carries the message id, so
//! that the NATS server drops repetitions within its deduplication window.

use std::fmt;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::context::{GetStreamByNameErrorKind, PublishErrorKind};
use async_nats::jetstream::{self, stream};
use async_nats::{ConnectOptions, HeaderMap, ServerAddr};
use tokio::sync::Mutex;

use super::envelope::EventType;
use super::message::Message;
use super::publisher::NatsSettings;
use super::topics::Topics;

/// Maximum time to wait for an acknowledgement, or for an answer about a stream.
const ACK_TIMEOUT: Duration = Duration::from_secs(5);

/// A publisher to `JetStream`.
pub(super) struct NatsPublisher {
    settings: NatsSettings,
    servers: Vec<ServerAddr>,
    /// The connection. The first event opens it, and it reconnects by itself.
    jetstream: Mutex<Option<jetstream::Context>>,
}

impl fmt::Debug for NatsPublisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsPublisher").finish_non_exhaustive()
    }
}

impl NatsPublisher {
    /// Creates a publisher. The first event connects it.
    ///
    /// # Errors
    ///
    /// Fails if an address or a topic is invalid.
    pub(super) fn new(settings: NatsSettings, topics: &Topics) -> Result<Self, String> {
        let addresses = settings.url.split(',').map(str::trim).filter(|address| !address.is_empty());
        let servers = addresses.map(|address| {
            let server = address.parse().ok().filter(|server: &ServerAddr| !server.host().is_empty());
            server.ok_or("the NATS server's address does not parse")
        });
        let servers: Vec<ServerAddr> = servers.collect::<Result<_, _>>()?;
        if servers.is_empty() {
            return Err("there is no address of a NATS server".to_owned());
        }
        for kind in EventType::ALL {
            let topic = topics.of(kind);
            let is_subject = topic.split('.').all(|token| !matches!(token, "" | "*" | ">"));
            if !is_subject || topic.chars().any(|c| c.is_whitespace() || c.is_control()) {
                return Err(format!("the topic {topic:?} of {} is no subject", kind.name()));
            }
        }
        Ok(Self { settings, servers, jetstream: Mutex::new(None) })
    }

    /// Publishes an event and waits until a stream has stored it.
    pub(super) async fn deliver(&self, message: &Message) -> Result<(), String> {
        let jetstream = self.connected().await?;
        match publish(&jetstream, message).await {
            Ok(()) => Ok(()),
            Err((PublishErrorKind::StreamNotFound, _)) if self.settings.auto_provision => {
                provision(&jetstream, &message.topic).await?;
                publish(&jetstream, message).await.map_err(|(_, reason)| reason)
            }
            Err((_, reason)) => Err(reason),
        }
    }

    async fn connected(&self) -> Result<jetstream::Context, String> {
        let mut jetstream = self.jetstream.lock().await;
        if let Some(jetstream) = &*jetstream {
            // The client would queue the event once for each attempt.
            return match jetstream.client().connection_state() {
                State::Connected => Ok(jetstream.clone()),
                State::Pending | State::Disconnected => Err("the NATS server is away".to_owned()),
            };
        }
        let wait = self.settings.reconnect_wait;
        let mut options =
            ConnectOptions::new().reconnect_delay_callback(move |_| wait).connection_timeout(ACK_TIMEOUT);
        if let Some(name) = &self.settings.client_id {
            options = options.name(name);
        }
        let client = options.connect(self.servers.clone()).await.map_err(|error| error.to_string())?;
        let context =
            jetstream::ContextBuilder::new().timeout(ACK_TIMEOUT).ack_timeout(ACK_TIMEOUT).build(client);
        *jetstream = Some(context.clone());
        Ok(context)
    }
}

async fn publish(
    jetstream: &jetstream::Context,
    message: &Message,
) -> Result<(), (PublishErrorKind, String)> {
    let mut headers = HeaderMap::new();
    headers.insert(async_nats::header::NATS_MESSAGE_ID, message.id.as_str());
    // Consumers of other servers of this API expect these headers.
    headers.insert("_watermill_message_uuid", message.id.as_str());
    headers.insert("otel-context", "{\"b3\":\"0\"}");
    let failed = |error: jetstream::context::PublishError| (error.kind(), error.to_string());
    let sent = jetstream.publish_with_headers(message.topic.clone(), headers, message.body.clone());
    sent.await.map_err(failed)?.await.map_err(failed)?;
    Ok(())
}

/// Creates a stream for a topic, unless one exists.
async fn provision(jetstream: &jetstream::Context, topic: &str) -> Result<(), String> {
    match jetstream.stream_by_subject(topic).await {
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == GetStreamByNameErrorKind::NotFound => {}
        Err(error) => return Err(error.to_string()),
    }
    let config = stream::Config {
        name: stream_name(topic),
        subjects: vec![topic.to_owned()],
        ..stream::Config::default()
    };
    jetstream.create_stream(config).await.map(drop).map_err(|error| error.to_string())
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
        assert_eq!(made("nats://a:1,b", "*:x.y").expect("it makes sense").servers.len(), 2);
        for (url, topics) in
            [("", ""), ("nats://", ""), ("nats://a", "*:a..b"), ("nats://a", "*:a.*"), ("a", "*:>")]
        {
            assert!(made(url, topics).is_err(), "{url} {topics}");
        }
        assert_eq!(stream_name("my.topic/x"), "my_topic_x");
    }
}
