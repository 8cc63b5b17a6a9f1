//! Filters that are in memory completely: those of a table's runs, and those of the keys that were added since.

use super::error::IndexError;
use super::filter::{LINE_KEYS, WholeFilter, place, whole, whole_bytes};
use super::filter_cache::{Line, ProbeKey};
use super::run_list::RunMeta;
use super::snapshot::IndexSnapshot;

/// The filters of all runs of a table. For the writer, which asks so often that finding pages in a cache would cost
/// more than the query.
#[derive(Debug, Default)]
struct ResidentFilters {
    runs: Vec<ResidentFilter>,
    bytes: usize,
    complete: bool,
}

/// The filter of a run with its pages in one allocation, so that a query causes one cache miss.
#[derive(Debug)]
struct ResidentFilter {
    run: u64,
    /// The first key of each page.
    fences: Box<[ProbeKey]>,
    /// The index of the first line of each page, and the end of the last page.
    starts: Box<[u32]>,
    lines: Box<[Line]>,
}

impl ResidentFilter {
    fn new(run: &RunMeta, WholeFilter { fences, pages }: WholeFilter) -> Self {
        let start = |lines: &Vec<Line>| u32::try_from(lines.len()).expect("2^32 lines take 256 GiB");
        let mut starts = Vec::with_capacity(pages.len() + 1);
        let mut lines = Vec::with_capacity(pages.iter().map(|page| page.len()).sum());
        for page in &pages {
            starts.push(start(&lines));
            lines.extend_from_slice(page);
        }
        starts.push(start(&lines));
        Self { run: run.id, fences, starts: starts.into(), lines: lines.into() }
    }

    /// Returns the line and the bits of a key, or `None` if the key is before the first page.
    fn locate(&self, key: ProbeKey) -> Option<(&Line, Line)> {
        let page = self.fences.partition_point(|fence| *fence <= key).checked_sub(1)?;
        let lines = &self.lines[self.starts[page] as usize..self.starts[page + 1] as usize];
        let (line, mask) = place(key, lines.len());
        Some((&lines[line], mask))
    }

    fn holds(&self, key: ProbeKey) -> bool {
        self.locate(key).is_some_and(|(line, mask)| line.iter().zip(mask).all(|(word, bit)| word & bit != 0))
    }
}

impl ResidentFilters {
    /// Makes these the filters of a snapshot's runs. Keeps filters that are already in memory and reads the others, as
    /// long as all of them together fit `bytes_max`.
    ///
    /// # Errors
    ///
    /// [`IndexError::Damaged`] if a filter is damaged; otherwise the errors of the storage engine. Nothing has changed
    /// then.
    fn load(&mut self, snapshot: &IndexSnapshot, table: u8, bytes_max: usize) -> Result<(), IndexError> {
        let mut now = Self { runs: Vec::new(), bytes: 0, complete: true };
        let mut kept = Vec::new();
        let mut bytes = 0;
        for run in snapshot.runs(table).iter() {
            bytes += whole_bytes(run.filter_pages);
            if bytes > bytes_max || run.filter_pages == 0 {
                now.complete = false;
                continue;
            }
            now.bytes = bytes;
            if self.runs.iter().any(|filter| filter.run == run.id) {
                kept.push(run.id);
            } else {
                now.runs.push(ResidentFilter::new(run, snapshot.note(whole(snapshot, run))?));
            }
        }
        self.runs.retain(|filter| kept.contains(&filter.run));
        now.runs.append(&mut self.runs);
        *self = now;
        Ok(())
    }

    /// Returns whether certainly no run of the table has a row with `key`. `false` proves nothing.
    fn prove_absent(&self, key: ProbeKey) -> bool {
        self.complete && self.runs.iter().all(|filter| !filter.holds(key))
    }

    fn warm(&self, keys: &[ProbeKey]) -> u64 {
        let looks = keys.iter().flat_map(|key| self.runs.iter().map(|filter| filter.locate(*key)));
        looks.flatten().fold(0, |seen, (line, _)| seen ^ line[0])
    }
}

/// A filter to which keys are added.
#[derive(Debug)]
struct OpenFilter {
    lines: Box<[Line]>,
    /// Number of keys that can still be added.
    room: usize,
}

impl OpenFilter {
    fn new(keys: usize) -> Self {
        Self { lines: vec![Line::default(); keys.div_ceil(LINE_KEYS)].into(), room: keys }
    }

    fn add(&mut self, key: ProbeKey) {
        let (line, mask) = place(key, self.lines.len());
        for (word, bit) in self.lines[line].iter_mut().zip(mask) {
            *word |= bit;
        }
        self.room -= 1;
    }

    fn holds(&self, key: ProbeKey) -> bool {
        let (line, mask) = place(key, self.lines.len());
        self.lines[line].iter().zip(mask).all(|(word, bit)| word & bit != 0)
    }
}

