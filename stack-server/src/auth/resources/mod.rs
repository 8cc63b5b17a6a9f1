//! The resources of the authorization server: clients with their secrets, scopes and users, as documents of the store.
//!
//! - [`clients`]: clients with their secrets.
//! - [`scopes`]: scopes that have an id, and what holding one of them allows.
//! - [`users`]: people who logged in through the identity provider.

pub(crate) mod clients;
#[cfg(test)]
mod random_work;
pub(crate) mod scopes;
mod stored_client;
pub(crate) mod users;

use std::borrow::Cow;

use crate::http::error::ApiError;
use crate::limits::AUTH_TEXT_BYTES_MAX;

/// Refuses a required text that is empty, and any that is too long.
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

/// Refuses a list that is too long, or has a text that is.
fn check_list<'a>(
    field: &str,
    items: impl ExactSizeIterator<Item = &'a Cow<'a, str>>,
    most: usize,
) -> Result<(), ApiError> {
    let length = items.len();
    if length > most {
        return Err(ApiError::validation(format!("invalid {field}: {length} items, at most {most}")));
    }
    items.into_iter().try_for_each(|item| check_text(field, item, false))
}
