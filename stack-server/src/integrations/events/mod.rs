//! Events: notifications about every committed write.
//!
//! The server reads a committed log and creates an event from it. If a consumer was slow or away, or this process died,
//! reading continues after the last acknowledged event. No writer waits for a consumer. Refused writes, dry runs and
//! imported logs create no events. An event may arrive more than once, but it is never lost. The events of one ledger
//! arrive in the order of its log.
//!
//! - [`envelope`]: encodes a log as an event. [`message`]: adds the topic and the message id.
//! - [`commits`]: waits for the next commit.
//! - [`broker`]: brokers and repeated deliveries. [`http`], [`nats`]: the two kinds of brokers.
//! - [`retry`]: pauses between attempts.
//! - [`publisher`]: delivers the events of ledgers. [`position`]: stores the position of a publisher as a document.
//! - [`outbox`]: delivers the events of payments, which are stored as documents.
//! - [`running`]: the threads of the publishers, and their settings.
//! - [`signature`]: signs events for receivers over HTTP.

mod broker;
pub(crate) mod commits;
pub(crate) mod envelope;
mod error;
mod http;
mod message;
mod nats;
mod outbox;
mod position;
mod publisher;
mod retry;
mod running;
mod signature;
mod topics;

pub use error::PublishersError;
pub use nats::NatsSettings;
pub use running::{PublishSettings, Publishers};
pub use topics::{Topics, TopicsError};
