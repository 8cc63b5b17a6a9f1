//! Random changes of clients, secrets, scopes and refusals.

use std::collections::{BTreeMap, BTreeSet};

use ledger_core::Metadata;
use ledger_store::Expected;

use super::model::ModelClient;
use super::{ChangedObject, Run};
use crate::auth::denylist::{self, Denied};
use crate::auth::resources::clients::{self, Draft};
use crate::auth::resources::scopes::{self, Scopes};
use crate::limits::CLIENT_SECRETS_MAX;

impl Run {
    fn client(&mut self) -> String {
        format!("c{}", self.rng.below(5))
    }

    fn label(&mut self) -> String {
        format!("s{}", self.rng.below(6))
    }

    /// Returns the id of a scope, usually of one that exists.
    fn scope(&mut self) -> String {
        let at = self.rng.below(self.model.scopes.len() + 1);
        self.model.scopes.keys().nth(at).cloned().unwrap_or_else(|| "nosuch".to_owned())
    }

    pub(super) fn put_client(&mut self, is_new: bool) {
        let (id, name, label) = (self.client(), format!("n{}", self.rng.below(100)), self.label());
        let draft = Draft {
            id: id.clone().into(),
            name: name.clone().into(),
            scopes: Some(vec![label.clone().into()]),
            ..Draft::default()
        };
        self.changed = Some(ChangedObject::Client(id.clone()));
        let done = if is_new {
            clients::create(self.store(), &draft).is_ok()
        } else {
            clients::update(self.store(), &id, &draft).is_ok()
        };
        if self.is_in_doubt(!done) {
            return;
        }
        assert_eq!(done, self.model.clients.contains_key(&id) != is_new, "{id}");
        if !done {
            return;
        }
        let link = self.model.scopes.iter().find(|(_, (have, _))| *have == label).map(|(id, _)| id.clone());
        let (linked, secrets) = match self.model.clients.remove(&id) {
            // A scope that was held by a link remains held by a link.
            Some(old) => (link.filter(|link| old.linked.contains(link)), old.secrets),
            None => (None, BTreeMap::new()),
        };
        let named = if linked.is_some() { BTreeSet::new() } else { BTreeSet::from([label]) };
        let linked = linked.into_iter().collect();
        self.model.clients.insert(id, ModelClient { name, named, linked, secrets });
    }

    pub(super) fn delete_client(&mut self) {
        let id = self.client();
        self.changed = Some(ChangedObject::Client(id.clone()));
        let deleted = clients::delete(self.store(), &id);
        if !self.is_in_doubt(deleted.is_err()) {
            deleted.expect("the client can be deleted");
            self.model.remove_client(&id);
        }
    }

    pub(super) fn add_secret(&mut self) {
        let id = self.client();
        self.changed = Some(ChangedObject::Client(id.clone()));
        let added = clients::add_secret(self.store(), &self.vault(), &id, "s", &Metadata::EMPTY);
        if self.is_in_doubt(added.is_err()) {
            return;
        }
        match self.model.clients.get_mut(&id).filter(|client| client.secrets.len() < CLIENT_SECRETS_MAX) {
            Some(client) => {
                let (secret, clear) = added.expect("a secret");
                client.secrets.insert(secret.id, clear);
            }
            None => assert!(added.is_err(), "{id}"),
        }
    }

    pub(super) fn delete_secret(&mut self) {
        let (id, at) = (self.client(), self.rng.below(3));
        let secret = self.model.clients.get(&id).and_then(|client| client.secrets.keys().nth(at)).cloned();
        self.changed = Some(ChangedObject::Client(id.clone()));
        let deleted = clients::delete_secret(self.store(), &id, secret.as_deref().unwrap_or("nosuch"));
        if self.is_in_doubt(deleted.is_err()) {
            return;
        }
        assert_eq!(deleted.is_ok(), secret.is_some());
        if let (Some(client), Some(secret)) = (self.model.clients.get_mut(&id), secret) {
            self.model.gone.push((id, client.secrets.remove(&secret).expect("a known secret")));
        }
    }

