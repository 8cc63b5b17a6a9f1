//! The published view: an immutable version of the store for readers. A commit publishes it after its entries are on
//! disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use ledger_core::{LedgerName, Timestamp};
use ledger_index::{IndexSnapshot, MemtableRows, Row, TableView};
use ledger_journal::Position;
use parking_lot::RwLock;

use crate::address_cache::AddressCache;
use crate::names::Names;
use crate::projection::{BEFORE_ALL, Memtable};
use crate::query::LedgerInfo;

/// Number of ledgers in a leaf of [`Heads`].
const LEAF: usize = 64;

/// The counters of a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counters {
    /// The id of the next log entry.
    pub(crate) next_log: u64,
    /// The id of the next transaction.
    pub(crate) next_transaction: u64,
    /// Number of transactions. Smaller than the ids suggest if they have gaps.
    pub(crate) transactions: u64,
    /// Number of accounts, which is also the number of the next account.
    pub(crate) accounts: u32,
    /// Number of holdings, which is also the number of the next holding.
    pub(crate) holdings: u32,
    /// The date of the last log entry.
    pub(crate) last_date: Timestamp,
    /// Number of assets that have a number.
    pub(crate) assets: u32,
    /// Number of metadata keys that have a number.
    pub(crate) keys: u32,
    /// True if anything was written to the ledger other than by import.
    pub(crate) in_use: bool,
    /// Number of schema versions.
    pub(crate) schemas: u32,
    /// Number of transactions that may come after later recorded ones in effective order: those dated in the future,
    /// and those imported with dates out of log order. If there are none, a transaction that is dated at its recording
    /// comes after all transactions that were recorded before it.
    pub(crate) ahead: u64,
}

impl Counters {
    /// The counters of a ledger without entries.
    pub(crate) const NEW: Self = Self {
        next_log: 0,
        next_transaction: 0,
        transactions: 0,
        accounts: 0,
        holdings: 0,
        last_date: BEFORE_ALL,
        assets: 0,
        keys: 0,
        in_use: false,
        schemas: 0,
        ahead: 0,
    };

    /// Returns whether the ledger has no log entries yet.
    pub(crate) fn is_new(&self) -> bool {
        self.last_date == BEFORE_ALL
    }
}

/// The state of a ledger in one view.
#[derive(Clone)]
pub(crate) struct LedgerHead {
    /// The description of the ledger.
    pub(crate) info: Arc<LedgerInfo>,
    /// The section of the journal that holds its entries.
    pub(crate) section: u32,
    /// The assets by number.
    pub(crate) assets: Names,
    /// The metadata keys by number.
    pub(crate) keys: Names,
    /// The counters.
    pub(crate) counters: Counters,
    /// The v1 mapping as JSON text, if one was set.
    pub(crate) mapping: Option<Arc<str>>,
    /// True if the ledger was removed for good. Its number is never reused, it keeps no data, and it answers no
    /// request.
    pub(crate) is_removed: bool,
}

/// All ledgers in one view, by number. A changed copy shares all leaves except the changed ones.
#[derive(Clone, Default)]
pub(crate) struct Heads {
    leaves: Vec<Arc<Vec<LedgerHead>>>,
    len: usize,
}

impl Heads {
    /// Returns the ledger with a number. Numbers start at 1.
    pub(crate) fn get(&self, ledger: u32) -> Option<&LedgerHead> {
        let at = (ledger as usize).checked_sub(1)?;
        self.leaves.get(at / LEAF)?.get(at % LEAF)
    }

    /// Sets the state of a ledger. A new ledger must have the next number.
    pub(crate) fn set(&mut self, ledger: u32, head: LedgerHead) {
        let at = ledger as usize - 1;
        assert!(at <= self.len, "ledgers are numbered without a gap");
        if at == self.len {
            if at.is_multiple_of(LEAF) {
                self.leaves.push(Arc::default());
            }
            Arc::make_mut(&mut self.leaves[at / LEAF]).push(head);
            self.len += 1;
        } else {
            Arc::make_mut(&mut self.leaves[at / LEAF])[at % LEAF] = head;
        }
    }

    /// Returns the number of ledgers.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns all ledgers in order of their numbers.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &LedgerHead> {
        self.leaves.iter().flat_map(|leaf| leaf.iter())
    }
}

/// The numbers of ledgers by name, shared by all views. A reader ignores a ledger that its view does not contain yet.
/// The name of a removed ledger is missing even for readers of older views, but the ledger was deleted long before its
/// removal.
#[derive(Clone, Default)]
pub(crate) struct Directory(Arc<RwLock<BTreeMap<LedgerName, u32>>>);

impl Directory {
    /// Returns the number of a ledger.
    pub(crate) fn get(&self, name: &LedgerName) -> Option<u32> {
        self.0.read().get(name).copied()
    }

    /// Removes the name of a ledger that was removed for good.
    pub(crate) fn remove(&self, name: &LedgerName) {
        self.0.write().remove(name);
    }

    /// Adds a ledger.
    pub(crate) fn insert(&self, name: LedgerName, ledger: u32) {
        self.0.write().insert(name, ledger);
    }
}

