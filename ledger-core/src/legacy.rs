//! The rules of the first generation of the API, where they differ from those of the second.
//!
//! Postings are one step: only balances at its end count, and only of accounts that end lower. Contracts say how
//! low they may end. A revert gets a reference made of the original's.

use std::sync::Arc;

use crate::command::Overdraft;
use crate::decide::insufficient;
use crate::mapping::Mapping;
use crate::metadata::Metadata;
use crate::names::Reference;
use crate::needs::{Facts, KnownTransaction, Slots};
use crate::rejection::Rejection;
use crate::timestamp::Timestamp;
use crate::transaction::Posting;
use crate::volumes::Volumes;

/// By whose rules a transaction is checked. They bind postings; what a script may take is its own matter.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Rules {
    /// The ledger's own.
    #[default]
    Current,
    /// Those of the first generation.
    Legacy(Arc<LegacyRules>),
}

/// What is particular to a ledger in the rules of the first generation.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LegacyRules {
    /// Its contracts.
    pub mapping: Mapping,
    /// Whether a transaction may be dated before the last one.
    pub past_dates: PastDates,
}

/// Whether dates may run backwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum PastDates {
    /// They may.
    #[default]
    Accept,
    /// A transaction that is dated before the last one is refused.
    Refuse,
}

impl LegacyRules {
    /// Refuses a date before that of the last transaction, where that is the rule.
    pub(crate) fn check_date(&self, last: Option<Timestamp>, passed: Timestamp) -> Result<(), Rejection> {
        match last {
            Some(last) if self.past_dates == PastDates::Refuse && passed < last => {
                Err(Rejection::PastDate { passed, last })
            }
            _ => Ok(()),
        }
    }

    /// Executes postings as one step, and then asks the contracts of all whose balance it lowered.
    pub(crate) fn move_at_once(
        &self,
        postings: &[Posting],
        slots: &[Slots],
        facts: &mut Facts,
        overdraft: Overdraft,
    ) -> Result<(), Rejection> {
        assert_eq!(postings.len(), slots.len(), "every posting has its slots");
        let before: Vec<Volumes> = match overdraft {
            Overdraft::Refuse => facts.volumes.to_vec(),
            Overdraft::Allow => Vec::new(),
        };
        for (posting, slots) in postings.iter().zip(slots) {
            facts.volumes[slots.source as usize].output += &posting.amount;
            facts.volumes[slots.destination as usize].input += &posting.amount;
        }
        if overdraft == Overdraft::Allow {
            return Ok(());
        }
        // Who is no source of any posting has not lost anything.
        for (posting, slots) in postings.iter().zip(slots) {
            let balance = facts.volumes[slots.source as usize].balance();
            if posting.source.is_world() || balance >= before[slots.source as usize].balance() {
                continue;
            }
            let known = facts.metadata.iter().find(|(slot, _)| *slot == slots.source);
            let none = Metadata::EMPTY;
            let metadata = known.map_or(&none, |(_, metadata)| metadata);
            if !self.mapping.allows(&posting.source, &balance, metadata) {
                return Err(insufficient(posting));
            }
        }
        Ok(())
    }
}

/// The reference of the transaction that reverts `original`; none by the current rules, and where the original
/// has none or one so long that there is no room.
pub fn reverting_reference(rules: &Rules, original: &KnownTransaction) -> Option<Reference> {
    match (rules, &original.reference) {
        (Rules::Legacy(_), Some(reference)) => {
            Reference::parse(&format!("revert_{}", reference.as_str())).ok()
        }
        _ => None,
    }
}
