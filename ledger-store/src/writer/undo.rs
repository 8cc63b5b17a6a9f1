//! Taking back what a submission changed: one that is all or nothing and was refused, or a dry run.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use smallvec::SmallVec;

use super::accounts::Place;
use super::state::{State, Undo};

impl State {
    /// Remembers an account as it is before it changes, where changes may be taken back.
    #[inline]
    pub(crate) fn note_change(&mut self, place: Place) {
        if let Some(undo) = &mut self.undo {
            let accounts = &self.accounts;
            undo.accounts.entry(place).or_insert_with(|| Some(accounts.get(place).clone()));
        }
    }

    /// Remembers that an account is new, where that may be taken back.
    pub(crate) fn note_new(&mut self, place: Place) {
        if let Some(undo) = &mut self.undo {
            undo.accounts.insert(place, None);
        }
    }

    /// From now on every change of this ledger can be taken back.
    pub(crate) fn begin_undo(&mut self, ledger: u32) {
        self.begin_undo_of_documents();
        self.include_in_undo(ledger);
    }

    /// From now on every change of documents can be taken back, and of ledgers that are
    /// [included](State::include_in_undo).
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

    /// Lets the undo that has begun take back changes of this ledger too. The ledger must not have changed since.
    pub(crate) fn include_in_undo(&mut self, ledger: u32) {
        let counters = *self.ledger(ledger).counters();
        if let Some(undo) = &mut self.undo
            && undo.ledgers.iter().all(|(included, _)| *included != ledger)
        {
            undo.ledgers.push((ledger, counters));
        }
    }

    /// Keeps what was changed since [`State::begin_undo`].
    pub(crate) fn keep(&mut self) {
        self.undo = None;
    }

    /// Takes back everything since [`State::begin_undo`].
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
            let ledger = self.ledger(ledger);
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
