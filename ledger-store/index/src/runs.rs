//! Writes runs: immutable sorted rows on disk.

use std::borrow::Borrow;
use std::marker::PhantomData;
use std::ops::{Bound, Range};

use ledger_codec::Output;

use super::block::BlockBuilder;
use super::error::{IndexError, storage};
use super::filter::{FilterBuilder, page_key};
use super::filter_cache::ProbeKey;
use super::row::{KeyBytes, Row};
use super::rows::TABLES;
use super::run_list::{BlockKey, RunMeta};
use super::stored::{CHECKSUM_BYTES, checksum};
use super::stream::WholeBlock;
use super::tables::FILTERS;
use super::write::IndexWrite;

/// Number of blocks that are passed to redb at a time. redb copies them into a buffer that grows; with more blocks,
/// the allocator would get that buffer anew from the system each time.
const PORTION_BLOCKS: usize = 32;
/// Number of encoded bytes after which blocks are written, except in merges.
const PORTION_BYTES: usize = PORTION_BLOCKS * 8192;

/// The blocks and the filter of one run while it is built. Not generic, so that redb's trees are not compiled for each
/// type of rows.
pub(super) struct RunBlocks {
    run: u64,
    table: u8,
    first: Option<KeyBytes>,
    bytes: u64,
    blocks: u64,
    filter: FilterBuilder,
    /// Closed blocks, followed by the current one.
    buffer: Output,
    closed: Vec<(BlockKey, Range<usize>)>,
    block: BlockBuilder,
    /// The first key of the current block, once it has a row.
    block_first: Option<KeyBytes>,
    rows: u64,
    removals: u64,
    /// The keys for the filter, if they do not ascend. They are sorted when the run ends: 16 bytes for each of up to
    /// a gigabyte of documents.
    probe_keys: Vec<ProbeKey>,
}

impl RunBlocks {
    fn new(run: u64, table: u8, buffer: Output) -> Self {
        debug_assert!(buffer.len() == 0);
        Self {
            run,
            table,
            first: None,
            bytes: 0,
            blocks: 0,
            filter: FilterBuilder::default(),
            buffer,
            closed: Vec::new(),
            block: BlockBuilder::new(0),
            block_first: None,
            rows: 0,
            removals: 0,
            probe_keys: Vec::new(),
        }
    }

