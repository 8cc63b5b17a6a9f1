//! The expected documents of the authorization server.

use std::collections::{BTreeMap, BTreeSet};

use crate::auth::authority::Authority;
use crate::auth::denylist::{self, Denied};
use crate::auth::grants::session::session;
use crate::auth::keys::signing::State;
use crate::auth::resources::scopes::Scopes;
use crate::auth::resources::{clients, users};

/// The expected state of a client.
#[derive(Default)]
pub(super) struct ModelClient {
    pub(super) name: String,
    /// Names of the scopes that the client holds by name.
    pub(super) named: BTreeSet<String>,
    /// Ids of the scopes that the client holds by link.
    pub(super) linked: BTreeSet<String>,
    /// Secrets by id.
    pub(super) secrets: BTreeMap<String, String>,
}

/// Issuer and subject by which an identity provider knows a user.
pub(super) type Identity = (String, String);

/// A code that was issued to a client.
pub(super) struct ModelCode {
    pub(super) text: String,
    pub(super) client: String,
    pub(super) user: String,
    /// Expiry, in seconds since the Unix epoch. The store may forget the code then; an unused code is valid until then.
    pub(super) expires: u64,
    pub(super) use_of: CodeUse,
}

/// The use of a code.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CodeUse {
    Unused,
    /// The code started this session.
    Used(usize),
    /// The session of the code has ended, or the sweep has removed the code.
    Over,
}

/// A session of a user with a client.
pub(super) struct ModelSession {
    pub(super) id: String,
    pub(super) client: String,
    pub(super) user: String,
    pub(super) expires: u64,
    /// True if the store contains the session: it was not ended, and the sweep has not removed it.
    pub(super) is_there: bool,
    pub(super) used_refresh_tokens: Vec<String>,
    pub(super) refresh_token: String,
    /// Index of the current access token.
    pub(super) token: usize,
}

/// An access token.
pub(super) struct ModelToken {
    pub(super) text: String,
    pub(super) client: String,
    pub(super) key: String,
    pub(super) session: Option<usize>,
    pub(super) expires: u64,
    pub(super) is_revoked: bool,
}

/// The expected documents of the store.
#[derive(Default)]
pub(super) struct Model {
    pub(super) clients: BTreeMap<String, ModelClient>,
    /// Label and ids of transient scopes, by scope id.
    pub(super) scopes: BTreeMap<String, (String, BTreeSet<String>)>,
    /// Removed secrets, with the ids of their clients.
    pub(super) gone: Vec<(String, String)>,
    pub(super) refused: BTreeSet<String>,
    /// Id and email address of users, by identity.
    pub(super) users: BTreeMap<Identity, (String, String)>,
    pub(super) codes: Vec<ModelCode>,
    pub(super) sessions: Vec<ModelSession>,
    pub(super) tokens: Vec<ModelToken>,
    pub(super) removed_keys: BTreeSet<String>,
}

impl Model {
    /// Returns all scopes that a client may ask for. Adds transient scopes until none is missing.
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

    /// Removes a client. Its secrets must never be accepted again.
    pub(super) fn remove_client(&mut self, id: &str) {
        let removed = self.clients.remove(id);
        let secrets = removed.into_iter().flat_map(|client| client.secrets.into_values());
        self.gone.extend(secrets.map(|clear| (id.to_owned(), clear)));
    }

    /// Removes a scope and all links to it. Returns whether the scope existed.
    pub(super) fn remove_scope(&mut self, id: &str) -> bool {
        for (_, brings) in self.scopes.values_mut() {
            brings.remove(id);
        }
        for client in self.clients.values_mut() {
            client.linked.remove(id);
        }
        self.scopes.remove(id).is_some()
    }

    /// Ends a session, so that none of its tokens is valid.
    pub(super) fn end_session(&mut self, number: usize) {
        self.sessions[number].is_there = false;
        for token in self.tokens.iter_mut().filter(|token| token.session == Some(number)) {
            token.is_revoked = true;
        }
    }

