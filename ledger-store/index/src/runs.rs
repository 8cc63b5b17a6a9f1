//! Writes runs: sorted rows on disk that never change.

use std::borrow::Borrow;
use std::marker::PhantomData;
use std::ops::{Bound, Range};

use ledger_codec::Output;

use super::block::BlockBuilder;
use super::error::{IndexError, storage};
use super::filter::{FilterBuilder, page_key};
use super::row::{KeyBytes, Row};
use super::rows::TABLES;
use super::run_list::{BlockKey, RunMeta};
use super::stored::{CHECKSUM_BYTES, checksum};
use super::stream::WholeBlock;
use super::tables::FILTERS;
use super::write::IndexWrite;

/// Number of blocks that are handed to the storage engine at once. It copies them into a buffer that grows: a greater
/// one would be memory that is new from the system each time.
const PORTION_BLOCKS: usize = 32;
/// Encoded blocks are written when there are this many bytes of them, but for those of a merge.
const PORTION_BYTES: usize = PORTION_BLOCKS * 8192;

/// Encodes the rows of one run and hands its blocks over in portions. It takes them as they come: its own, or lent.
pub(super) struct RunBuilder<R, H = R> {
    run: u64,
    /// The last row taken, which the next one may supersede.
    held: Option<H>,
    /// Removals may be left out: nothing older is left that they would remove.
    drop_removals: bool,
    /// The last row encoded; none after a block was adopted.
    previous: Option<H>,
    /// The key of the last row of the block that was adopted, if it is known and nothing came after.
    adopted_last: Option<KeyBytes>,
    first: Option<KeyBytes>,
    rows: u64,
    bytes: u64,
    blocks: u64,
    filter: FilterBuilder,
    /// Closed blocks, and behind them the one that grows.
    buffer: Output,
    closed: Vec<(BlockKey, Range<usize>)>,
    block: BlockBuilder,
    /// The growing block's first key, once it has a row.
    block_first: Option<KeyBytes>,
    kind: PhantomData<R>,
}

impl<R: Row, H: Borrow<R>> RunBuilder<R, H> {
    /// Builds in a buffer that is empty.
    pub(super) fn new(run: u64, drop_removals: bool, buffer: Output) -> Self {
        debug_assert!(buffer.len() == 0);
        Self {
            run,
            held: None,
            drop_removals,
            previous: None,
            adopted_last: None,
            first: None,
            rows: 0,
            bytes: 0,
            blocks: 0,
            filter: FilterBuilder::default(),
            buffer,
            closed: Vec::new(),
            block: BlockBuilder::new(0),
            block_first: None,
            kind: PhantomData,
        }
    }

    /// Takes the next row.
    ///
    /// # Panics
    ///
    /// If it does not follow the row before: a defect of whoever sorted them.
    #[inline]
    pub(super) fn push(&mut self, row: H) {
        if !R::SUPERSEDES {
            let last = self.previous.as_ref();
            let ascends = last.is_none_or(|last| last.borrow().key() < row.borrow().key());
            assert!(ascends, "rows of a run ascend by key");
            self.encode(row);
            return;
        }
        if let Some(held) = self.held.take() {
            assert!(held.borrow().key() < row.borrow().key(), "rows of a run ascend by key");
            if !row.borrow().supersedes(held.borrow()) {
                self.encode(held);
            }
        }
        self.held = Some(row);
    }

    /// Takes all rows of a stored block as they are, without counting them: of a table whose rows depend on no others
    /// and are in no filter.
    pub(super) fn adopt(&mut self, block: &WholeBlock<'_>) {
        self.close_block(Some(&block.first));
        self.block.adopt(block.rows, block.restarts, &mut self.buffer);
        self.block_first = Some(block.first);
        self.first.get_or_insert(block.first);
        self.previous = None;
        self.adopted_last = block.last;
    }

    /// The last row of those taken, of a table in which none supersedes others.
    pub(super) fn previous(&self) -> Option<&R> {
        self.previous.as_ref().map(Borrow::borrow)
    }

    /// Bytes that wait to be written.
    pub(super) fn pending_bytes(&self) -> usize {
        self.block.start() + self.filter.pending_bytes()
    }

    /// The buffer, for the next run, once all is written.
    pub(super) fn into_buffer(self) -> Output {
        let mut buffer = self.buffer;
        buffer.truncate(0);
        buffer
    }

