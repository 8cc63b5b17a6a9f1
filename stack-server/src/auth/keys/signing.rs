//! A key that signs tokens: RSA of 2048 bits, as clients of this API expect (RS256).

use std::fmt;

use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ledger_core::Timestamp;
use ledger_store::{Document, DocumentChange, Expected, ReadError};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::auth::keys::error::SigningError;
use crate::auth::keys::vault::Vault;
use crate::collections::AUTH_KEYS;
use crate::documents::{Versioned, damaged, put};

/// The state of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The key is published and signs after the next rotation, so that verifiers with cached key sets know it by then.
    Next,
    /// The key signs new tokens.
    Current,
    /// The key no longer signs. Its tokens are valid until they expire.
    Retired,
}

impl State {
    const fn name(self) -> &'static str {
        match self {
            Self::Next => "next",
            Self::Current => "current",
            Self::Retired => "retired",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        [Self::Next, Self::Current, Self::Retired].into_iter().find(|state| state.name() == word)
    }
}

/// A signing key.
pub(crate) struct SigningKey {
    /// Thumbprint of the public part (RFC 7638), which is unique.
    pub(crate) id: String,
    pub(crate) state: State,
    /// Time of the last change of `state`.
    pub(crate) since: Timestamp,
    /// Time of the removal of a retired key.
    pub(crate) until: Option<Timestamp>,
    pair: RsaKeyPair,
    /// The sealed private part, as stored.
    sealed: Vec<u8>,
    pub(crate) modulus: Vec<u8>,
    pub(crate) exponent: Vec<u8>,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("id", &self.id).field("state", &self.state).finish_non_exhaustive()
    }
}

impl SigningKey {
    /// Creates a new key.
    ///
    /// # Errors
    ///
    /// Fails if the key cannot be created or sealed. The error is for the log.
    pub(crate) fn generate(vault: &Vault, state: State, since: Timestamp) -> Result<Self, SigningError> {
        let fault = |_| SigningError::Generate;
        let pair = RsaKeyPair::generate(KeySize::Rsa2048).map_err(fault)?;
        let private = pair.as_der().map_err(fault)?;
        let (modulus, exponent) = public(&pair);
        let id = thumbprint(&modulus, &exponent);
        let sealed = vault.seal(id.as_bytes(), private.as_ref())?;
        Ok(Self { id, state, since, until: None, pair, sealed, modulus, exponent })
    }

    /// Reads a stored key.
    ///
    /// # Errors
    ///
    /// Fails if the document is not a key, or if the vault cannot open it.
    pub(crate) fn read(vault: &Vault, document: &Document) -> Result<Versioned<Self>, ReadError> {
        let read = || {
            let body: Value = serde_json::from_slice(&document.value).ok()?;
            let id = String::from_utf8(document.key.clone()).ok()?;
            let sealed = URL_SAFE_NO_PAD.decode(body["sealed"].as_str()?).ok()?;
            let pair = RsaKeyPair::from_pkcs8(&vault.unseal(id.as_bytes(), &sealed)?).ok()?;
            let (modulus, exponent) = public(&pair);
            let until = match &body["until"] {
                Value::Null => None,
                until => Some(Timestamp::from_micros(until.as_i64()?)),
            };
            let since = Timestamp::from_micros(body["since"].as_i64()?);
            let state = State::parse(body["state"].as_str()?)?;
            (thumbprint(&modulus, &exponent) == id).then_some(Self {
                id,
                state,
                since,
                until,
                pair,
                sealed,
                modulus,
                exponent,
            })
        };
        let value = read().ok_or_else(|| damaged("a key that signs tokens"))?;
        Ok(Versioned { value, version: document.version })
    }

    /// Returns the change that stores the key with this state.
    pub(crate) fn put(
        &self,
        state: State,
        since: Timestamp,
        until: Option<Timestamp>,
        expected: Expected,
    ) -> DocumentChange {
        let body = json!({
            "state": state.name(),
            "since": since.as_micros(),
            "until": until.map(Timestamp::as_micros),
            "sealed": URL_SAFE_NO_PAD.encode(&self.sealed)
        });
        put(AUTH_KEYS, self.id.as_bytes(), body.to_string().into_bytes(), vec![], expected)
    }

    /// Returns a signed token with this type and these claims.
    ///
    /// # Errors
    ///
    /// Fails if the signature cannot be computed. The error is for the log.
    pub(crate) fn sign(&self, kind: &str, claims: &Value) -> Result<String, SigningError> {
        let header = json!({"alg": "RS256", "kid": self.id, "typ": kind});
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let mut token = format!("{}.{}", part(&header), part(claims));
        let mut signature = vec![0; self.pair.public_modulus_len()];
        self.pair
            .sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), token.as_bytes(), &mut signature)
            .map_err(|_| SigningError::Sign)?;
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut token);
        Ok(token)
    }

    /// Returns the public part as a member of a key set (RFC 7517).
    pub(crate) fn public(&self) -> Value {
        json!({
            "use": "sig",
            "kty": "RSA",
            "kid": self.id,
            "alg": "RS256",
            "n": URL_SAFE_NO_PAD.encode(&self.modulus),
            "e": URL_SAFE_NO_PAD.encode(&self.exponent)
        })
    }
}

fn public(pair: &RsaKeyPair) -> (Vec<u8>, Vec<u8>) {
    let key = pair.public_key();
    let bytes = |number: aws_lc_rs::io::Positive<'_>| number.big_endian_without_leading_zero().to_vec();
    (bytes(key.modulus()), bytes(key.exponent()))
}

/// Returns the thumbprint of a public key: the hash of its required members in the order of RFC 7638.
fn thumbprint(modulus: &[u8], exponent: &[u8]) -> String {
    let [n, e] = [modulus, exponent].map(|number| URL_SAFE_NO_PAD.encode(number));
    URL_SAFE_NO_PAD.encode(Sha256::digest(format!(r#"{{"e":"{e}","kty":"RSA","n":"{n}"}}"#)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thumbprints_are_those_of_the_standard() {
        // The example of RFC 7638, section 3.1.
        let modulus = "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw";
        let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).expect("base64");
        assert_eq!(
            thumbprint(&decode(modulus), &decode("AQAB")),
            "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"
        );
    }
}
