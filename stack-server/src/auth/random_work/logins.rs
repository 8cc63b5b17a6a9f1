//! Random changes of users, codes, sessions, tokens and signing keys.

use serde_json::json;

use super::model::{CodeUse, Identity, ModelCode, ModelSession, ModelToken};
use super::{ChangedObject, Run};
use crate::auth::grants::error::{ErrorCode, OAuthError};
use crate::auth::grants::issue::{self, AccessClaims, Tokens};
use crate::auth::guard::token::Token;
use crate::auth::power_cuts::{REDIRECT, caller, log_in};
use crate::auth::resources::users::{self, ProviderIdentity};
use crate::limits::SIGNING_KEYS_MAX;

/// Lifetime of codes, used codes and refresh tokens in seconds.
const CODE: u64 = 60;
const USED_CODE: u64 = 60 * 60;
const REFRESH_TOKEN: u64 = 5 * 60 * 60;

impl Run {
    /// Returns the index of one of `count` items. Recent items are more likely.
    fn one_of(&mut self, count: usize) -> Option<usize> {
        let far = if self.rng.below(3) == 0 { count } else { count.min(4) };
        (count > 0).then(|| count - 1 - self.rng.below(far))
    }

    fn keep_token(&mut self, text: String, client: &str, session: Option<usize>) -> usize {
        let token = Token::parse(&text).expect("the token is well formed");
        let (key, expires) = (token.key.clone().expect("a token names its key"), token.expires);
        let client = client.to_owned();
        self.model.tokens.push(ModelToken { text, client, key, session, expires, is_revoked: false });
        self.model.tokens.len() - 1
    }

    /// Lets a user log in and gives a client a code.
    pub(super) fn log_in(&mut self) {
        let identity = (format!("https://p{}", self.rng.below(2)), format!("s{}", self.rng.below(4)));
        let (email, client) =
            (format!("e{}@example.com", self.rng.below(3)), format!("app{}", self.rng.below(2)));
        self.changed = Some(ChangedObject::User(identity.clone(), email.clone()));
        let known = ProviderIdentity { issuer: &identity.0, subject: &identity.1 };
        let found = users::found_or_created(self.authority.store(), &known, &email, true);
        if self.is_in_doubt(found.is_err()) {
            return;
        }
        let user = found.expect("the user is found or created").id;
        self.keep_user(identity, &user, email);
        let caller = caller(&self.authority, &client).expect("the client");
        let code = log_in(&self.authority, &caller, &user);
        if self.is_in_doubt(code.is_none()) {
            return;
        }
        let (text, expires) = (code.expect("the login ends with a code"), self.clock.seconds() + CODE);
        self.model.codes.push(ModelCode { text, client, user, expires, use_of: CodeUse::Unused });
    }

    /// Records a user. Every login of an identity must find the same user.
    fn keep_user(&mut self, identity: Identity, id: &str, email: String) {
        if let Some((known, _)) = self.model.users.insert(identity, (id.to_owned(), email)) {
            assert_eq!(known, id);
        }
    }

    fn exchange(&self, number: usize) -> Result<Tokens, OAuthError> {
        let code = &self.model.codes[number];
        let caller = caller(&self.authority, &code.client).expect("the client");
        self.authority.exchange_code(&caller, &code.text, REDIRECT, None)
    }

    pub(super) fn use_code(&mut self) {
        let Some(number) = self.one_of(self.model.codes.len()) else { return };
        self.changed = Some(ChangedObject::Code(number));
        let exchanged = self.exchange(number);
        if !self.is_in_doubt(exchanged.is_err()) {
            let code = &self.model.codes[number];
            let is_good = code.use_of == CodeUse::Unused && self.clock.seconds() < code.expires;
            assert_eq!(exchanged.is_ok(), is_good, "code {number}");
            self.note_use(number, exchanged);
        }
    }

