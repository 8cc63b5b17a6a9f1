//! The writer's table of accounts, within a budget of bytes.
//!
//! Accounts that changed since the last flush stay in memory (the residence rule), so the index holds the exact state
//! of every account that is not here. Other accounts are evicted when memory is needed, roughly the least recently
//! used first.

use std::borrow::Cow;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use ledger_core::{Metadata, Timestamp};
use smallvec::SmallVec;
use smol_str::SmolStr;
use std::hash::BuildHasher;

use super::hash_prefix::{Entry, prefix, spread};
use super::holding::{HoldingState, Holdings};
#[cfg(any(test, debug_assertions, feature = "testing"))]
use super::miscount::Miscount;
use crate::documents::AccountDocument;

/// The slot of an account in the table. It is valid until the next eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SlotId(u32);

/// The result of prefetching an account: the slot where it probably is. Another account may have moved there since.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccountHint {
    hash: u64,
    slot: u32,
}

impl AccountHint {
    const NO_SLOT: u32 = u32::MAX;
}

/// The writer's state of an account.
#[derive(Clone, Debug)]
pub(crate) struct AccountState {
    /// The number of the ledger.
    pub(crate) ledger: u32,
    /// The number of the account in its ledger.
    pub(crate) account: u32,
    /// The address.
    pub(crate) address: SmolStr,
    /// The earliest effective date of its transactions, or else the date of its first metadata.
    pub(crate) first_usage: Timestamp,
    /// The holdings, ascending by asset number.
    pub(crate) holdings: Holdings,
    /// The state of its document.
    pub(crate) document: DocumentState,
    /// The flush that will write its last change.
    changed_in: FlushMark,
    used: bool,
}

/// The number of a flush in four bytes.
#[derive(Clone, Copy, Debug)]
struct FlushMark(u32);

impl FlushMark {
    fn new(flush: u64) -> Self {
        Self(u32::try_from(flush).unwrap_or(u32::MAX))
    }

    /// Returns whether the flush is one of those up to `flushed`. Returns `false` for numbers that exceed 32 bits.
    fn is_within(self, flushed: u64) -> bool {
        self.0 < u32::MAX && u64::from(self.0) <= flushed
    }
}

/// A slot of the table, for one account. It fills two cache lines, which a processor fetches together.
#[derive(Debug)]
#[repr(align(128))]
struct Slot(Option<AccountState>);

/// A million accounts must fit the table's share of the default memory budget.
const _: () = assert!(size_of::<Slot>() == 128);

/// The writer's state of an account's document.
#[derive(Clone, Debug)]
pub(crate) enum DocumentState {
    /// The index holds the document.
    Stored,
    /// The account has no metadata.
    Plain { inserted_at: Timestamp, updated_at: Timestamp },
    /// The document is in memory.
    Loaded(Box<AccountDocument>),
}

impl AccountState {
    /// Returns the document. Panics if only the index holds it: a change of it must be loaded before it is applied.
    pub(crate) fn document(&self) -> Cow<'_, AccountDocument> {
        match &self.document {
            DocumentState::Stored => panic!("the document of account {} was not loaded", self.account),
            DocumentState::Plain { inserted_at, updated_at } => Cow::Owned(AccountDocument {
                first_usage: self.first_usage,
                inserted_at: *inserted_at,
                updated_at: *updated_at,
                metadata: Metadata::EMPTY,
            }),
            DocumentState::Loaded(document) => Cow::Borrowed(document),
        }
    }

    fn set_document(&mut self, document: AccountDocument) {
        self.document = if document.metadata.is_empty() && document.first_usage == self.first_usage {
            DocumentState::Plain { inserted_at: document.inserted_at, updated_at: document.updated_at }
        } else {
            DocumentState::Loaded(Box::new(document))
        };
    }

    /// Returns the holding of an asset.
    pub(crate) fn holding(&self, asset: u32) -> Option<&HoldingState> {
        self.holdings.binary_search_by_key(&asset, |holding| holding.asset).ok().map(|at| &self.holdings[at])
    }

    fn bytes(&self) -> usize {
        let address = if self.address.is_heap_allocated() { self.address.len() } else { 0 };
        let document = match &self.document {
            DocumentState::Stored | DocumentState::Plain { .. } => 0,
            DocumentState::Loaded(document) => {
                size_of::<AccountDocument>() + document.metadata.text_bytes() + 64 * document.metadata.len()
            }
        };
        self.holdings.heap_bytes() + address + document
    }
}

