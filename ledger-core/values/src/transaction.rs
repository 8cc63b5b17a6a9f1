//! Postings and transactions.

use smallvec::SmallVec;
use smol_str::SmolStr;

use crate::amount::Amount;
use crate::metadata::Metadata;
use crate::names::{AccountAddress, Asset, Reference};
use crate::timestamp::Timestamp;
use crate::volumes::HoldingVolumes;

/// The number of a transaction in its ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransactionId(u64);

impl TransactionId {
    /// Makes an id from its number.
    pub const fn new(id: u64) -> Self {
        Self(id)
    }

    /// Returns the number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the next id.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// One movement of an amount of an asset from a source to a destination.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Posting {
    /// The account that the amount leaves.
    pub source: AccountAddress,
    /// The account that the amount enters.
    pub destination: AccountAddress,
    /// The amount in the smallest unit of the asset. May be zero.
    pub amount: Amount,
    /// The asset that moves.
    pub asset: Asset,
}

/// The postings of a transaction in the order of their execution. A single posting needs no allocation.
pub type Postings = SmallVec<[Posting; 1]>;

/// A transaction as a ledger shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "camelCase"))]
pub struct Transaction {
    /// Number of the transaction.
    pub id: TransactionId,
    /// The movements of the transaction, at least one.
    pub postings: Postings,
    /// The metadata of the transaction.
    pub metadata: Metadata,
    /// The effective date: the caller's choice, or else the insertion date.
    pub timestamp: Timestamp,
    /// The name that the caller gave to the transaction.
    pub reference: Option<Reference>,
    /// The template of the schema that produced the postings.
    pub template: Option<SmolStr>,
    /// The insertion date: when the ledger recorded the transaction.
    pub inserted_at: Timestamp,
    /// The date of the last change of the metadata or of the reversal.
    pub updated_at: Timestamp,
    /// The date at which the transaction was reverted.
    pub reverted_at: Option<Timestamp>,
    /// Volumes of every holding that the transaction touches, right after it in order of insertion. Sorted by
    /// account and asset.
    pub post_commit_volumes: Vec<HoldingVolumes>,
}
