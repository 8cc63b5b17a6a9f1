//! Events: what is told to the outside of every committed write.
//!
//! An event is made of a log after it was committed, by reading it back: what a consumer missed, because it was slow
//! or away or because this process died, is made again from where its acknowledgements ended. So no writer waits for
//! a consumer, no refused or tried write makes an event, and an event may come twice but never not at all. Those of
//! one ledger come in the order of its log. What was imported is no event.
//!
//! - [`envelope`]: a log as an event. [`message`]: its topic and its identity.
//! - [`commits`]: who waits for the next commit.
//! - [`publisher`]: from the store to a broker, with the position kept in a document. [`http`], [`nats`]: brokers.
//! - [`signature`]: what tells a receiver over HTTP that an event is ours.

pub(crate) mod commits;
pub(crate) mod envelope;
mod http;
mod message;
mod nats;
mod publisher;
mod signature;
mod topics;

pub use publisher::{NatsSettings, Publishers, Publishing};
pub use topics::Topics;
