//! Conditions that several lists have.

use ledger_core::{FilterError, FilterOf, Operator, Selects};

/// Selects by the pattern of an address, in which `*` or nothing stands for any one segment.
pub(super) fn address<R: Selects>(field: &str, pattern: &str) -> Result<FilterOf<R>, FilterError> {
    // In filters the segment is empty.
    let segments: Vec<&str> =
        pattern.split(':').map(|segment| if segment == "*" { "" } else { segment }).collect();
    FilterOf::field(field, Operator::Match, segments.join(":"))
}

/// Selects by the value of a metadata key.
pub(super) fn metadata<R: Selects>(key: &str, value: &str) -> Result<FilterOf<R>, FilterError> {
    FilterOf::field(&format!("metadata[{key}]"), Operator::Match, value)
}
