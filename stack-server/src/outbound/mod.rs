//! Requests of this server to others: events and logs that are delivered over HTTP.
//!
//! Addresses from flags and files are the operator's, and trusted. For those that arrive through the API a policy
//! says whether they may lead anywhere or only to public machines ([`Outbound`]): it looks at the addresses that a
//! name stands for at the moment of connecting, and connects to those, so that no name can change its mind between.
//! Redirects are not followed.

mod client;
mod error;
mod policy;
mod redacted;
mod target;
mod tls;

pub(crate) use client::{Answered, Client, Question};
pub(crate) use error::{AddressRefusal, IdentityError, OutboundError, TlsError};
pub use policy::Outbound;
pub(crate) use redacted::{redacted, redacted_path};
pub(crate) use target::{AddressError, Target};
pub(crate) use tls::{Identity, secured};
