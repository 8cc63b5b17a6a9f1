//! Undoes the changes of a refused atomic submission or of a dry run.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use smallvec::SmallVec;

use super::accounts::Place;
use super::state::{State, Undo};

impl State {
    /// Records the state of an account before it changes, if changes may be undone.
    #[inline]
    pub(crate) fn note_change(&mut self, place: Place) {
        if let Some(undo) = &mut self.undo {
            let accounts = &self.accounts;
            undo.accounts.entry(place).or_insert_with(|| Some(accounts.get(place).clone()));
        }
    }

    /// Records that an account is new, if that may be undone.
    pub(crate) fn note_new(&mut self, place: Place) {
        if let Some(undo) = &mut self.undo {
            undo.accounts.insert(place, None);
        }
    }

    /// Makes every later change of this ledger undoable.
    pub(crate) fn begin_undo(&mut self, ledger: u32) {
        self.begin_undo_of_documents();
        self.include_in_undo(ledger);
    }

    /// Makes every later change of documents undoable, and of the ledgers that are [included](State::include_in_undo).
    pub(crate) fn begin_undo_of_documents(&mut self) {
        self.undo = Some(Undo {
            next: self.next,
            ledgers: SmallVec::new(),
            accounts: HashMap::with_hasher(RandomState::default()),
            keys: Vec::new(),
            documents: Vec::new(),
            keyed: Vec::new(),
        });
    }

    /// Makes changes of this ledger undoable as well. It must not have changed since the undo began.
    pub(crate) fn include_in_undo(&mut self, ledger: u32) {
        let counters = *self.ledgers[ledger].counters();
        if let Some(undo) = &mut self.undo
            && undo.ledgers.iter().all(|(included, _)| *included != ledger)
        {
            undo.ledgers.push((ledger, counters));
        }
    }

    /// Keeps the changes since [`State::begin_undo`].
    pub(crate) fn keep(&mut self) {
        self.undo = None;
    }

    /// Undoes all changes since [`State::begin_undo`].
    pub(crate) fn take_back(&mut self) {
        let Some(undo) = self.undo.take() else { return };
        for (place, account) in undo.accounts {
            match account {
                Some(account) => self.accounts.restore(place, account),
                None => self.accounts.remove(place),
            }
        }
        for key in undo.keys.into_iter().rev() {
            self.keys.undo(&key);
        }
        for (key, previous) in undo.documents.into_iter().rev() {
            self.documents.undo(&key, previous);
        }
        if !undo.keyed.is_empty() {
            self.schemas.clear();
        }
        for (key, previous) in undo.keyed.into_iter().rev() {
            self.keyed.undo(&key, previous);
        }
        for (ledger, counters) in undo.ledgers {
            let ledger = &mut self.ledgers[ledger];
            ledger.head.counters = counters;
            ledger.head.assets.truncate(counters.assets as usize);
            ledger.head.keys.truncate(counters.keys as usize);
            ledger.forget_names();
        }
        self.next = undo.next;
        self.half_changed = false;
        #[cfg(debug_assertions)]
        if self.accounts.is_small()
            && let Err(differs) = self.check_bytes()
        {
            panic!("after an undo {differs}");
        }
    }
}
