//! Fuzz target: any bytes behind `Authorization` are a token, an id with a secret, something else, or refused: no panic.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use stack_server::testing::{reads_as_basic, reads_as_bearer};

/// The bytes are a header, and also the text inside one.
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
    // Text without escapes is what it says.
    if !text.contains(['%', '+']) {
        assert_eq!(text.split_once(':'), Some((id.as_str(), secret.as_str())));
    }
}