/// Maximum number of slots to scan per eviction. Bounds the work when the accounts wait for a flush and cannot be
/// evicted.
const EVICTION_STEPS: usize = 1 << 16;
/// Number of slots that are allocated at once, so that a growing table copies nothing.
const BLOCK: usize = 4_096;

/// The accounts by ledger and address.
pub(crate) struct AccountTable {
    index: HashTable<Entry>,
    blocks: Vec<Vec<Slot>>,
    free: Vec<u32>,
    hasher: RandomState,
    heap_bytes: usize,
    bytes_max: usize,
    hand: usize,
    /// Number of slots that the hand has passed since the last eviction, and the flush up to which accounts could be
    /// evicted then.
    passed: usize,
    passed_for: u64,
}

impl AccountTable {
    /// Creates an empty table that stays within `bytes_max` as far as the residence rule allows.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            index: HashTable::new(),
            blocks: Vec::new(),
            free: Vec::new(),
            hasher: RandomState::default(),
            heap_bytes: 0,
            bytes_max,
            hand: 0,
            passed: 0,
            passed_for: 0,
        }
    }

    /// Returns the hash of an account's key, which the caller computes once for several lookups.
    pub(crate) fn hash(&self, ledger: u32, address: &str) -> u64 {
        self.hasher.hash_one((ledger, address))
    }

    fn slot(&self, slot: u32) -> Option<&AccountState> {
        self.blocks[slot as usize / BLOCK][slot as usize % BLOCK].0.as_ref()
    }

    fn slot_mut(&mut self, slot: u32) -> &mut Option<AccountState> {
        &mut self.blocks[slot as usize / BLOCK][slot as usize % BLOCK].0
    }

    /// Returns the number of slots, used or not.
    fn slots(&self) -> usize {
        self.blocks.last().map_or(0, |last| (self.blocks.len() - 1) * BLOCK + last.len())
    }

    fn search(&self, hash: u64, ledger: u32, address: &str) -> Option<(u32, &AccountState)> {
        let wanted = prefix(hash);
        let found = self.index.find(spread(hash), |entry| {
            entry.prefix == wanted
                && self
                    .slot(entry.slot)
                    .is_some_and(|account| account.ledger == ledger && account.address == address)
        })?;
        Some((found.slot, self.slot(found.slot)?))
    }

    /// Returns the slot and the number of the account with this address, if it is in the table.
    pub(crate) fn find(&mut self, hash: u64, ledger: u32, address: &str) -> Option<(SlotId, u32)> {
        let (slot, account) = self.search(hash, ledger, address)?;
        let (used, number) = (account.used, account.account);
        if !used && let Some(account) = self.slot_mut(slot) {
            account.used = true;
        }
        Some((SlotId(slot), number))
    }

    /// Prefetches accounts into the processor's cache. Each step handles all accounts with few instructions, so that
    /// their cache misses overlap. Appends the results to `hint`, which must be empty, in the same order. Calls
    /// `absent` with the addresses of accounts that are certainly not in the table, as far as that is known without
    /// comparing addresses. The result only keeps the compiler from removing the reads.
    pub(crate) fn look_for<'a, const N: usize>(
        &self,
        ledger: u32,
        addresses: &[&'a str],
        hint: &mut SmallVec<[AccountHint; N]>,
        mut absent: impl FnMut(&'a str),
    ) -> u64 {
        hint.extend(
            addresses
                .iter()
                .map(|address| AccountHint { hash: self.hash(ledger, address), slot: AccountHint::NO_SLOT }),
        );
        for (hint, address) in hint.iter_mut().zip(addresses) {
            let wanted = prefix(hint.hash);
            match self.index.find(spread(hint.hash), |entry| entry.prefix == wanted) {
                Some(entry) => hint.slot = entry.slot,
                None => absent(address),
            }
        }
        // An account fills two cache lines; read from both.
        let accounts = hint.iter().filter(|hint| hint.slot != AccountHint::NO_SLOT);
        accounts.filter_map(|hint| self.slot(hint.slot)).fold(0, |seen, account| {
            let totals = account.holdings.first().map_or(0, HoldingState::touch);
            seen ^ u64::from(account.ledger) ^ totals ^ account.address.len() as u64
        })
    }

    /// Returns the hash, the slot and the number of the account with this address, if it is in the slot that was
    /// prefetched.
    pub(crate) fn find_by_hint(
        &mut self,
        hint: &AccountHint,
        ledger: u32,
        address: &str,
    ) -> Option<(u64, (SlotId, u32))> {
        if hint.slot == AccountHint::NO_SLOT {
            return None;
        }
        let account = self.slot_mut(hint.slot).as_mut()?;
        if account.ledger != ledger || account.address != address {
            return None;
        }
        account.used = true;
        Some((hint.hash, (SlotId(hint.slot), account.account)))
    }

    /// Returns the account in a slot.
    pub(crate) fn get(&self, slot: SlotId) -> &AccountState {
        self.slot(slot.0).expect("the slot holds an account")
    }

    fn get_mut(&mut self, slot: SlotId) -> &mut AccountState {
        self.slot_mut(slot.0).as_mut().expect("the slot holds an account")
    }

    /// Returns the account in a slot for changing. `flush` is the number of the flush that will write the change.
    pub(crate) fn change(&mut self, slot: SlotId, flush: u64) -> &mut AccountState {
        let account = self.get_mut(slot);
        account.changed_in = FlushMark::new(flush);
        account
    }

    /// Adds an account that is not in the table. `flush` is the number of the flush that will write it, or 0 if it was
    /// read from the index.
    pub(crate) fn insert(&mut self, hash: u64, new: NewState, flush: u64) -> SlotId {
        let account = AccountState {
            ledger: new.ledger,
            account: new.account,
            address: new.address,
            first_usage: new.first_usage,
            holdings: new.holdings,
            document: new.document,
            changed_in: FlushMark::new(flush),
            used: true,
        };
        self.heap_bytes += account.bytes();
        let slot = if let Some(slot) = self.free.pop() {
            *self.slot_mut(slot) = Some(account);
            slot
        } else {
            let slot = self.slots() as u32;
            if self.blocks.last().is_none_or(|last| last.len() == BLOCK) {
                self.blocks.push(Vec::with_capacity(BLOCK));
            }
            self.blocks.last_mut().expect("a block was added above").push(Slot(Some(account)));
            slot
        };
        let entry = Entry::new(hash, slot);
        self.index.insert_unique(entry.place(), entry, |entry| entry.place());
        SlotId(slot)
    }

    /// Removes a new account, as if it had never been added.
    pub(crate) fn remove(&mut self, slot: SlotId) {
        if let Some(account) = self.slot_mut(slot.0).take() {
            let hash = self.hash(account.ledger, &account.address);
            if let Ok(entry) = self.index.find_entry(spread(hash), |entry| entry.slot == slot.0) {
                entry.remove();
            }
            self.heap_bytes = self.heap_bytes.saturating_sub(account.bytes());
            self.free.push(slot.0);
        }
    }

    /// Stores a document that was read from the index. This is not a change.
    pub(crate) fn set_document(&mut self, slot: SlotId, document: AccountDocument) {
        let account = self.get_mut(slot);
        let before = account.bytes();
        account.set_document(document);
        let after = account.bytes();
        self.heap_bytes = (self.heap_bytes + after).saturating_sub(before);
    }

    /// Changes a document that is in memory. The caller marks the account as changed with [`Self::change`].
    pub(crate) fn edit_document(&mut self, slot: SlotId, edit: impl FnOnce(&mut AccountDocument)) {
        let account = self.get_mut(slot);
        let before = account.bytes();
        let mut document = account.document().into_owned();
        edit(&mut document);
        account.set_document(document);
        let after = account.bytes();
        self.heap_bytes = (self.heap_bytes + after).saturating_sub(before);
    }

    /// Adds a holding to an account. `flush` is the number of the flush that will write it. Returns whether the
    /// account had no holding of the asset before.
    pub(crate) fn add_holding(&mut self, slot: SlotId, holding: HoldingState, flush: u64) -> bool {
        let account = self.change(slot, flush);
        let before = account.bytes();
        let found = account.holdings.binary_search_by_key(&holding.asset, |have| have.asset);
        let Err(at) = found else { return false };
        account.holdings.insert(at, holding);
        let after = account.bytes();
        self.heap_bytes = (self.heap_bytes + after).saturating_sub(before);
        true
    }

    /// Restores an earlier state of an account.
    pub(crate) fn restore(&mut self, slot: SlotId, account: AccountState) {
        let after = account.bytes();
        let before = std::mem::replace(self.get_mut(slot), account).bytes();
        self.heap_bytes = (self.heap_bytes + after).saturating_sub(before);
    }

    /// Compares the counter of heap bytes with the sum over all accounts.
    ///
    /// # Errors
    ///
    /// Both numbers, if they differ.
    #[cfg(any(test, debug_assertions, feature = "testing"))]
    pub(crate) fn check_bytes(&self) -> Result<(), Miscount> {
        let held = self.iter().map(|(_, account)| account.bytes()).sum();
        Miscount::check("accounts", self.heap_bytes, held)
    }

    /// Returns whether the table is so small that debug builds may check all of it after every undo.
    #[cfg(debug_assertions)]
    pub(crate) fn is_small(&self) -> bool {
        self.slots() <= BLOCK
    }

    /// Returns all accounts with their slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SlotId, &AccountState)> {
        let slots = self.blocks.iter().flatten().enumerate();
        slots.filter_map(|(slot, account)| account.0.as_ref().map(|account| (SlotId(slot as u32), account)))
    }

    /// Returns the approximate memory of all accounts in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.slots() * size_of::<Slot>() + self.index_bytes() + self.heap_bytes
    }

    /// Returns the memory of the hash table: an entry and a control byte for each bucket, of which an eighth stays
    /// empty.
    fn index_bytes(&self) -> usize {
        self.index.capacity() / 7 * 8 * (size_of::<Entry>() + 1)
    }

    /// Frees memory if the budget is exceeded: evicts accounts whose last change a flush up to `flushed` has written.
    /// Only called between commands, when no [`SlotId`] is kept.
    pub(crate) fn evict(&mut self, flushed: u64) {
        let slots = self.slots();
        if slots == self.free.len() || self.bytes() <= self.bytes_max {
            return;
        }
        let live_bytes = |table: &Self| {
            (slots - table.free.len()) * size_of::<Slot>() + table.index_bytes() + table.heap_bytes
        };
        if self.passed_for != flushed {
            (self.passed, self.passed_for) = (0, flushed);
        }
        let target = self.bytes_max - self.bytes_max / 16;
        let mut steps = EVICTION_STEPS;
        // After two rounds without success, nothing can be evicted until another flush is done.
        while steps > 0 && self.passed <= 2 * slots && live_bytes(self) > target {
            steps -= 1;
            self.passed += 1;
            self.hand = if self.hand + 1 < slots { self.hand + 1 } else { 0 };
            let slot = SlotId(self.hand as u32);
            match self.slot_mut(slot.0) {
                Some(account) if account.changed_in.is_within(flushed) => {
                    if account.used {
                        account.used = false;
                    } else {
                        self.remove(slot);
                        self.passed = 0;
                    }
                }
                _ => {}
            }
        }
    }
}

