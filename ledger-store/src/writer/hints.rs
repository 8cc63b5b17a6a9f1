//! Facts about an entry that are found before the entry is applied, so that applying it reads nothing.

use ledger_core::{AccountAddress, Metadata};
use ledger_index::SharedBytes;
use ledger_journal::Position;
use smallvec::SmallVec;

use super::locate::Located;
use super::prefetch::KeyFingerprints;
use crate::documents::TransactionDocument;

/// The state of the accounts, the transaction, the document or the schema that an entry changes. The writer finds it with
/// the facts of a command ([`super::load`]), a replay with the numbers in the entry ([`super::replay_load`]).
#[derive(Debug, Default)]
pub(crate) struct Hints {
    /// Locations of the accounts that the entry names: first the accounts of its holdings, in the order of the
    /// holdings, then the accounts whose metadata it changes. The documents of those that it changes are in memory.
    pub(crate) located: SmallVec<[Located; 4]>,
    /// The entry that used the idempotency key of the request before.
    pub(crate) prior: Option<Position>,
    /// The transaction that the entry changes or reverts.
    pub(crate) transaction: Option<PriorTransaction>,
    /// The stored value that the entry replaces, if the entry writes a document or a schema and there is one.
    pub(crate) stored: Option<SharedBytes>,
    /// Fingerprints of the idempotency key and the reference, if they were computed before.
    pub(crate) key_fingerprints: KeyFingerprints,
    /// Default metadata from the schema's chart for each account that no earlier entry used, ascending by address.
    pub(crate) defaults: Vec<(AccountAddress, Metadata)>,
}

/// A transaction before an entry changes or reverts it.
#[derive(Debug)]
pub(crate) enum PriorTransaction {
    /// Nothing has changed it since it was recorded with this metadata.
    AsRecorded(Metadata),
    /// Its current state.
    Changed(Box<TransactionDocument>),
}
