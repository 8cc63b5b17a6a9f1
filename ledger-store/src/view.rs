//! The view of readers: one moment of the store, published after its entries are on disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use ledger_core::{LedgerName, Timestamp};
use ledger_index::{IndexSnapshot, PieceRows, Row, TableView};
use ledger_journal::Position;
use parking_lot::RwLock;

use crate::address_cache::AddressCache;
use crate::names::Names;
use crate::projection::{BEFORE_ALL, Piece};
use crate::query::LedgerInfo;

/// How many ledgers share a leaf of [`Heads`].
const LEAF: usize = 64;

/// Where a ledger's numbers stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counters {
    /// The id of its next log entry.
    pub(crate) next_log: u64,
    /// The id of its next transaction.
    pub(crate) next_transaction: u64,
    /// How many transactions it has; ids may have gaps.
    pub(crate) transactions: u64,
    /// How many accounts it has, and the number of the next.
    pub(crate) accounts: u32,
    /// How many holdings it has, and the number of the next.
    pub(crate) holdings: u32,
    /// The date of its last log entry.
    pub(crate) last_date: Timestamp,
    /// How many numbered assets it has.
    pub(crate) assets: u32,
    /// How many numbered metadata keys it has.
    pub(crate) keys: u32,
    /// Whether anything was written to it; what was imported does not count.
    pub(crate) in_use: bool,
    /// How many schema versions it has.
    pub(crate) schemas: u32,
    /// How many transactions may come after later ones in effective order: those dated ahead of their recording, and
    /// those that were imported with dates out of the log's order. Without one, whatever is dated when it is recorded
    /// comes after all that was recorded before it.
    pub(crate) ahead: u64,
}

impl Counters {
    /// Of a ledger of which there is nothing.
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

    /// Whether the ledger has no log yet.
    pub(crate) fn is_new(&self) -> bool {
        self.last_date == BEFORE_ALL
    }
}

/// A ledger at one moment.
#[derive(Clone)]
pub(crate) struct LedgerHead {
    /// Its description.
    pub(crate) info: Arc<LedgerInfo>,
    /// The section of the journal that its bucket has.
    pub(crate) section: u32,
    /// Its assets by number.
    pub(crate) assets: Names,
    /// Its metadata keys by number.
    pub(crate) keys: Names,
    /// Where its numbers stand.
    pub(crate) counters: Counters,
    /// Its contracts, once they were set.
    pub(crate) mapping: Option<Arc<str>>,
    /// Whether it was removed for good. Its number is never given again; nothing else is left of it, and it answers
    /// nothing.
    pub(crate) is_removed: bool,
}

/// All ledgers at one moment, by number. A changed copy shares all leaves but the changed ones.
#[derive(Clone, Default)]
pub(crate) struct Heads {
    leaves: Vec<Arc<Vec<LedgerHead>>>,
    len: usize,
}

impl Heads {
    /// The ledger with a number; numbers begin at 1.
    pub(crate) fn get(&self, ledger: u32) -> Option<&LedgerHead> {
        let at = (ledger as usize).checked_sub(1)?;
        self.leaves.get(at / LEAF)?.get(at % LEAF)
    }

    /// Puts a ledger; a new one has the next number.
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

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// All, in order of their numbers.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &LedgerHead> {
        self.leaves.iter().flat_map(|leaf| leaf.iter())
    }
}

/// The numbers of ledgers by name. A reader passes over what its moment has not got yet; what it no longer has was
/// deleted long before.
#[derive(Clone, Default)]
pub(crate) struct Directory(Arc<RwLock<BTreeMap<LedgerName, u32>>>);

impl Directory {
    /// The number of a ledger.
    pub(crate) fn get(&self, name: &LedgerName) -> Option<u32> {
        self.0.read().get(name).copied()
    }

    /// Takes out a ledger that was removed for good.
    pub(crate) fn remove(&self, name: &LedgerName) {
        self.0.write().remove(name);
    }

    /// Puts a ledger.
    pub(crate) fn insert(&self, name: LedgerName, ledger: u32) {
        self.0.write().insert(name, ledger);
    }
}

/// A piece with the number of the flush that will hold it.
#[derive(Clone)]
pub(crate) struct PublishedPiece {
    pub(crate) flush: u64,
    pub(crate) piece: Arc<Piece>,
}

/// How much several pieces are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PieceSize {
    /// Rows of all tables.
    pub(crate) rows: usize,
    /// Bytes in memory.
    pub(crate) bytes: usize,
}

