//! Fuzz target: laws of list cursors, which `stack_server::testing` defines.

/// Reads a text that may be a cursor, and a query for another one.
pub fn run(data: &[u8]) {
    stack_server::testing::cursor_laws(data);
}
