//! Requests of this server to other servers, such as deliveries of events and logs over HTTP.
//!
//! Addresses from flags and files come from the operator and are trusted. For addresses from API clients, a policy
//! allows either all machines or only public ones ([`OutboundPolicy`]). The policy checks the resolved addresses, and
//! the client connects to exactly these, so that a name cannot resolve to another address in between. Redirects are not
//! followed.

mod client;
mod error;
mod policy;
mod redacted;
mod target;
mod tls;

pub(crate) use client::{Client, OutboundRequest, OutboundResponse};
pub(crate) use error::{AddressRefusal, IdentityError, OutboundError, TlsError};
pub use policy::OutboundPolicy;
pub(crate) use redacted::{redacted, redacted_path};
pub(crate) use target::{AddressError, Target};
pub(crate) use tls::{Identity, connect_tls};
