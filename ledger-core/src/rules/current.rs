//! The rules of API v2.
//!
//! The postings of a transaction are executed in order, and each needs the funds that those before it left. A revert is
//! one step.

use ledger_numscript::EmptySends;
use ledger_values::{Amount, Posting, Reference, Timestamp, Volumes};

use super::posting_rules::{PostingRules, paid_from};
use crate::facts::{Facts, KnownTransaction, Needs, Slots};
use crate::overdraft::Overdraft;
use crate::rejection::Rejection;

/// The rules of API v2.
pub(crate) struct CurrentRules;

impl PostingRules for CurrentRules {
    fn add_needs(&self, _needs: &mut Needs<'_>) {}

    fn reference_of_revert(&self, _original: &KnownTransaction) -> Option<Reference> {
        None
    }

    fn check_before_funds(
        &self,
        _facts: &Facts,
        _date: Timestamp,
        _reference: Option<&Reference>,
    ) -> Result<(), Rejection> {
        Ok(())
    }

    fn empty_sends(&self) -> EmptySends {
        EmptySends::Recorded
    }

    /// Executes the postings one by one. The funds left by earlier postings must cover each one.
    fn create(
        &self,
        postings: &[Posting],
        slots: &[Slots],
        facts: &mut Facts,
        overdraft: &Overdraft,
    ) -> Result<(), Rejection> {
        let volumes = &mut facts.volumes;
        assert_eq!(postings.len(), slots.len(), "every posting has its slots");
        for (posting, slots) in postings.iter().zip(slots) {
            let source = &mut volumes[slots.source as usize];
            source.output += &posting.amount;
            if !posting.amount.is_zero() {
                check_funds(posting, source, overdraft, || posting.amount.clone())?;
            }
            volumes[slots.destination as usize].input += &posting.amount;
        }
        Ok(())
    }

    /// Executes the postings as one step: only the balances at its end count, and only those of accounts that pay. An
    /// account that is overdrawn at the end may not pay, even if it receives as much in the same step.
    fn revert(
        &self,
        postings: &[Posting],
        slots: &[Slots],
        facts: &mut Facts,
        overdraft: &Overdraft,
    ) -> Result<(), Rejection> {
        let volumes = &mut facts.volumes;
        assert_eq!(postings.len(), slots.len(), "every posting has its slots");
        for (posting, slots) in postings.iter().zip(slots) {
            volumes[slots.source as usize].output += &posting.amount;
            volumes[slots.destination as usize].input += &posting.amount;
        }
        for (posting, own) in postings.iter().zip(slots) {
            let needed = || paid_from(own.source, postings, slots);
            check_funds(posting, &volumes[own.source as usize], overdraft, needed)?;
        }
        Ok(())
    }
}

/// Checks that the source of a posting may have the volumes `after` it. `needed` returns the amount that it pays.
fn check_funds(
    posting: &Posting,
    after: &Volumes,
    overdraft: &Overdraft,
    needed: impl FnOnce() -> Amount,
) -> Result<(), Rejection> {
    if after.input >= after.output {
        return Ok(());
    }
    match overdraft.limit_of(posting) {
        Some(limit) if after.input.clone() + &limit < after.output => {
            Err(Rejection::insufficient(posting, needed(), after, &limit))
        }
        _ => Ok(()),
    }
}