    fn note_use(&mut self, number: usize, exchanged: Result<Tokens, OAuthError>) {
        let tokens = match exchanged {
            Ok(tokens) => tokens,
            Err(error) => {
                assert_eq!(error.code, ErrorCode::InvalidGrant);
                // The second use of a code ends the session of the first use.
                if let CodeUse::Used(session) = self.model.codes[number].use_of {
                    self.model.end_session(session);
                }
                return;
            }
        };
        let now = self.clock.seconds();
        let code = &mut self.model.codes[number];
        assert!(code.use_of == CodeUse::Unused && now < code.expires, "code {number} is good");
        let session = self.model.sessions.len();
        (code.use_of, code.expires) = (CodeUse::Used(session), now + USED_CODE);
        let (client, user) = (code.client.clone(), code.user.clone());
        let id = Token::parse(&tokens.access.text)
            .expect("the token is well formed")
            .claim("sid")
            .expect("a token of a login names its session")
            .to_owned();
        let token = self.keep_token(tokens.access.text, &client, Some(session));
        self.model.sessions.push(ModelSession {
            id,
            client,
            user,
            expires: now + REFRESH_TOKEN,
            is_there: true,
            used_refresh_tokens: vec![],
            refresh_token: tokens.refresh.expect("a refresh token"),
            token,
        });
    }

    /// Continues a session, or tries to with a refresh token that was used before.
    pub(super) fn refresh(&mut self) {
        let Some(number) = self.one_of(self.model.sessions.len()) else { return };
        self.changed = Some(ChangedObject::Session(number));
        let session = &self.model.sessions[number];
        let is_used = self.rng.below(6) == 0 && !session.used_refresh_tokens.is_empty();
        let token = if is_used { &session.used_refresh_tokens[0] } else { &session.refresh_token };
        let caller = caller(&self.authority, &session.client).expect("the client");
        let continued = self.authority.refresh(&caller, token, None);
        if self.is_in_doubt(continued.is_err()) {
            return;
        }
        let session = &self.model.sessions[number];
        let now = self.clock.seconds();
        assert_eq!(continued.is_ok(), session.is_there && !is_used && now < session.expires);
        match continued {
            Ok(tokens) => {
                let (client, before) = (session.client.clone(), session.token);
                self.model.tokens[before].is_revoked = true;
                let token = self.keep_token(tokens.access.text, &client, Some(number));
                let session = &mut self.model.sessions[number];
                let next = tokens.refresh.expect("a refresh token");
                session.used_refresh_tokens.push(std::mem::replace(&mut session.refresh_token, next));
                (session.expires, session.token) = (now + REFRESH_TOKEN, token);
            }
            Err(error) => {
                assert_eq!(error.code, ErrorCode::InvalidGrant);
                if is_used && session.is_there {
                    self.model.end_session(number);
                }
            }
        }
    }

    /// Ends a session by its refresh token.
    pub(super) fn end_session(&mut self) {
        let Some(number) = self.one_of(self.model.sessions.len()) else { return };
        self.changed = Some(ChangedObject::Session(number));
        let session = &self.model.sessions[number];
        let ended = self.authority.revoke_refresh_token(&session.client, &session.refresh_token);
        if !self.is_in_doubt(ended.is_err()) {
            assert_eq!(ended.expect("the token can be revoked"), self.model.sessions[number].is_there);
            self.model.end_session(number);
        }
    }

    pub(super) fn log_out(&mut self) {
        let Some(number) = self.one_of(self.model.sessions.len()) else { return };
        let session = &self.model.sessions[number];
        let (user, client) = (session.user.clone(), session.client.clone());
        self.changed = Some(ChangedObject::LogOut(user.clone(), client.clone()));
        let done = self.authority.log_out(&user, &client);
        if !self.is_in_doubt(done.is_err()) {
            done.expect("the user can be logged out");
            self.note_log_out(&user, &client);
        }
    }

    fn note_log_out(&mut self, user: &str, client: &str) {
        for number in 0..self.model.sessions.len() {
            let session = &self.model.sessions[number];
            if session.is_there && session.user == user && session.client == client {
                self.model.end_session(number);
            }
        }
    }

