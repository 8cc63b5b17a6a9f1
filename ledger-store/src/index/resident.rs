//! Filters that are held whole: of a table's runs, and of the keys that came since.

use super::file::{IndexError, IndexSnapshot};
use super::filter::{LINE_KEYS, Line, ProbeKey, Whole, place, whole, whole_bytes};
use super::runs::RunMeta;

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
    /// The filters of these runs. Those that `before` holds are taken over, the others are read, as long as all
    /// together stay within `bytes_max`.
    ///
    /// # Errors
    ///
    /// [`IndexError::Damaged`] if a filter is not as it was written; else as the storage engine fails.
    fn load(before: Self, snapshot: &IndexSnapshot, table: u8, bytes_max: usize) -> Result<Self, IndexError> {
        let mut old = before.runs;
        let mut filters = Self { runs: Vec::new(), bytes: 0, complete: true };
        let mut bytes = 0;
        for run in snapshot.runs(table).iter() {
            bytes += whole_bytes(run.filter_pages);
            if bytes > bytes_max || run.filter_pages == 0 {
                filters.complete = false;
                continue;
            }
            let filter = if let Some(at) = old.iter().position(|filter| filter.run == run.id) {
                old.swap_remove(at)
            } else {
                ResidentFilter::new(run, whole(snapshot, run)?)
            };
            filters.bytes = bytes;
            filters.runs.push(filter);
        }
        Ok(filters)
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
/// What the index holds in many runs stands here in few filters: keys are added as they come, whatever flushes
/// and merges do meanwhile. When the filters take too much, those of the runs take their place again.
#[derive(Debug)]
pub(crate) struct KnownKeys {
    table: u8,
    bytes_max: usize,
    runs: ResidentFilters,
    /// Keys that no run held when `runs` was loaded.
    since: OpenFilters,
    /// Keys from before `since` began, and the flush with which the index has all of them.
    parting: Option<(OpenFilters, u64)>,
}

impl KnownKeys {
    /// The keys that a table of the index holds.
    ///
    /// # Errors
    ///
    /// [`IndexError::Damaged`] if a filter is not as it was written; else as the storage engine fails.
    pub(crate) fn load(snapshot: &IndexSnapshot, table: u8, bytes_max: usize) -> Result<Self, IndexError> {
        let runs = ResidentFilters::load(ResidentFilters::default(), snapshot, table, bytes_max)?;
        Ok(Self { table, bytes_max, runs, since: OpenFilters::default(), parting: None })
    }

    /// Adds a key that the next flush to begin will hold.
    pub(crate) fn add(&mut self, key: ProbeKey) {
        // If nothing can be proved there is nothing to remember.
        if self.runs.complete {
            self.since.add(key, self.bytes_max);
        }
    }

    /// Keys that are added from now on are not in the flush with this number.
    pub(crate) fn end_flush(&mut self, flush: u64) {
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
    pub(crate) fn adopt(&mut self, snapshot: &IndexSnapshot, flushed: u64) -> Result<(), IndexError> {
        if self.parting.as_ref().is_some_and(|(_, until)| *until <= flushed) {
            let before = std::mem::take(&mut self.runs);
            self.runs = ResidentFilters::load(before, snapshot, self.table, self.bytes_max)?;
            self.parting = None;
        }
        Ok(())
    }

    /// Whether nobody added the key and no run has a row with it; false proves nothing.
    pub(crate) fn prove_absent(&self, key: ProbeKey) -> bool {
        self.runs.prove_absent(key)
            && !self.since.holds(key)
            && self.parting.as_ref().is_none_or(|(parting, _)| !parting.holds(key))
    }

    /// Looks at what [`Self::prove_absent`] will look at for these keys, and drops it: so it is near then.
    pub(crate) fn warm(&self, keys: &[ProbeKey]) -> u64 {
        let parting = self.parting.as_ref().map_or(0, |(parting, _)| parting.warm(keys));
        self.runs.warm(keys) ^ self.since.warm(keys) ^ parting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_is_never_proved_absent_and_little_else_is_missed() {
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
