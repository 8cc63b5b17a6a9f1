//! Bloom filters: prove that a run lacks a key without reading its blocks.
//!
//! A filter is divided into pages in key order, so that it can be built in constant memory and read page by page
//! through a bounded cache. The *fences*, the first key of each page, are stored with it.
//!
//! ```text
//! page         lines of 64 bytes: eight words of 64 bits, little-endian
//! fences       for each page 16 bytes: its first key, as two little-endian words
//! ```
//!
//! A key sets one bit in each word of one line. With about 16 bits per key, 0.1 to 0.2 % of absent keys are taken for
//! present.

#![allow(
    clippy::cast_possible_truncation,
    reason = "hashes are cut to the number of lines, and a run has fewer than 2^32 pages"
)]

use std::sync::Arc;

use ledger_codec::Corrupt;

use super::error::IndexError;
use super::filter_cache::{Cached, LINE_BYTES, LINE_WORDS, Line, ProbeKey};
use super::run_list::RunMeta;
use super::snapshot::IndexSnapshot;
use super::stored::{CHECKSUM_BYTES, read};
use super::tables::FILTERS;

/// Number of keys for which a filter has a line: 16 bits each.
pub(super) const LINE_KEYS: usize = 32;
/// Number of lines in a page. With its checksum and key, a page fits a redb page of 16 KiB.
const PAGE_LINES: usize = 255;
/// Number of keys after which a page is full.
const PAGE_KEYS: usize = PAGE_LINES * LINE_KEYS;
/// The page number under which the fences are stored.
const FENCES: u32 = u32::MAX;

/// Returns the hash of a key in filters. Each of its bits depends on all bits of the key.
fn hash(key: ProbeKey) -> u64 {
    let product = u128::from(key.0 ^ 0x9e37_79b9_7f4a_7c15) * u128::from(key.1 ^ 0xbf58_476d_1ce4_e5b9);
    (product >> 64) as u64 ^ product as u64
}

/// Returns the number of the line among `lines`, and six bits for each word that select the bit to set.
fn spot(hash: u64, lines: usize) -> (usize, u64) {
    let line = ((hash >> 32) * lines as u64) >> 32;
    (line as usize, hash.wrapping_mul(0x94d0_49bb_1331_11eb) >> 16)
}

/// Returns the number of the line among `lines`, and the bit to set in each word.
pub(super) fn place(key: ProbeKey, lines: usize) -> (usize, Line) {
    let (line, mut bits) = spot(hash(key), lines);
    let mut mask = [0; LINE_WORDS];
    for word in &mut mask {
        *word = 1 << (bits & 63);
        bits >>= 6;
    }
    (line, mask)
}

/// Builds the filter of a run from its keys in ascending order.
#[derive(Debug, Default)]
pub(crate) struct FilterBuilder {
    /// The last added key.
    last: Option<ProbeKey>,
    /// Hashes of the keys in the current page.
    hashes: Vec<u64>,
    /// The first key of each page, including the current one.
    fences: Vec<ProbeKey>,
    pages: Vec<(u32, Vec<u8>)>,
    pending_bytes: usize,
}

impl FilterBuilder {
    /// Adds a key. Repeating the last key costs nothing.
    #[inline]
    pub(crate) fn add(&mut self, key: ProbeKey) {
        if self.last == Some(key) {
            return;
        }
        if self.hashes.len() == PAGE_KEYS {
            self.close_page();
        }
        if self.hashes.is_empty() {
            self.fences.push(key);
        }
        self.last = Some(key);
        self.hashes.push(hash(key));
    }

    /// Completes the filter. Returns its number of pages.
    pub(crate) fn finish(&mut self) -> u32 {
        self.close_page();
        let count = self.fences.len() as u32;
        if count > 0 {
            let fences = self.fences.iter().flat_map(|fence| [fence.0, fence.1]);
            let bytes: Vec<u8> = fences.flat_map(u64::to_le_bytes).collect();
            self.pending_bytes += bytes.len();
            self.pages.push((FENCES, bytes));
        }
        count
    }

