//! Fuzz target: any text behind `Authorization` is an id with a secret, something else, or refused: no panic.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use stack_server::testing::reads_as_basic;

/// The bytes are a header, and also the text inside one.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    reads_as_basic(text);
    let Some((id, secret)) = reads_as_basic(&format!("Basic {}", STANDARD.encode(text))) else { return };
    // Text without escapes is what it says.
    if !text.contains(['%', '+']) {
        assert_eq!(text.split_once(':'), Some((id.as_str(), secret.as_str())));
    }
}
