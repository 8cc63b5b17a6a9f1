//! The facts on which a decision rests, and the list of those that it needs.

use std::borrow::Cow;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::prior_request::PriorRequest;
use crate::schema::{Schema, SchemaError};
use ledger_values::{
    AccountAddress, Asset, IdempotencyKey, Metadata, Postings, Reference, SchemaVersion, Timestamp,
    TransactionId, Volumes,
};

/// The name of a holding: an asset in an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldingRef<'a> {
    /// The account that holds the asset.
    pub account: &'a AccountAddress,
    /// The asset that is held.
    pub asset: &'a Asset,
}

/// Indexes of a posting's source and destination in [`Needs::holdings`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    /// Index of the source's holding.
    pub source: u32,
    /// Index of the destination's holding.
    pub destination: u32,
}

/// The [`Slots`] of each posting, in order.
pub type SlotList = SmallVec<[Slots; 2]>;

/// The facts that a decision requires. Fields that are `None` or empty require nothing.
#[derive(Debug, Default)]
pub struct Needs<'a> {
    /// Idempotency key of the request: the decision requires the earlier request that used it. If there is one, it
    /// requires nothing else.
    pub idempotency_key: Option<&'a IdempotencyKey>,
    /// Schema version that the request names: the decision requires its content.
    pub named_schema: Option<&'a SchemaVersion>,
    /// True if the decision requires whether the ledger has schema versions.
    pub has_schemas: bool,
    /// The transaction that the command changes or reverts.
    pub transaction: Option<TransactionId>,
    /// Holdings whose volumes are required, each once, in order of first use.
    pub holdings: SmallVec<[HoldingRef<'a>; 4]>,
    /// The indexes of each posting's holdings in `holdings`.
    pub slots: SlotList,
    /// Accounts whose metadata the command changes, in the order of the changes. [`Facts`] contains nothing about them:
    /// the caller records the changes there.
    pub accounts: SmallVec<[&'a AccountAddress; 1]>,
    /// Reference of the new transaction: the decision requires whether another transaction has it. A transaction that
    /// reverts another one has a reference only under the rules of API v1.
    pub reference: Option<Cow<'a, Reference>>,
    /// Indexes of the `holdings` whose accounts have a contract that reads their metadata.
    pub metadata: SmallVec<[u32; 2]>,
    /// Effective date of the new transaction, unless it is the date of its log entry.
    pub timestamp: Option<Timestamp>,
    /// True if the effective date of the last transaction is required.
    pub last_date: bool,
    /// Schema version to insert: the decision requires whether it exists.
    pub new_schema: Option<&'a SchemaVersion>,
    /// Accounts that may exist, in the order of the [conditions](crate::Preconditions) on them.
    pub existence: Vec<&'a AccountAddress>,
}

/// The facts about an existing transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownTransaction {
    /// The postings of the transaction.
    pub postings: Postings,
    /// The effective date of the transaction.
    pub timestamp: Timestamp,
    /// The reference of the transaction.
    pub reference: Option<Reference>,
    /// The current metadata of the transaction.
    pub metadata: Metadata,
    /// True if the transaction is reverted.
    pub reverted: bool,
}

/// The facts that answer [`Needs`]. Rare and large ones are boxed, because facts are made for every command.
#[derive(Debug, Default)]
pub struct Facts {
    /// The earlier request that used the idempotency key.
    pub prior: Option<Box<PriorRequest>>,
    /// The schema that the request names, or `None` if it does not exist. A later release may refuse a schema that was
    /// recorded; then it refuses the requests that name it.
    pub named_schema: Option<Arc<Result<Schema, SchemaError>>>,
    /// True if the ledger has schema versions.
    pub has_schemas: bool,
    /// Volumes in the order of [`Needs::holdings`]. [`crate::decide`] updates them to the volumes right after
    /// the transaction.
    pub volumes: SmallVec<[Volumes; 4]>,
    /// True if another transaction has the reference.
    pub reference_taken: bool,
    /// The requested transaction, or `None` if it does not exist.
    pub transaction: Option<Box<KnownTransaction>>,
    /// Metadata of accounts in the order of [`Needs::metadata`], each with the index of its holding.
    pub metadata: SmallVec<[(u32, Metadata); 1]>,
    /// Effective date of the last transaction, if it was required and there is one.
    pub last_date: Option<Timestamp>,
    /// True if the schema version to insert exists.
    pub schema_exists: bool,
    /// For each account of [`Needs::existence`], true if it exists.
    pub existence: Vec<bool>,
}
