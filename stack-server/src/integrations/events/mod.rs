//! Events: notifications about every committed write.
//!
//! The server makes an event from a committed log by reading the log back. If a consumer was slow or away, or this
//! process died, reading continues after the last acknowledged event. No writer waits for a consumer. A refused
//! write and a dry run make no event. An event may arrive twice, but it never goes missing. The events of one
//! ledger arrive in the order of its log. Imported logs make no events.
//!
//! - [`envelope`]: encodes a log as an event. [`message`]: adds the topic and the message id.
//! - [`commits`]: waits for the next commit.
//! - [`broker`]: the broker that takes events, and repeated deliveries to it. [`http`], [`nats`]: the two kinds.
//! - [`publisher`]: delivers the events of ledgers. [`position`]: how far it came, as a document.
//! - [`outbox`]: delivers the events of payments, which wait as documents.
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
mod running;
mod signature;
mod topics;

pub use error::PublishersError;
pub use nats::NatsSettings;
pub use running::{Publishers, Publishing};
pub use topics::{Topics, TopicsError};