    pub(super) fn issue_token(&mut self) {
        let client = format!("app{}", self.rng.below(2));
        let access = AccessClaims {
            client: Some(&client),
            audience: json!([client]),
            subject: None,
            session: None,
            scopes: &[],
            seconds: issue::CLIENT_TOKEN_SECONDS,
        };
        let token = issue::sign_access(&self.authority, &access).expect("a token is issued").text;
        self.keep_token(token, &client, None);
    }

    pub(super) fn revoke_token(&mut self) {
        let Some(number) = self.one_of(self.model.tokens.len()) else { return };
        self.changed = Some(ChangedObject::Issued(number));
        let token = &self.model.tokens[number];
        let revoked = self.authority.revoke_token(&token.client, &token.text);
        if !self.is_in_doubt(revoked.is_err()) {
            revoked.expect("revoked, or not good");
            self.model.tokens[number].is_revoked = true;
        }
    }

    pub(super) fn rotate_keys(&mut self) {
        let is_full =
            self.authority.open().expect("the keys can be opened").keys.all().count() >= SIGNING_KEYS_MAX;
        let rotated = self.authority.rotate();
        if !self.is_in_doubt(rotated.is_err()) {
            assert_eq!(rotated.is_ok(), !is_full);
        }
    }

    /// Revokes a signing key.
    pub(super) fn remove_key(&mut self) {
        let keys = self.authority.open().expect("the keys can be opened").keys;
        let at = self.rng.below(keys.all().count());
        let id = keys.all().nth(at).expect("a key").id.clone();
        self.changed = Some(ChangedObject::Key(id.clone()));
        let removed = self.authority.revoke_key(&id);
        if !self.is_in_doubt(removed.is_err()) {
            removed.expect("the key existed");
            self.model.removed_keys.insert(id);
        }
    }

    /// Advances the clock and sweeps expired documents.
    pub(super) fn run_housekeeping(&mut self) {
        let seconds = match self.rng.below(10) {
            0 => 6 * 3_600,
            1 | 2 => 600,
            _ => 30,
        };
        self.clock.advance(self.rng.below(seconds) as u64);
        self.changed = Some(ChangedObject::Expired);
        let kept = self.authority.run_housekeeping();
        if !self.is_in_doubt(kept.is_err()) {
            kept.expect("housekeeping finishes");
            self.model.sweep(self.clock.seconds());
        }
    }

    /// Repeats a change whose outcome is unknown after a power cut.
    pub(super) fn settle_login(&mut self, changed: ChangedObject) {
        match changed {
            ChangedObject::User(identity, email) => {
                let known = ProviderIdentity { issuer: &identity.0, subject: &identity.1 };
                let user = users::found_or_created(self.authority.store(), &known, &email, true);
                self.keep_user(identity, &user.expect("the user is found or created").id, email);
            }
            ChangedObject::Code(number) => {
                let exchanged = self.exchange(number);
                let is_refused = exchanged.is_err();
                self.note_use(number, exchanged);
                if is_refused {
                    // The exchange without an answer has used the code.
                    self.model.codes[number].use_of = CodeUse::Over;
                }
            }
            ChangedObject::Session(number) => {
                let session = &self.model.sessions[number];
                self.authority
                    .revoke_refresh_token(&session.client, &session.refresh_token)
                    .expect("the token can be revoked");
                self.model.end_session(number);
            }
            ChangedObject::LogOut(user, client) => {
                self.authority.log_out(&user, &client).expect("the user can be logged out");
                self.note_log_out(&user, &client);
            }
            ChangedObject::Issued(number) => {
                let token = &self.model.tokens[number];
                self.authority.revoke_token(&token.client, &token.text).expect("revoked, or not good");
                self.model.tokens[number].is_revoked = true;
            }
            ChangedObject::Key(id) => {
                // An error means that the key was removed before.
                let _ = self.authority.revoke_key(&id);
                self.model.removed_keys.insert(id);
            }
            ChangedObject::Expired => {
                self.authority.run_housekeeping().expect("housekeeping finishes");
                self.model.sweep(self.clock.seconds());
            }
            ChangedObject::Client(_) | ChangedObject::Scope(_) | ChangedObject::Refused(_) => {
                unreachable!("no login")
            }
        }
    }
}
