//! Tokens for assertions: the identity provider says who somebody is, without a login here.

use ledger_store::{DocumentRejection, Expected, WriteError};
use serde_json::{Value, json};

use crate::auth::authority::Authority;
use crate::auth::grants::error::{OAuthError, Word};
use crate::auth::grants::issue::{self, Access, AccessToken, USER_TOKEN_SECONDS};
use crate::auth::guard::token::Token;
use crate::auth::refused::{self, Refused};

/// The scopes that an assertion gives to clients of 1.10, whatever it says itself.
const OF_1_10: [&str; 2] = ["openid", "email"];

impl Authority {
    /// Grants a token for an assertion whose signature and dates are good. It counts once.
    ///
    /// # Errors
    ///
    /// `invalid_grant` if the assertion is for somebody else, or was used; what any write may meet.
    pub(crate) fn accept_assertion(
        &self,
        client: Option<&str>,
        token: &Token<'_>,
        requested: &str,
        is_1_10: bool,
    ) -> Result<AccessToken, OAuthError> {
        let invalid = |text| OAuthError::new(Word::InvalidGrant, text);
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
        let access = Access {
            client,
            audience,
            subject: Some(subject),
            session: None,
            scopes: &scopes,
            seconds: USER_TOKEN_SECONDS,
        };
        let access = issue::access(self, &access)?;
        // Without an id all that was signed is the id: nobody makes another assertion of it.
        let id = token.claim("jti").unwrap_or(token.signed);
        let used = Refused::Assertion { issuer: &token.issuer, id };
        let change = refused::refuse(used, token.expires, Expected::Absent);
        match self.store().change_documents(vec![change]) {
            Ok(_) => Ok(access),
            Err(WriteError::Document(DocumentRejection::Changed { .. })) => {
                Err(invalid("the assertion was used before"))
            }
            Err(error) => Err(error.into()),
        }
    }
}
