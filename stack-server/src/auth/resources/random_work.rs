//! Random changes of clients, secrets, scopes and refusals, compared with a model after each of them. The store is closed
//! and opened again in between. `auth::power_cuts` cuts the power in the middle of a change.

use std::collections::{BTreeMap, BTreeSet};

use ledger_core::Metadata;
use ledger_store::{Expected, Store};

use crate::auth::keys::master::{KeySource, MasterKey};
use crate::auth::keys::vault::Vault;
use crate::auth::refused::{self, Refused};
use crate::auth::resources::clients::{self, Draft};
use crate::auth::resources::scopes::{self, Scopes};
use crate::limits::CLIENT_SECRETS_MAX;

const CHANGES: usize = 400;

/// Random numbers of a seed (xorshift).
struct Rng(u64);

impl Rng {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }
}

/// The expected state of a client.
struct ModelClient {
    name: String,
    /// Names of scopes that it holds by name.
    named: BTreeSet<String>,
    /// Ids of scopes that it holds by a link.
    linked: BTreeSet<String>,
    /// Secrets by id.
    secrets: BTreeMap<String, String>,
}

/// The expected documents of the store.
#[derive(Default)]
struct Model {
    clients: BTreeMap<String, ModelClient>,
    /// Label, and the ids of scopes that it brings along, by id.
    scopes: BTreeMap<String, (String, BTreeSet<String>)>,
    /// Secrets of clients that were deleted.
    gone: Vec<(String, String)>,
    refused: BTreeSet<String>,
}

impl Model {
    /// All names that a client may ask for: scopes are added until none is missing.
    fn allowed(&self, client: &ModelClient) -> BTreeSet<String> {
        let mut ids: BTreeSet<&String> = client.linked.iter().collect();
        ids.extend(
            self.scopes.iter().filter(|(_, (label, _))| client.named.contains(label)).map(|(id, _)| id),
        );
        loop {
            let more: BTreeSet<&String> =
                ids.iter().filter_map(|id| self.scopes.get(*id)).flat_map(|(_, brings)| brings).collect();
            let before = ids.len();
            ids.extend(more);
            if ids.len() == before {
                break;
            }
        }
        let labels = ids.into_iter().filter_map(|id| self.scopes.get(id)).map(|(label, _)| label.clone());
        labels.chain(client.named.iter().cloned()).collect()
    }

    fn compare(&self, store: &Store, vault: &Vault) {
        let snapshot = store.snapshot();
        let stored = Scopes::of(&snapshot).expect("no fault");
        assert_eq!(
            stored.iter().map(|scope| &scope.id).collect::<BTreeSet<_>>(),
            self.scopes.keys().collect()
        );
        for scope in stored.iter() {
            let brings = scope.transient.iter().cloned().collect();
            assert_eq!(self.scopes[&scope.id], (scope.label.clone(), brings));
        }
        let found = clients::clients(&snapshot).expect("no fault");
        assert_eq!(found.len(), self.clients.len());
        for client in found {
            let model = &self.clients[&client.id];
            assert_eq!(client.name, model.name);
            assert_eq!(stored.closure(&client.scopes), self.allowed(model));
            assert_eq!(client.secrets.len(), model.secrets.len());
            assert!(model.secrets.values().all(|clear| client.has_secret(vault, clear)));
            let gone = self.gone.iter().filter(|(id, _)| *id == client.id);
            assert!(gone.into_iter().all(|(_, clear)| !client.has_secret(vault, clear)), "{}", client.id);
        }
        for number in 0..12 {
            let id = format!("t{number}");
            let is_refused = refused::has(&snapshot, Refused::Token(&id)).expect("no fault");
            assert_eq!(is_refused, self.refused.contains(&id), "{id}");
        }
    }
}

/// One run: the store, its model, and the choices.
struct Run {
    store: Store,
    vault: Vault,
    model: Model,
    rng: Rng,
}

impl Run {
    fn client(&mut self) -> String {
        format!("c{}", self.rng.below(5))
    }

    fn label(&mut self) -> String {
        format!("s{}", self.rng.below(6))
    }

    /// The id of a scope, mostly of one that is there.
    fn scope(&mut self) -> String {
        let at = self.rng.below(self.model.scopes.len() + 1);
        self.model.scopes.keys().nth(at).cloned().unwrap_or_else(|| "nosuch".to_owned())
    }

    fn put_client(&mut self, is_new: bool) {
        let (id, name, label) = (self.client(), format!("n{}", self.rng.below(100)), self.label());
        let draft = Draft {
            id: id.clone().into(),
            name: name.clone().into(),
            scopes: Some(vec![label.clone().into()]),
            ..Draft::default()
        };
        let done = if is_new {
            clients::create(&self.store, &draft).is_ok()
        } else {
            clients::update(&self.store, &id, &draft).is_ok()
        };
        assert_eq!(done, self.model.clients.contains_key(&id) != is_new, "{id}");
        if !done {
            return;
        }
        let link = self.model.scopes.iter().find(|(_, (have, _))| *have == label).map(|(id, _)| id.clone());
        let (linked, secrets) = match self.model.clients.remove(&id) {
            // A link stays one.
            Some(old) => (link.filter(|link| old.linked.contains(link)), old.secrets),
            None => (None, BTreeMap::new()),
        };
        let named = if linked.is_some() { BTreeSet::new() } else { BTreeSet::from([label]) };
        let linked = linked.into_iter().collect();
        self.model.clients.insert(id, ModelClient { name, named, linked, secrets });
    }

