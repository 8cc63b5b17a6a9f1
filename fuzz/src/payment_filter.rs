//! Fuzz target: laws of the filters of payment lists, which `stack_server::testing` defines.

/// Reads the text of a filter.
pub fn run(data: &[u8]) {
    stack_server::testing::payment_filter_laws(data);
}
