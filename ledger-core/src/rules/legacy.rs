//! The rules of API v1.
//!
//! All postings of a transaction are one step. Only the balances at its end are checked, and only those of
//! accounts whose balance falls. Contracts say how far a balance may fall.

use std::borrow::Cow;

use ledger_numscript::EmptySends;
use ledger_values::{Amount, Metadata, Posting, Reference, Timestamp, Volumes};

use super::mapping::Mapping;
use super::posting_rules::{PostingRules, check_reference, paid_from};
use crate::facts::{Facts, KnownTransaction, Needs, Slots};
use crate::overdraft::Overdraft;
use crate::rejection::Rejection;

/// Settings of a ledger under the rules of API v1.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LegacyRules {
    /// The contracts of the ledger.
    pub mapping: Mapping,
    /// The treatment of transactions dated before the last one.
    pub past_dates: PastDates,
}

/// Treatment of transactions dated before the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum PastDates {
    /// The ledger records them.
    #[default]
    Accept,
    /// The ledger refuses them.
    Refuse,
}

impl PostingRules for LegacyRules {
    fn add_needs(&self, needs: &mut Needs<'_>) {
        self.add_date(needs);
        let indexed = needs.holdings.iter().zip(0..);
        needs.metadata = indexed
            .filter(|(holding, _)| self.mapping.asks_metadata_of(holding.account))
            .map(|(_, at)| at)
            .collect();
    }

    fn add_needs_before_script<'a>(&self, reference: Option<&'a Reference>, needs: &mut Needs<'a>) {
        self.add_date(needs);
        needs.reference = reference.map(Cow::Borrowed);
    }

    /// Derives the reference from that of the original, unless it would be too long.
    fn reference_of_revert(&self, original: &KnownTransaction) -> Option<Reference> {
        Reference::parse(&format!("revert_{}", original.reference.as_ref()?.as_str())).ok()
    }

    fn check_before_funds(
        &self,
        facts: &Facts,
        date: Timestamp,
        reference: Option<&Reference>,
    ) -> Result<(), Rejection> {
        self.check_date(facts.last_date, date)?;
        check_reference(facts, reference)
    }

    fn empty_sends(&self) -> EmptySends {
        EmptySends::Dropped
    }

    /// Executes the postings as one step, then checks the contracts of all accounts whose balance fell.
    fn create(
        &self,
        postings: &[Posting],
        slots: &[Slots],
        facts: &mut Facts,
        overdraft: &Overdraft,
    ) -> Result<(), Rejection> {
        assert_eq!(postings.len(), slots.len(), "every posting has its slots");
        let is_allowed = matches!(overdraft, Overdraft::Allow);
        let before: Vec<Volumes> = if is_allowed { Vec::new() } else { facts.volumes.to_vec() };
        for (posting, slots) in postings.iter().zip(slots) {
            facts.volumes[slots.source as usize].output += &posting.amount;
            facts.volumes[slots.destination as usize].input += &posting.amount;
        }
        if is_allowed {
            return Ok(());
        }
        // An account that is never a source cannot have lost anything.
        for (posting, own) in postings.iter().zip(slots) {
            let after = &facts.volumes[own.source as usize];
            let balance = after.balance();
            if posting.source.is_world() || balance >= before[own.source as usize].balance() {
                continue;
            }
            let known = facts.metadata.iter().find(|(slot, _)| *slot == own.source);
            let none = Metadata::EMPTY;
            let metadata = known.map_or(&none, |(_, metadata)| metadata);
            if !self.mapping.allows(&posting.source, &balance, metadata) {
                let needed = paid_from(own.source, postings, slots);
                return Err(Rejection::insufficient(posting, needed, after, &Amount::ZERO));
            }
        }
        Ok(())
    }
}

impl LegacyRules {
    /// Requires the date of the last transaction if the rules compare the new one with it.
    fn add_date(&self, needs: &mut Needs<'_>) {
        needs.last_date = self.past_dates == PastDates::Refuse;
    }

    /// Refuses the date of a new transaction if it is before that of the last one and the rules forbid that.
    fn check_date(&self, last: Option<Timestamp>, date: Timestamp) -> Result<(), Rejection> {
        match last {
            Some(last) if self.past_dates == PastDates::Refuse && date < last => {
                Err(Rejection::PastDate { passed: date, last })
            }
            _ => Ok(()),
        }
    }
}
