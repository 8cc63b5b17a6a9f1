//! The metadata by which other servers of the ledger API mark a transaction that reverts another. Its text is part of
//! wire hashes, so a log has to hold it.

use ledger_values::{Metadata, TransactionId};

/// Metadata key of a reverting transaction. Its value is the id of the original as decimal text.
pub const REVERTS_KEY: &str = "com.formance.spec/state/reverts";

/// Marks the metadata of a transaction that reverts `original`.
pub(crate) fn set(metadata: &mut Metadata, original: TransactionId) {
    metadata.insert_text(REVERTS_KEY, &original.get().to_string());
}

/// Removes the mark, which leaves the metadata of the request.
pub(crate) fn remove(metadata: &mut Metadata) {
    metadata.remove(REVERTS_KEY);
}
