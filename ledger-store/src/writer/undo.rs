//! Undoes the changes of a refused atomic submission or of a dry run.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use smallvec::SmallVec;

use super::accounts::SlotId;
use super::state::{State, Undo};

/// Records the state of an account before it changes, if changes may be undone.
#[inline]
pub(crate) fn note_change(state: &mut State, slot: SlotId) {
    if let Some(undo) = &mut state.undo {
        let accounts = &state.accounts;
        undo.accounts.entry(slot).or_insert_with(|| Some(accounts.get(slot).clone()));
    }
}

/// Records that an account is new, if that may be undone.
pub(crate) fn note_new(state: &mut State, slot: SlotId) {
    if let Some(undo) = &mut state.undo {
        undo.accounts.insert(slot, None);
    }
}

/// Makes every later change of this ledger undoable.
pub(crate) fn begin(state: &mut State, ledger: u32) {
    begin_for_documents(state);
    include(state, ledger);
}

/// Makes every later change of documents undoable, and of the ledgers that are [included](include).
pub(crate) fn begin_for_documents(state: &mut State) {
    state.undo = Some(Undo {
        next: state.next,
        ledgers: SmallVec::new(),
        accounts: HashMap::with_hasher(RandomState::default()),
        keys: Vec::new(),
        documents: Vec::new(),
        keyed: Vec::new(),
    });
}

/// Makes changes of this ledger undoable as well. It must not have changed since the undo began.
pub(crate) fn include(state: &mut State, ledger: u32) {
    let counters = *state.ledgers[ledger].counters();
    if let Some(undo) = &mut state.undo
        && undo.ledgers.iter().all(|(included, _)| *included != ledger)
    {
        undo.ledgers.push((ledger, counters));
    }
}

/// Keeps the changes since [`begin`].
pub(crate) fn commit(state: &mut State) {
    state.undo = None;
}

/// Undoes all changes since [`begin`].
pub(crate) fn roll_back(state: &mut State) {
    let Some(undo) = state.undo.take() else { return };
    for (slot, account) in undo.accounts {
        match account {
            Some(account) => state.accounts.restore(slot, account),
            None => state.accounts.remove(slot),
        }
    }
    for key in undo.keys.into_iter().rev() {
        state.keys.undo(&key);
    }
    for (key, previous) in undo.documents.into_iter().rev() {
        state.documents.undo(&key, previous);
    }
    if !undo.keyed.is_empty() {
        state.schemas.clear();
    }
    for (key, previous) in undo.keyed.into_iter().rev() {
        state.keyed.undo(&key, previous);
    }
    for (ledger, counters) in undo.ledgers {
        let ledger = &mut state.ledgers[ledger];
        ledger.head.counters = counters;
        ledger.head.assets.truncate(counters.assets as usize);
        ledger.head.keys.truncate(counters.keys as usize);
        ledger.forget_names();
    }
    state.next = undo.next;
    state.half_changed = false;
    #[cfg(debug_assertions)]
    if state.accounts.is_small()
        && let Err(differs) = state.check_bytes()
    {
        panic!("after an undo {differs}");
    }
}
