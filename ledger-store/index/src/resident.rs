//! Filters that are held whole: of a table's runs, and of the keys that came since.

use super::error::IndexError;
use super::filter::{LINE_KEYS, Whole, place, whole, whole_bytes};
use super::filter_cache::{Line, ProbeKey};
use super::run_list::RunMeta;
use super::snapshot::IndexSnapshot;

/// The filters of all runs of a table, for who asks so often that looking their pages up would cost more than
/// the question.
#[derive(Debug, Default)]
struct ResidentFilters {
    runs: Vec<ResidentFilter>,
    bytes: usize,
    complete: bool,
}

/// The filter of a run, its pages one after the other: a question meets memory that is far away only once.
#[derive(Debug)]
struct ResidentFilter {
    run: u64,
    /// The first key of each page.
    fences: Box<[ProbeKey]>,
    /// Where the lines of each page begin, and where the last ends.
    starts: Box<[u32]>,
    lines: Box<[Line]>,
}

impl ResidentFilter {
    fn new(run: &RunMeta, Whole { fences, pages }: Whole) -> Self {
        let mut starts = Vec::with_capacity(pages.len() + 1);
        let mut lines = Vec::with_capacity(pages.iter().map(|page| page.len()).sum());
        for page in &pages {
            starts.push(lines.len() as u32);
            lines.extend_from_slice(page);
        }
        starts.push(lines.len() as u32);
        Self { run: run.id, fences, starts: starts.into(), lines: lines.into() }
    }

    /// The line in which a key would stand and its bits there; `None` if it is before the first page.
    fn look(&self, key: ProbeKey) -> Option<(&Line, Line)> {
        let page = self.fences.partition_point(|fence| *fence <= key).checked_sub(1)?;
        let lines = &self.lines[self.starts[page] as usize..self.starts[page + 1] as usize];
        let (line, mask) = place(key, lines.len());
        Some((&lines[line], mask))
    }

    fn holds(&self, key: ProbeKey) -> bool {
        self.look(key).is_some_and(|(line, mask)| line.iter().zip(mask).all(|(word, bit)| word & bit != 0))
    }
}

impl ResidentFilters {
    /// Makes these the filters of the runs of a snapshot. Filters that are here already stay, the others are read, as
    /// long as all together stay within `bytes_max`.
    ///
    /// # Errors
    ///
    /// [`IndexError::Damaged`] if a filter is not as it was written; else as the storage engine fails. Then everything
    /// is as it was.
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

    /// Whether no run of the table has a row with `key`; false proves nothing.
    fn prove_absent(&self, key: ProbeKey) -> bool {
        self.complete && self.runs.iter().all(|filter| !filter.holds(key))
    }

    fn warm(&self, keys: &[ProbeKey]) -> u64 {
        let looks = keys.iter().flat_map(|key| self.runs.iter().map(|filter| filter.look(*key)));
        looks.flatten().fold(0, |seen, (line, _)| seen ^ line[0])
    }
}

/// A filter that keys are added to.
#[derive(Debug)]
struct OpenFilter {
    lines: Box<[Line]>,
    /// How many more keys it takes.
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

/// Open filters, each greater than the one before.
#[derive(Debug, Default)]
struct OpenFilters(Vec<OpenFilter>);

impl OpenFilters {
    /// Of so many keys the first filter is, if there is room for it.
    const KEYS_MIN: usize = 1 << 17;
    /// And the greatest.
    const KEYS_MAX: usize = 1 << 23;

    fn bytes(&self) -> usize {
        self.0.iter().map(|filter| size_of_val(&*filter.lines)).sum()
    }

