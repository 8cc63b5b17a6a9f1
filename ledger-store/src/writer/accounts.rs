//! The accounts that the writer knows, within a budget of bytes.
//!
//! What changed since the index was last flushed stays (the residence rule), so that whatever is not here
//! stands in the index exactly. The rest goes when room is needed, the least recently used first, roughly.

use compact_str::CompactString;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use ledger_core::{Timestamp, Volumes};
use smallvec::SmallVec;
use std::hash::BuildHasher;

use crate::documents::AccountDocument;
use crate::index::DisplacedSums;

/// An account's place in the table. It is valid until the next eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place(u32);

/// What the writer knows of an account.
#[derive(Clone, Debug)]
pub(crate) struct AccountState {
    /// The ledger.
    pub(crate) ledger: u32,
    /// The account's number in it.
    pub(crate) account: u32,
    /// The address.
    pub(crate) address: CompactString,
    /// The earliest effective date of its moves or, without one, the date of its first metadata.
    pub(crate) first_usage: Timestamp,
    /// Its holdings, ascending by asset number.
    pub(crate) holdings: SmallVec<[HoldingState; 1]>,
    /// Its document.
    pub(crate) document: DocumentState,
    /// The flush that will hold its last change.
    changed_in: u64,
    used: bool,
}

/// What the writer knows of an account's document.
#[derive(Clone, Debug)]
pub(crate) enum DocumentState {
    /// It stands in the index.
    Stored,
    /// The account has no metadata and was first named at this date, not long ago.
    Plain(Timestamp),
    /// This is it.
    Loaded(Box<AccountDocument>),
}

/// An asset in an account.
#[derive(Clone, Debug)]
pub(crate) struct HoldingState {
    /// The asset's number.
    pub(crate) asset: u32,
    /// The holding's number.
    pub(crate) holding: u32,
    /// How many transactions touched it.
    pub(crate) ordinal: u32,
    /// Its totals.
    pub(crate) volumes: Volumes,
    /// Totals of its displaced transactions, if it has any.
    pub(crate) displaced: Option<Box<DisplacedSums>>,
}

impl AccountState {
    /// Its holding of an asset.
    pub(crate) fn holding(&self, asset: u32) -> Option<&HoldingState> {
        self.holdings.binary_search_by_key(&asset, |holding| holding.asset).ok().map(|at| &self.holdings[at])
    }

    fn bytes(&self) -> usize {
        let spilled =
            if self.holdings.spilled() { self.holdings.len() * size_of::<HoldingState>() } else { 0 };
        let address = if self.address.is_heap_allocated() { self.address.len() } else { 0 };
        let document = match &self.document {
            DocumentState::Stored | DocumentState::Plain(_) => 0,
            DocumentState::Loaded(document) => {
                size_of::<AccountDocument>() + document.metadata.text_bytes() + 64 * document.metadata.len()
            }
        };
        spilled + address + document
    }
}

/// Accounts by ledger and address.
pub(crate) struct AccountTable {
    index: HashTable<u32>,
    slots: Vec<Option<AccountState>>,
    free: Vec<u32>,
    hasher: RandomState,
    heap_bytes: usize,
    bytes_max: usize,
    hand: usize,
}

