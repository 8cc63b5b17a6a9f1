//! Replays entries: begins and ends, and notes what it meets.

use super::replay_state::ReplayState;
use super::state::State;
use crate::violation::{Violation, ViolationCode};

/// Starts a replay: accounts are found by number from now on.
pub(crate) fn begin(state: &mut State) {
    state.replay = Some(Box::default());
}

/// Ends the replay.
pub(crate) fn end(state: &mut State) {
    state.replay = None;
}

/// Records that a replayed entry breaks a rule.
pub(crate) fn report(state: &mut State, code: ViolationCode, ledger: u32, position: u64, detail: String) {
    let name = state.ledgers.get(ledger).map(|ledger| ledger.head.info.name.clone());
    if let Some(replay) = &mut state.replay {
        replay.violations.push(Violation { code, ledger: name, position: Some(position), detail });
    }
}

/// Returns the defects found since the last call.
pub(crate) fn take_violations(state: &mut State) -> Vec<Violation> {
    state.replay.as_mut().map(|replay| std::mem::take(&mut replay.violations)).unwrap_or_default()
}

/// Frees memory during a replay. Forgets the slots of evicted accounts.
pub(crate) fn evict(state: &mut State) {
    state.accounts.evict(state.index.flushed);
    if let Some(replay) = &mut state.replay {
        let accounts = state.accounts.iter();
        replay.places = accounts.map(|(place, account)| ((account.ledger, account.account), place)).collect();
    }
}

/// Notes that a section's entries are gone from the journal. Its ledgers may then lack entries, so the replay passes
/// over the rest of them.
pub(crate) fn note_hole(state: &mut State, section: u32) {
    state.replay.get_or_insert_with(Box::<ReplayState>::default).holes.insert(section);
}

/// Tells whether the replay passes over entries of this ledger, because it is removed by then or will be.
pub(crate) fn is_skipped(state: &State, ledger: u32) -> bool {
    let head = state.ledgers.get(ledger).map(|ledger| &ledger.head);
    head.is_some_and(|head| head.is_removed || holes(state).any(|section| section == head.section))
}

/// Returns a section whose entries are gone although not all of its ledgers are removed.
pub(crate) fn unexplained_hole(state: &State) -> Option<u32> {
    holes(state).find(|section| !state.ledgers.section(*section).is_removed())
}

fn holes(state: &State) -> impl Iterator<Item = u32> {
    state.replay.iter().flat_map(|replay| replay.holes.iter().copied())
}
