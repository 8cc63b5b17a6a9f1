//! Brokers, and deliveries that are repeated until the broker accepts the event.

use std::fmt::Display;
use std::time::Duration;

use super::error::DeliveryError;
use super::http::HttpPublisher;
use super::message::Message;
use super::nats::NatsPublisher;
use crate::limits::{DELIVERY_PAUSE_MAX, DELIVERY_PAUSE_MIN};
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

    /// Prepares the delivery of the first event.
    async fn prepare(&self) -> Result<(), DeliveryError> {
        match self {
            Self::Http(http) => http.prepare().await,
            Self::Nats(nats) => nats.prepare().await,
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

/// The growing pause before the next attempt.
pub(super) struct Backoff(Duration);

impl Backoff {
    pub(super) const NEW: Self = Self(DELIVERY_PAUSE_MIN);

    pub(super) fn next(&mut self) -> Duration {
        let now = self.0;
        self.0 = (2 * now).min(DELIVERY_PAUSE_MAX);
        now
    }
}

/// Prepares a broker, and repeats this until it succeeds. Deliveries do not wait for it.
pub(super) async fn prepare_with_retry(broker: &Broker) {
    let mut backoff = Backoff::NEW;
    let mut is_logged = false;
    while let Err(error) = broker.prepare().await {
        if !std::mem::replace(&mut is_logged, true) {
            log_fault(broker.name(), &error);
        }
        tokio::time::sleep(backoff.next()).await;
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

pub(super) fn log_fault(publisher: &str, reason: &dyn Display) {
    log::event(Level::Error, "publisher", &[("publisher", &publisher), ("reason", reason)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_their_longest() {
        let mut backoff = Backoff::NEW;
        let pauses: Vec<_> = (0..12).map(|_| backoff.next()).collect();
        assert_eq!(pauses[..3], [1, 2, 4].map(|times| times * DELIVERY_PAUSE_MIN));
        assert_eq!(pauses[11], DELIVERY_PAUSE_MAX);
    }
}