    fn add(&mut self, key: ProbeKey, bytes_max: usize) {
        if self.0.last().is_none_or(|last| last.room == 0) {
            // A quarter of all may stand empty.
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

/// Every key of a table, and of what waits to be flushed to it, as far as filters know them.
///
/// Keys that the index holds in many runs stand here in few filters: they are added as they come, whatever flushes
/// and merges do meanwhile. When the filters take too much, those of the runs take their place again.
#[derive(Debug)]
pub struct KnownKeys {
    table: u8,
    bytes_max: usize,
    runs: ResidentFilters,
    /// Keys that no run held when `runs` was loaded.
    since: OpenFilters,
    /// Keys from before `since` began, and the flush with which the index has all of them.
    parting: Option<(OpenFilters, u64)>,
    /// The flush that will hold the keys that are added now.
    flush: u64,
    /// The last flush that holds keys which were not remembered; 0 if none does.
    forgot: u64,
    /// Whether the filters of the runs fit again, but lack keys of flush `forgot`, which is not in the index yet.
    awaits_forgotten: bool,
}

impl KnownKeys {
    /// The keys that a table of the index holds. `flush` is the one that will hold the keys that are added next.
    ///
    /// # Errors
    ///
    /// [`IndexError::Damaged`] if a filter is not as it was written; else as the storage engine fails.
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

    /// Adds a key that the next flush to begin will hold.
    pub fn add(&mut self, key: ProbeKey) {
        if self.runs.complete || self.awaits_forgotten {
            self.since.add(key, self.bytes_max);
        } else {
            // Nothing can be proved now. Nothing may be until the runs have this key.
            self.forgot = self.flush;
        }
    }

    /// Keys that are added from now on are not in the flush with this number.
    pub fn end_flush(&mut self, flush: u64) {
        self.flush = flush + 1;
        let since = self.since.bytes();
        let is_much = since + self.runs.bytes > self.bytes_max && since >= self.bytes_max / 8;
        if is_much && self.parting.is_none() {
            self.parting = Some((std::mem::take(&mut self.since), flush));
        }
    }

    /// The index now holds every flush up to `flushed`.
    ///
    /// # Errors
    ///
    /// As [`Self::load`]; then everything is as it was.
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

    /// Does as [`Self::adopt`] with a snapshot of another file, or of the same one opened anew: its runs may have the
    /// numbers of others.
    ///
    /// # Errors
    ///
    /// As [`Self::load`]; then everything is as it was.
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

    /// Whether nobody added the key and no run has a row with it; false proves nothing.
    pub fn prove_absent(&self, key: ProbeKey) -> bool {
        self.runs.prove_absent(key)
            && !self.since.holds(key)
            && self.parting.as_ref().is_none_or(|(parting, _)| !parting.holds(key))
    }

    /// Looks at what [`Self::prove_absent`] will look at for these keys, and drops it: so it is near then.
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

    /// A snapshot of an index without rows.
    fn empty() -> IndexSnapshot {
        let options = IndexOptions { cache_bytes: 1 << 20, filter_bytes: 1 << 20 };
        let file = IndexFile::create(redb::backends::InMemoryBackend::new(), options).expect("an index");
        file.snapshot().expect("a snapshot")
    }

    #[test]
    fn keys_of_a_flush_that_was_forgotten_stay_possible() {
        let snapshot = empty();
        let mut known = KnownKeys::load(&snapshot, KeyRow::TABLE, 1 << 20, 1).expect("no filters");
        known.add((7, 1));
        known.parting = Some((std::mem::take(&mut known.since), 1));
        // The filters of the runs took too much for a while.
        known.runs.complete = false;
        known.end_flush(1);
        known.add((7, 2));
        assert!(!known.prove_absent((7, 2)) && !known.prove_absent((7, 9)));
        // They fit again, but key 2 is in flush 2, which no run has.
        known.adopt(&snapshot, 1).expect("no filters");
        assert!(!known.prove_absent((7, 2)), "it was added, and no filter has it");
        known.end_flush(2);
        known.add((7, 3));
        known.adopt(&snapshot, 2).expect("no filters");
        // Flush 2 is in the runs, of which this snapshot has none; key 3 was remembered.
        assert!(!known.prove_absent((7, 3)));
        assert!(known.prove_absent((7, 9)), "all that was added is known again");
    }

    /// An index with one run of keys, which has the number of every first run.
    fn with_keys(keys: std::ops::Range<u64>) -> IndexSnapshot {
        let options = IndexOptions { cache_bytes: 1 << 20, filter_bytes: 1 << 20 };
        let file = IndexFile::create(redb::backends::InMemoryBackend::new(), options).expect("an index");
        let write = file.begin_write(Commit::Durable).expect("a transaction");
        let rows = keys.map(|fingerprint| KeyRow { space: 7, fingerprint, value: 1 });
        write_run::<KeyRow, _>(&write, rows).expect("a run");
        write.commit().expect("a commit");
        file.snapshot().expect("a snapshot")
    }

    #[test]
    fn filters_of_another_file_are_read_anew() {
        let mut known = KnownKeys::load(&with_keys(0..100), KeyRow::TABLE, 1 << 20, 1).expect("a filter");
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
