//! Slows the writer down while a flush is running, so that memory fills at the rate at which the flush frees it.
//!
//! New rows have a fixed share of the memory. If they fill it before the running flush ends, the writer must stop
//! until it does, and every caller notices that long pause. So the delay is spread over the batches before it: the
//! filled part of the share never exceeds the part of the expected flush time that has passed. The throughput is the
//! same, because the end of the flush ends every wait.

use std::time::{Duration, Instant};

/// The first 1/4 of the share fills without any delay, so that short bursts are never delayed.
const FREE_PARTS: usize = 4;
/// Minimum wait. A shorter one costs more than it smooths; the next batches make up for it.
const WAIT_MIN: Duration = Duration::from_millis(1);

/// Predicts how long a flush takes.
#[derive(Default)]
pub(super) struct Pace {
    /// The durations of the last two full flushes. The longer one counts: expecting too much costs less than a full
    /// stop.
    took: [Duration; 2],
}

impl Pace {
    /// Records the duration of a flush of a full share. The duration of a smaller one predicts nothing.
    pub(super) fn note(&mut self, took: Duration) {
        self.took = [took, self.took[0]];
    }

    /// Returns the time until which the writer waits, unless the flush that began at `begun` ends earlier. `gathered`
    /// of the `share` bytes have accumulated behind that flush. Returns `None` if the writer need not wait.
    pub(super) fn wait_until(
        &self,
        begun: Instant,
        now: Instant,
        gathered: usize,
        share: usize,
    ) -> Option<Instant> {
        let free = share / FREE_PARTS;
        let paced = (share - free).max(1);
        let over = gathered.checked_sub(free)?.min(paced);
        let expected = self.took[0].max(self.took[1]);
        let nanos = expected.as_nanos() * over as u128 / paced as u128;
        let until = begun + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        (until >= now + WAIT_MIN).then_some(until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARE: usize = 36 << 20;
    const BATCH: usize = 1 << 20;
    const MS: Duration = Duration::from_millis(1);

    /// The waits of a simulated writer that decides one batch each 3 ms (the whole share in 108 ms) while flushes take
    /// the given times.
    struct SimulatedWaits {
        longest_wait: Duration,
        in_all: Duration,
    }

    fn write(pace: Option<Pace>, flushes: &[Duration]) -> SimulatedWaits {
        let start = Instant::now();
        let (mut now, mut pace) = (start, pace);
        let mut met = SimulatedWaits { longest_wait: Duration::ZERO, in_all: Duration::ZERO };
        for takes in flushes {
            let (begun, done) = (now, now + *takes);
            for gathered in (0..=SHARE).step_by(BATCH) {
                let before = now;
                if gathered == SHARE {
                    now = now.max(done);
                } else if let Some(pace) = pace.as_ref().filter(|_| now < done)
                    && let Some(until) = pace.wait_until(begun, now, gathered, SHARE)
                {
                    now = until.min(done);
                }
                met.longest_wait = met.longest_wait.max(now - before);
                if gathered < SHARE {
                    now += 3 * MS;
                }
            }
            if let Some(pace) = &mut pace {
                pace.note(*takes);
            }
        }
        met.in_all = now - start;
        met
    }

    fn taught(took: Duration) -> Pace {
        Pace { took: [took, took] }
    }

    #[test]
    fn a_stand_still_becomes_many_short_waits() {
        let flushes: Vec<Duration> = (0..20_u32).map(|n| MS * (295 + n * 7 % 10)).collect();
        let (wall, ramp) = (write(None, &flushes), write(Some(taught(300 * MS)), &flushes));
        assert!(wall.longest_wait > 180 * MS, "{:?}", wall.longest_wait);
        assert!(ramp.longest_wait < 20 * MS, "{:?}", ramp.longest_wait);
        assert!(ramp.in_all <= wall.in_all, "{:?} {:?}", ramp.in_all, wall.in_all);
    }

    #[test]
    fn a_flush_that_is_fast_enough_holds_nobody_up() {
        let met = write(Some(taught(90 * MS)), &[90 * MS; 20]);
        assert_eq!(met.longest_wait, Duration::ZERO);
        assert_eq!(met.in_all, 20 * 36 * 3 * MS);
    }

    #[test]
    fn a_slower_flush_is_waited_for_longer() {
        let met = write(Some(taught(300 * MS)), &[400 * MS]);
        assert!(met.longest_wait <= 110 * MS, "{:?}", met.longest_wait);
    }

    #[test]
    fn one_slow_flush_slows_the_writer_only_briefly() {
        let mut flushes = [90 * MS; 20];
        flushes[5] = 2000 * MS;
        let (wall, ramp) = (write(None, &flushes), write(Some(taught(90 * MS)), &flushes));
        assert!(ramp.in_all < wall.in_all + 200 * MS, "{:?} {:?}", ramp.in_all, wall.in_all);
    }

    #[test]
    fn a_burst_that_leaves_room_is_not_held_up() {
        let begun = Instant::now();
        let pace = taught(3600 * MS);
        assert_eq!(pace.wait_until(begun, begun, SHARE / FREE_PARTS, SHARE), None);
        let until = pace.wait_until(begun, begun, SHARE / 2, SHARE).unwrap();
        assert_eq!(until.duration_since(begun).as_millis(), 1200);
        assert_eq!(pace.wait_until(begun, until, SHARE / 2, SHARE), None);
    }
}