/// Filters that grow: when the last one is full, a larger one is added.
#[derive(Debug, Default)]
struct OpenFilters(Vec<OpenFilter>);

impl OpenFilters {
    /// Number of keys in the first filter, if memory allows.
    const KEYS_MIN: usize = 1 << 17;
    /// Maximum number of keys in a filter.
    const KEYS_MAX: usize = 1 << 23;

    fn bytes(&self) -> usize {
        self.0.iter().map(|filter| size_of_val(&*filter.lines)).sum()
    }

    fn add(&mut self, key: ProbeKey, bytes_max: usize) {
        if self.0.last().is_none_or(|last| last.room == 0) {
            // The newest filter may be empty, so it may use at most a quarter of the memory.
            let keys_max = bytes_max / 4 / size_of::<Line>() * LINE_KEYS;
            let before = self.0.last().map_or(0, |last| last.lines.len() * LINE_KEYS);
            let keys = (before * 4).clamp(Self::KEYS_MIN, Self::KEYS_MAX).min(keys_max).max(LINE_KEYS);
            self.0.push(OpenFilter::new(keys));
        }
        if let Some(last) = self.0.last_mut() {
            last.add(key);
        }
    }

    fn holds(&self, key: ProbeKey) -> bool {
        self.0.iter().rev().any(|filter| filter.holds(key))
    }

    fn warm(&self, keys: &[ProbeKey]) -> u64 {
        let looks = keys
            .iter()
            .flat_map(|key| self.0.iter().map(|filter| filter.lines[place(*key, filter.lines.len()).0][0]));
        looks.fold(0, |seen, word| seen ^ word)
    }
}

/// The uniqueness filter: filters of every key of a table, including those that are not flushed yet. It proves that a key
/// is new.
///
/// New keys are added to a few growing filters, independently of flushes and merges, so a query need not ask the
/// filters of many runs. When the growing filters take too much memory, the filters of the runs replace them.
#[derive(Debug)]
pub struct UniquenessFilter {
    table: u8,
    bytes_max: usize,
    runs: ResidentFilters,
    /// Keys that no run held when `runs` was loaded.
    since: OpenFilters,
    /// Keys from before `since` began, and the number of the flush after which the index holds all of them.
    parting: Option<(OpenFilters, u64)>,
    /// The number of the flush that will write the keys that are added now.
    flush: u64,
    /// The number of the last flush with keys that were not remembered; 0 if there is none.
    forgot: u64,
    /// True if the filters of the runs fit into memory again, but lack the keys of flush `forgot`. The index does not
    /// hold that flush yet.
    awaits_forgotten: bool,
}

impl UniquenessFilter {
    /// Loads the keys that a table of the index holds. `flush` is the number of the flush that will write the keys
    /// that are added next.
    ///
    /// # Errors
    ///
    /// [`IndexError::Damaged`] if a filter is damaged; otherwise the errors of the storage engine.
    pub fn load(
        snapshot: &IndexSnapshot,
        table: u8,
        bytes_max: usize,
        flush: u64,
    ) -> Result<Self, IndexError> {
        let mut runs = ResidentFilters::default();
        runs.load(snapshot, table, bytes_max)?;
        let since = OpenFilters::default();
        Ok(Self { table, bytes_max, runs, since, parting: None, flush, forgot: 0, awaits_forgotten: false })
    }

    /// Adds a key that the next flush will write.
    pub fn add(&mut self, key: ProbeKey) {
        if self.runs.complete || self.awaits_forgotten {
            self.since.add(key, self.bytes_max);
        } else {
            // The filters are incomplete now, and must not prove anything until the runs hold this key.
            self.forgot = self.flush;
        }
    }

    /// Ends the flush with this number: keys that are added from now on belong to the next one.
    pub fn end_flush(&mut self, flush: u64) {
        self.flush = flush + 1;
        let since = self.since.bytes();
        let is_much = since + self.runs.bytes > self.bytes_max && since >= self.bytes_max / 8;
        if is_much && self.parting.is_none() {
            self.parting = Some((std::mem::take(&mut self.since), flush));
        }
    }

    /// Updates the filters, because the index now holds every flush up to `flushed`.
    ///
    /// # Errors
    ///
    /// The errors of [`Self::load`]. Nothing has changed then.
    pub fn adopt(&mut self, snapshot: &IndexSnapshot, flushed: u64) -> Result<(), IndexError> {
        let has_parting = self.parting.as_ref().is_some_and(|(_, until)| *until <= flushed);
        let has_forgotten = self.forgot <= flushed;
        if has_parting || (self.awaits_forgotten && has_forgotten) {
            self.runs.load(snapshot, self.table, self.bytes_max)?;
            self.awaits_forgotten = self.runs.complete && !has_forgotten;
            self.runs.complete &= has_forgotten;
            if has_parting {
                self.parting = None;
            }
        }
        Ok(())
    }

