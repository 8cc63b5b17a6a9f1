//! The interface of rules.

use ledger_numscript::EmptySends;
use ledger_values::{Amount, Posting, Reference, Timestamp};

use crate::facts::{Facts, KnownTransaction, Needs, Slots};
use crate::overdraft::Overdraft;
use crate::rejection::Rejection;

/// The steps of a decision that differ between rules, in the order in which they are taken.
pub(crate) trait PostingRules {
    /// Adds the facts that the rules require. The holdings of the postings are in `needs`.
    fn add_needs(&self, needs: &mut Needs<'_>);

    /// Adds the facts that [`Self::check_before_funds`] requires before a script runs. Rules that check nothing then add
    /// nothing.
    fn add_needs_before_script<'a>(&self, _reference: Option<&'a Reference>, _needs: &mut Needs<'a>) {}

    /// Returns the reference of the transaction that reverts `original`.
    fn reference_of_revert(&self, original: &KnownTransaction) -> Option<Reference>;

    /// Checks a new transaction before its script runs and before its funds.
    fn check_before_funds(
        &self,
        facts: &Facts,
        date: Timestamp,
        reference: Option<&Reference>,
    ) -> Result<(), Rejection>;

    /// Returns how a script's sends that move nothing are treated.
    fn empty_sends(&self) -> EmptySends;

    /// Executes the postings of a new transaction on the volumes in `facts`, if the funds suffice.
    fn create(
        &self,
        postings: &[Posting],
        slots: &[Slots],
        facts: &mut Facts,
        overdraft: &Overdraft,
    ) -> Result<(), Rejection>;

    /// Executes the postings of a transaction that reverts another, as [`Self::create`] does unless the rules differ.
    fn revert(
        &self,
        postings: &[Posting],
        slots: &[Slots],
        facts: &mut Facts,
        overdraft: &Overdraft,
    ) -> Result<(), Rejection> {
        self.create(postings, slots, facts, overdraft)
    }
}

/// Refuses a transaction whose reference another has.
pub(crate) fn check_reference(facts: &Facts, reference: Option<&Reference>) -> Result<(), Rejection> {
    if facts.reference_taken {
        let reference = reference.expect("only a reference of the command can be taken").clone();
        return Err(Rejection::ReferenceTaken { reference });
    }
    Ok(())
}

/// Returns the sum of the amounts that postings take from a holding.
pub(super) fn paid_from(source: u32, postings: &[Posting], slots: &[Slots]) -> Amount {
    let mut sum = Amount::ZERO;
    for (posting, _) in postings.iter().zip(slots).filter(|(_, slots)| slots.source == source) {
        sum += &posting.amount;
    }
    sum
}
