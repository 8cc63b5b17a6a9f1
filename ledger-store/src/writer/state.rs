//! The authoritative state on which commands are decided.
//!
//! It is ahead of the disk by the batches that are not durable yet. It never relies on data that lags behind: changes
//! since the last flush are in memory, and the index holds the exact state of everything else.

use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use ledger_core::schema::Enforcement;
use ledger_index::{IndexSnapshot, KeyRow, Row, SharedBytes, TableView, UniquenessFilter, VersionRow};
use ledger_journal::Position;
use smallvec::SmallVec;

use super::accounts::{AccountState, AccountTable, SlotId};
use super::ledgers::Ledgers;
#[cfg(any(test, debug_assertions, feature = "testing"))]
use super::miscount::Miscount;
use super::recent::Recent;
use super::recent_keys::{RecentKey, RecentKeys};
use super::replay_state::ReplayState;
use super::schema_cache::SchemaCache;
use super::used_numbers::UsedNumbers;
use crate::documents::TransactionDocument;
use crate::documents::merged::Merged;
use crate::documents::overlay::{Overlay, UndoRecord};
use crate::error::ReadError;
use crate::fingerprint::{Fingerprints, KeyKind, key_space};
use crate::lookup;
use crate::options::Shares;
use crate::projection::MemtableSizes;
use crate::view::Counters;

/// The record for undoing an atomic submission or a dry run.
pub(crate) struct Undo {
    pub(crate) next: Position,
    /// The ledgers that may change, with their counters before the change.
    pub(crate) ledgers: SmallVec<[(u32, Counters); 1]>,
    /// The accounts before the change; `None` for a new account.
    pub(crate) accounts: HashMap<SlotId, Option<AccountState>, RandomState>,
    pub(crate) keys: Vec<RecentKey>,
    pub(crate) documents: Vec<((u32, u64), Option<TransactionDocument>)>,
    /// Keyed documents, as the current flush had them before the change.
    pub(crate) keyed: Vec<(Arc<[u8]>, UndoRecord)>,
}

/// Everything that a decision needs.
pub(crate) struct State {
    pub(crate) ledgers: Ledgers,
    pub(crate) accounts: AccountTable,
    /// Recent references and idempotency keys.
    pub(crate) keys: RecentKeys,
    /// Filters that prove nearly every new reference, idempotency key and address new.
    pub(crate) known: UniquenessFilter,
    /// Changes of transactions after they were recorded, by ledger and id.
    pub(crate) documents: Recent<(u32, u64), TransactionDocument>,
    /// Recent changes of documents and of their indexes.
    pub(super) keyed: Overlay,
    pub(crate) fingerprints: Fingerprints,
    /// The position of the next entry.
    pub(crate) next: Position,
    /// The number of the flush that will write the current changes.
    pub(crate) flush: u64,
    /// Number of rows and commands in the last batch, from which the capacity for the next is estimated.
    pub(crate) last_rows: MemtableSizes,
    pub(crate) last_commands: usize,
    pub(super) index: StoredState,
    /// Present while entries are replayed.
    pub(super) replay: Option<Box<ReplayState>>,
    /// Numbers that no entry may use again.
    pub(crate) used_numbers: UsedNumbers,
    pub(crate) undo: Option<Undo>,
    /// True if applying an entry failed halfway and was not undone.
    pub(super) half_changed: bool,
    /// The number of the read to fail, counted from 1 for the next one; 0 for none.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fail_read: std::cell::Cell<u64>,
    pub(crate) schemas: SchemaCache,
    pub(crate) enforcement: Enforcement,
}

/// The part of the state that is in the index.
pub(super) struct StoredState {
    pub(super) snapshot: IndexSnapshot,
    generation: u64,
    pub(super) flushed: u64,
    pub(super) keys: TableView<KeyRow>,
    pub(super) versions: TableView<VersionRow>,
}

impl StoredState {
    fn new(snapshot: IndexSnapshot, generation: u64, flushed: u64) -> Self {
        let keys = TableView::new(Vec::new(), snapshot.clone());
        let versions = TableView::new(Vec::new(), snapshot.clone());
        Self { snapshot, generation, flushed, keys, versions }
    }
}

impl State {
    pub(crate) fn new(
        index: IndexSnapshot,
        flushed: u64,
        fingerprints: Fingerprints,
        next: Position,
        shares: Shares,
    ) -> Result<Self, ReadError> {
        let flush = flushed + 1;
        let known = UniquenessFilter::load(&index, KeyRow::TABLE, shares.filters, flush)?;
        let index = StoredState::new(index, 0, flushed);
        Ok(Self {
            ledgers: Ledgers::default(),
            accounts: AccountTable::new(shares.accounts),
            keys: RecentKeys::new(flush),
            known,
            documents: Recent::new(flush),
            keyed: Overlay::new(flush),
            fingerprints,
            next,
            flush,
            last_rows: MemtableSizes::default(),
            last_commands: 0,
            index,
            replay: None,
            used_numbers: UsedNumbers::default(),
            undo: None,
            half_changed: false,
            #[cfg(any(test, feature = "testing"))]
            fail_read: std::cell::Cell::new(0),
            schemas: SchemaCache::new(shares.schemas),
            enforcement: Enforcement::default(),
        })
    }

