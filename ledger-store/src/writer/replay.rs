//! Replays entries: begins and ends, and notes what it meets.

use super::replay_state::ReplayState;
use super::state::State;
use crate::violation::{Violation, ViolationCode};

impl State {
    /// Starts a replay: accounts are found by number from now on.
    pub(crate) fn begin_replay(&mut self) {
        self.replay = Some(Box::default());
    }

    /// Ends the replay.
    pub(crate) fn end_replay(&mut self) {
        self.replay = None;
    }

    /// Records that a replayed entry breaks a rule.
    pub(crate) fn report(&mut self, code: ViolationCode, ledger: u32, position: u64, detail: String) {
        let name = self.ledgers.get(ledger).map(|ledger| ledger.head.info.name.clone());
        if let Some(replay) = &mut self.replay {
            replay.violations.push(Violation { code, ledger: name, position: Some(position), detail });
        }
    }

    /// Returns the defects found since the last call.
    pub(crate) fn take_violations(&mut self) -> Vec<Violation> {
        self.replay.as_mut().map(|replay| std::mem::take(&mut replay.violations)).unwrap_or_default()
    }

    /// Frees memory during a replay. Forgets the slots of evicted accounts.
    pub(crate) fn evict_replayed(&mut self) {
        self.accounts.evict(self.index.flushed);
        if let Some(replay) = &mut self.replay {
            let accounts = self.accounts.iter();
            replay.places =
                accounts.map(|(place, account)| ((account.ledger, account.account), place)).collect();
        }
    }

    /// Notes that a section's entries are gone from the journal. Its ledgers may then lack entries, so the replay passes
    /// over the rest of them.
    pub(crate) fn note_hole(&mut self, section: u32) {
        self.replay.get_or_insert_with(Box::<ReplayState>::default).holes.insert(section);
    }

    /// Tells whether the replay passes over entries of this ledger, because it is removed by then or will be.
    pub(crate) fn is_passed_over(&self, ledger: u32) -> bool {
        let head = self.ledgers.get(ledger).map(|ledger| &ledger.head);
        head.is_some_and(|head| head.is_removed || self.holes().any(|section| section == head.section))
    }

    /// Returns a section whose entries are gone although not all of its ledgers are removed.
    pub(crate) fn unexplained_hole(&self) -> Option<u32> {
        self.holes().find(|section| !self.ledgers.section(*section).is_gone())
    }

    fn holes(&self) -> impl Iterator<Item = u32> {
        self.replay.iter().flat_map(|replay| replay.holes.iter().copied())
    }
}
