//! How the writer is slowed bit by bit while a flush is slower than what gathers behind it.
//!
//! Gathering rows have a share of the memory. Where they fill the share before the flush under way is done, the
//! writer must wait; left to the end, that is one long stand-still that everybody feels who writes just then. So
//! the wait is laid on the batches before it: of what may gather, no more does than of the time has passed that a
//! flush takes. What is written in all is the same, since the end of a flush ends each wait.

use std::time::{Duration, Instant};

/// Of the share, one part in so many is free: a burst that leaves room is never held up.
const FREE_PARTS: usize = 4;
/// A shorter wait costs more than it evens out. It is not lost: what follows waits for it.
const WAIT_MIN: Duration = Duration::from_millis(1);

/// Knows how long flushes take.
#[derive(Default)]
pub(super) struct Pace {
    /// The last two. The longer one counts: to expect too much costs less than a stand-still.
    took: [Duration; 2],
}

impl Pace {
    /// Notes how long a flush took that held the whole share; a smaller one says nothing of the next.
    pub(super) fn note(&mut self, took: Duration) {
        self.took = [took, self.took[0]];
    }

    /// Until when the writer waits, unless the flush which began at `begun` is done earlier, with `gathered` of the
    /// bytes of the `share` behind it; `None` if it goes on at once.
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
        let until = begun + Duration::from_nanos(nanos as u64);
        (until >= now + WAIT_MIN).then_some(until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARE: usize = 36 << 20;
    const BATCH: usize = 1 << 20;
    const MS: Duration = Duration::from_millis(1);

    /// The waits of a writer that decides a batch in 3 ms (the share in 108), while the flushes take these times.
    struct Met {
        longest_wait: Duration,
        in_all: Duration,
    }

    fn write(pace: Option<Pace>, flushes: &[Duration]) -> Met {
        let start = Instant::now();
        let (mut now, mut pace) = (start, pace);
        let mut met = Met { longest_wait: Duration::ZERO, in_all: Duration::ZERO };
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
    fn what_one_slow_flush_teaches_is_soon_forgotten() {
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
