//! Shared code of the benches.
