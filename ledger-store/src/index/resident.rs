//! Filters of a table's runs that are held whole.

use super::file::{IndexError, IndexSnapshot};
use super::filter::{Line, ProbeKey, Whole, place, whole, whole_bytes};
use super::runs::RunMeta;

/// The filters of all runs of a table, for who asks so often that looking their pages up would cost more than
/// the question.
#[derive(Debug, Default)]
pub(crate) struct ResidentFilters {
    runs: Vec<ResidentFilter>,
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
    pub(crate) fn load(
        before: Self,
        snapshot: &IndexSnapshot,
        table: u8,
        bytes_max: usize,
    ) -> Result<Self, IndexError> {
        let mut old = before.runs;
        let mut filters = Self { runs: Vec::new(), complete: true };
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
            filters.runs.push(filter);
        }
        Ok(filters)
    }

    /// Whether no run of the table has a row with `key`; false proves nothing.
    pub(crate) fn prove_absent(&self, key: ProbeKey) -> bool {
        self.complete && self.runs.iter().all(|filter| !filter.holds(key))
    }

    /// Looks at what [`Self::prove_absent`] will look at for these keys, and drops it: so it is near then.
    pub(crate) fn warm(&self, keys: &[ProbeKey]) -> u64 {
        let looks = keys.iter().flat_map(|key| self.runs.iter().map(|filter| filter.look(*key)));
        looks.flatten().fold(0, |seen, (line, _)| seen ^ line[0])
    }
}
