//! Scopes with an id, and the transitive closure of the scopes that they include.

use std::collections::{BTreeMap, BTreeSet};

use ledger_core::{Metadata, Timestamp};
use ledger_store::{
    Document, DocumentChange, DocumentKey, DocumentRejection, Expected, ReadError, Snapshot, Store,
    WriteError,
};
use serde::de::MapAccess;

use crate::auth::keys::random_uuid;
use crate::auth::resources::client::ScopeRef;
use crate::auth::resources::{check_scope_name, refused};
use crate::collections::AUTH_SCOPES;
use crate::documents::{Versioned, again, all_by, damaged, date_key, delete as deletion, put};
use crate::http::error::ApiError;
use crate::http::json::{self, AnyMap, Array, Date, Fields, Object, Text};
use crate::http::response::{Json, Numbers};
use crate::limits::{AUTH_KEY_BYTES_MAX, SCOPES_MAX, TRANSIENT_SCOPES_MAX};

/// The indexes of scopes: by date of creation, and by label, which is unique.
const SCOPE_BY_DATE: u32 = 1;
const SCOPE_BY_LABEL: u32 = 2;

/// A scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScopeRecord {
    pub(crate) id: String,
    pub(crate) label: String,
    pub(crate) metadata: Metadata,
    /// Ids of the scopes that this scope includes.
    pub(crate) transient: Vec<String>,
    pub(crate) created_at: Timestamp,
}

#[derive(Default)]
struct ScopeBody<'a> {
    label: Text<'a>,
    metadata: Metadata,
    transient: Vec<Text<'a>>,
    created_at: Option<Timestamp>,
}

impl<'de> Fields<'de> for ScopeBody<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match name {
            "label" => self.label = map.next_value()?,
            "metadata" => self.metadata = map.next_value::<AnyMap>()?.0,
            "transient" => self.transient = map.next_value::<Array<_>>()?.0,
            "createdAt" => self.created_at = map.next_value::<Date>()?.0,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn read(document: &Document) -> Result<Versioned<ScopeRecord>, ReadError> {
    let read = || {
        let Object(body) = json::first::<Object<ScopeBody<'_>>>(&document.value).ok()?;
        Some(ScopeRecord {
            id: String::from_utf8(document.key.clone()).ok()?,
            label: body.label.0.into_owned(),
            metadata: body.metadata,
            transient: body.transient.into_iter().map(|Text(id)| id.into_owned()).collect(),
            created_at: body.created_at?,
        })
    };
    let value = read().ok_or_else(|| damaged("a scope"))?;
    Ok(Versioned { value, version: document.version })
}

fn store_scope(scope: &ScopeRecord, expected: Expected) -> DocumentChange {
    let mut json = Json::new(Numbers::Plain);
    json.raw("{\"label\":").string(&scope.label).raw(",\"metadata\":").any_metadata(&scope.metadata);
    json.raw(",\"transient\":[").list(&scope.transient, |json, id| {
        json.string(id);
    });
    json.raw("],\"createdAt\":").time(scope.created_at).raw("}");
    let label = DocumentKey { index: SCOPE_BY_LABEL, key: scope.label.clone().into_bytes(), unique: true };
    let keys = vec![date_key(SCOPE_BY_DATE, scope.created_at), label];
    put(AUTH_SCOPES, scope.id.as_bytes(), json.into_bytes(), keys, expected)
}

/// The scopes of a snapshot of the store.
#[derive(Debug)]
pub(crate) struct Scopes(Vec<ScopeRecord>);

impl Scopes {
    /// Reads all scopes, oldest first.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read.
    pub(crate) fn of(snapshot: &Snapshot) -> Result<Self, ReadError> {
        let found = all_by(snapshot, AUTH_SCOPES, SCOPE_BY_DATE)?;
        let mut scopes: Vec<ScopeRecord> =
            found.iter().map(|document| read(document).map(|scope| scope.value)).collect::<Result<_, _>>()?;
        // Drop links to removed scopes.
        let ids: BTreeSet<String> = scopes.iter().map(|scope| scope.id.clone()).collect();
        for scope in &mut scopes {
            scope.transient.retain(|id| ids.contains(id));
        }
        Ok(Self(scopes))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ScopeRecord> {
        self.0.iter()
    }

    /// Returns the scope with this id.
    pub(crate) fn get(&self, id: &str) -> Option<&ScopeRecord> {
        self.0.iter().find(|scope| scope.id == id)
    }

    /// Returns the scope with this label.
    pub(crate) fn by_label(&self, label: &str) -> Option<&ScopeRecord> {
        self.0.iter().find(|scope| scope.label == label)
    }

    /// Returns the names of held scopes without duplicates, in the order of `held`.
    pub(crate) fn names(&self, held: &[ScopeRef]) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for held in held {
            let name = match held {
                ScopeRef::Name(name) => Some(name),
                ScopeRef::Link(id) => self.get(id).map(|scope| &scope.label),
            };
            names.extend(name.filter(|name| !names.contains(name)).cloned().into_iter().collect::<Vec<_>>());
        }
        names
    }

