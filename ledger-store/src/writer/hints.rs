//! Facts about an entry that were found before it is applied, so that applying it reads nothing.

use ledger_core::{AccountAddress, Metadata};
use smallvec::SmallVec;

use super::ahead::KeyPrints;
use super::locate::Located;
use crate::documents::TransactionDocument;
use crate::error::ReadError;

/// Known facts about the things that an entry names.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    /// Where its accounts are, in the order in which it names them: its holdings', then those whose metadata
    /// it sets. Empty where that is not known, as in a replay.
    pub(crate) located: SmallVec<[Located; 4]>,
    /// The metadata with which the transaction was recorded that it changes or reverts.
    pub(crate) original: Option<Metadata>,
    /// The changes of that transaction so far.
    pub(crate) changed: Prior<Box<TransactionDocument>>,
    /// The value where the entry puts a document or a schema.
    pub(crate) stored: Prior<Box<[u8]>>,
    /// The fingerprints of its keys.
    pub(crate) prints: KeyPrints,
    /// Metadata that the chart of a schema gives to the accounts that it is the first to use, ascending by address.
    pub(crate) defaults: Vec<(AccountAddress, Metadata)>,
}

/// The value where an entry puts something. The writer reads it before it changes anything, so that a failed read
/// leaves nothing half done; a replay reads it when it gets there.
#[derive(Debug, Default)]
pub(crate) enum Prior<T> {
    /// It was not looked up.
    #[default]
    Unread,
    /// There is nothing.
    Absent,
    /// This.
    Found(T),
}

impl<T: Clone> Prior<T> {
    /// The result of a lookup.
    pub(crate) fn of(found: Option<T>) -> Self {
        found.map_or(Self::Absent, Self::Found)
    }

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
