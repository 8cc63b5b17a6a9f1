//! Brokers, and deliveries that are repeated until the broker accepts the event.

use std::fmt::Display;

use super::error::DeliveryError;
use super::http::HttpPublisher;
use super::message::Message;
use super::nats::NatsPublisher;
use super::retry::{Backoff, with_retry};
use crate::log::{self, Level};

/// The receiver of events.
pub(super) enum Broker {
    Http(HttpPublisher),
    Nats(Box<NatsPublisher>),
}

impl Broker {
    /// Returns the name of the document with the position of this broker.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Http(_) => "http",
            Self::Nats(_) => "nats",
        }
    }

    /// Connects in advance of the first event, and stays connected while there are no events. Deliveries do not wait for
    /// this.
    pub(super) async fn stay_connected(&self) {
        match self {
            Self::Http(http) => http.stay_connected(self.name()).await,
            // Once the NATS client is connected, it reconnects by itself.
            Self::Nats(nats) => with_retry(self.name(), || nats.prepare()).await,
        }
    }

    /// Delivers an event and waits for its acknowledgement.
    async fn deliver(&self, message: &Message) -> Result<(), DeliveryError> {
        match self {
            Self::Http(http) => http.deliver(message).await,
            Self::Nats(nats) => nats.deliver(message).await,
        }
    }

    /// Returns whether the broker accepts events with this topic.
    pub(super) fn accepts_topic(&self, topic: &str) -> bool {
        match self {
            Self::Http(http) => http.accepts_topic(topic),
            Self::Nats(_) => true,
        }
    }
}

/// Delivers an event, and repeats this until the broker acknowledges it.
pub(super) async fn deliver_with_retry(broker: &Broker, message: &Message) {
    let mut backoff = Backoff::NEW;
    let mut failures: u64 = 0;
    while let Err(reason) = broker.deliver(message).await {
        failures += 1;
        // Report the first failure, and later ones with growing distance.
        if failures.is_power_of_two() {
            let fields: [(&str, &dyn Display); 4] = [
                ("publisher", &broker.name()),
                ("message", &message.id),
                ("failures", &failures),
                ("reason", &reason),
            ];
            log::event(Level::Error, "delivery", &fields);
        }
        tokio::time::sleep(backoff.next()).await;
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