    /// Returns the ids of held scopes without duplicates. Skips names that are not the label of a scope.
    pub(crate) fn ids(&self, held: &[ScopeRef]) -> Vec<String> {
        let found = held.iter().filter_map(|held| match held {
            ScopeRef::Name(name) => self.by_label(name),
            ScopeRef::Link(id) => self.get(id),
        });
        let mut ids: Vec<String> = Vec::new();
        for scope in found {
            if !ids.contains(&scope.id) {
                ids.push(scope.id.clone());
            }
        }
        ids
    }

    /// Returns the names that held scopes allow: their own names, and those of all scopes that they include. Scopes may
    /// include each other.
    pub(crate) fn closure(&self, held: &[ScopeRef]) -> BTreeSet<String> {
        let by_id: BTreeMap<&str, &ScopeRecord> =
            self.0.iter().map(|scope| (scope.id.as_str(), scope)).collect();
        let mut allowed: BTreeSet<String> = self.names(held).into_iter().collect();
        let mut visited: BTreeSet<String> = BTreeSet::new();
        let mut waiting = self.ids(held);
        while let Some(id) = waiting.pop() {
            let Some(scope) = by_id.get(id.as_str()) else { continue };
            if visited.insert(id) {
                allowed.insert(scope.label.clone());
                waiting.extend(scope.transient.iter().cloned());
            }
        }
        allowed
    }
}

/// Returns the error for a scope that does not exist.
pub(crate) fn no_scope() -> ApiError {
    ApiError::not_found("scope not found")
}

fn scope(snapshot: &Snapshot, id: &str) -> Result<Option<Versioned<ScopeRecord>>, ReadError> {
    if id.len() > AUTH_KEY_BYTES_MAX {
        return Ok(None);
    }
    snapshot.document(AUTH_SCOPES, id.as_bytes())?.as_ref().map(read).transpose()
}

fn label_taken(error: WriteError, label: &str) -> ApiError {
    match error {
        WriteError::Document(DocumentRejection::KeyTaken { index: SCOPE_BY_LABEL, .. }) => {
            ApiError::validation(format!("invalid label {label:?}: another scope has it"))
        }
        other => refused(other),
    }
}

/// Adds a scope.
///
/// # Errors
///
/// `VALIDATION` for a label that is invalid or exists, or for one scope too many.
pub(crate) fn create(store: &Store, label: &str, metadata: Metadata) -> Result<ScopeRecord, ApiError> {
    check_label(label)?;
    if Scopes::of(&store.snapshot())?.0.len() >= SCOPES_MAX {
        return Err(ApiError::validation(format!("there are {SCOPES_MAX} scopes already")));
    }
    let id = random_uuid()?;
    let scope =
        ScopeRecord { id, label: label.to_owned(), metadata, transient: vec![], created_at: store.now() };
    let created = store.change_documents(vec![store_scope(&scope, Expected::Absent)]);
    created.map_err(|error| label_taken(error, label))?;
    Ok(scope)
}

fn check_label(label: &str) -> Result<(), ApiError> {
    if label.is_empty() {
        return Err(ApiError::validation("missing label"));
    }
    check_scope_name(label)
}

fn change(
    store: &Store,
    id: &str,
    mut edit: impl FnMut(&mut ScopeRecord, &Snapshot) -> Result<(), ApiError>,
) -> Result<ScopeRecord, ApiError> {
    let mut changed = None;
    let outcome = again(|| {
        let snapshot = store.snapshot();
        let mut found = scope(&snapshot, id)?.ok_or_else(no_scope)?;
        edit(&mut found.value, &snapshot)?;
        let change = store_scope(&found.value, Expected::Version(found.version));
        changed = Some(found.value);
        Ok(store.change_documents(vec![change]))
    })?;
    let scope = changed.ok_or_else(no_scope)?;
    outcome.map_err(|error| label_taken(error, &scope.label))?;
    Ok(scope)
}

/// Replaces the label and the metadata of a scope.
///
/// # Errors
///
/// `NOT_FOUND` if there is no such scope; `VALIDATION` for a label that is invalid or exists.
pub(crate) fn update(
    store: &Store,
    id: &str,
    label: &str,
    metadata: &Metadata,
) -> Result<ScopeRecord, ApiError> {
    check_label(label)?;
    change(store, id, |scope, snapshot| {
        label.clone_into(&mut scope.label);
        scope.metadata = metadata.clone();
        let scopes = Scopes::of(snapshot)?;
        scope.transient.retain(|id| scopes.get(id).is_some());
        Ok(())
    })
}

/// Removes a scope and all links to it.
///
/// # Errors
///
/// `NOT_FOUND` if there is no such scope.
pub(crate) fn delete(store: &Store, id: &str) -> Result<(), ApiError> {
    let found = scope(&store.snapshot(), id)?.ok_or_else(no_scope)?;
    match store.change_documents(vec![deletion(AUTH_SCOPES, found.value.id.as_bytes(), Expected::Anything)]) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Lets a scope include another scope.
///
/// # Errors
///
/// `NOT_FOUND` if one of them does not exist; `VALIDATION` for one link too many.
pub(crate) fn add_transient(store: &Store, id: &str, transient: &str) -> Result<(), ApiError> {
    change(store, id, |found, snapshot| {
        let scopes = Scopes::of(snapshot)?;
        scopes.get(transient).ok_or_else(no_scope)?;
        found.transient.retain(|id| scopes.get(id).is_some());
        if !found.transient.iter().any(|id| id == transient) {
            found.transient.push(transient.to_owned());
        }
        if found.transient.len() > TRANSIENT_SCOPES_MAX {
            let message = format!("the scope has {TRANSIENT_SCOPES_MAX} transient scopes already");
            return Err(ApiError::validation(message));
        }
        Ok(())
    })
    .map(drop)
}

/// Removes the link from a scope to a scope that it includes.
///
/// # Errors
///
/// `NOT_FOUND` if there is no such scope or link.
pub(crate) fn remove_transient(store: &Store, id: &str, transient: &str) -> Result<(), ApiError> {
    change(store, id, |found, snapshot| {
        let is_there = scope(snapshot, transient)?.is_some();
        let before = found.transient.len();
        found.transient.retain(|id| id != transient);
        if !is_there || found.transient.len() == before {
            return Err(ApiError::not_found("transient scope not found"));
        }
        Ok(())
    })
    .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: &str, label: &str, transient: &[&str]) -> ScopeRecord {
        ScopeRecord {
            id: id.into(),
            label: label.into(),
            metadata: Metadata::EMPTY,
            transient: transient.iter().map(|id| (*id).to_owned()).collect(),
            created_at: Timestamp::default(),
        }
    }

    #[test]
    fn closure_follows_links_through_cycles() {
        let scopes = Scopes(vec![
            record("1", "a", &["2"]),
            record("2", "b", &["3", "1"]),
            record("3", "c", &["3"]),
            record("4", "d", &["1"]),
        ]);
        let closure = |held: &[ScopeRef]| scopes.closure(held).into_iter().collect::<Vec<_>>().join(" ");
        assert_eq!(closure(&[ScopeRef::Link("1".into())]), "a b c");
        assert_eq!(
            closure(&[ScopeRef::Name("a".into())]),
            "a b c",
            "a name that is a label counts as the scope"
        );
        assert_eq!(closure(&[ScopeRef::Link("3".into()), ScopeRef::Name("x".into())]), "c x");
        assert_eq!(closure(&[ScopeRef::Link("gone".into())]), "");
        assert_eq!(scopes.names(&[ScopeRef::Link("2".into()), ScopeRef::Name("b".into())]), ["b"]);
        assert_eq!(scopes.ids(&[ScopeRef::Name("b".into()), ScopeRef::Link("2".into())]), ["2"]);
    }
}
