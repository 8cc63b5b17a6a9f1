//! Tokens for assertions. The identity provider asserts who the user is, so the user does not log in here.

use ledger_store::{DocumentRejection, Expected, WriteError};
use serde_json::{Value, json};

use crate::auth::authority::Authority;
use crate::auth::denylist::{self, Denied};
use crate::auth::grants::error::{ErrorCode, OAuthError};
use crate::auth::grants::issue::{self, AccessClaims, AccessToken, USER_TOKEN_SECONDS};
use crate::auth::guard::token::Token;

/// The only scopes that an assertion grants to clients of 1.10. The scopes in the assertion itself do not count.
const OF_1_10: [&str; 2] = ["openid", "email"];

impl Authority {
    /// Grants a token for an assertion whose signature and dates the caller has checked. Each assertion is accepted
    /// once.
    ///
    /// # Errors
    ///
    /// `invalid_grant` if the assertion is for another server, or was used before. An error of the store if the write
    /// fails.
    pub(crate) fn accept_assertion(
        &self,
        client: Option<&str>,
        token: &Token<'_>,
        requested: &str,
        is_1_10: bool,
    ) -> Result<AccessToken, OAuthError> {
        let invalid = |text| OAuthError::new(ErrorCode::InvalidGrant, text);
        if !token.audience().contains(&self.issuer()) {
            return Err(invalid("the assertion is not for this server"));
        }
        let subject = token.claim("sub").ok_or_else(|| invalid("the assertion has no subject"))?;
        let scopes: Vec<String> = if is_1_10 {
            requested.split(' ').filter(|scope| OF_1_10.contains(scope)).map(str::to_owned).collect()
        } else {
            token.scopes.iter().filter(|scope| !scope.is_empty()).cloned().collect()
        };
        let audience: Value = json!(token.audience());
        let access = AccessClaims {
            client,
            audience,
            subject: Some(subject),
            session: None,
            scopes: &scopes,
            seconds: USER_TOKEN_SECONDS,
        };
        let access = issue::sign_access(self, &access)?;
        // An assertion without an id is identified by its signed part: only the issuer can sign a different one.
        let id = token.claim("jti").unwrap_or(token.signed);
        let used = Denied::Assertion { issuer: &token.issuer, id };
        let change = denylist::deny(used, token.expires, Expected::Absent);
        match self.store().change_documents(vec![change]) {
            Ok(_) => Ok(access),
            Err(WriteError::Document(DocumentRejection::Changed { .. })) => {
                Err(invalid("the assertion was used before"))
            }
            Err(error) => Err(error.into()),
        }
    }
}