    /// Switches to an index that holds everything up to flush `flushed`, and forgets changes that it holds.
    ///
    /// # Errors
    ///
    /// The read error of the index's filters. Nothing has changed then.
    pub(crate) fn adopt(&mut self, index: &IndexSnapshot, flushed: u64) -> Result<(), ReadError> {
        self.reading()?;
        self.known.adopt(index, flushed)?;
        self.release(StoredState::new(index.clone(), self.index.generation, flushed));
        Ok(())
    }

    /// Like [`Self::adopt`], for an index that is another file or the same file opened anew.
    ///
    /// # Errors
    ///
    /// The read error of the index's filters. Nothing has changed then.
    pub(crate) fn adopt_file(
        &mut self,
        index: &IndexSnapshot,
        generation: u64,
        flushed: u64,
    ) -> Result<(), ReadError> {
        self.reading()?;
        self.known.adopt_file(index, flushed)?;
        self.release(StoredState::new(index.clone(), generation, flushed));
        Ok(())
    }

    /// Switches to an index, and forgets the changes that it holds.
    fn release(&mut self, index: StoredState) {
        let flushed = index.flushed;
        self.index = index;
        self.keys.release(flushed);
        self.documents.release(flushed);
        self.keyed.release(flushed);
    }

    /// Returns the generation of the index file; see [`crate::view::View`].
    pub(crate) fn generation(&self) -> u64 {
        self.index.generation
    }

    /// Called before every read of data that is not in memory, so that tests can make it fail.
    #[inline]
    #[cfg_attr(not(any(test, feature = "testing")), expect(clippy::unused_self, reason = "tests use it"))]
    #[cfg_attr(
        not(any(test, feature = "testing")),
        expect(clippy::unnecessary_wraps, reason = "it fails in tests")
    )]
    pub(super) fn reading(&self) -> Result<(), ReadError> {
        #[cfg(any(test, feature = "testing"))]
        if let Some(left) = self.fail_read.get().checked_sub(1) {
            self.fail_read.set(left);
            if left == 0 {
                return Err(ReadError::Io("injected failure of a read".into()));
            }
        }
        Ok(())
    }

    /// Returns whether an entry was applied partially. Nothing may be decided or committed on such a state.
    pub(crate) fn is_half_changed(&self) -> bool {
        self.half_changed
    }

    /// Returns the number of the last flush that the index holds.
    pub(crate) fn flushed(&self) -> u64 {
        self.index.flushed
    }

    /// Assigns later writes to the next flush. Returns the number of the one that ends.
    pub(crate) fn begin_flush(&mut self) -> u64 {
        let ended = self.flush;
        self.flush += 1;
        self.keys.begin(self.flush);
        self.known.end_flush(ended);
        self.documents.begin(self.flush);
        self.keyed.begin(self.flush);
        ended
    }

    /// Frees memory between submissions.
    pub(crate) fn evict(&mut self) {
        if self.replay.is_none() {
            self.accounts.evict(self.index.flushed);
        }
    }

    /// Returns the key space and the fingerprint of a reference or an idempotency key.
    pub(crate) fn probe_key(&self, ledger: u32, kind: KeyKind, text: &str) -> (u64, u64) {
        let space = key_space(ledger, kind);
        (space, self.fingerprints.of(space, text))
    }

    /// Returns the values that the index holds under a fingerprint. Keys with the same fingerprint may be among them.
    pub(crate) fn stored_keys(&self, (space, fingerprint): (u64, u64)) -> Result<Vec<u64>, ReadError> {
        self.reading()?;
        Ok(self.index.keys.probe(space, fingerprint)?)
    }

    /// Returns the stored value of a document key.
    pub(crate) fn stored_document(&self, key: &[u8]) -> Result<Option<SharedBytes>, ReadError> {
        self.reading()?;
        self.keyed.get(&self.index.snapshot, key)
    }

    /// Returns the entries of an index of documents from one key to another.
    pub(crate) fn document_entries<'a>(
        &'a mut self,
        from: &'a [u8],
        to: &'a [u8],
    ) -> Result<Merged<'a>, ReadError> {
        self.reading()?;
        self.keyed.entries(&self.index.snapshot, from, to)
    }

    /// Sets or removes the stored value of a document key.
    pub(crate) fn keep_document(&mut self, key: Arc<[u8]>, value: Option<SharedBytes>) {
        let previous = self.keyed.put(key.clone(), value);
        if let Some(undo) = &mut self.undo {
            undo.keyed.push((key, previous));
        }
    }

    /// Returns the changes of a transaction after it was recorded.
    pub(crate) fn transaction_document(
        &self,
        ledger: u32,
        transaction: u64,
    ) -> Result<Option<TransactionDocument>, ReadError> {
        if let Some(document) = self.documents.get(&(ledger, transaction)) {
            return Ok(Some(document.clone()));
        }
        self.reading()?;
        lookup::transaction_document(&self.index.versions, ledger, transaction, u64::MAX)
    }

    /// Compares the byte counters, on which memory limits rely, with the data.
    ///
    /// # Errors
    ///
    /// The counter that differs.
    #[cfg(any(test, debug_assertions, feature = "testing"))]
    pub(crate) fn check_bytes(&self) -> Result<(), Miscount> {
        self.accounts.check_bytes()?;
        self.keys.check_bytes()
    }
}
