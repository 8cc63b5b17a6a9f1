//! The part of the state that exists only during a replay.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::state::State;
use crate::violation::{Violation, ViolationCode};

impl State {
    /// Starts a replay: accounts are found by number from now on.
    pub(crate) fn begin_replay(&mut self) {
        self.by_number = Some(HashMap::with_hasher(RandomState::default()));
        self.audit.get_or_insert_default();
    }

    /// Ends the replay.
    pub(crate) fn end_replay(&mut self) {
        self.by_number = None;
        self.audit = None;
        self.holes.clear();
    }

    /// Records that a replayed entry breaks a rule.
    pub(crate) fn report(&mut self, code: ViolationCode, ledger: u32, position: u64, detail: String) {
        let name =
            self.ledgers.get((ledger as usize).wrapping_sub(1)).map(|ledger| ledger.head.info.name.clone());
        if let Some(audit) = &mut self.audit {
            audit.push(Violation { code, ledger: name, position: Some(position), detail });
        }
    }

    /// Frees memory during a replay. Forgets the slots of evicted accounts.
    pub(crate) fn evict_replayed(&mut self) {
        self.accounts.evict(self.index.flushed);
        self.begin_replay();
        let accounts = &self.accounts;
        if let Some(by_number) = &mut self.by_number {
            by_number
                .extend(accounts.iter().map(|(place, account)| ((account.ledger, account.account), place)));
        }
    }
}
