//! The resources of the authorization server: clients with their secrets, scopes and users, as documents of the store.
//!
//! - [`client`]: a client with its secrets.
//! - [`clients`]: creating, reading, changing and removing clients.
//! - [`known_secrets`]: refuses wrong secrets, with the same work for every client.
//! - [`scopes`]: scopes with an id, and the permissions that a scope includes.
//! - [`stored_client`]: clients as JSON documents.
//! - [`users`]: people who logged in through the identity provider.

pub(crate) mod client;
pub(crate) mod clients;
pub(crate) mod known_secrets;
pub(crate) mod scopes;
mod stored_client;
pub(crate) mod users;

use std::borrow::Cow;

use ledger_store::{DocumentRejection, WriteError};

use crate::http::error::ApiError;
use crate::limits::AUTH_TEXT_BYTES_MAX;

/// Refuses a required text that is empty, and every text that is too long.
///
/// # Errors
///
/// `VALIDATION`.
fn check_text(field: &str, text: &str, required: bool) -> Result<(), ApiError> {
    if required && text.trim().is_empty() {
        return Err(ApiError::validation(format!("missing {field}")));
    }
    if text.len() > AUTH_TEXT_BYTES_MAX {
        let length = text.len();
        let message =
            format!("invalid {field}: {length} bytes are more than the {AUTH_TEXT_BYTES_MAX} it may have");
        return Err(ApiError::validation(message));
    }
    Ok(())
}

/// Refuses a list that is too long or contains a text that is too long.
///
/// # Errors
///
/// `VALIDATION`.
fn check_list<'a>(
    field: &str,
    items: impl ExactSizeIterator<Item = &'a Cow<'a, str>>,
    items_max: usize,
) -> Result<(), ApiError> {
    let length = items.len();
    if length > items_max {
        return Err(ApiError::validation(format!("invalid {field}: {length} items, at most {items_max}")));
    }
    items.into_iter().try_for_each(|item| check_text(field, item, false))
}

/// Refuses a text that cannot be a scope in a space-separated list (RFC 6749, section 3.3).
///
/// # Errors
///
/// `VALIDATION`.
fn check_scope_name(name: &str) -> Result<(), ApiError> {
    let is_allowed = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
    if name.is_empty() || !name.bytes().all(is_allowed) {
        return Err(ApiError::validation(format!(
            "invalid scope {name:?}: it is empty or has a space, a quote or a backslash"
        )));
    }
    check_text("scope", name, true)
}

/// Converts an error of the store. A document that is too large becomes `VALIDATION`, because the client can send less.
fn refused(error: WriteError) -> ApiError {
    match error {
        WriteError::Document(DocumentRejection::TooLarge { .. }) => {
            ApiError::validation("invalid body: there is more in it than can be kept")
        }
        other => other.into(),
    }
}
