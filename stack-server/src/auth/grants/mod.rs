//! Tokens: who asks for them, what is granted, and how a grant is refused.
//!
//! - [`error`]: refusals as OAuth has them (RFC 6749, section 5.2).
//! - [`authenticate`]: the check of a client's secret.
//! - [`caller`]: the client behind a request.
//! - [`pending`], [`provider`]: logins, which an identity provider lets happen.
//! - [`session`]: what came of a login, and refresh tokens.
//! - [`issue`]: the tokens themselves.
//! - [`tokens`]: introspection and revocation.

pub(crate) mod assertion;
pub(crate) mod authenticate;
pub(crate) mod caller;
pub(crate) mod error;
pub(crate) mod issue;
pub(crate) mod pending;
pub(crate) mod provider;
pub(crate) mod session;
mod tokens;
