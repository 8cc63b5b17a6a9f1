//! The needs of a command: the facts that its decision requires.
//!
//! The caller first loads all facts and then decides without reading. So a command has one outcome for equal
//! facts, and a store is free in how it loads them.

#![allow(clippy::cast_possible_truncation, reason = "a transaction has far fewer than 2^32 postings")]

use std::borrow::Cow;

use crate::command::{Command, Movement, RevertDate, Target};
use crate::facts::{HoldingRef, KnownTransaction, Needs, Slots};
use crate::limits::{METADATA_BYTES_MAX, POSTINGS_MAX};
use crate::rejection::Rejection;
use ledger_values::{AccountAddress, Metadata, Posting};

/// Lists the facts that deciding `command` requires.
///
/// The command was [admitted](crate::admit), and its script is [settled](crate::settle()) into postings. `original` is the
/// transaction that the command names, which is one of the facts of its admission: a revert requires the holdings of its
/// postings.
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
            create.rules.get().add_needs(&mut needs);
        }
        Command::RevertTransaction(revert) => {
            if let Some(original) = original {
                needs.timestamp = (revert.dated == RevertDate::OfOriginal).then_some(original.timestamp);
                needs.reference = revert.rules.get().reference_of_revert(original).map(Cow::Owned);
                // The new transaction has the original's postings in reverse order with source and
                // destination exchanged.
                add_holdings(&mut needs, original.postings.iter().rev());
                for slots in &mut needs.slots {
                    std::mem::swap(&mut slots.source, &mut slots.destination);
                }
            }
            revert.rules.get().add_needs(&mut needs);
        }
        Command::SetMetadata { target: Target::Account(account), .. }
        | Command::DeleteMetadata { target: Target::Account(account), .. } => needs.accounts.push(account),
        Command::SetMetadata { target: Target::Transaction(_), .. }
        | Command::DeleteMetadata { target: Target::Transaction(_), .. } => {}
        Command::InsertSchema(insert) => needs.new_schema = Some(&insert.version),
    }
    needs
}

/// Checks the counts and sizes of a command before anything is loaded for it. What a script adds is checked by a second
/// call, once it is [settled](crate::settle()).
///
/// # Errors
///
/// [`Rejection::TooManyPostings`] or [`Rejection::MetadataTooLarge`].
pub fn check_sizes(command: &Command) -> Result<(), Rejection> {
    match command {
        Command::CreateTransaction(create) => {
            if let Movement::Postings(postings) = &create.movement
                && postings.len() > POSTINGS_MAX
            {
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

fn check_metadata_size(metadata: &Metadata) -> Result<(), Rejection> {
    match metadata.text_bytes() {
        bytes if bytes > METADATA_BYTES_MAX => Err(Rejection::MetadataTooLarge { bytes }),
        _ => Ok(()),
    }
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