/// A new account for the table.
#[derive(Debug)]
pub(crate) struct NewState {
    pub(crate) ledger: u32,
    pub(crate) account: u32,
    pub(crate) address: SmolStr,
    pub(crate) first_usage: Timestamp,
    pub(crate) holdings: Holdings,
    pub(crate) document: DocumentState,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert(table: &mut AccountTable, account: u32, flush: u64) {
        let address = format!("users:{account}");
        let hash = table.hash(1, &address);
        let new = NewState {
            ledger: 1,
            account,
            address: address.into(),
            first_usage: Timestamp::from_micros(0),
            holdings: Holdings::NONE,
            document: DocumentState::Stored,
        };
        table.insert(hash, new, flush);
    }

    fn find(table: &mut AccountTable, account: u32) -> Option<SlotId> {
        let address = format!("users:{account}");
        let hash = table.hash(1, &address);
        table.find(hash, 1, &address).map(|(slot, _)| slot)
    }

    #[test]
    fn unflushed_accounts_stay_and_are_skipped() {
        let mut table = AccountTable::new(10_000);
        for account in 0..1_000 {
            insert(&mut table, account, 5);
        }
        for _ in 0..3 {
            table.evict(4);
        }
        let hand = table.hand;
        table.evict(4);
        assert_eq!(table.hand, hand, "nothing could go");
        assert!((0..1_000).all(|account| find(&mut table, account).is_some()));
        table.evict(5);
        assert!(table.index.len() < 100, "{} are left", table.index.len());
        insert(&mut table, 2_000, 6);
        table.evict(5);
        assert!(find(&mut table, 2_000).is_some());
    }

    #[test]
    fn accounts_of_many_blocks_come_and_go() {
        let mut table = AccountTable::new(usize::MAX);
        let count = 2 * BLOCK as u32 + 7;
        for account in 0..count {
            insert(&mut table, account, 1);
        }
        for account in (0..count).step_by(3) {
            let slot = find(&mut table, account).expect("it is there");
            assert_eq!(table.get(slot).account, account);
            table.remove(slot);
            assert_eq!(find(&mut table, account), None);
        }
        let slots = table.slots();
        insert(&mut table, 0, 1);
        assert_eq!(table.slots(), slots, "a free slot is used first");
        assert_eq!(table.iter().count(), (count - count.div_ceil(3) + 1) as usize);
    }
}
