//! Determines which tokens a server accepts, and the source of the key of its authorization server.

use super::error::ConfigError;
use super::invocation::{AuthMode, Config, key_file_of};
use crate::auth::keys::master::{KeySource, MasterKey};

impl Config {
    /// Returns a warning about the accepted tokens, or `None` if the server checks for whom a token was issued.
    pub fn token_warning(&self) -> Option<&'static str> {
        if !self.auth_enabled || self.auth.check_scopes {
            return None;
        }
        match (self.auth.issuers.is_empty(), self.auth.audiences.is_empty()) {
            (false, true) => Some(
                "neither audience nor scopes of tokens are checked: whoever has any token of an issuer may read and \
                 write everything; pass --auth-audience, --auth-check-scopes or both",
            ),
            (true, _) => Some(
                "scopes of tokens are not checked: whoever has any token may read and write everything; pass \
                 --auth-check-scopes",
            ),
            (false, false) => None,
        }
    }
}

/// Determines which tokens the server accepts, and the source of the key of the authorization server.
pub(super) fn settle_auth(config: &mut Config, key: Option<String>) -> Result<(), ConfigError> {
    let refused = |text: &str| Err(ConfigError(text.to_owned()));
    let has_issuers = !config.auth.issuers.is_empty();
    let mode = match (config.auth_mode, config.auth_enabled) {
        (Some(AuthMode::Off), true) => return refused("--auth-mode off contradicts --auth-enabled"),
        (Some(mode), _) => mode,
        (None, false) => AuthMode::Off,
        (None, true) if has_issuers => AuthMode::Foreign,
        (None, true) => AuthMode::Own,
    };
    if matches!(mode, AuthMode::Foreign | AuthMode::Both) && !has_issuers {
        return refused("tokens of issuers elsewhere are to be taken: name them with --auth-issuer");
    }
    if mode == AuthMode::Own && has_issuers {
        return refused("--auth-mode own takes no tokens of --auth-issuer: pass --auth-mode both for both");
    }
    config.auth_enabled = mode != AuthMode::Off;
    config.auth.own = matches!(mode, AuthMode::Own | AuthMode::Both);
    let source = match key {
        Some(key) => KeySource::Given(
            MasterKey::parse(&key).map_err(|error| ConfigError(format!("STACK_AUTH_KEY: {error}")))?,
        ),
        None => KeySource::File(config.auth_key_file.clone().unwrap_or_else(|| key_file_of(&config.data))),
    };
    if let Some(authorization) = &mut config.settings.authorization {
        authorization.key = source;
        if authorization
            .provider
            .as_ref()
            .is_some_and(|provider| provider.issuer.is_empty() || provider.client_id.is_empty())
        {
            return refused("an OpenID provider needs --delegated-issuer and --delegated-client-id");
        }
        if config.auth.own && config.listen.ip().is_unspecified() && authorization.public_url.is_none() {
            return refused("tokens name the address of this server: say which one with --auth-public-url");
        }
    }
    // Without authentication, only clients on this machine may manage clients.
    if mode == AuthMode::Off && !config.listen.ip().is_loopback() {
        config.settings.authorization = None;
    }
    Ok(())
}
