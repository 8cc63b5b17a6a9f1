//! Postings and the transactions that hold them.

use compact_str::CompactString;
use smallvec::SmallVec;

use crate::amount::Amount;
use crate::metadata::Metadata;
use crate::names::{AccountAddress, Asset, Reference};
use crate::timestamp::Timestamp;
use crate::volumes::HoldingVolumes;

/// The number of a transaction in its ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransactionId(u64);

impl TransactionId {
    /// From the number.
    pub const fn new(id: u64) -> Self {
        Self(id)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The one after this.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// One movement of an amount of an asset from a source to a destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posting {
    /// The account that sends.
    pub source: AccountAddress,
    /// The account that receives.
    pub destination: AccountAddress,
    /// How much, in the asset's smallest unit; may be zero.
    pub amount: Amount,
    /// What.
    pub asset: Asset,
}

/// The postings of a transaction, in the order in which they are executed. One lives inline.
pub type Postings = SmallVec<[Posting; 1]>;

/// A transaction as it stands in a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Its number.
    pub id: TransactionId,
    /// Its movements, at least one.
    pub postings: Postings,
    /// Its metadata.
    pub metadata: Metadata,
    /// The effective date, chosen by the caller or else the insertion date.
    pub timestamp: Timestamp,
    /// The caller's name for it.
    pub reference: Option<Reference>,
    /// The schema template it was made from.
    pub template: Option<CompactString>,
    /// When the ledger recorded it.
    pub inserted_at: Timestamp,
    /// When its metadata or its reverted state last changed.
    pub updated_at: Timestamp,
    /// When it was reverted.
    pub reverted_at: Option<Timestamp>,
    /// The totals of every holding it touches right after it, in order of insertion; ascending by account
    /// and asset.
    pub post_commit_volumes: Vec<HoldingVolumes>,
}