impl AccountTable {
    /// An empty table that keeps to `bytes_max`, as far as the residence rule allows.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            index: HashTable::new(),
            slots: Vec::new(),
            free: Vec::new(),
            hasher: RandomState::default(),
            heap_bytes: 0,
            bytes_max,
            hand: 0,
        }
    }

    /// The hash under which an account is found; computed once for several look-ups.
    pub(crate) fn hash(&self, ledger: u32, address: &str) -> u64 {
        self.hasher.hash_one((ledger, address))
    }

    /// The account with this address, if it is here.
    pub(crate) fn find(&mut self, hash: u64, ledger: u32, address: &str) -> Option<Place> {
        let slots = &self.slots;
        let found = self.index.find(hash, |at| {
            slots[*at as usize]
                .as_ref()
                .is_some_and(|account| account.ledger == ledger && account.address == address)
        })?;
        let place = *found;
        if let Some(account) = &mut self.slots[place as usize]
            && !account.used
        {
            account.used = true;
        }
        Some(Place(place))
    }

    /// Looks an account up and drops what it finds: so the memory it lies in is near when it is needed. Several
    /// in a row wait for the same while as one.
    pub(crate) fn warm(&self, ledger: u32, address: &str) -> u64 {
        let hash = self.hash(ledger, address);
        let slots = &self.slots;
        let found = self.index.find(hash, |at| {
            slots[*at as usize]
                .as_ref()
                .is_some_and(|account| account.ledger == ledger && account.address == address)
        });
        let holding = found.and_then(|at| self.slots[*at as usize].as_ref()?.holdings.first());
        holding.map_or(0, |holding| u64::from(holding.ordinal))
    }

    /// The account at a place.
    pub(crate) fn get(&self, place: Place) -> &AccountState {
        self.slots[place.0 as usize].as_ref().expect("a place is given for an account that is here")
    }

    /// Changes the account at a place, which the flush with this number will hold.
    pub(crate) fn change(&mut self, place: Place, flush: u64) -> &mut AccountState {
        let account =
            self.slots[place.0 as usize].as_mut().expect("a place is given for an account that is here");
        account.changed_in = flush;
        account
    }

    /// Puts an account that is not here. `flush` is the one that will hold it, 0 for one read from the index.
    pub(crate) fn insert(&mut self, hash: u64, new: NewState, flush: u64) -> Place {
        let account = AccountState {
            ledger: new.ledger,
            account: new.account,
            address: new.address,
            first_usage: new.first_usage,
            holdings: new.holdings,
            document: new.document,
            changed_in: flush,
            used: true,
        };
        self.heap_bytes += account.bytes();
        let at = if let Some(at) = self.free.pop() {
            self.slots[at as usize] = Some(account);
            at
        } else {
            self.slots.push(Some(account));
            self.slots.len() as u32 - 1
        };
        let (slots, hasher) = (&self.slots, &self.hasher);
        self.index.insert_unique(hash, at, |at| {
            let account = slots[*at as usize].as_ref().expect("only accounts that are here are indexed");
            hasher.hash_one((account.ledger, account.address.as_str()))
        });
        Place(at)
    }

    /// Takes an account out again, as if it had never been put.
    pub(crate) fn remove(&mut self, place: Place) {
        if let Some(account) = self.slots[place.0 as usize].take() {
            let hash = self.hasher.hash_one((account.ledger, account.address.as_str()));
            if let Ok(entry) = self.index.find_entry(hash, |at| *at == place.0) {
                entry.remove();
            }
            self.heap_bytes = self.heap_bytes.saturating_sub(account.bytes());
            self.free.push(place.0);
        }
    }

    /// Keeps a document that was read: no change.
    pub(crate) fn set_document(&mut self, place: Place, document: AccountDocument) {
        let account =
            self.slots[place.0 as usize].as_mut().expect("a place is given for an account that is here");
        let before = account.bytes();
        account.document = DocumentState::Loaded(Box::new(document));
        self.heap_bytes = (self.heap_bytes + account.bytes()).saturating_sub(before);
    }

    /// Changes a document that was loaded. The caller says which flush will hold it, by [`Self::change`].
    pub(crate) fn edit_document(&mut self, place: Place, edit: impl FnOnce(&mut AccountDocument)) {
        let account =
            self.slots[place.0 as usize].as_mut().expect("a place is given for an account that is here");
        let before = account.bytes();
        if let DocumentState::Loaded(document) = &mut account.document {
            edit(document);
        }
        self.heap_bytes = (self.heap_bytes + account.bytes()).saturating_sub(before);
    }

    /// Puts back what an account was.
    pub(crate) fn restore(&mut self, place: Place, account: AccountState) {
        self.slots[place.0 as usize] = Some(account);
    }

    /// All accounts with their places.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Place, &AccountState)> {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(at, account)| account.as_ref().map(|account| (Place(at as u32), account)))
    }

    /// Bytes of all accounts, roughly.
    pub(crate) fn bytes(&self) -> usize {
        self.slots.len() * size_of::<Option<AccountState>>() + self.index.capacity() * 5 + self.heap_bytes
    }

    /// Makes room where the budget is exceeded: drops accounts whose last change a flush up to `flushed`
    /// holds. Called between commands, when no [`Place`] is kept.
    pub(crate) fn evict(&mut self, flushed: u64) {
        if self.slots.len() - self.free.len() == 0 || self.bytes() <= self.bytes_max {
            return;
        }
        let live_bytes = |table: &Self| {
            (table.slots.len() - table.free.len()) * (size_of::<Option<AccountState>>() + 5)
                + table.heap_bytes
        };
        let target = self.bytes_max - self.bytes_max / 16;
        let mut steps = 2 * self.slots.len();
        while steps > 0 && live_bytes(self) > target {
            steps -= 1;
            self.hand = if self.hand + 1 < self.slots.len() { self.hand + 1 } else { 0 };
            match &mut self.slots[self.hand] {
                Some(account) if account.changed_in <= flushed => {
                    if account.used {
                        account.used = false;
                    } else {
                        self.remove(Place(self.hand as u32));
                    }
                }
                _ => {}
            }
        }
    }
}

/// An account to put into the table.
#[derive(Debug)]
pub(crate) struct NewState {
    pub(crate) ledger: u32,
    pub(crate) account: u32,
    pub(crate) address: CompactString,
    pub(crate) first_usage: Timestamp,
    pub(crate) holdings: SmallVec<[HoldingState; 1]>,
    pub(crate) document: DocumentState,
}
