//! The request of a log entry, for recognizing repeated requests with the same idempotency key.

use ledger_values::SmolStr;

/// The kind of a command, and the id of the transaction that it targets. Accounts are not told apart. A request with a
/// used idempotency key never gets the log entry of another operation as its answer, even if there are no hashes to
/// compare.
///
/// ```
/// use ledger_core::{Command, Operation, Target, TransactionId};
/// let target = Target::Transaction(TransactionId::new(7));
/// let delete = Command::DeleteMetadata { target, key: "note".into() };
/// assert_eq!(Operation::of(&delete), Operation::DeleteMetadata(Some(7)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Records a transaction.
    Create,
    /// Reverts the transaction with this id.
    Revert(u64),
    /// Sets metadata of the transaction with this id, or of an account.
    SetMetadata(Option<u64>),
    /// Removes a metadata key of the transaction with this id, or of an account.
    DeleteMetadata(Option<u64>),
    /// Adds a version of the schema.
    InsertSchema,
}

/// A request that used an idempotency key before, as its log entry describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriorRequest {
    /// Hash of the request; empty if there is none.
    pub hash: SmolStr,
    /// True if another server may have computed the hash. It may use another function, so a difference proves nothing.
    pub foreign: bool,
    /// The kind and target of its command.
    pub operation: Operation,
}

impl PriorRequest {
    /// Returns whether a request counts as a repetition of this one. If `several` commands share the key, only the hash
    /// can tell, because nothing else records how many logs they created.
    pub(crate) fn is_repeated_by(&self, hash: &str, operation: Operation, several: bool) -> bool {
        let unknown = self.foreign || self.hash.is_empty() || hash.is_empty();
        let is_same =
            if several { self.hash == hash && !hash.is_empty() } else { self.hash == hash || unknown };
        self.operation == operation && is_same
    }
}