/// One moment of the store.
#[derive(Clone)]
pub(crate) struct View {
    /// Entries before this position are in it, and no others.
    pub(crate) next: Position,
    /// The index as the last flush or merge left it.
    pub(crate) index: IndexSnapshot,
    /// How many times another file, or the same one opened anew, became the index.
    pub(crate) generation: u64,
    /// The number of the last flush that is in `index`.
    pub(crate) flushed: u64,
    /// Entries before this position are in `index`, and no others.
    pub(crate) indexed: Position,
    /// Memtables that are not in the index yet, oldest first.
    pub(crate) pieces: Vec<PublishedPiece>,
    /// The ledgers.
    pub(crate) heads: Heads,
    /// Addresses that were looked up; those of all moments.
    pub(crate) addresses: Arc<AddressCache>,
}

/// Small pieces are merged when this many of a size stand in a row.
const MERGE_FAN_IN: usize = 4;
/// Up to so many rows they are merged at once by whoever publishes; it takes some microseconds.
const MERGE_INLINE_ROWS: usize = 1_024;

impl View {
    /// Adds a piece of entries that are on disk now.
    pub(crate) fn push(&mut self, flush: u64, piece: Piece) {
        self.pieces.push(PublishedPiece { flush, piece: Arc::new(piece) });
        while let Some((from, to)) = self.due_merge(MERGE_FAN_IN, |size| size.rows <= MERGE_INLINE_ROWS) {
            if to != self.pieces.len() {
                break;
            }
            let merged = Piece::merge(&self.pieces_between(from, to));
            self.replace(from, to, merged);
        }
    }

    /// A stretch of pieces of one flush and about one size that should be one, if that size is allowed.
    pub(crate) fn due_merge(
        &self,
        fan_in: usize,
        allowed: impl Fn(PieceSize) -> bool,
    ) -> Option<(usize, usize)> {
        let tier = |at: usize| (self.pieces[at].piece.rows.max(1).ilog2() / 2, self.pieces[at].flush);
        let mut to = self.pieces.len();
        while to >= fan_in {
            let from = to - fan_in;
            let parts = self.pieces[from..to].iter().map(|piece| &piece.piece);
            let size = parts.fold(PieceSize::default(), |size, piece| PieceSize {
                rows: size.rows + piece.rows,
                bytes: size.bytes + piece.bytes,
            });
            let newest = tier(to - 1);
            let one_size = (from..to).all(|at| tier(at).1 == newest.1 && tier(at).0 <= newest.0);
            if one_size && allowed(size) {
                return Some((from, to));
            }
            to -= 1;
        }
        None
    }

    /// The pieces of a stretch.
    pub(crate) fn pieces_between(&self, from: usize, to: usize) -> Vec<Arc<Piece>> {
        self.pieces[from..to].iter().map(|piece| piece.piece.clone()).collect()
    }

    /// Puts one piece in the place of a stretch.
    pub(crate) fn replace(&mut self, from: usize, to: usize, merged: Piece) {
        let flush = self.pieces[from].flush;
        let one = PublishedPiece { flush, piece: Arc::new(merged) };
        self.pieces.splice(from..to, [one]);
    }

    /// Bytes of the pieces that no flush was begun for: those of flush `current`.
    pub(crate) fn bytes_of(&self, current: u64) -> usize {
        self.pieces.iter().filter(|piece| piece.flush == current).map(|piece| piece.piece.bytes).sum()
    }

    /// One table at this moment.
    pub(crate) fn table<R: Row>(&self, rows: impl Fn(&Piece) -> &PieceRows<R>) -> TableView<R> {
        let pieces = self
            .pieces
            .iter()
            .map(|piece| rows(&piece.piece))
            .filter(|rows| !rows.is_empty())
            .cloned()
            .collect();
        TableView::new(pieces, self.index.clone())
    }

    /// Takes the index after a flush, whose memtables are in it.
    pub(crate) fn take_flush(&mut self, index: IndexSnapshot, flush: u64, next: Position) {
        self.index = index;
        self.flushed = flush;
        self.indexed = next;
        self.pieces.retain(|piece| piece.flush > flush);
    }

    /// Takes the index of another view, which is another file.
    pub(crate) fn take_file(&mut self, other: &Self) {
        self.take_flush(other.index.clone(), other.flushed, other.indexed);
        self.generation += 1;
    }
}
