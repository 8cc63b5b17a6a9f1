//! The entries and rows that one flush of the journal will make durable.

use ledger_codec::Corrupt;
use ledger_journal::Position;
use ledger_journal::entry::{ChunkBuilder, Mark, Record};

use crate::hashes::{Unhashed, UnhashedMark};
use crate::projection::{PieceBuilder, PieceMark};

/// The decisions since the last flush began.
pub(crate) struct Batch {
    /// The position of its first entry.
    pub(crate) first: Position,
    /// The flush of the index that will hold its rows.
    pub(crate) flush: u64,
    pub(crate) chunks: ChunkBuilder,
    pub(crate) rows: PieceBuilder,
    /// The part that is to be hashed.
    pub(crate) unhashed: Unhashed,
    /// Ledgers that it changed.
    pub(crate) ledgers: Vec<u32>,
    /// The memory that its commands took.
    pub(crate) submitted: usize,
}

/// A place to return to.
pub(crate) struct BatchMark {
    chunks: Mark,
    rows: PieceMark,
    unhashed: UnhashedMark,
}

impl Batch {
    /// Nothing yet; `rows` and `unhashed` are empty and have room.
    pub(crate) fn new(first: Position, flush: u64, rows: PieceBuilder, unhashed: Unhashed) -> Self {
        Self {
            first,
            flush,
            chunks: ChunkBuilder::default(),
            rows,
            unhashed,
            ledgers: Vec::new(),
            submitted: 0,
        }
    }

    /// Remembers this state, to return to with [`Batch::reset`].
    pub(crate) fn mark(&self) -> BatchMark {
        BatchMark { chunks: self.chunks.mark(), rows: self.rows.mark(), unhashed: self.unhashed.mark() }
    }

    /// Drops what was added since the mark.
    pub(crate) fn reset(&mut self, mark: BatchMark) {
        self.chunks.reset(mark.chunks);
        self.rows.reset(mark.rows);
        self.unhashed.reset(mark.unhashed);
    }

    /// Notes that a ledger was changed.
    pub(crate) fn touch(&mut self, ledger: u32) {
        if self.ledgers.last() != Some(&ledger) && !self.ledgers.contains(&ledger) {
            self.ledgers.push(ledger);
        }
    }

    /// The position of a transaction of this batch.
    pub(crate) fn position_of(&self, ledger: u32, id: u64) -> Option<Position> {
        let row =
            self.rows.transactions.iter().rev().find(|row| (row.ledger, row.transaction) == (ledger, id))?;
        Position::new(row.position)
    }

    /// Reads an entry of this batch back.
    pub(crate) fn read<T>(
        &mut self,
        position: Position,
        then: impl FnOnce(&Record<'_>) -> T,
    ) -> Result<Option<T>, Corrupt> {
        self.chunks.read(position, then)
    }
}
