//! The HTTP face of the ledger: requests in, answers out.
//!
//! [`Server::start`] answers the connections of a listener from a [`ledger_store::Store`]. One visible table says
//! which paths there are ([`routes`]); everything a caller can choose is bounded (`limits.rs`); what is refused is
//! refused with a status and a code of a closed set (`error.rs`). The server computes no balance and knows no
//! file.

pub mod config;
pub mod log;

mod app;
mod call;
mod cleanup;
mod collections;
mod connection;
mod cursor;
mod duration;
mod error;
mod events;
mod guard;
mod json;
mod ledger_v1;
mod ledger_v2;
mod limits;
mod openapi;
mod outbound;
mod pipelines;
mod posting;
mod rehearsal;
mod reply_body;
mod request;
mod response;
mod router;
mod schedule;
pub mod script;
mod script_body;
mod server;
mod service;
mod settings;
mod shape;
#[cfg(feature = "testing")]
pub mod testing;
mod tls;
mod uuid;

pub use error::Profile;
pub use events::{NatsSettings, Publishers, Publishing, Topics};
pub use guard::AuthSettings;
pub use outbound::Outbound;
pub use router::{Mount, Route, Scope, routes};
pub use schedule::Schedule;
pub use server::{Hurry, Server};
pub use settings::{Compat, Settings};
pub use tls::TlsFiles;
