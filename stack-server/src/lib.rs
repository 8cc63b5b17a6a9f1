//! The HTTP server of the ledger, and the command line of `stack-server`.
//!
//! [`Server::start`] serves the APIs from a [`ledger_store::Store`]. The routing table ([`routes`]) contains all paths.
//! `limits.rs` bounds everything that a caller can choose. Every error response has a status and a code of a closed set
//! (`http/error.rs`). The store computes all balances and writes all ledger files; the server only translates.

#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "numbers in tests are small"
    )
)]

pub mod cli;
pub mod descriptors;
pub mod log;

mod api;
mod auth;
mod background;
mod blocking;
mod collections;
mod connectors;
mod documents;
mod duration;
mod http;
mod integrations;
mod limits;
mod outbound;
mod payments;
mod schedule;
mod sealing;
mod server;
mod settings;
mod shapes;
#[cfg(feature = "testing")]
pub mod testing;
mod uuid;

pub use api::routes::{Mount, Route, routes};
pub use auth::authority::AuthorizationSettings;
pub use auth::grants::provider::ProviderSettings;
pub use auth::guard::AuthSettings;
pub use auth::guard::fixed_keys::{FixedKeys, FixedKeysError};
pub use auth::keys::master::{KeySource, MasterKey};
pub use auth::static_clients::StaticClient;
pub use auth::{Scope, Service};
pub use http::browsers::{HostName, NameError, Origin};
pub use http::error::Profile;
pub use http::mount_path::{MountPath, MountPathError};
pub use http::tls::TlsFiles;
pub use integrations::events::{
    NatsSettings, PublishSettings, Publishers, PublishersError, Topics, TopicsError,
};
pub use outbound::OutboundPolicy;
pub use schedule::Schedule;
pub use sealing::EncryptionKey;
pub use server::{Server, ShutdownHandle};
pub use settings::{Compat, Settings};
