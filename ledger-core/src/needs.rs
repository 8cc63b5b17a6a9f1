//! The needs of a command: the facts that its decision requires.
//!
//! The caller first loads all facts and then decides without reading. So a command has one outcome for equal
//! facts, and a store is free in how it loads them.

use std::borrow::Cow;

use smallvec::SmallVec;

use crate::command::{Command, Movement, RevertDate, Target};
use crate::limits::{METADATA_BYTES_MAX, POSTINGS_MAX};
use crate::rejection::Rejection;
use crate::rules::{PastDates, Rules};
use ledger_values::{
    AccountAddress, Amount, Asset, Metadata, Posting, Postings, Reference, SchemaVersion, Timestamp, Volumes,
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
    /// Whether the effective date of the last transaction is required.
    pub last_date: bool,
    /// Schema version to insert: the decision requires whether it exists.
    pub schema: Option<&'a SchemaVersion>,
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
    /// Whether the transaction is reverted.
    pub reverted: bool,
}

/// The facts that answer [`Needs`].
#[derive(Debug, Default)]
pub struct Facts {
    /// Volumes in the order of [`Needs::holdings`]. [`crate::decide`] updates them to the volumes right after
    /// the transaction.
    pub volumes: SmallVec<[Volumes; 4]>,
    /// Whether another transaction has the reference.
    pub reference_taken: bool,
    /// The requested transaction, or `None` if it does not exist.
    pub transaction: Option<KnownTransaction>,
    /// Metadata of accounts in the order of [`Needs::metadata`], each with the index of its holding.
    pub metadata: SmallVec<[(u32, Metadata); 1]>,
    /// Effective date of the last transaction, if it was required and there is one.
    pub last_date: Option<Timestamp>,
    /// Whether the requested schema version exists.
    pub schema_exists: bool,
    /// For each account of [`Needs::existence`], true if it exists.
    pub existence: Vec<bool>,
}

/// Lists the facts that deciding `command` requires.
///
/// The caller first loads the transaction that the command names ([`Command::transaction`]) and passes it as
/// `original`: a revert requires the holdings of its postings. A script asks for its own data while it is
/// [settled](crate::settle()) into postings. Before that it requires only the facts for
/// [`crate::check_before_script`].
pub fn needs<'a>(command: &'a Command, original: Option<&'a KnownTransaction>) -> Needs<'a> {
    let mut needs = Needs::default();
    match command {
        Command::CreateTransaction(create) => {
            needs.timestamp = create.timestamp;
            needs.reference = create.reference.as_ref().map(Cow::Borrowed);
            if let Movement::Postings(postings) = &create.movement {
                add_holdings(&mut needs, postings.iter());
                needs.accounts.extend(create.account_metadata.keys());
            }
            add_legacy(&mut needs, &create.rules);
        }
        Command::RevertTransaction(revert) => {
            if let Some(original) = original {
                needs.timestamp = (revert.dated == RevertDate::OfOriginal).then_some(original.timestamp);
                needs.reference = reverting_reference(&revert.rules, original).map(Cow::Owned);
                // The new transaction has the original's postings in reverse order with source and
                // destination exchanged.
                add_holdings(&mut needs, original.postings.iter().rev());
                for slots in &mut needs.slots {
                    std::mem::swap(&mut slots.source, &mut slots.destination);
                }
            }
            add_legacy(&mut needs, &revert.rules);
        }
        Command::SetMetadata { target: Target::Account(account), .. }
        | Command::DeleteMetadata { target: Target::Account(account), .. } => needs.accounts.push(account),
        Command::SetMetadata { target: Target::Transaction(_), .. }
        | Command::DeleteMetadata { target: Target::Transaction(_), .. } => {}
        Command::InsertSchema(insert) => needs.schema = Some(&insert.version),
    }
    needs
}

