//! Parses tokens. The parts of a parsed token are not verified.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a date may have a fraction, and is within a range when it is cut"
)]

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use crate::limits::TOKEN_BYTES_MAX;

/// A token that claims to be signed with RS256, the only accepted algorithm.
#[derive(Debug, PartialEq)]
pub(crate) struct Token<'a> {
    /// Id of the key that signed the token, according to its header.
    pub(crate) key: Option<String>,
    /// Type of the token according to its header.
    pub(crate) kind: Option<String>,
    pub(crate) issuer: String,
    /// Start of validity in seconds since the epoch, reduced by the tolerated difference of clocks.
    pub(crate) begins: u64,
    /// Expiry, in seconds since the epoch. At that second the token is no longer valid.
    pub(crate) expires: u64,
    pub(crate) scopes: Vec<String>,
    /// All claims.
    pub(crate) claims: Value,
    /// The text that the signature covers: header and claims.
    pub(crate) signed: &'a str,
    pub(crate) signature: Vec<u8>,
}

impl<'a> Token<'a> {
    /// Parses a token. Returns `None` if the text is not a token, is too long, is not signed with RS256, or lacks a
    /// required claim.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        if text.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let (signed, signature) = text.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        if claims.contains('.') {
            return None;
        }
        let header = json_object(header)?;
        // This server decides which keys it trusts, so it ignores members that bring a key or its address, such as
        // `jwk` and `jku`. It supports no critical extensions.
        if header.get("alg")?.as_str()? != "RS256" || header.get("crit").is_some() {
            return None;
        }
        let key = match header.get("kid") {
            None | Some(Value::Null) => None,
            Some(kid) => Some(kid.as_str()?.to_owned()),
        };
        let claims = json_object(claims)?;
        let begins = match claims.get("nbf") {
            None | Some(Value::Null) => 0,
            Some(date) => seconds(date)?.saturating_sub(CLOCK_LEEWAY),
        };
        Some(Self {
            key,
            kind: header.get("typ").and_then(Value::as_str).map(str::to_owned),
            begins,
            issuer: claims.get("iss")?.as_str()?.to_owned(),
            expires: seconds(claims.get("exp")?)?,
            scopes: scopes(claims.get("scope"))?,
            claims,
            signed,
            signature: URL_SAFE_NO_PAD.decode(signature).ok()?,
        })
    }
}

impl Token<'_> {
    /// Returns whether the token is valid at this time, in seconds since the epoch, according to its dates.
    pub(crate) const fn is_valid_at(&self, now: u64) -> bool {
        self.begins <= now && now < self.expires
    }

    /// Returns the claim with this name if it is a text.
    pub(crate) fn claim(&self, name: &str) -> Option<&str> {
        self.claims.get(name)?.as_str()
    }

    /// Returns the audience of the token. The claim is one name or a list of names.
    pub(crate) fn audience(&self) -> Vec<&str> {
        match self.claims.get("aud") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => vec![],
        }
    }
}

/// Tolerated difference, in seconds, by which an issuer's clock may be ahead of this server's.
pub(crate) const CLOCK_LEEWAY: u64 = 30;

/// Decodes the header or the claims of a token: a JSON object in base64.
fn json_object(text: &str) -> Option<Value> {
    let value: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
    value.is_object().then_some(value)
}

/// Reads a date of a token: a number of seconds, possibly with a fraction.
pub(crate) fn seconds(value: &Value) -> Option<u64> {
    const LAST: f64 = 253_402_300_800.0;
    match (value.as_u64(), value.as_f64()) {
        (Some(seconds), _) if (seconds as f64) < LAST => Some(seconds),
        // The fraction is dropped, so the token never expires later than it says.
        (None, Some(seconds)) if (0.0..LAST).contains(&seconds) => Some(seconds as u64),
        _ => None,
    }
}

/// Reads scopes: a text with spaces between the names, or a list. A missing claim means no scopes.
fn scopes(value: Option<&Value>) -> Option<Vec<String>> {
    match value {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::String(text)) => Some(text.split(' ').map(str::to_owned).collect()),
        Some(Value::Array(items)) => items.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(header: &str, claims: &str) -> String {
        format!("{}.{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims), "AAAA")
    }

    #[test]
    fn a_token_is_read() {
        let text = token(
            r#"{"alg":"RS256","kid":"k","typ":"JWT","jku":"http://evil"}"#,
            r#"{"iss":"http://i","exp":1718003600,"scope":"openid ledger:read","aud":["x"]}"#,
        );
        let token = Token::parse(&text).expect("the token is well formed");
        assert_eq!(token.key.as_deref(), Some("k"));
        assert_eq!((token.issuer.as_str(), token.expires), ("http://i", 1_718_003_600));
        assert_eq!(token.scopes, ["openid", "ledger:read"]);
        assert!(text.starts_with(token.signed) && token.signature == [0, 0, 0]);
    }

    #[test]
    fn refuses_malformed_tokens() {
        let good = r#"{"iss":"i","exp":1}"#;
        let rs256 = r#"{"alg":"RS256"}"#;
        assert!(Token::parse(&token(rs256, good)).is_some());
        for header in [
            r#"{"alg":"none"}"#,
            r#"{"alg":"None"}"#,
            r#"{"alg":""}"#,
            r#"{"alg":"HS256"}"#,
            r#"{"alg":"RS512"}"#,
            r#"{"alg":"PS256"}"#,
            r#"{"alg":"rs256"}"#,
            r#"{"alg":["RS256"]}"#,
            r#"{"alg":null}"#,
            r#"{"typ":"JWT"}"#,
            r#"{"alg":"RS256","kid":7}"#,
            r#"{"alg":"RS256","crit":["x"]}"#,
            r#"["RS256"]"#,
            "RS256",
        ] {
            assert_eq!(Token::parse(&token(header, good)), None, "{header}");
        }
        for claims in [
            "{}",
            "[]",
            r#"{"iss":"i"}"#,
            r#"{"exp":1}"#,
            r#"{"iss":"i","exp":"1"}"#,
            r#"{"iss":"i","exp":-1}"#,
            r#"{"iss":"i","exp":null}"#,
            r#"{"iss":"i","exp":[1]}"#,
            r#"{"iss":"i","exp":1e30}"#,
            r#"{"iss":"i","exp":1000000000000000000000000000000}"#,
            r#"{"iss":["i"],"exp":1}"#,
            r#"{"iss":"i","exp":1,"nbf":"0"}"#,
            r#"{"iss":"i","exp":1,"scope":7}"#,
            r#"{"iss":"i","exp":1,"scope":[7]}"#,
        ] {
            assert_eq!(Token::parse(&token(rs256, claims)), None, "{claims}");
        }
        let whole = token(rs256, good);
        for text in ["", ".", "..", "a.b.c", "a", &format!("{whole}.AAAA"), &whole[1..], &format!("{whole}=")]
        {
            assert_eq!(Token::parse(text), None, "{text}");
        }
        let long = "x".repeat(TOKEN_BYTES_MAX);
        assert_eq!(Token::parse(&token(rs256, &format!(r#"{{"iss":"i","exp":1,"x":"{long}"}}"#))), None);
    }

    #[test]
    fn a_date_may_have_a_fraction() {
        for (text, seconds) in [("1.9", Some(1)), ("0", Some(0)), ("1e3", Some(1_000)), ("-0.5", None)] {
            let text = token(r#"{"alg":"RS256"}"#, &format!(r#"{{"iss":"i","exp":{text}}}"#));
            assert_eq!(Token::parse(&text).map(|token| token.expires), seconds);
        }
    }
}