    /// Returns the size of the completed pages that are not written yet, in bytes.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.pending_bytes
    }

    /// Takes the completed pages, by page number.
    pub(crate) fn take_pages(&mut self) -> Vec<(u32, Vec<u8>)> {
        self.pending_bytes = 0;
        std::mem::take(&mut self.pages)
    }

    fn close_page(&mut self) {
        if self.hashes.is_empty() {
            return;
        }
        let mut lines: Vec<Line> = vec![[0; LINE_WORDS]; self.hashes.len().div_ceil(LINE_KEYS)];
        for hash in &self.hashes {
            let (line, mut bits) = spot(*hash, lines.len());
            for word in &mut lines[line] {
                *word |= 1 << (bits & 63);
                bits >>= 6;
            }
        }
        let mut page = Vec::with_capacity(lines.len() * LINE_BYTES + CHECKSUM_BYTES);
        for word in lines.iter().flatten() {
            page.extend_from_slice(&word.to_le_bytes());
        }
        self.pending_bytes += page.len();
        self.pages.push((self.fences.len() as u32 - 1, page));
        self.hashes.clear();
    }
}

/// Returns the key of a page in [`FILTERS`].
pub(super) fn page_key(run: u64, page: u32) -> [u8; 12] {
    let mut key = [0; 12];
    key[..8].copy_from_slice(&run.to_be_bytes());
    key[8..].copy_from_slice(&page.to_be_bytes());
    key
}

/// Returns whether the run may hold rows with `key`. `false` is certain.
///
/// # Errors
///
/// [`IndexError::Damaged`] if the filter is damaged; otherwise the errors of the storage engine.
pub(super) fn may_contain(
    snapshot: &IndexSnapshot,
    run: &RunMeta,
    key: ProbeKey,
) -> Result<bool, IndexError> {
    if run.filter_pages == 0 {
        return Ok(true);
    }
    let Cached::Fences(fences) = &*cached(snapshot, run, FENCES)? else {
        return Err(IndexError::damaged(FILTERS, "a page stands in the place of fences"));
    };
    let Some(page) = fences.partition_point(|fence| *fence <= key).checked_sub(1) else {
        return Ok(false);
    };
    let Cached::Page(lines) = &*cached(snapshot, run, page as u32)? else {
        return Err(IndexError::damaged(FILTERS, "fences stand in the place of a page"));
    };
    let (line, mask) = place(key, lines.len());
    Ok(lines[line].iter().zip(mask).all(|(word, bit)| word & bit != 0))
}

fn cached(snapshot: &IndexSnapshot, run: &RunMeta, page: u32) -> Result<Arc<Cached>, IndexError> {
    if let Some(found) = snapshot.filters().get((run.id, page)) {
        return Ok(found);
    }
    let found = Arc::new(stored(snapshot, run, page)?);
    snapshot.filters().insert((run.id, page), found.clone());
    Ok(found)
}

/// A filter that was read completely.
pub(super) struct WholeFilter {
    /// The first key of each page.
    pub(super) fences: Box<[ProbeKey]>,
    /// The lines of each page.
    pub(super) pages: Vec<Box<[Line]>>,
}

/// Reads the whole filter of a run.
///
/// # Errors
///
/// The errors of [`may_contain`].
pub(super) fn whole(snapshot: &IndexSnapshot, run: &RunMeta) -> Result<WholeFilter, IndexError> {
    let Cached::Fences(fences) = stored(snapshot, run, FENCES)? else {
        return Err(IndexError::damaged(FILTERS, "a page stands in the place of fences"));
    };
    let pages = (0..run.filter_pages).map(|page| match stored(snapshot, run, page)? {
        Cached::Page(lines) => Ok(lines),
        Cached::Fences(_) => Err(IndexError::damaged(FILTERS, "fences stand in the place of a page")),
    });
    Ok(WholeFilter { fences, pages: pages.collect::<Result<_, _>>()? })
}

/// Returns the maximum memory of a whole filter with this number of pages, in bytes.
pub(super) fn whole_bytes(pages: u32) -> usize {
    pages as usize * (PAGE_KEYS.div_ceil(LINE_KEYS) * LINE_BYTES + size_of::<ProbeKey>())
}

fn stored(snapshot: &IndexSnapshot, run: &RunMeta, page: u32) -> Result<Cached, IndexError> {
    let found = read(snapshot.filter_pages(), FILTERS, &page_key(run.id, page), |bytes| {
        let decoded =
            if page == FENCES { decode_fences(bytes, run.filter_pages) } else { decode_page(bytes) };
        decoded.map_err(|corrupt| IndexError::corrupt(FILTERS, corrupt))
    })?;
    found.ok_or_else(|| IndexError::damaged(FILTERS, "a page is missing"))
}