    fn name(&self) -> &'static str {
        TABLES[usize::from(self.table)]
    }

    /// Sets the first key of the current block.
    fn begin(&mut self, first: KeyBytes) {
        self.first.get_or_insert_with(|| first.clone());
        self.block_first = Some(first);
    }

    /// Closes the current block, if it has rows.
    fn close(&mut self, next: Option<&KeyBytes>) {
        let Some(first) = self.block_first.take() else {
            return;
        };
        let start = self.block.start();
        self.block.close(next, &mut self.buffer);
        let key = BlockKey::new(self.run, &first);
        let sum = checksum(self.name(), key.as_slice(), &self.buffer.as_slice()[start..]);
        self.buffer.put_bytes(&sum);
        self.bytes += (self.buffer.len() - start) as u64;
        self.blocks += 1;
        self.closed.push((key, start..self.buffer.len()));
    }

    /// Ends the run, whose last row has the key `last`. Returns `None` if the run has no rows.
    fn finish(&mut self, tier: u8, last: Option<KeyBytes>) -> Option<RunMeta> {
        self.close(None);
        let mut probe_keys = std::mem::take(&mut self.probe_keys);
        probe_keys.sort_unstable();
        for key in probe_keys {
            self.filter.add(key);
        }
        let filter_pages = self.filter.finish();
        let (first, last) = (self.first.take()?, last?);
        let Self { run: id, bytes, blocks, rows, removals, .. } = *self;
        Some(RunMeta { id, tier, rows, removals, bytes, blocks, filter_pages, first, last })
    }

    /// Writes the closed blocks and filter pages.
    pub(super) fn write_pending(&mut self, write: &IndexWrite) -> Result<(), IndexError> {
        if !self.closed.is_empty() {
            let mut blocks = write.raw_table(self.name())?;
            for portion in self.closed.chunks(PORTION_BLOCKS) {
                write.attempt("writing blocks", || {
                    // With a cursor redb appends whole leaves, instead of searching for each block.
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

/// Encodes the rows of one run and writes its blocks in portions. Accepts owned or borrowed rows.
pub(super) struct RunBuilder<R, H = R> {
    blocks: RunBlocks,
    /// The last row, which the next one may supersede.
    held: Option<H>,
    /// True if a run may leave out removals, because there are no older rows that they would remove.
    drop_removals: bool,
    /// The last encoded row. `None` after a block was copied.
    previous: Option<H>,
    /// The key of the last row of the copied block, if it is known and no row came after it.
    adopted_last: Option<KeyBytes>,
    kind: PhantomData<R>,
}

impl<R: Row, H: Borrow<R>> RunBuilder<R, H> {
    /// Creates a builder that uses an empty buffer.
    pub(super) fn new(run: u64, drop_removals: bool, buffer: Output) -> Self {
        let blocks = RunBlocks::new(run, R::TABLE, buffer);
        Self { blocks, held: None, drop_removals, previous: None, adopted_last: None, kind: PhantomData }
    }

    /// Adds the next row.
    ///
    /// # Panics
    ///
    /// Panics if the row does not follow the previous one, which is a bug in its order.
    #[inline]
    pub(super) fn push(&mut self, row: H) {
        if !R::SUPERSEDES {
            let last = self.previous.as_ref();
            let ascends = last.is_none_or(|last| last.borrow().is_before(row.borrow()));
            assert!(ascends, "rows of a run ascend by key");
            self.encode(row);
            return;
        }
        if let Some(held) = self.held.take() {
            assert!(held.borrow().is_before(row.borrow()), "rows of a run ascend by key");
            if !row.borrow().supersedes(held.borrow()) {
                self.encode(held);
            }
        }
        self.held = Some(row);
    }

    /// Copies all rows of a stored block without decoding them. Only for tables whose rows do not depend on others and
    /// are in no filter.
    pub(super) fn adopt(&mut self, block: &WholeBlock<'_>) {
        let blocks = &mut self.blocks;
        blocks.close(Some(&block.first));
        blocks.block.adopt(block.rows, block.restarts, &mut blocks.buffer);
        blocks.begin(block.first.clone());
        self.previous = None;
        self.adopted_last.clone_from(&block.last);
    }

    /// Returns the last added row. Only for tables whose rows do not supersede others.
    pub(super) fn previous(&self) -> Option<&R> {
        self.previous.as_ref().map(Borrow::borrow)
    }

    /// Returns the number of bytes that are not written yet.
    pub(super) fn pending_bytes(&self) -> usize {
        self.blocks.block.start() + self.blocks.filter.pending_bytes()
    }

    #[inline]
    fn encode(&mut self, held: H) {
        let row = held.borrow();
        if self.drop_removals && row.is_removal() {
            return;
        }
        let key = row.key();
        let blocks = &mut self.blocks;
        if let Some(probe_key) = R::probe_key(&key) {
            if R::PROBE_KEYS_ASCEND {
                blocks.filter.add(probe_key);
            } else {
                blocks.probe_keys.push(probe_key);
            }
        }
        let previous = self.previous.as_ref().map(Borrow::borrow);
        if !blocks.block.push(row, previous, &mut blocks.buffer) {
            blocks.close(Some(&KeyBytes::of::<R>(&key)));
            blocks.block.push(row, None, &mut blocks.buffer);
        }
        if blocks.block_first.is_none() {
            blocks.begin(KeyBytes::of::<R>(&key));
        }
        blocks.rows += 1;
        blocks.removals += u64::from(row.is_removal());
        self.previous = Some(held);
    }

    /// Ends the run. The pending blocks must still be written. Returns `None` if the run has no rows.
    pub(super) fn finish(&mut self, tier: u8) -> Option<RunMeta> {
        if let Some(held) = self.held.take() {
            self.encode(held);
        }
        let last = self.previous().map(|row| KeyBytes::of::<R>(&row.key())).or(self.adopted_last.take());
        self.blocks.finish(tier, last)
    }

    /// Returns the encoded rows.
    pub(super) fn blocks(&mut self) -> &mut RunBlocks {
        &mut self.blocks
    }
}

/// Writes rows, which must be sorted and linked, as the newest run of the table. Readers see it once the transaction
/// is committed. Returns `None` if there are no rows.
///
/// # Errors
///
/// The errors of the storage engine. The transaction must then be dropped.
///
/// # Panics
///
/// Panics if the rows do not ascend strictly by key, which is a bug of the caller.
pub fn write_run<R: Row, H: Borrow<R>>(
    write: &IndexWrite,
    rows: impl IntoIterator<Item = H>,
) -> Result<Option<RunMeta>, IndexError> {
    let runs = write.runs(R::TABLE)?;
    let mut builder = RunBuilder::<R, H>::new(write.allocate_run(), runs.is_empty(), write.take_buffer());
    for row in rows {
        builder.push(row);
        if builder.pending_bytes() >= PORTION_BYTES {
            builder.blocks.write_pending(write)?;
        }
    }
    let finished = builder.finish(0);
    append_run(write, runs, builder.blocks, finished.as_ref())?;
    Ok(finished)
}

/// Writes the rest of a finished run, and appends it to the list of the table. `run` is `None` if it has no rows.
fn append_run(
    write: &IndexWrite,
    mut runs: Vec<RunMeta>,
    mut blocks: RunBlocks,
    run: Option<&RunMeta>,
) -> Result<(), IndexError> {
    blocks.write_pending(write)?;
    blocks.buffer.truncate(0);
    write.keep_buffer(blocks.buffer);
    if let Some(run) = run {
        runs.push(run.clone());
        write.set_runs(blocks.table, &runs)?;
    }
    Ok(())
}