    pub(super) fn put_scope(&mut self, is_new: bool) {
        let (label, id) = (self.label(), self.scope());
        let is_taken =
            self.model.scopes.iter().any(|(have, (taken, _))| *taken == label && (is_new || *have != id));
        if is_new {
            self.changed = Some(ChangedObject::Scope(label.clone()));
            let made = scopes::create(self.store(), &label, Metadata::EMPTY);
            if self.is_in_doubt(made.is_err()) {
                return;
            }
            assert_eq!(made.is_ok(), !is_taken, "{label}");
            if let Ok(scope) = made {
                self.model.scopes.insert(scope.id, (label, BTreeSet::new()));
            }
            return;
        }
        self.changed = Some(ChangedObject::Scope(id.clone()));
        let changed = scopes::update(self.store(), &id, &label, &Metadata::EMPTY);
        if self.is_in_doubt(changed.is_err()) {
            return;
        }
        let known = self.model.scopes.get_mut(&id);
        assert_eq!(changed.is_ok(), known.is_some() && !is_taken, "{id} {label}");
        if let Some(scope) = known.filter(|_| !is_taken) {
            scope.0 = label;
        }
    }

    pub(super) fn delete_scope(&mut self) {
        let id = self.scope();
        self.changed = Some(ChangedObject::Scope(id.clone()));
        let deleted = scopes::delete(self.store(), &id);
        if !self.is_in_doubt(deleted.is_err()) {
            assert_eq!(deleted.is_ok(), self.model.remove_scope(&id));
        }
    }

    pub(super) fn set_transient(&mut self, brings: bool) {
        let (id, other) = (self.scope(), self.scope());
        let is_known = self.model.scopes.contains_key(&other);
        let change = if brings { scopes::add_transient } else { scopes::remove_transient };
        self.changed = Some(ChangedObject::Scope(id.clone()));
        let done = change(self.store(), &id, &other).is_ok();
        if self.is_in_doubt(!done) {
            return;
        }
        let may = match self.model.scopes.get_mut(&id).filter(|_| is_known) {
            Some((_, have)) if brings => {
                have.insert(other);
                true
            }
            Some((_, have)) => have.remove(&other),
            None => false,
        };
        assert_eq!(done, may);
    }

    pub(super) fn set_scope(&mut self, holds: bool) {
        let (client, scope) = (self.client(), self.scope());
        self.changed = Some(ChangedObject::Client(client.clone()));
        let done = clients::set_scope(self.store(), &client, &scope, holds).is_ok();
        if self.is_in_doubt(!done) {
            return;
        }
        let label = self.model.scopes.get(&scope).map(|(label, _)| label.clone());
        let may = match (self.model.clients.get_mut(&client), label) {
            (Some(model), Some(label)) => {
                model.named.remove(&label);
                model.linked.remove(&scope);
                if holds {
                    model.linked.insert(scope);
                }
                true
            }
            _ => false,
        };
        assert_eq!(done, may);
    }

    pub(super) fn refuse(&mut self) {
        let id = format!("t{}", self.rng.below(12));
        self.changed = Some(ChangedObject::Refused(id.clone()));
        let change = denylist::deny(Denied::Token(&id), u64::MAX, Expected::Absent);
        let refused = self.store().change_documents(vec![change]);
        if !self.is_in_doubt(refused.is_err()) {
            assert_eq!(refused.is_ok(), self.model.refused.insert(id));
        }
    }

    /// Repeats a change whose outcome is unknown after a power cut.
    pub(super) fn settle_resource(&mut self, changed: ChangedObject) {
        match changed {
            ChangedObject::Client(id) => {
                clients::delete(self.store(), &id).expect("the client can be deleted");
                self.model.remove_client(&id);
            }
            ChangedObject::Scope(name) => {
                let stored = Scopes::of(&self.store().snapshot()).expect("the store can be read");
                let found: Vec<String> = stored
                    .iter()
                    .filter(|scope| scope.id == name || scope.label == name)
                    .map(|scope| scope.id.clone())
                    .collect();
                for id in found {
                    scopes::delete(self.store(), &id).expect("the scope can be deleted");
                    self.model.remove_scope(&id);
                }
                // The power cut may have followed the deletion.
                self.model.remove_scope(&name);
            }
            ChangedObject::Refused(id) => {
                let change = denylist::deny(Denied::Token(&id), u64::MAX, Expected::Anything);
                self.store().change_documents(vec![change]).expect("the store takes the change");
                self.model.refused.insert(id);
            }
            _ => unreachable!("no resource"),
        }
    }
}
