//! Introspection and revocation of issued tokens.

use ledger_store::Expected;
use serde_json::{Value, json};

use crate::auth::authority::Authority;
use crate::auth::denylist::{self, Denied};
use crate::auth::grants::caller::Caller;
use crate::auth::guard::own;
use crate::auth::guard::token::Token;
use crate::http::error::ApiError;

impl Authority {
    /// Returns the access token if this server issued it and it is valid now.
    pub(crate) fn valid_token<'a>(&self, text: &'a str) -> Option<Token<'a>> {
        let token = Token::parse(text)?;
        (token.is_valid_at(self.now()) && own::verify_except_dates(self, &token).is_some()).then_some(token)
    }

    /// Returns the user and the client of an ID token of this server. An expired token is accepted: it only selects the
    /// session to end.
    pub(crate) fn hint_claims(&self, text: &str) -> Option<(String, String)> {
        let token = Token::parse(text)?;
        let is_ours = own::is_issued_by_us(self, &token) && token.kind.as_deref() == Some(own::IDENTITY);
        let user = token.claim("sub").filter(|_| is_ours)?.to_owned();
        Some((user, (*token.audience().first()?).to_owned()))
    }

    /// Returns the claims of a valid token if the caller may see them.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read.
    pub(crate) fn introspect(&self, caller: &Caller, text: &str) -> Result<Option<Value>, ApiError> {
        let Some(token) = self.valid_token(text) else { return Ok(None) };
        if !caller.trusted && !token.audience().contains(&caller.id.as_str()) {
            return Ok(None);
        }
        let mut found = json!({
            "active": true,
            "scope": token.claim("scope").unwrap_or_default(),
            "token_type": "Bearer",
            "iss": token.issuer,
            "aud": token.claims["aud"],
            "exp": token.expires,
            "iat": token.claims["iat"],
            "nbf": token.claims["nbf"],
            "jti": token.claims["jti"]
        });
        for name in ["client_id", "sub"] {
            if let Some(text) = token.claim(name) {
                found[name] = json!(text);
            }
        }
        // Tell the same data of the user as `/userinfo`: those that the client may read.
        let user = token.claim("sid").map_or(Ok(None), |session| self.user_info(session))?;
        for name in ["email", "email_verified"] {
            if let Some(value) = user.as_ref().and_then(|user| user.get(name)) {
                found[name] = value.clone();
            }
        }
        Ok(Some(found))
    }

    /// Revokes a token of a client. Does nothing if the token is not valid, or belongs to another client.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be written.
    pub(crate) fn revoke_token(&self, client: &str, text: &str) -> Result<(), ApiError> {
        if self.revoke_refresh_token(client, text)? {
            return Ok(());
        }
        let Some(token) = self.valid_token(text) else { return Ok(()) };
        let is_theirs = token
            .claim("client_id")
            .map_or_else(|| token.audience().contains(&client), |owner| owner == client);
        let Some(id) = token.claim("jti").filter(|_| is_theirs) else { return Ok(()) };
        let change = denylist::deny(Denied::Token(id), token.expires, Expected::Anything);
        self.store().change_documents(vec![change])?;
        self.end_epoch();
        Ok(())
    }
}
