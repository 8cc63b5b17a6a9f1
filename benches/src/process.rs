//! What processes have used: processor time, for this one also by thread, and memory.

use std::collections::BTreeMap;
use std::time::Duration;

/// The kernel counts the processor time of a process in ticks of this length.
const TICK: Duration = Duration::from_millis(10);

/// Processor time used until now.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    /// All threads, those that ended included; to 10 ms.
    pub total: Duration,
    /// Running threads, summed by name.
    pub threads: BTreeMap<String, Duration>,
}

impl Usage {
    /// What the kernel says now; nothing where there is no `/proc`.
    pub fn now() -> Self {
        let total = processor_time(std::process::id());
        Self { total: total.unwrap_or_default(), threads: threads().unwrap_or_default() }
    }

    /// What was used since an earlier moment.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let threads = self
            .threads
            .iter()
            .map(|(name, time)| {
                let before = earlier.threads.get(name).copied().unwrap_or_default();
                (name.clone(), time.saturating_sub(before))
            })
            .collect();
        Self { total: self.total.saturating_sub(earlier.total), threads }
    }
}

/// Processor time that a process has used, to 10 ms; nothing where there is no such process or no `/proc`.
pub fn processor_time(process: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    ticks(&stat).map(|ticks| TICK * ticks)
}

/// Time in user and kernel mode are the 14th and 15th field; the second, the name, may contain anything.
fn ticks(stat: &str) -> Option<u32> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u32>().ok();
    Some(next()? + next()?)
}

fn threads() -> Option<BTreeMap<String, Duration>> {
    let mut used = BTreeMap::new();
    for entry in std::fs::read_dir("/proc/self/task").ok()? {
        // A thread may end while we look: it is skipped.
        let Ok(path) = entry.map(|entry| entry.path()) else { continue };
        let name = std::fs::read_to_string(path.join("comm"));
        let time = std::fs::read_to_string(path.join("schedstat"));
        let (Ok(name), Ok(time)) = (name, time) else { continue };
        let nanos = time.split_whitespace().next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0);
        *used.entry(name.trim_end().to_owned()).or_default() += Duration::from_nanos(nanos);
    }
    Some(used)
}

/// Memory of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Bytes that are resident now.
    pub resident: u64,
    /// The most that ever were.
    pub peak: u64,
}

impl Memory {
    /// What the kernel says now; nothing where there is no `/proc`.
    pub fn now() -> Self {
        Self::of_process(std::process::id())
    }

    /// What the kernel says of a process; nothing where there is none, or no `/proc`.
    pub fn of_process(process: u32) -> Self {
        let status = std::fs::read_to_string(format!("/proc/{process}/status"));
        status.map_or_else(|_| Self::default(), |status| Self::of(&status))
    }

    fn of(status: &str) -> Self {
        let bytes = |field: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(field))?;
            line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib << 10)
        };
        Self { resident: bytes("VmRSS:").unwrap_or(0), peak: bytes("VmHWM:").unwrap_or(0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_found_behind_a_name_with_spaces_and_brackets() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 95 0 0 0 120 34 0 0 20 0 5 0 100 1 1";
        assert_eq!(ticks(stat), Some(154));
        assert_eq!(ticks("7 (a"), None);
    }

    #[test]
    fn memory_is_read_in_kibibytes() {
        let status = "Name:\tload\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(Memory::of(status), Memory { resident: 1 << 20, peak: 2 << 20 });
    }

    #[test]
    fn usage_is_a_difference_by_thread() {
        let at = |total, main| Usage {
            total: Duration::from_millis(total),
            threads: BTreeMap::from([("main".to_owned(), Duration::from_millis(main))]),
        };
        let used = at(50, 40).since(&at(20, 30));
        assert_eq!(used.total, Duration::from_millis(30));
        assert_eq!(used.threads["main"], Duration::from_millis(10));
    }
}
