//! What a command must know before it can be decided.
//!
//! Reading comes first and decides nothing; deciding comes after and reads nothing. So the same command on
//! the same facts has one outcome, and a store may load as it likes.

use smallvec::SmallVec;

use crate::command::{Command, Movement, Target};
use crate::legacy::{PastDates, Rules};
use crate::metadata::Metadata;
use crate::names::{AccountAddress, Asset, Reference, SchemaVersion};
use crate::timestamp::Timestamp;
use crate::transaction::{Posting, Postings, TransactionId};
use crate::volumes::Volumes;

/// An asset in an account, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldingRef<'a> {
    /// The account.
    pub account: &'a AccountAddress,
    /// The asset.
    pub asset: &'a Asset,
}

/// Where a posting's source and destination stand in [`Needs::holdings`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    /// Index of the source's holding.
    pub source: u32,
    /// Index of the destination's holding.
    pub destination: u32,
}

/// The [`Slots`] of each posting, in order.
pub type SlotList = SmallVec<[Slots; 2]>;

/// The facts that a command asks for. What is `None` or empty is not asked for.
#[derive(Debug, Default)]
pub struct Needs<'a> {
    /// Volumes of these holdings, each named once, in order of first mention.
    pub holdings: SmallVec<[HoldingRef<'a>; 4]>,
    /// For each posting, its place in `holdings`.
    pub slots: SlotList,
    /// Whether this reference is taken.
    pub reference: Option<&'a Reference>,
    /// What is known of this transaction.
    pub transaction: Option<TransactionId>,
    /// Which of `holdings` belong to accounts whose metadata a contract asks for.
    pub metadata: SmallVec<[u32; 2]>,
    /// Whether the effective date of the last transaction counts.
    pub last_date: bool,
    /// Whether there is a schema version of this name.
    pub schema: Option<&'a SchemaVersion>,
}

/// What is known of an existing transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownTransaction {
    /// Its postings.
    pub postings: Postings,
    /// Its effective date.
    pub timestamp: Timestamp,
    /// Its reference.
    pub reference: Option<Reference>,
    /// Its metadata now.
    pub metadata: Metadata,
    /// Whether it is reverted.
    pub reverted: bool,
}

/// The answers to [`Needs`].
#[derive(Debug, Default)]
pub struct Facts {
    /// Volumes, in the order of [`Needs::holdings`]. [`crate::decide`] moves them forward: afterwards they
    /// are the volumes right after the transaction.
    pub volumes: SmallVec<[Volumes; 4]>,
    /// Whether the reference is taken.
    pub reference_taken: bool,
    /// The transaction asked for, or `None` if there is none.
    pub transaction: Option<KnownTransaction>,
    /// Metadata of accounts, in the order of [`Needs::metadata`], with the index of the holding.
    pub metadata: SmallVec<[(u32, Metadata); 1]>,
    /// The effective date of the last transaction, where it was asked for and there is one.
    pub last_date: Option<Timestamp>,
    /// Whether the schema version asked for exists.
    pub schema_exists: bool,
}

/// Says what `command` must know.
///
/// A revert is asked about twice: first with `original` `None`, which asks for the transaction, then with
/// what was found, which asks for its holdings. A script asks for itself while it is
/// [settled](crate::script::settle) into postings; before that nothing is known of what it moves.
pub fn needs<'a>(command: &'a Command, original: Option<&'a KnownTransaction>) -> Needs<'a> {
    let mut needs = Needs::default();
    match command {
        Command::CreateTransaction(create) => {
            needs.reference = create.reference.as_ref();
            if let Movement::Postings(postings) = &create.movement {
                add_holdings(&mut needs, postings.iter());
            }
            add_legacy(&mut needs, &create.rules);
        }
        Command::RevertTransaction(revert) => {
            needs.transaction = Some(revert.id);
            if let Some(original) = original {
                // The new transaction's postings are the original's in reverse order, ends exchanged.
                add_holdings(&mut needs, original.postings.iter().rev());
                for slots in &mut needs.slots {
                    std::mem::swap(&mut slots.source, &mut slots.destination);
                }
            }
            add_legacy(&mut needs, &revert.rules);
        }
        Command::SetMetadata { target: Target::Transaction(id), .. }
        | Command::DeleteMetadata { target: Target::Transaction(id), .. } => needs.transaction = Some(*id),
        Command::SetMetadata { target: Target::Account(_), .. }
        | Command::DeleteMetadata { target: Target::Account(_), .. } => {}
        Command::InsertSchema(insert) => needs.schema = Some(&insert.version),
    }
    needs
}

/// Adds what the rules of the first generation ask for.
fn add_legacy(needs: &mut Needs<'_>, rules: &Rules) {
    let Rules::Legacy(rules) = rules else { return };
    needs.last_date = rules.past_dates == PastDates::Refuse;
    let accounts = needs.holdings.iter().zip(0..);
    needs.metadata = accounts
        .filter(|(holding, _)| rules.mapping.asks_metadata_of(holding.account))
        .map(|(_, at)| at)
        .collect();
}

/// Above this many holdings the search for one already named goes by a sorted index instead of by a look at
/// each.
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
