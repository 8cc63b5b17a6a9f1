//! Fuzz target: parsing any text or any header and claims as a token never panics, and never accepts another
//! algorithm.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use stack_server::testing::reads_as_token;

/// Reads a token as clients send it, or lines with the header and claims of one.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    reads_as_token(text);
    let (header, claims) = text.split_once('\n').unwrap_or((text, "{}"));
    let encode = |part: &str| URL_SAFE_NO_PAD.encode(part);
    let token = format!("{}.{}.{}", encode(header), encode(claims), encode("signature"));
    if reads_as_token(&token) {
        assert!(header.contains("RS256") || header.contains('\\'), "{header}");
        assert!(!reads_as_token(&format!("{token}.{}", encode("another"))), "{token}");
    }
}