fn decode_fences(bytes: &[u8], pages: u32) -> Result<Cached, Corrupt> {
    let (words, rest) = bytes.as_chunks::<8>();
    let (pairs, odd) = words.as_chunks::<2>();
    if !rest.is_empty() || !odd.is_empty() || pairs.len() != pages as usize {
        return Err(Corrupt { what: "the fences are not as many as the pages" });
    }
    let fence = |pair: &[[u8; 8]; 2]| (u64::from_le_bytes(pair[0]), u64::from_le_bytes(pair[1]));
    Ok(Cached::Fences(pairs.iter().map(fence).collect()))
}

fn decode_page(bytes: &[u8]) -> Result<Cached, Corrupt> {
    let (words, rest) = bytes.as_chunks::<8>();
    let (lines, odd) = words.as_chunks::<LINE_WORDS>();
    if !rest.is_empty() || !odd.is_empty() || lines.is_empty() {
        return Err(Corrupt { what: "a filter page has no whole lines" });
    }
    Ok(Cached::Page(lines.iter().map(|line| line.map(u64::from_le_bytes)).collect()))
}

/// Replaces the `number`th value of the filters in key order, with a correct checksum. Returns whether there is one.
/// `change` receives whether the value holds the fences of a filter.
#[cfg(feature = "testing")]
pub fn alter(index: &super::file::IndexFile, number: usize, change: impl FnOnce(bool, &mut Vec<u8>)) -> bool {
    use redb::ReadableTable;

    use super::stored::{checksum, verified};

    let write = index.begin_write(super::file::Commit::Durable).unwrap();
    let mut table = write.raw_table(FILTERS).unwrap();
    let stored = table.iter().unwrap().nth(number).map(|entry| {
        let (key, value) = entry.unwrap();
        (key.value().to_vec(), verified(FILTERS, key.value(), value.value()).unwrap().to_vec())
    });
    let Some((key, mut value)) = stored else { return false };
    change(key.ends_with(&FENCES.to_be_bytes()), &mut value);
    let sum = checksum(FILTERS, &key, &value);
    value.extend_from_slice(&sum);
    table.insert(key.as_slice(), value.as_slice()).unwrap();
    drop(table);
    write.commit().unwrap();
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::tests::Rng;

    fn build(keys: &[ProbeKey]) -> (Vec<ProbeKey>, Vec<Box<[Line]>>) {
        let mut builder = FilterBuilder::default();
        for key in keys {
            builder.add(*key);
        }
        builder.finish();
        let pages = builder.take_pages().into_iter().filter(|page| page.0 != FENCES);
        let pages = pages.map(|(_, bytes)| match decode_page(&bytes) {
            Ok(Cached::Page(lines)) => lines,
            other => panic!("{other:?}"),
        });
        (builder.fences.clone(), pages.collect())
    }

    fn contains(filter: &(Vec<ProbeKey>, Vec<Box<[Line]>>), key: ProbeKey) -> bool {
        let page = filter.0.partition_point(|fence| *fence <= key);
        page > 0 && {
            let lines = &filter.1[page - 1];
            let (line, mask) = place(key, lines.len());
            lines[line].iter().zip(mask).all(|(word, bit)| word & bit != 0)
        }
    }

    #[test]
    fn no_key_is_denied_and_few_others_pass() {
        let mut rng = Rng::new(1);
        let mut keys: Vec<ProbeKey> = (0..100_000).map(|_| (rng.below(3), rng.any())).collect();
        keys.sort_unstable();
        let filter = build(&keys);
        assert!(keys.iter().all(|key| contains(&filter, *key)));
        let wrong = (0..200_000).filter(|_| contains(&filter, (rng.below(3), rng.any()))).count();
        assert!(wrong < 600, "{wrong} of 200,000");
    }

    #[test]
    fn dense_keys_are_as_good_as_random_ones() {
        let keys: Vec<ProbeKey> = (0..50_000).map(|number| ((7 << 32) + number * 2, 0)).collect();
        let filter = build(&keys);
        assert!(keys.iter().all(|key| contains(&filter, *key)));
        let wrong = keys.iter().filter(|key| contains(&filter, (key.0 + 1, 0))).count();
        assert!(wrong < 150, "{wrong} of 50,000");
    }
}
