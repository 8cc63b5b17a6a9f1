//! Fuzz target: any body of a form has each parameter once, or is refused: no panic.

use stack_server::testing::reads_as_form;

/// The bytes are a body; its first line is the name of a parameter.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (name, body) = text.split_once('\n').unwrap_or(("scope", text));
    if let Some(value) = reads_as_form(body, name).flatten() {
        assert!(!value.is_empty());
        // The same parameter twice is refused, whatever stands between.
        assert_eq!(reads_as_form(&format!("{body}&{body}"), name), None);
    }
}
