//! Events: notifications about every committed write.
//!
//! The server makes an event from a committed log by reading the log back. If a consumer was slow or away, or this
//! process died, reading continues after the last acknowledged event. No writer waits for a consumer. A refused
//! write and a dry run make no event. An event may arrive twice, but it never goes missing. The events of one
//! ledger arrive in the order of its log. Imported logs make no events.
//!
//! - [`envelope`]: encodes a log as an event. [`message`]: adds the topic and the message id.
//! - [`commits`]: waits for the next commit.
//! - [`publisher`]: delivers events to a broker and keeps its position in a document. [`http`], [`nats`]: the
//!   brokers.
//! - [`outbox`]: events of payments, which wait as documents.
//! - [`signature`]: signs events for receivers over HTTP.

pub(crate) mod commits;
pub(crate) mod envelope;
mod http;
mod message;
mod nats;
mod outbox;
mod publisher;
mod signature;
mod topics;

pub use publisher::{NatsSettings, Publishers, Publishing};
pub use topics::Topics;