    #[inline]
    fn encode(&mut self, held: H) {
        let row = held.borrow();
        if self.drop_removals && row.is_removal() {
            return;
        }
        let key = row.key();
        if let Some(probe_key) = R::probe_key(&key) {
            self.filter.add(probe_key);
        }
        let previous = self.previous.as_ref().map(Borrow::borrow);
        if !self.block.push(row, previous, &mut self.buffer) {
            self.close_block(Some(&KeyBytes::of::<R>(&key)));
            self.block.push(row, None, &mut self.buffer);
        }
        if self.block_first.is_none() {
            self.begin_block(&key);
        }
        self.rows += 1;
        self.previous = Some(held);
    }

    fn begin_block(&mut self, first: &R::Key) {
        let first = KeyBytes::of::<R>(first);
        self.block_first = Some(first);
        self.first.get_or_insert(first);
    }

    /// Closes the growing block, if it has rows.
    fn close_block(&mut self, next: Option<&KeyBytes>) {
        let Some(first) = self.block_first.take() else {
            return;
        };
        let start = self.block.start();
        self.block.close(next, &mut self.buffer);
        let key = BlockKey::new(self.run, &first);
        let name = TABLES[usize::from(R::TABLE)];
        let sum = checksum(name, key.as_slice(), &self.buffer.as_slice()[start..]);
        self.buffer.put_bytes(&sum);
        self.bytes += (self.buffer.len() - start) as u64;
        self.blocks += 1;
        self.closed.push((key, start..self.buffer.len()));
    }

    /// Ends the run. What is pending still has to be written. None if it has no rows.
    pub(super) fn finish(&mut self, tier: u8) -> Option<RunMeta> {
        if let Some(held) = self.held.take() {
            self.encode(held);
        }
        self.close_block(None);
        let filter_pages = self.filter.finish();
        let last = self.previous().map(|row| KeyBytes::of::<R>(&row.key())).or(self.adopted_last)?;
        let (rows, bytes, blocks) = (self.rows, self.bytes, self.blocks);
        Some(RunMeta { id: self.run, tier, rows, bytes, blocks, filter_pages, first: self.first?, last })
    }

    /// Writes the closed blocks and filter pages, and forgets them.
    pub(super) fn write_pending(&mut self, write: &IndexWrite) -> Result<(), IndexError> {
        if !self.closed.is_empty() {
            let mut blocks = write.raw_table(TABLES[usize::from(R::TABLE)])?;
            for portion in self.closed.chunks(PORTION_BLOCKS) {
                write.attempt("writing blocks", || {
                    // Through a cursor the engine appends whole leaves, instead of one search per block.
                    let first = portion[0].0.as_slice();
                    let mut cursor = blocks.upper_bound_mut(Bound::Excluded(first)).map_err(storage)?;
                    for (key, range) in portion {
                        let block = &self.buffer.as_slice()[range.clone()];
                        cursor.insert_before(key.as_slice(), block).map_err(storage)?;
                    }
                    cursor.close().map_err(storage)
                })?;
            }
            self.closed.clear();
            self.buffer.remove_first(self.block.start());
            self.block.move_to_front();
        }
        let pages = self.filter.take_pages();
        if !pages.is_empty() {
            let mut table = write.raw_table(FILTERS)?;
            write.attempt("writing a filter", || {
                for (page, mut bytes) in pages {
                    let key = page_key(self.run, page);
                    let sum: [u8; CHECKSUM_BYTES] = checksum(FILTERS, &key, &bytes);
                    bytes.extend_from_slice(&sum);
                    table.insert(key.as_slice(), bytes.as_slice()).map_err(storage)?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// Writes rows, sorted by key and linked, as the table's newest run; readers see it once
/// the transaction is committed. None if there are no rows.
///
/// # Errors
///
/// As the storage engine fails; the transaction is to be dropped then.
///
/// # Panics
///
/// If the rows do not ascend strictly by key: a defect of the caller.
pub fn write_run<R: Row, H: Borrow<R>>(
    write: &IndexWrite,
    rows: impl IntoIterator<Item = H>,
) -> Result<Option<RunMeta>, IndexError> {
    let mut runs = write.runs(R::TABLE)?;
    let mut builder = RunBuilder::<R, H>::new(write.allocate_run(), runs.is_empty(), write.take_buffer());
    for row in rows {
        builder.push(row);
        if builder.pending_bytes() >= PORTION_BYTES {
            builder.write_pending(write)?;
        }
    }
    let finished = builder.finish(0);
    builder.write_pending(write)?;
    write.keep_buffer(builder.into_buffer());
    if let Some(run) = &finished {
        runs.push(run.clone());
        write.set_runs(R::TABLE, &runs)?;
    }
    Ok(finished)
}
