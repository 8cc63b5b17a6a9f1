//! Facts about an entry that the writer finds before it applies the entry, so that applying it reads nothing.

use ledger_core::{AccountAddress, Metadata};
use ledger_index::SharedBytes;
use smallvec::SmallVec;

use super::locate::Located;
use super::prefetch::KeyPrints;
use crate::documents::TransactionDocument;
use crate::error::ReadError;

/// Known facts about the accounts, transaction, document or schema that an entry names. A replay of the journal knows
/// only `original`.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    /// Locations of the accounts that the entry names: first the accounts of its holdings, in the order of the
    /// holdings, then the accounts whose metadata it changes. Empty if they were not looked up.
    pub(crate) located: SmallVec<[Located; 4]>,
    /// Metadata of the transaction that the entry changes or reverts, as first recorded.
    pub(crate) original: Option<Metadata>,
    /// The current state of that transaction. Absent if nothing has changed the transaction since it was recorded.
    pub(crate) changed: PriorValue<Box<TransactionDocument>>,
    /// The stored value that the entry replaces, if the entry writes a document or a schema.
    pub(crate) stored: PriorValue<SharedBytes>,
    /// Fingerprints of the idempotency key and the reference, if they were computed before.
    pub(crate) prints: KeyPrints,
    /// Default metadata from the schema's chart for each account that no earlier entry used, ascending by address.
    pub(crate) defaults: Vec<(AccountAddress, Metadata)>,
}

/// The value that an entry replaces. The writer reads it before it changes any state, so that a failed read leaves no
/// change half done. A replay of the journal reads it while it applies the entry.
#[derive(Debug, Default)]
pub(crate) enum PriorValue<T> {
    /// The value was not looked up.
    #[default]
    Unread,
    /// The lookup found no value.
    Absent,
    /// The lookup found this value.
    Found(T),
}

impl<T: Clone> PriorValue<T> {
    /// Creates the prior value from the result of a lookup.
    pub(crate) fn of(found: Option<T>) -> Self {
        found.map_or(Self::Absent, Self::Found)
    }

    /// Returns the value, or `None` if it is absent. Calls `read` if the value was not looked up.
    pub(super) fn or_read(
        &self,
        read: impl FnOnce() -> Result<Option<T>, ReadError>,
    ) -> Result<Option<T>, ReadError> {
        match self {
            Self::Unread => read(),
            Self::Absent => Ok(None),
            Self::Found(found) => Ok(Some(found.clone())),
        }
    }
}