    /// Removes the sessions, codes and tokens that the sweep removes.
    pub(super) fn sweep(&mut self, now: u64) {
        for session in self.sessions.iter_mut().filter(|session| session.expires < now) {
            session.is_there = false;
        }
        for code in self.codes.iter_mut().filter(|code| code.expires < now) {
            code.use_of = CodeUse::Over;
        }
    }

    pub(super) fn is_good(&self, token: &ModelToken, now: u64) -> bool {
        now < token.expires && !token.is_revoked && !self.removed_keys.contains(&token.key)
    }

    pub(super) fn compare(&self, authority: &Authority, place: &str) {
        self.compare_scopes(authority, place);
        self.compare_clients(authority, place);
        self.compare_logins(authority, place);
        self.compare_keys(authority, place);
        for number in 0..12 {
            let id = format!("t{number}");
            let is_refused = denylist::is_denied(&authority.store().snapshot(), Denied::Token(&id))
                .expect("the store can be read");
            assert_eq!(is_refused, self.refused.contains(&id), "{place}: {id}");
        }
    }

    fn compare_scopes(&self, authority: &Authority, place: &str) {
        let stored = Scopes::of(&authority.store().snapshot()).expect("the store can be read");
        let found: BTreeMap<String, (String, BTreeSet<String>)> = stored
            .iter()
            .map(|scope| (scope.id.clone(), (scope.label.clone(), scope.transient.iter().cloned().collect())))
            .collect();
        assert_eq!(found, self.scopes, "{place}");
    }

    fn compare_clients(&self, authority: &Authority, place: &str) {
        let vault = authority.open().expect("a vault").vault;
        let snapshot = authority.store().snapshot();
        let stored = Scopes::of(&snapshot).expect("the store can be read");
        let found = clients::clients(&snapshot).expect("the store can be read");
        assert_eq!(found.len(), self.clients.len(), "{place}");
        for client in found {
            let model = &self.clients[&client.id];
            assert_eq!(client.name, model.name, "{place}");
            assert_eq!(stored.closure(&client.scopes), self.allowed(model), "{place}");
            assert_eq!(client.secrets.len(), model.secrets.len(), "{place}");
            assert!(model.secrets.values().all(|clear| client.has_secret(&vault, clear)), "{place}");
            let gone = self.gone.iter().filter(|(id, _)| *id == client.id);
            assert!(
                gone.into_iter().all(|(_, clear)| !client.has_secret(&vault, clear)),
                "{place}: {}",
                client.id
            );
        }
    }

    fn compare_logins(&self, authority: &Authority, place: &str) {
        let snapshot = authority.store().snapshot();
        let found: BTreeMap<Identity, (String, String)> = users::users(&snapshot)
            .expect("the store can be read")
            .into_iter()
            .map(|user| ((user.issuer.unwrap_or_default(), user.subject), (user.id, user.email)))
            .collect();
        assert_eq!(found, self.users, "{place}");
        for model in &self.sessions {
            let found =
                session(&snapshot, &model.id).expect("the store can be read").map(|found| found.value);
            let seen = found.map(|found| (found.client, found.user, found.expires, found.generation));
            let generation = model.used_refresh_tokens.len() as u64;
            let expected = (model.client.clone(), model.user.clone(), model.expires, generation);
            assert_eq!(seen, model.is_there.then_some(expected), "{place}: session {}", model.id);
        }
    }

    fn compare_keys(&self, authority: &Authority, place: &str) {
        let keys = authority.open().expect("the keys can be opened").keys;
        let count = |state| keys.all().filter(|key| key.state == state).count();
        assert_eq!((count(State::Current), count(State::Next)), (1, 1), "{place}");
        assert!(
            !keys.all().any(|key| self.removed_keys.contains(&key.id)),
            "{place}: a removed key is there"
        );
        let now = authority.now();
        for token in &self.tokens {
            let is_good = authority.valid_token(&token.text).is_some();
            assert_eq!(is_good, self.is_good(token, now), "{place}: {}", token.text);
        }
    }
}