/// Checks the counts and sizes of a command before anything is loaded for it. A script is checked when it is
/// [settled](crate::settle()).
///
/// # Errors
///
/// [`Rejection::TooManyPostings`] or [`Rejection::MetadataTooLarge`].
pub fn check_sizes(command: &Command) -> Result<(), Rejection> {
    match command {
        Command::CreateTransaction(create) => {
            let Movement::Postings(postings) = &create.movement else { return Ok(()) };
            if postings.len() > POSTINGS_MAX {
                return Err(Rejection::TooManyPostings { postings: postings.len() });
            }
            check_metadata_size(&create.metadata)?;
            create.account_metadata.values().try_for_each(check_metadata_size)
        }
        Command::RevertTransaction(revert) => check_metadata_size(&revert.metadata),
        Command::SetMetadata { metadata, .. } => check_metadata_size(metadata),
        Command::DeleteMetadata { .. } | Command::InsertSchema(_) => Ok(()),
    }
}

/// Returns the reference of the transaction that reverts `original`. Returns `None` under current rules, and
/// if the original's reference is absent or too long to extend.
pub(crate) fn reverting_reference(rules: &Rules, original: &KnownTransaction) -> Option<Reference> {
    match (rules, &original.reference) {
        (Rules::Legacy(_), Some(reference)) => {
            Reference::parse(&format!("revert_{}", reference.as_str())).ok()
        }
        _ => None,
    }
}

fn check_metadata_size(metadata: &Metadata) -> Result<(), Rejection> {
    match metadata.text_bytes() {
        bytes if bytes > METADATA_BYTES_MAX => Err(Rejection::MetadataTooLarge { bytes }),
        _ => Ok(()),
    }
}

/// Returns the sum of the amounts that postings take from a holding.
pub(crate) fn paid_from(source: u32, postings: &[Posting], slots: &[Slots]) -> Amount {
    let mut sum = Amount::ZERO;
    for (posting, _) in postings.iter().zip(slots).filter(|(_, slots)| slots.source == source) {
        sum += &posting.amount;
    }
    sum
}

/// Adds the facts that the rules of API v1 require.
fn add_legacy(needs: &mut Needs<'_>, rules: &Rules) {
    let Rules::Legacy(rules) = rules else { return };
    needs.last_date = rules.past_dates == PastDates::Refuse;
    let indexed = needs.holdings.iter().zip(0..);
    needs.metadata = indexed
        .filter(|(holding, _)| rules.mapping.asks_metadata_of(holding.account))
        .map(|(_, at)| at)
        .collect();
}

/// Maximum number of holdings for a linear search. Above it, a sorted index is faster.
const LINEAR_SEARCH_MAX: usize = 16;

fn add_holdings<'a>(needs: &mut Needs<'a>, postings: impl ExactSizeIterator<Item = &'a Posting>) {
    if postings.len() > LINEAR_SEARCH_MAX / 2 {
        return add_many_holdings(needs, postings);
    }
    for posting in postings {
        let mut slot = |account: &'a AccountAddress| {
            let holding = HoldingRef { account, asset: &posting.asset };
            let at = needs.holdings.iter().position(|have| *have == holding).unwrap_or_else(|| {
                needs.holdings.push(holding);
                needs.holdings.len() - 1
            });
            at as u32
        };
        let slots = Slots { source: slot(&posting.source), destination: slot(&posting.destination) };
        needs.slots.push(slots);
    }
}

fn add_many_holdings<'a>(needs: &mut Needs<'a>, postings: impl ExactSizeIterator<Item = &'a Posting>) {
    let mut known = std::collections::BTreeMap::new();
    for posting in postings {
        let mut slot = |account: &'a AccountAddress| {
            *known.entry((account, &posting.asset)).or_insert_with(|| {
                needs.holdings.push(HoldingRef { account, asset: &posting.asset });
                needs.holdings.len() as u32 - 1
            })
        };
        let slots = Slots { source: slot(&posting.source), destination: slot(&posting.destination) };
        needs.slots.push(slots);
    }
}
