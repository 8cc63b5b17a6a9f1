//! Users: people who logged in through the identity provider.

use ledger_core::Timestamp;
use ledger_store::{
    Document, DocumentChange, DocumentKey, DocumentRejection, Expected, ReadError, Snapshot, Store,
    WriteError,
};
use serde::de::MapAccess;

use crate::auth::keys::random_uuid;
use crate::collections::AUTH_USERS;
use crate::documents::{Versioned, again, all_by, damaged, date_key, put, with_key};
use crate::http::error::ApiError;
use crate::http::json::{self, Date, Fields, Flag, Object, Text};
use crate::http::response::{Json, Numbers};
use crate::limits::AUTH_KEY_BYTES_MAX;
use crate::log;

/// The indexes of users: by date of creation, and by subject, which is unique.
const USER_BY_DATE: u32 = 1;
const USER_BY_SUBJECT: u32 = 2;

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) id: String,
    /// The name by which the identity provider knows the user.
    pub(crate) subject: String,
    pub(crate) email: String,
    pub(crate) email_verified: bool,
    pub(crate) created_at: Timestamp,
}

#[derive(Default)]
struct UserBody<'a> {
    subject: Text<'a>,
    email: Text<'a>,
    email_verified: bool,
    created_at: Option<Timestamp>,
}

impl<'de> Fields<'de> for UserBody<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match name {
            "subject" => self.subject = map.next_value()?,
            "email" => self.email = map.next_value()?,
            "emailVerified" => self.email_verified = map.next_value::<Flag>()?.0,
            "createdAt" => self.created_at = map.next_value::<Date>()?.0,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn read(document: &Document) -> Result<Versioned<User>, ReadError> {
    let read = || {
        let Object(body) = json::first::<Object<UserBody<'_>>>(&document.value).ok()?;
        Some(User {
            id: String::from_utf8(document.key.clone()).ok()?,
            subject: body.subject.0.into_owned(),
            email: body.email.0.into_owned(),
            email_verified: body.email_verified,
            created_at: body.created_at?,
        })
    };
    let value = read().ok_or_else(|| damaged("a user"))?;
    Ok(Versioned { value, version: document.version })
}

fn store_user(user: &User, expected: Expected) -> DocumentChange {
    let mut json = Json::new(Numbers::Plain);
    json.raw("{\"subject\":").string(&user.subject).raw(",\"email\":").string(&user.email);
    json.raw(",\"emailVerified\":").boolean(user.email_verified);
    json.raw(",\"createdAt\":").time(user.created_at).raw("}");
    let subject =
        DocumentKey { index: USER_BY_SUBJECT, key: user.subject.clone().into_bytes(), unique: true };
    let keys = vec![date_key(USER_BY_DATE, user.created_at), subject];
    put(AUTH_USERS, user.id.as_bytes(), json.into_bytes(), keys, expected)
}

/// The user with an id.
///
/// # Errors
///
/// Those of any read.
pub(crate) fn user(snapshot: &Snapshot, id: &str) -> Result<Option<User>, ReadError> {
    if id.len() > AUTH_KEY_BYTES_MAX {
        return Ok(None);
    }
    let found = snapshot.document(AUTH_USERS, id.as_bytes())?;
    found.as_ref().map(|document| read(document).map(|user| user.value)).transpose()
}

/// All users, oldest first.
///
/// # Errors
///
/// Those of any read.
pub(crate) fn users(snapshot: &Snapshot) -> Result<Vec<User>, ReadError> {
    let found = all_by(snapshot, AUTH_USERS, USER_BY_DATE)?;
    found.iter().map(|document| read(document).map(|user| user.value)).collect()
}

/// The user with a subject: the one that is there, with what the provider says now, or a new one.
///
/// # Errors
///
/// `VALIDATION` for a subject that cannot be kept; what any write may meet.
pub(crate) fn found_or_created(
    store: &Store,
    subject: &str,
    email: &str,
    email_verified: bool,
) -> Result<User, ApiError> {
    if subject.is_empty() || subject.len() > AUTH_KEY_BYTES_MAX || email.len() > AUTH_KEY_BYTES_MAX {
        return Err(ApiError::validation("the identity provider names no subject that can be kept"));
    }
    let mut result = None;
    let outcome = again(|| {
        let known = with_key(&store.snapshot(), AUTH_USERS, USER_BY_SUBJECT, subject.as_bytes())?;
        let (user, expected) = match known.first().map(read).transpose()? {
            Some(Versioned { value, .. })
                if value.email == email && value.email_verified == email_verified =>
            {
                result = Some(value);
                return Ok(Ok(vec![]));
            }
            Some(Versioned { value, version }) => {
                (User { email: email.to_owned(), email_verified, ..value }, Expected::Version(version))
            }
            None => {
                let id = random_uuid().map_err(|reason| ApiError::fault(&reason))?;
                let (subject, email) = (subject.to_owned(), email.to_owned());
                (User { id, subject, email, email_verified, created_at: log::now() }, Expected::Absent)
            }
        };
        let changed = store.change_documents(vec![store_user(&user, expected)]);
        result = Some(user);
        Ok(match changed {
            // Another request met the subject first: the next attempt finds its user.
            Err(WriteError::Document(DocumentRejection::KeyTaken { change, .. })) => {
                Err(WriteError::Document(DocumentRejection::Changed { change, found: None }))
            }
            changed => changed,
        })
    })?;
    outcome?;
    result.ok_or_else(|| ApiError::fault("a user is neither found nor created"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_stays_one_user() {
        let store = Store::in_memory();
        let first = found_or_created(&store, "s|1", "a@example.com", false).expect("a user");
        let again = found_or_created(&store, "s|1", "a@example.com", false).expect("the user");
        assert_eq!(first, again);
        let changed = found_or_created(&store, "s|1", "b@example.com", true).expect("the user");
        assert_eq!((&changed.id, changed.email.as_str()), (&first.id, "b@example.com"));
        let other = found_or_created(&store, "s|2", "", false).expect("another user");
        let all = users(&store.snapshot()).expect("users");
        assert_eq!(all, [changed, other]);
        assert!(found_or_created(&store, "", "", false).is_err());
        assert_eq!(user(&store.snapshot(), "nosuch").expect("no fault"), None);
    }
}
