//! The authorization server, and the guard that decides which caller may use which route.

pub(crate) mod authority;
pub(crate) mod clock;
pub(crate) mod denylist;
pub(crate) mod grants;
pub(crate) mod guard;
pub(crate) mod housekeeping;
pub(crate) mod keys;
#[cfg(test)]
mod power_cuts;
#[cfg(test)]
mod random_work;
pub(crate) mod rate_limiter;
pub(crate) mod resources;
mod scope;
pub(crate) mod static_clients;

pub use scope::{Scope, Service};
