//! A batch: the entries and rows that one append to the journal will make durable.

use ledger_codec::Corrupt;
use ledger_journal::Position;
use ledger_journal::entry::{BuilderMark, ChunkBuilder, Record};

use crate::hashes::{Unhashed, UnhashedMark};
use crate::projection::{MemtableBuilder, MemtableSizes};

/// The decisions since the last append.
pub(crate) struct Batch {
    /// The position of the first entry.
    pub(crate) first: Position,
    /// The number of the flush that will write its rows to the index.
    pub(crate) flush: u64,
    pub(crate) chunks: ChunkBuilder,
    pub(crate) rows: MemtableBuilder,
    /// The entries to be hashed.
    pub(crate) unhashed: Unhashed,
    /// The ledgers that the batch changed.
    pub(crate) ledgers: Vec<u32>,
    /// Number of bytes that its commands took in the queue. A batch ends when they are many, and they are released with it.
    pub(crate) queued_bytes: usize,
}

/// A state of the batch to which [`Batch::reset`] returns.
pub(crate) struct BatchMark {
    chunks: BuilderMark,
    rows: MemtableSizes,
    unhashed: UnhashedMark,
}

impl Batch {
    /// Creates an empty batch. `rows` and `unhashed` must be empty; their capacity is used.
    pub(crate) fn new(first: Position, flush: u64, rows: MemtableBuilder, unhashed: Unhashed) -> Self {
        Self {
            first,
            flush,
            chunks: ChunkBuilder::default(),
            rows,
            unhashed,
            ledgers: Vec::new(),
            queued_bytes: 0,
        }
    }

    /// Returns the current state, for [`Batch::reset`].
    pub(crate) fn mark(&self) -> BatchMark {
        BatchMark { chunks: self.chunks.mark(), rows: self.rows.mark(), unhashed: self.unhashed.mark() }
    }

    /// Drops everything that was added since the mark.
    pub(crate) fn reset(&mut self, mark: BatchMark) {
        self.chunks.reset(mark.chunks);
        self.rows.reset(mark.rows);
        self.unhashed.reset(mark.unhashed);
    }

    /// Records that a ledger was changed.
    pub(crate) fn touch(&mut self, ledger: u32) {
        if self.ledgers.last() != Some(&ledger) && !self.ledgers.contains(&ledger) {
            self.ledgers.push(ledger);
        }
    }

    /// Returns the position of the entry that created a transaction, if it is in this batch.
    pub(crate) fn position_of(&self, ledger: u32, id: u64) -> Option<Position> {
        let row =
            self.rows.transactions.iter().rev().find(|row| (row.ledger, row.transaction) == (ledger, id))?;
        Position::new(row.position)
    }

    /// Reads an entry of this batch.
    pub(crate) fn read<T>(
        &mut self,
        position: Position,
        then: impl FnOnce(&Record<'_>) -> T,
    ) -> Result<Option<T>, Corrupt> {
        self.chunks.read(position, then)
    }
}
