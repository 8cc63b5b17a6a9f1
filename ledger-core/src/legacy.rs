//! The rules of API v1, where they differ from those of API v2.
//!
//! All postings of a transaction are one step. Only the balances at its end are checked, and only those of
//! accounts whose balance falls. Contracts say how far a balance may fall.
//!
//! The module `needs` derives the reference of a reverting transaction from that of the original.

use crate::command::Overdraft;
use crate::needs::{Facts, Slots, paid_from};
use crate::rejection::Rejection;
use crate::rules::{LegacyRules, PastDates};
use ledger_values::{Amount, Metadata, Posting, Timestamp, Volumes};

impl LegacyRules {
    /// Refuses the date of a new transaction if it is before that of the last one and the rules forbid that.
    pub(crate) fn check_date(&self, last: Option<Timestamp>, date: Timestamp) -> Result<(), Rejection> {
        match last {
            Some(last) if self.past_dates == PastDates::Refuse && date < last => {
                Err(Rejection::PastDate { passed: date, last })
            }
            _ => Ok(()),
        }
    }

    /// Executes postings as one step, then checks the contracts of all accounts whose balance fell.
    pub(crate) fn move_at_once(
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