/// A memtable with the number of the flush that will write it.
#[derive(Clone)]
pub(crate) struct PublishedMemtable {
    pub(crate) flush: u64,
    pub(crate) memtable: Arc<Memtable>,
}

/// The size of several memtables together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MemtableSize {
    /// Number of rows in all tables.
    pub(crate) rows: usize,
    /// Number of bytes in memory.
    pub(crate) bytes: usize,
}

/// One version of the store, as readers see it.
#[derive(Clone)]
pub(crate) struct View {
    /// The view holds exactly the entries before this position.
    pub(crate) next: Position,
    /// The snapshot of the index after the last flush or merge.
    pub(crate) index: IndexSnapshot,
    /// Number of times that another file, or the same file opened anew, became the index.
    pub(crate) generation: u64,
    /// The number of the last flush that `index` holds.
    pub(crate) flushed: u64,
    /// `index` holds exactly the entries before this position.
    pub(crate) indexed: Position,
    /// Memtables that are not in the index yet, oldest first.
    pub(crate) memtables: Vec<PublishedMemtable>,
    /// The ledgers.
    pub(crate) heads: Heads,
    /// The cache of addresses, shared by all views.
    pub(crate) addresses: Arc<AddressCache>,
}

/// Number of adjacent small memtables of similar size that are merged when a view is published.
const MERGE_FAN_IN: usize = 4;
/// Maximum number of rows of such a merge. It takes the publishing thread some microseconds.
const MERGE_INLINE_ROWS: usize = 1_024;

impl View {
    /// Adds a memtable of entries that are on disk.
    pub(crate) fn push(&mut self, flush: u64, memtable: Memtable) {
        self.memtables.push(PublishedMemtable { flush, memtable: Arc::new(memtable) });
        while let Some((from, to)) = self.due_merge(MERGE_FAN_IN, |size| size.rows <= MERGE_INLINE_ROWS) {
            if to != self.memtables.len() {
                break;
            }
            let merged = Memtable::merge(&self.memtables_between(from, to));
            self.replace(from, to, merged);
        }
    }

    /// Returns the newest range of `fan_in` adjacent memtables that should be merged: all are of one flush, none is in
    /// a larger size class than the newest of the range, and `allowed` accepts their total size.
    pub(crate) fn due_merge(
        &self,
        fan_in: usize,
        allowed: impl Fn(MemtableSize) -> bool,
    ) -> Option<(usize, usize)> {
        // The size class, which grows with each factor of four, and the flush.
        let tier =
            |at: usize| (self.memtables[at].memtable.rows.max(1).ilog2() / 2, self.memtables[at].flush);
        let mut to = self.memtables.len();
        while to >= fan_in {
            let from = to - fan_in;
            let parts = self.memtables[from..to].iter().map(|memtable| &memtable.memtable);
            let size = parts.fold(MemtableSize::default(), |size, memtable| MemtableSize {
                rows: size.rows + memtable.rows,
                bytes: size.bytes + memtable.bytes,
            });
            let newest = tier(to - 1);
            let may_merge = (from..to).all(|at| tier(at).1 == newest.1 && tier(at).0 <= newest.0);
            if may_merge && allowed(size) {
                return Some((from, to));
            }
            to -= 1;
        }
        None
    }

    /// Returns the memtables in a range.
    pub(crate) fn memtables_between(&self, from: usize, to: usize) -> Vec<Arc<Memtable>> {
        self.memtables[from..to].iter().map(|memtable| memtable.memtable.clone()).collect()
    }

    /// Replaces a range of memtables by one.
    pub(crate) fn replace(&mut self, from: usize, to: usize, merged: Memtable) {
        let flush = self.memtables[from].flush;
        let one = PublishedMemtable { flush, memtable: Arc::new(merged) };
        self.memtables.splice(from..to, [one]);
    }

    /// Returns the bytes of the memtables that `flush` writes.
    pub(crate) fn bytes_of(&self, flush: u64) -> usize {
        self.memtables
            .iter()
            .filter(|memtable| memtable.flush == flush)
            .map(|memtable| memtable.memtable.bytes)
            .sum()
    }

    /// Returns one table in this view.
    pub(crate) fn table<R: Row>(&self, rows: impl Fn(&Memtable) -> &MemtableRows<R>) -> TableView<R> {
        let memtables = self
            .memtables
            .iter()
            .map(|memtable| rows(&memtable.memtable))
            .filter(|rows| !rows.is_empty())
            .cloned()
            .collect();
        TableView::new(memtables, self.index.clone())
    }

    /// Replaces the index after a flush, and drops the memtables that the flush wrote. The index then holds exactly the
    /// entries before `next`.
    pub(crate) fn take_flush(&mut self, index: IndexSnapshot, flush: u64, next: Position) {
        self.index = index;
        self.flushed = flush;
        self.indexed = next;
        self.memtables.retain(|memtable| memtable.flush > flush);
    }

    /// Takes over the index of `other`. It is another file than the index of this view, or the same file opened anew.
    pub(crate) fn take_file(&mut self, other: &Self) {
        self.take_flush(other.index.clone(), other.flushed, other.indexed);
        self.generation += 1;
    }
}
