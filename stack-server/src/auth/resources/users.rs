//! Users: people who logged in through the identity provider.

use ledger_core::Timestamp;
use ledger_store::{
    Document, DocumentChange, DocumentKey, DocumentRejection, Expected, ReadError, Snapshot, Store,
    WriteError,
};
use serde::de::MapAccess;
use sha2::{Digest as _, Sha256};

use crate::auth::keys::random_uuid;
use crate::collections::AUTH_USERS;
use crate::documents::{Versioned, again, all_by, damaged, date_key, put, with_key};
use crate::http::error::ApiError;
use crate::http::json::{self, Date, Fields, Flag, Object, Text};
use crate::http::response::{Json, Numbers};
use crate::limits::AUTH_KEY_BYTES_MAX;

/// The indexes of users: by date of creation, and by issuer and subject, which is unique.
const USER_BY_DATE: u32 = 1;
const USER_BY_IDENTITY: u32 = 3;

/// The index of users whose issuer earlier releases did not record, by subject.
const USER_BY_SUBJECT: u32 = 2;

/// Issuer and subject by which an identity provider knows a user. Two providers may use the same subject for two
/// people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProviderIdentity<'a> {
    pub(crate) issuer: &'a str,
    pub(crate) subject: &'a str,
}

impl ProviderIdentity<'_> {
    /// Returns the secondary key of the user. The key has a fixed length, so that the provider does not control it.
    fn key(self) -> Vec<u8> {
        let mut hash = Sha256::new();
        for part in [self.issuer, self.subject] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        hash.finalize().to_vec()
    }
}

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) id: String,
    /// The identity provider; `None` for a user whom an earlier release recorded and who has not logged in since.
    pub(crate) issuer: Option<String>,
    /// The name by which the identity provider knows the user.
    pub(crate) subject: String,
    pub(crate) email: String,
    pub(crate) email_verified: bool,
    pub(crate) created_at: Timestamp,
}

#[derive(Default)]
struct UserBody<'a> {
    issuer: Text<'a>,
    subject: Text<'a>,
    email: Text<'a>,
    email_verified: bool,
    created_at: Option<Timestamp>,
}

impl<'de> Fields<'de> for UserBody<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match name {
            "issuer" => self.issuer = map.next_value()?,
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
            issuer: Some(body.issuer.0.into_owned()).filter(|issuer| !issuer.is_empty()),
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
    json.raw(",\"createdAt\":").time(user.created_at);
    let (index, key) = match &user.issuer {
        Some(issuer) => {
            json.raw(",\"issuer\":").string(issuer);
            (USER_BY_IDENTITY, ProviderIdentity { issuer, subject: &user.subject }.key())
        }
        None => (USER_BY_SUBJECT, user.subject.clone().into_bytes()),
    };
    json.raw("}");
    let keys = vec![date_key(USER_BY_DATE, user.created_at), DocumentKey { index, key, unique: true }];
    put(AUTH_USERS, user.id.as_bytes(), json.into_bytes(), keys, expected)
}

/// Returns the user with this id.
///
/// # Errors
///
/// Fails if the store cannot be read.
pub(crate) fn user(snapshot: &Snapshot, id: &str) -> Result<Option<User>, ReadError> {
    if id.len() > AUTH_KEY_BYTES_MAX {
        return Ok(None);
    }
    let found = snapshot.document(AUTH_USERS, id.as_bytes())?;
    found.as_ref().map(|document| read(document).map(|user| user.value)).transpose()
}

/// Returns all users, oldest first.
///
/// # Errors
///
/// Fails if the store cannot be read.
pub(crate) fn users(snapshot: &Snapshot) -> Result<Vec<User>, ReadError> {
    let found = all_by(snapshot, AUTH_USERS, USER_BY_DATE)?;
    found.iter().map(|document| read(document).map(|user| user.value)).collect()
}

/// Returns the user with this issuer and subject. A user that an earlier release stored without an issuer becomes the
/// user of the first provider that names its subject, because earlier releases had one provider.
fn known(snapshot: &Snapshot, known: ProviderIdentity<'_>) -> Result<Option<Versioned<User>>, ReadError> {
    let found = with_key(snapshot, AUTH_USERS, USER_BY_IDENTITY, &known.key())?;
    if let Some(document) = found.first() {
        return read(document).map(Some);
    }
    let found = with_key(snapshot, AUTH_USERS, USER_BY_SUBJECT, known.subject.as_bytes())?;
    found.first().map(read).transpose()
}

