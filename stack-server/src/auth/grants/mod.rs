//! The grants of the authorization server: how a client obtains a token, and the errors when it does not.
//!
//! - [`caller`]: the client that sends a request, and the scopes that it may ask for.
//! - [`authenticate`]: checks the secret of a client.
//! - [`pending`]: authorizations in progress, from the client's request through the login to the exchange of the code.
//! - [`provider`]: the `OpenID` Connect identity provider where users log in.
//! - [`session`]: the session of a user after a login, and its refresh tokens.
//! - [`assertion`]: tokens for signed assertions of the identity provider, without a login here (RFC 7523).
//! - [`issue`]: signs access tokens.
//! - [`tokens`]: introspection and revocation of issued tokens.
//! - [`error`]: OAuth errors (RFC 6749, section 5.2).

pub(crate) mod assertion;
pub(crate) mod authenticate;
pub(crate) mod caller;
pub(crate) mod error;
pub(crate) mod issue;
pub(crate) mod pending;
pub(crate) mod provider;
pub(crate) mod session;
mod tokens;
