//! Delivers events as HTTP requests. The topic is the address.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::envelope::EventType;
use super::error::{BrokerSettingsError, DeliveryError};
use super::message::Message;
use super::retry::with_retry;
use super::signature::Secrets;
use super::topics::Topics;
use crate::limits::DELIVERY_RECONNECT_INTERVAL;
use crate::log::{self, Level};
use crate::outbound::{Client, OutboundPolicy, Target};
use crate::payments::event;

const MESSAGE_UUID: HeaderName = HeaderName::from_static("message-uuid");
const MESSAGE_METADATA: HeaderName = HeaderName::from_static("message-metadata");
const WEBHOOK_ID: HeaderName = HeaderName::from_static("formance-webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("formance-webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("formance-webhook-signature");

/// A publisher that posts events.
#[derive(Debug)]
pub(super) struct HttpPublisher {
    client: Arc<Client>,
    targets: Vec<(String, Target)>,
    secrets: Secrets,
}

impl HttpPublisher {
    /// Creates a publisher that posts to the addresses in the topics.
    ///
    /// # Errors
    ///
    /// Fails if no event type has an address as its topic.
    pub(super) fn new(topics: &Topics, secrets: Secrets) -> Result<Self, BrokerSettingsError> {
        let mut targets: Vec<(String, Target)> = Vec::new();
        let mut without = Vec::new();
        for kind in EventType::ALL {
            let topic = topics.of(kind);
            match Target::parse(topic) {
                Ok(target) => targets.push((topic.to_owned(), target)),
                Err(reason) => without.push((kind, reason)),
            }
        }
        for topic in event::KINDS.map(|kind| topics.of_payment(kind)) {
            if let Ok(target) = Target::parse(topic)
                && targets.iter().all(|(have, _)| have != topic)
            {
                targets.push((topic.to_owned(), target));
            }
        }
        for (kind, reason) in without {
            if targets.is_empty() {
                return Err(BrokerSettingsError::TopicAddress { event: kind.name(), reason });
            }
            // Other servers of this API lose these events too: they fail to deliver each of them.
            log::event(Level::Error, "unpublished", &[("type", &kind.name()), ("reason", &reason)]);
        }
        let client = Arc::new(Client::new(OutboundPolicy::Any));
        Ok(Self { client, targets, secrets })
    }

    pub(super) fn accepts_topic(&self, topic: &str) -> bool {
        self.target(topic).is_some()
    }

    fn target(&self, topic: &str) -> Option<&Target> {
        self.targets.iter().find(|(have, _)| have == topic).map(|(_, target)| target)
    }

    /// Keeps a connection to every receiver open, so that the next event need not wait for a new one. Never returns.
    pub(super) async fn stay_connected(&self, publisher: &'static str) {
        let mut servers: Vec<&Target> = Vec::new();
        for (_, target) in &self.targets {
            if servers.iter().all(|server| !server.shares_connection(target)) {
                servers.push(target);
            }
        }
        // One task for each receiver: while one is away, the others still get new connections.
        let mut tasks = JoinSet::new();
        for server in servers {
            let (client, server) = (self.client.clone(), server.clone());
            tasks.spawn(async move { stay_connected_to(&client, &server, publisher).await });
        }
        while tasks.join_next().await.is_some() {}
    }

    /// Posts an event and waits for a successful response.
    pub(super) async fn deliver(&self, message: &Message) -> Result<(), DeliveryError> {
        let target = self.target(&message.topic).ok_or(DeliveryError::NoAddress)?;
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let headers = self.headers(message, seconds)?;
        Ok(self.client.post(target, &headers, message.body.clone()).await?)
    }

    fn headers(&self, message: &Message, seconds: u64) -> Result<HeaderMap, hyper::http::Error> {
        let mut headers = HeaderMap::new();
        headers.insert(MESSAGE_UUID, HeaderValue::from_str(&message.id)?);
        headers.insert(
            MESSAGE_METADATA,
            HeaderValue::from_static("{\"otel-context\":\"{\\\"b3\\\":\\\"0\\\"}\"}"),
        );
        if !self.secrets.is_empty() {
            headers.insert(WEBHOOK_ID, HeaderValue::from_str(&message.id)?);
            headers.insert(WEBHOOK_TIMESTAMP, HeaderValue::from(seconds));
            let signature = self.secrets.sign(&message.id, seconds, &message.body);
            headers.insert(WEBHOOK_SIGNATURE, HeaderValue::from_str(&signature)?);
        }
        Ok(headers)
    }
}

/// Keeps a connection to a receiver open. Never returns.
async fn stay_connected_to(client: &Client, server: &Target, publisher: &str) {
    let mut closings = client.closings();
    loop {
        with_retry(publisher, || client.open(server)).await;
        let earliest = Instant::now() + DELIVERY_RECONNECT_INTERVAL;
        client.wait_until_closed(server, &mut closings).await;
        sleep_until(earliest).await;
    }
}