/// Returns the user that a provider has identified, with the provider's current data. Creates the user if there is
/// none.
///
/// # Errors
///
/// `VALIDATION` for a subject that cannot be stored. An error of the store if the write fails.
pub(crate) fn found_or_created(
    store: &Store,
    names: &ProviderIdentity<'_>,
    email: &str,
    email_verified: bool,
) -> Result<User, ApiError> {
    let ProviderIdentity { issuer, subject } = *names;
    if subject.is_empty() || subject.len() > AUTH_KEY_BYTES_MAX || email.len() > AUTH_KEY_BYTES_MAX {
        return Err(ApiError::validation("the identity provider names no subject that can be kept"));
    }
    let mut result = None;
    let outcome = again(|| {
        let (before, expected) = match known(&store.snapshot(), *names)? {
            Some(Versioned { value, version }) => (value, Expected::Version(version)),
            None => (new_user(subject, store.now())?, Expected::Absent),
        };
        let user = User {
            issuer: Some(issuer.to_owned()),
            email: email.to_owned(),
            email_verified,
            ..before.clone()
        };
        let changed = if user == before {
            Ok(vec![])
        } else {
            store.change_documents(vec![store_user(&user, expected)])
        };
        result = Some(user);
        Ok(match changed {
            // Another request has created the user concurrently. The next attempt finds it.
            Err(WriteError::Document(DocumentRejection::KeyTaken { change, .. })) => {
                Err(WriteError::Document(DocumentRejection::Changed { change, expected, found: None }))
            }
            changed => changed,
        })
    })?;
    outcome?;
    result.ok_or_else(|| ApiError::fault("a user is neither found nor created"))
}

fn new_user(subject: &str, now: Timestamp) -> Result<User, ApiError> {
    Ok(User {
        id: random_uuid()?,
        issuer: None,
        subject: subject.to_owned(),
        email: String::new(),
        email_verified: false,
        created_at: now,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ProviderIdentity<'_> = ProviderIdentity { issuer: "https://one", subject: "s|1" };

    #[test]
    fn a_subject_of_an_issuer_stays_one_user() {
        let store = Store::in_memory();
        let first =
            found_or_created(&store, &ONE, "a@example.com", false).expect("the user is found or created");
        let again =
            found_or_created(&store, &ONE, "a@example.com", false).expect("the user is found or created");
        assert_eq!(first, again);
        let changed =
            found_or_created(&store, &ONE, "b@example.com", true).expect("the user is found or created");
        assert_eq!((&changed.id, changed.email.as_str()), (&first.id, "b@example.com"));
        let subject = found_or_created(&store, &ProviderIdentity { subject: "s|2", ..ONE }, "", false)
            .expect("the user is found or created");
        let issuer = found_or_created(&store, &ProviderIdentity { issuer: "https://two", ..ONE }, "", false)
            .expect("the user is found or created");
        // Issuer and subject of these two users are the same text when joined.
        let joined =
            found_or_created(&store, &ProviderIdentity { issuer: "https://ones", subject: "|1" }, "", false)
                .expect("the user is found or created");
        let all = users(&store.snapshot()).expect("the store can be read");
        assert_eq!(all, [changed, subject, issuer, joined]);
        assert!(found_or_created(&store, &ProviderIdentity { subject: "", ..ONE }, "", false).is_err());
        assert_eq!(user(&store.snapshot(), "nosuch").expect("the store can be read"), None);
    }

    #[test]
    fn a_user_without_issuer_keeps_its_id() {
        let store = Store::in_memory();
        // A document of an earlier release.
        let value = br#"{"subject":"s|1","email":"a@example.com","emailVerified":true,"createdAt":"2026-01-01T00:00:00Z"}"#;
        let created = Timestamp::from_micros(1_767_225_600_000_000);
        let subject = DocumentKey { index: USER_BY_SUBJECT, key: b"s|1".to_vec(), unique: true };
        let keys = vec![date_key(USER_BY_DATE, created), subject];
        let change = put(AUTH_USERS, b"old", value.to_vec(), keys, Expected::Absent);
        store.change_documents(vec![change]).expect("the store takes the change");
        let old = user(&store.snapshot(), "old").expect("the store can be read").expect("the user");
        assert_eq!((old.issuer.as_deref(), old.subject.as_str(), old.created_at), (None, "s|1", created));
        let found =
            found_or_created(&store, &ONE, "a@example.com", true).expect("the user is found or created");
        assert_eq!((found.id.as_str(), found.issuer.as_deref()), ("old", Some("https://one")));
        // Another issuer no longer finds the user by the subject alone.
        let other = found_or_created(&store, &ProviderIdentity { issuer: "https://two", ..ONE }, "", false)
            .expect("the user is found or created");
        assert_ne!(other.id, "old");
        assert_eq!(users(&store.snapshot()).expect("the store can be read").len(), 2);
    }
}
