//! Fuzz target: parsing any value of the header `Authorization` never panics. A value is a token, an id with a secret,
//! something else, or refused.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use stack_server::testing::{reads_as_basic, reads_as_bearer};

/// Uses the bytes as the value of a header, and then as the text that is encoded in one.
pub fn run(data: &[u8]) {
    let token = reads_as_bearer(data);
    let pair = reads_as_basic(data);
    assert!(token.is_none() || pair.is_none(), "{data:?} has two schemes");
    if let Some(token) = token {
        assert!(!token.is_empty() && data[1..].strip_prefix(b"earer ") == Some(&token), "{data:?}");
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    let header = format!("Basic {}", STANDARD.encode(text));
    assert_eq!(reads_as_bearer(header.as_bytes()), None);
    let Some((id, secret)) = reads_as_basic(header.as_bytes()) else { return };
    // A text without escapes is its own value.
    if !text.contains(['%', '+']) {
        assert_eq!(text.split_once(':'), Some((id.as_str(), secret.as_str())));
    }
}
