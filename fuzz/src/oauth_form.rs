//! Fuzz target: parsing any body of a form never panics. An accepted form has each parameter only once.

use stack_server::testing::reads_as_form;

/// Reads a line with the name of a parameter, and the body of a form.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (name, body) = text.split_once('\n').unwrap_or(("scope", text));
    if let Some(value) = reads_as_form(body, name).flatten() {
        assert!(!value.is_empty());
        // A form that contains a parameter twice is refused, even if other parameters are between the two.
        assert_eq!(reads_as_form(&format!("{body}&{body}"), name), None);
    }
}
