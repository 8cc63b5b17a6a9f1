//! Fuzz target: laws of the filters of payments lists. The server defines them beside its filters.

/// Reads the text of a filter.
pub fn run(data: &[u8]) {
    stack_server::testing::payment_filter_laws(data);
}
