//! Laws of cursors; they stand beside the cursors.

/// The bytes are a text that may be a cursor, and the query of another.
pub fn run(data: &[u8]) {
    stack_server::testing::cursor_laws(data);
}
