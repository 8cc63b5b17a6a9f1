//! A log-linear histogram of durations.

use std::time::Duration;

/// Binary logarithm of the number of buckets per power of two. A quantile is at most 1/64 above the true
/// value.
const PART_BITS: u32 = 6;
const PARTS: u64 = 1 << PART_BITS;

/// Counts durations by magnitude with a relative error below 1.6 %. Recording takes a few nanoseconds and
/// never allocates.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        let buckets = (u64::from(u64::BITS - PART_BITS) + 1) * PARTS;
        Self { counts: vec![0; buckets as usize], count: 0, max: 0 }
    }
}

impl Histogram {
    /// Counts a duration. Durations above 584 years count as 584 years.
    pub fn record(&mut self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket_of(nanos)] += 1;
        self.count += 1;
        self.max = self.max.max(nanos);
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.count += other.count;
        self.max = self.max.max(other.max);
    }

    /// Returns the number of recorded durations.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the exact longest duration, or zero if there is none.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.max)
    }

    /// Returns the smallest duration that at least this part of all (0 to 1) does not exceed, rounded up to
    /// the precision of the histogram. Returns zero if there is none.
    pub fn quantile(&self, part: f64) -> Duration {
        let wanted = ((self.count as f64 * part).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Duration::from_nanos(last_of(bucket).min(self.max));
            }
        }
        Duration::ZERO
    }
}

fn bucket_of(value: u64) -> usize {
    if value < PARTS {
        return value as usize;
    }
    let shift = value.ilog2() - PART_BITS;
    // The highest bit selects the group, and the next six the bucket in it.
    (u64::from(shift + 1) * PARTS + (value >> shift) - PARTS) as usize
}

/// Returns the largest value of a bucket.
fn last_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < PARTS {
        return bucket;
    }
    let shift = bucket / PARTS - 1;
    let first = (bucket % PARTS + PARTS) << shift;
    first + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Random;

    #[test]
    fn finds_the_bucket_of_every_value() {
        let mut random = Random::new(1);
        let small = 0..1_000;
        let any = (0..10_000).map(|n| random.draw() >> (n % 64));
        for value in small.chain(any).chain([u64::MAX]) {
            let bucket = bucket_of(value);
            assert!(last_of(bucket) >= value, "{value} is beyond bucket {bucket}");
            assert!(bucket == 0 || last_of(bucket - 1) < value, "{value} belongs below bucket {bucket}");
        }
    }

    #[test]
    fn quantiles_are_within_the_precision() {
        let mut random = Random::new(2);
        let mut exact: Vec<u64> = (0..5_000).map(|_| random.below(50_000_000)).collect();
        let (mut first, mut second) = (Histogram::default(), Histogram::default());
        for (n, value) in exact.iter().enumerate() {
            let half = if n % 2 == 0 { &mut first } else { &mut second };
            half.record(Duration::from_nanos(*value));
        }
        first.merge(&second);
        exact.sort_unstable();
        assert_eq!(first.count(), 5_000);
        assert_eq!(first.max(), Duration::from_nanos(exact[4_999]));
        for (part, at) in [(0.5, 2_499), (0.99, 4_949), (0.999, 4_994), (1.0, 4_999)] {
            let (have, want) = (first.quantile(part).as_nanos() as u64, exact[at]);
            assert!(have >= want && have - want <= want / 60, "quantile {part}: {have} for {want}");
        }
    }

    #[test]
    fn empty_histogram_returns_zero() {
        assert_eq!(Histogram::default().quantile(0.99), Duration::ZERO);
    }
}