    /// Like [`Self::adopt`], for a snapshot of another file or of the same file opened anew, whose runs may reuse the
    /// ids of others.
    ///
    /// # Errors
    ///
    /// The errors of [`Self::load`]. Nothing has changed then.
    pub fn adopt_file(&mut self, snapshot: &IndexSnapshot, flushed: u64) -> Result<(), IndexError> {
        let mut runs = ResidentFilters::default();
        runs.load(snapshot, self.table, self.bytes_max)?;
        let has_forgotten = self.forgot <= flushed;
        self.awaits_forgotten = runs.complete && !has_forgotten;
        runs.complete &= has_forgotten;
        self.runs = runs;
        if self.parting.as_ref().is_some_and(|(_, until)| *until <= flushed) {
            self.parting = None;
        }
        Ok(())
    }

    /// Returns whether certainly nobody added the key and no run has a row with it. `false` proves nothing.
    pub fn prove_absent(&self, key: ProbeKey) -> bool {
        self.runs.prove_absent(key)
            && !self.since.holds(key)
            && self.parting.as_ref().is_none_or(|(parting, _)| !parting.holds(key))
    }

    /// Prefetches the memory that [`Self::prove_absent`] will read for these keys. The result only keeps the compiler
    /// from removing the reads.
    pub fn warm(&self, keys: &[ProbeKey]) -> u64 {
        let parting = self.parting.as_ref().map_or(0, |(parting, _)| parting.warm(keys));
        self.runs.warm(keys) ^ self.since.warm(keys) ^ parting
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{IndexFile, IndexOptions};
    use crate::{Commit, KeyRow, Row, write_run};

    /// Returns a snapshot of an index without rows.
    fn empty() -> IndexSnapshot {
        let options = IndexOptions { cache_bytes: 1 << 20, filter_bytes: 1 << 20 };
        let file = IndexFile::in_memory(options).expect("an index");
        file.snapshot().expect("a snapshot")
    }

    #[test]
    fn keys_of_a_flush_that_was_forgotten_stay_possible() {
        let snapshot = empty();
        let mut known = UniquenessFilter::load(&snapshot, KeyRow::TABLE, 1 << 20, 1).expect("no filters");
        known.add((7, 1));
        known.parting = Some((std::mem::take(&mut known.since), 1));
        // The filters of the runs took too much memory for a while.
        known.runs.complete = false;
        known.end_flush(1);
        known.add((7, 2));
        assert!(!known.prove_absent((7, 2)) && !known.prove_absent((7, 9)));
        // They fit again, but key 2 belongs to flush 2, which no run holds.
        known.adopt(&snapshot, 1).expect("no filters");
        assert!(!known.prove_absent((7, 2)), "it was added, and no filter has it");
        known.end_flush(2);
        known.add((7, 3));
        known.adopt(&snapshot, 2).expect("no filters");
        // Flush 2 is in the runs, although this snapshot has none; key 3 was remembered.
        assert!(!known.prove_absent((7, 3)));
        assert!(known.prove_absent((7, 9)), "all that was added is known again");
    }

    /// Returns an index with one run of keys, whose id is the first that every file assigns.
    fn with_keys(keys: std::ops::Range<u64>) -> IndexSnapshot {
        let options = IndexOptions { cache_bytes: 1 << 20, filter_bytes: 1 << 20 };
        let file = IndexFile::in_memory(options).expect("an index");
        let write = file.begin_write(Commit::Durable).expect("a transaction");
        let rows = keys.map(|fingerprint| KeyRow { space: 7, fingerprint, value: 1 });
        write_run::<KeyRow, _>(&write, rows).expect("a run");
        write.commit().expect("a commit");
        file.snapshot().expect("a snapshot")
    }

    #[test]
    fn filters_of_another_file_are_read_anew() {
        let mut known =
            UniquenessFilter::load(&with_keys(0..100), KeyRow::TABLE, 1 << 20, 1).expect("a filter");
        assert!(!known.prove_absent((7, 50)) && known.prove_absent((7, 150)));
        known.add((7, 300));
        known.adopt_file(&with_keys(100..200), 0).expect("a filter");
        assert!(!known.prove_absent((7, 150)), "the new file has it");
        assert!(!known.prove_absent((7, 300)), "no file has it yet");
        assert!(known.prove_absent((7, 50)), "no file has it any more");
    }

    #[test]
    fn no_added_key_is_proved_absent() {
        let mut filters = OpenFilters::default();
        let bytes_max = 1 << 20;
        for key in 0..200_000 {
            filters.add((7, key), bytes_max);
        }
        assert!(filters.0.len() > 1, "one filter is full");
        assert!((0..200_000).all(|key| filters.holds((7, key))));
        let mistaken = (200_000..300_000).filter(|key| filters.holds((7, *key))).count();
        assert!(mistaken < 1_000, "{mistaken} of 100,000");
        assert!(filters.bytes() <= bytes_max, "{} bytes", filters.bytes());
    }
}