    fn delete_client(&mut self) {
        let id = self.client();
        clients::delete(&self.store, &id).expect("deleted, or never there");
        for clear in
            self.model.clients.remove(&id).into_iter().flat_map(|client| client.secrets.into_values())
        {
            self.model.gone.push((id.clone(), clear));
        }
    }

    fn add_secret(&mut self) {
        let id = self.client();
        let added = clients::add_secret(&self.store, &self.vault, &id, "s", &Metadata::EMPTY);
        match self.model.clients.get_mut(&id).filter(|client| client.secrets.len() < CLIENT_SECRETS_MAX) {
            Some(client) => {
                let (secret, clear) = added.expect("a secret");
                client.secrets.insert(secret.id, clear);
            }
            None => assert!(added.is_err(), "{id}"),
        }
    }

    fn delete_secret(&mut self) {
        let (id, at) = (self.client(), self.rng.below(3));
        let secret = self.model.clients.get(&id).and_then(|client| client.secrets.keys().nth(at)).cloned();
        let deleted = clients::delete_secret(&self.store, &id, secret.as_deref().unwrap_or("nosuch"));
        assert_eq!(deleted.is_ok(), secret.is_some());
        if let (Some(client), Some(secret)) = (self.model.clients.get_mut(&id), secret) {
            self.model.gone.push((id, client.secrets.remove(&secret).expect("it is there")));
        }
    }

    fn put_scope(&mut self, is_new: bool) {
        let (label, id) = (self.label(), self.scope());
        let is_taken =
            self.model.scopes.iter().any(|(have, (taken, _))| *taken == label && (is_new || *have != id));
        if is_new {
            let made = scopes::create(&self.store, &label, Metadata::EMPTY);
            assert_eq!(made.is_ok(), !is_taken, "{label}");
            if let Ok(scope) = made {
                self.model.scopes.insert(scope.id, (label, BTreeSet::new()));
            }
            return;
        }
        let changed = scopes::update(&self.store, &id, &label, &Metadata::EMPTY);
        let known = self.model.scopes.get_mut(&id);
        assert_eq!(changed.is_ok(), known.is_some() && !is_taken, "{id} {label}");
        if let Some(scope) = known.filter(|_| !is_taken) {
            scope.0 = label;
        }
    }

    fn delete_scope(&mut self) {
        let id = self.scope();
        assert_eq!(scopes::delete(&self.store, &id).is_ok(), self.model.scopes.remove(&id).is_some());
        for (_, brings) in self.model.scopes.values_mut() {
            brings.remove(&id);
        }
        for client in self.model.clients.values_mut() {
            client.linked.remove(&id);
        }
    }

    fn set_transient(&mut self, brings: bool) {
        let (id, other) = (self.scope(), self.scope());
        let is_known = self.model.scopes.contains_key(&other);
        let change = if brings { scopes::add_transient } else { scopes::remove_transient };
        let done = change(&self.store, &id, &other).is_ok();
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

    fn set_scope(&mut self, holds: bool) {
        let (client, scope) = (self.client(), self.scope());
        let done = clients::set_scope(&self.store, &client, &scope, holds).is_ok();
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

    fn refuse(&mut self) {
        let id = format!("t{}", self.rng.below(12));
        let change = refused::refuse(Refused::Token(&id), u64::MAX, Expected::Absent);
        assert_eq!(self.store.change_documents(vec![change]).is_ok(), self.model.refused.insert(id));
    }

    fn step(&mut self) {
        match self.rng.below(14) {
            0 | 1 => self.put_client(true),
            2 => self.put_client(false),
            3 => self.delete_client(),
            4..=6 => self.add_secret(),
            7 => self.delete_secret(),
            8 => self.put_scope(true),
            9 => self.put_scope(false),
            10 => self.set_transient(true),
            11 => {
                let brings = self.rng.below(2) == 0;
                self.set_transient(brings);
            }
            12 => {
                let holds = self.rng.below(3) > 0;
                self.set_scope(holds);
            }
            _ if self.rng.below(3) == 0 => self.delete_scope(),
            _ => self.refuse(),
        }
    }
}

#[test]
fn random_work_matches_a_model() {
    let key = KeySource::Given(MasterKey::random().expect("random bytes"));
    for seed in [0x9e37_79b9, 0x85eb_ca6b, 0xc2b2_ae35, 0x27d4_eb2f] {
        let home = tempfile::tempdir().expect("a directory");
        let store = Store::open(home.path().join("store")).expect("a store");
        let vault = Vault::open(&store, &key).expect("a vault");
        let mut run = Run { store, vault, model: Model::default(), rng: Rng(seed) };
        for number in 1..=CHANGES {
            run.step();
            if number % 100 == 0 {
                run.store.close().expect("closed");
                // The directory is free when its store is gone.
                run.store = Store::in_memory();
                run.store = Store::open(home.path().join("store")).expect("the store");
            }
            run.model.compare(&run.store, &run.vault);
        }
        assert!(!run.model.gone.is_empty() && !run.model.clients.is_empty(), "seed {seed}");
    }
}
